"""What the service is sent and what it answers; made from its OpenAPI document by ``make types``.

A newer service may answer with more than stands here, never with less.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Metric(TypedDict):
    """A figure, with what it was taken over; `null` with a reason where it does not exist."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Of a cell: its runs repeated with these wordings. Of a total: personas like these, these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Of a total: these personas, these wordings, their runs repeated."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """These personas, wordings like these."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Of a total: personas like these, wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells, or personas, that lack the metric."""


class WeightedWithJudge(TypedDict):
    """The same of the sentences, or pairs, from which labelling rounds drew, each counting for as many as it stands for."""

    kendall_tau: Metric
    spearman_rho: NotRequired[Metric | None]
    """Of scores only."""
    exact_agreement: NotRequired[Metric | None]
    quadratic_kappa: NotRequired[Metric | None]
    alpha_ordinal: NotRequired[Metric | None]


class AgreementWithJudge(TypedDict):
    """How far annotators agree with one judge."""

    judge: str
    kendall_tau: Metric
    """Of scores τ_b between the judge's and the annotators' mean; of pairs τ_A: answers in the order of the judge's scores less those against it, by all. n counts the things compared."""
    spearman_rho: NotRequired[Metric | None]
    """Of scores only."""
    exact_agreement: NotRequired[Metric | None]
    """Share of answers that are the judge's score, each thing counting once. Of single sentences and grades only, like the two that follow."""
    quadratic_kappa: NotRequired[Metric | None]
    """Cohen's κ of the judge with each answer."""
    alpha_ordinal: NotRequired[Metric | None]
    """Krippendorff's α of the judge with each answer."""
    weighted: WeightedWithJudge
    """The same, of all that was drawn from; those above are of what was drawn."""
    left_out: dict[str, int]
    """`without_score`: the judge gave none; of pairs `same_score`: the same to both."""


Allocation: TypeAlias = Literal["even", "neyman"]
"""How a round's sentences are divided over the strata."""


class AmongAnnotators(TypedDict):
    """How far annotators agree with each other."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None
    """Where a PersonaGym task's rubric was used."""
    annotators: int
    n: int
    """Sentences, responses or pairs with an answer."""
    answers: int
    fleiss_kappa: Metric
    alpha_ordinal: Metric | None
    """Krippendorff's α of the scores; `null` of pairs."""


class Annotation(TypedDict):
    """One annotator's answer."""

    object: Literal["annotation"]
    job: str
    annotator: str
    response: str
    unit: int | None
    """`null`: the whole response."""
    dimension: str | None
    """`null`: by a PersonaGym task's rubric."""
    score: int | Literal["not_applicable"] | None
    """`null` of a pair."""
    other_response: str | None
    other_unit: int | None
    preferred: Literal["first", "second", "equal"] | None
    created_at: str
    updated_at: str


class AnnotationList(TypedDict):
    """A page of annotations, in the order in which they were first given."""

    data: list[Annotation]
    has_more: bool
    next_cursor: str | None


class FormerKey(TypedDict):
    """The key before the last rotation, while it is still taken."""

    prefix: str
    expires_at: str


class Spending(TypedDict):
    """What a key's jobs may spend together, and what they have."""

    usd_limit: float
    usd_spent: float
    """Recorded calls, and the worst case of those on their way or of unknown cost; of deleted jobs too."""


class ApiKey(TypedDict):
    """An API key, without what would let anybody use it."""

    id: str
    object: Literal["api_key"]
    name: str
    prefix: str
    """How the key begins, which is no secret."""
    scopes: list[Literal["read", "submit", "admin"]]
    status: Literal["live", "expired", "revoked"]
    former: FormerKey | None
    requests_per_minute: int | None
    spending: Spending | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    """To the minute."""


class SpendingIn(TypedDict):
    """What a key's jobs may spend together."""

    usd_limit: float
    """US dollars at list prices."""


class ApiKeyChangeIn(TypedDict):
    """What to change of a key; what is left out stays."""

    name: NotRequired[str]
    requests_per_minute: NotRequired[int | None]
    """`null` for no limit."""
    spending: NotRequired[SpendingIn]
    """Of a key that was made with a cap: what its jobs took so far was not counted otherwise."""


Scope: TypeAlias = Literal["read", "submit", "admin"]
"""What a key may do. Each may also do what those before it may."""


class ApiKeyIn(TypedDict):
    """A key that is to be made."""

    name: str
    """For people: who or what uses it."""
    scopes: Sequence[Scope]
    """`read` sees; `submit` also spends money and keeps or deletes things; `admin` also manages keys, webhooks and connections."""
    expires_at: NotRequired[str | None]
    """When it ends; `null` for never."""
    requests_per_minute: NotRequired[int | None]
    """How often it may ask; `null` for no limit."""
    spending: NotRequired[SpendingIn | None]
    """A cap on what all jobs that it submits spend together; `null` for none."""


class ApiKeyList(TypedDict):
    """A page of keys, newest first."""

    data: list[ApiKey]
    has_more: bool
    next_cursor: str | None


class AskedItem(TypedDict):
    """What was asked: a question or context."""

    id: str
    text: str
    """Empty where the task has none."""


class ScaleAnswer(TypedDict):
    """Integer scores from `minimum` to `maximum`, cut into equal levels."""

    minimum: int
    maximum: int
    levels: list[str]
    """Lowest first."""


class RcAtom(TypedDict):
    """RC_atom, and its parts: within_instruction, across_instructions."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Of a cell: its runs repeated with these wordings. Of a total: personas like these, these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Of a total: these personas, these wordings, their runs repeated."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """These personas, wordings like these."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Of a total: personas like these, wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells, or personas, that lack the metric."""
    within_instruction: float | None
    within_instruction_n: int
    within_instruction_reason: NotRequired[str | None]
    within_instruction_ci95: NotRequired[list[float] | None]
    within_instruction_ci95_reason: NotRequired[str | None]
    within_instruction_ci95_runs: NotRequired[list[float] | None]
    within_instruction_ci95_runs_reason: NotRequired[str | None]
    within_instruction_ci95_wordings: NotRequired[list[float] | None]
    within_instruction_ci95_wordings_reason: NotRequired[str | None]
    within_instruction_ci95_both: NotRequired[list[float] | None]
    within_instruction_ci95_both_reason: NotRequired[str | None]
    across_instructions: float | None
    across_instructions_n: int
    across_instructions_reason: NotRequired[str | None]
    across_instructions_ci95: NotRequired[list[float] | None]
    across_instructions_ci95_reason: NotRequired[str | None]
    across_instructions_ci95_runs: NotRequired[list[float] | None]
    across_instructions_ci95_runs_reason: NotRequired[str | None]
    across_instructions_ci95_wordings: NotRequired[list[float] | None]
    across_instructions_ci95_wordings_reason: NotRequired[str | None]
    across_instructions_ci95_both: NotRequired[list[float] | None]
    across_instructions_ci95_both_reason: NotRequired[str | None]


class RcAtomCorrected(TypedDict):
    """RC_atom, corrected, and its parts: ceiling."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Of a cell: its runs repeated with these wordings. Of a total: personas like these, these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Of a total: these personas, these wordings, their runs repeated."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """These personas, wordings like these."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Of a total: personas like these, wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells, or personas, that lack the metric."""
    ceiling: float | None
    ceiling_n: int
    ceiling_reason: NotRequired[str | None]
    ceiling_ci95: NotRequired[list[float] | None]
    ceiling_ci95_reason: NotRequired[str | None]
    ceiling_ci95_runs: NotRequired[list[float] | None]
    ceiling_ci95_runs_reason: NotRequired[str | None]
    ceiling_ci95_wordings: NotRequired[list[float] | None]
    ceiling_ci95_wordings_reason: NotRequired[str | None]
    ceiling_ci95_both: NotRequired[list[float] | None]
    ceiling_ci95_both_reason: NotRequired[str | None]


class CellMetrics(TypedDict):
    """The metrics of a cell or total."""

    mean: Metric
    """MEAN. The mean score of a response’s sentences; it should lie in the persona’s level. Atomic paper, Table 5."""
    acc: Metric
    """ACC. The share of responses whose mean score lies in the persona’s level. Atomic paper, section 4.2; Wang et al. (2024)."""
    rc: Metric
    """RC. Retest consistency of whole runs: 1 − 2σ ÷ the scale’s width, where σ is the standard deviation of the runs’ scores. Atomic paper, section 4.2; Wang et al. (2024)."""
    acc_atom: Metric
    """ACC_atom. The share of a response’s scored sentences that lie in the persona’s level. Atomic paper, section 3."""
    ic_atom: Metric
    """IC_atom. Internal consistency: 1 − 2σ ÷ the scale’s width, where σ is the standard deviation of one response’s scores. Needs at least two scored sentences. Atomic paper, section 3."""
    rc_atom: RcAtom
    """RC_atom. Retest consistency: how similar the score distributions of two runs are (Wasserstein distance), averaged over all pairs of runs. Atomic paper, section 3."""
    acc_atom_corrected: NotRequired[Metric]
    """ACC_atom, corrected. ACC_atom on a scale from 0, chance, to 1: (ACC_atom − c) ÷ (1 − c), where c is the share of the scale’s scores in the persona’s level. Not in the papers; Bennett, Alpert and Goldstein (1954)."""
    ic_atom_corrected: NotRequired[Metric]
    """IC_atom, corrected. IC_atom from the mean variance of responses’ scores with the denominator n − 1: no bias from the number of sentences. Not in the papers."""
    rc_corrected: NotRequired[Metric]
    """RC, corrected. RC with the standard deviation that few runs would not make too small: the denominator n − 1, and the factor 1 ÷ c₄(n). Not in the papers."""
    rc_atom_corrected: NotRequired[RcAtomCorrected]
    """RC_atom, corrected. RC_atom from √(d² − d₀²), where d is the mean distance of two runs and d₀ the one to be expected if the cell’s sentences had been dealt to its runs at random. Its ceiling is the RC_atom of runs that are alike. Not in the papers."""


class BaselineCell(TypedDict):
    """One published cell: model × persona × task × dimension."""

    source: Literal["atomic"]
    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool
    scale: ScaleAnswer
    runs: int
    metrics: CellMetrics
    coverage: NotRequired[None]
    """No paper tells it, nor what follows from it."""
    corrected: NotRequired[None]


class Spread(TypedDict):
    """A mean over personas, and the standard deviation between them."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Of a cell: its runs repeated with these wordings. Of a total: personas like these, these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Of a total: these personas, these wordings, their runs repeated."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """These personas, wordings like these."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Of a total: personas like these, wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells, or personas, that lack the metric."""
    sd: float | None
    """Denominator n − 1; `null` for fewer than two personas."""


class BaselineScores(TypedDict):
    """A row of PersonaGym's Table 1: mean, standard deviation and interval over 200 personas."""

    source: Literal["personagym"]
    model: str
    simulated: bool
    tasks_in_paper: int
    persona_score: NotRequired[Spread | None]
    """Absent where one task was asked for."""
    tasks: dict[str, Spread]


class BaselineSource(TypedDict):
    """A paper whose figures these are."""

    id: Literal["atomic", "personagym"]
    title: str
    year: int
    """Of the paper."""
    tables: str
    judges: list[str] | None
    """The judges' snapshots, where the paper tells them."""


class ResponseStatuses(TypedDict):
    """A cell's responses by what became of them before judging."""

    planned: int
    answered: int
    """Texts that are not refusals, empty ones included."""
    refused: int
    """By the model."""
    filtered: NotRequired[int]
    """Refused or stopped by the provider's content filter; not judged."""
    no_answer: NotRequired[int]
    """Nothing but thoughts, or stopped for a reason that ends no answer; not judged."""
    failed: int
    empty: int
    """Answers without a sentence."""
    truncated: NotRequired[int]
    """Answers that end at the longest length; judged like the others."""
    refused_units: int
    """Sentences that refusal detection kept from the judges."""


class BaselineTotal(TypedDict):
    """Unweighted means over published cells; the group's keys stand beside `by`."""

    source: Literal["atomic"]
    by: list[str]
    model: str
    """Of every group."""
    persona: NotRequired[str | None]
    task: NotRequired[str | None]
    level: NotRequired[str | None]
    dimension: NotRequired[str | None]
    simulated: bool
    cells: int
    generation: ResponseStatuses
    """Zeros: no paper tells it."""
    metrics: CellMetrics
    matched: NotRequired[CellMetrics | None]
    """As of results."""
    coverage: NotRequired[None]
    """No paper tells it, nor what follows from it."""
    corrected: NotRequired[None]


class Correlation(TypedDict):
    """How two metrics go together over cells (atomic paper, Tables 4 and 8)."""

    metrics: list[str]
    r: Metric
    """Pearson's; n counts the cells that have both."""


class UnitCounts(TypedDict):
    """Judged sentences by what became of the judgement."""

    total: int
    scored: int
    not_applicable: int
    refused: int
    unparsed: int
    failed: int
    filtered: NotRequired[int]
    """Refused by the content filter of the judge's provider."""


class GymResponses(TypedDict):
    """Responses to PersonaGym questions by what became of them."""

    planned: int
    answered: int
    refused: int
    """By the model."""
    failed: int
    filtered: NotRequired[int]
    """Refused or stopped by the provider's content filter."""
    no_answer: NotRequired[int]
    """Nothing but thoughts, or stopped for a reason that ends no answer; not graded."""


class TaskScore(TypedDict):
    """How well a model plays one persona in one task, 1–5; n counts questions with a grade."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Of a cell: its runs repeated with these wordings. Of a total: personas like these, these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Of a total: these personas, these wordings, their runs repeated."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """These personas, wordings like these."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Of a total: personas like these, wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells, or personas, that lack the metric."""
    questions: int
    """Questions asked."""
    grades: UnitCounts
    """Two judges' grades of a response count twice."""
    by_judge: dict[str, Metric]
    """The score by each judge alone."""
    responses: GymResponses


class PersonaResult(TypedDict):
    """How well a model plays one persona."""

    model: str
    persona: str
    persona_score: Metric
    """PersonaScore, 1–5: the mean over tasks, missing as soon as a task's score is; n counts questions."""
    tasks_in_job: int
    tasks_in_paper: int
    """A PersonaScore over fewer tasks is not comparable to the paper's."""
    tasks: dict[str, TaskScore]
    """Each of the job's, also without any grade."""
    responses: GymResponses


class Baselines(TypedDict):
    """Published figures in the form of results."""

    object: Literal["baselines"]
    published: Literal[True]
    note: str
    """What these figures can and cannot show."""
    sources: list[BaselineSource]
    cells: list[BaselineCell]
    totals: list[BaselineTotal]
    correlations: list[Correlation]
    """Over the cells that pass the filters."""
    persona_scores: list[PersonaResult]
    """Empty: no paper tells them by persona."""
    persona_score_totals: list[BaselineScores]


class BatchProgress(TypedDict):
    """A job's batches."""

    open: int
    """Those that have not ended."""
    ended: int
    calls_in_open: int
    calls_waiting: int
    """Calls that are in no batch yet."""
    cut_for_budget: int
    """Batches with fewer calls than waited, because the budget, or the key's cap, did not cover more at their worst."""


class UsdBudget(TypedDict):
    """A budget in US dollars."""

    limit: float
    spent: float
    """Of recorded calls; the worst case of those whose cost is unknown."""
    reserved: float
    """The worst case of calls on their way, and of those that a worker was at when it died."""
    remaining: float


class CountBudget(TypedDict):
    """A budget in calls or tokens; its parts as in US dollars."""

    limit: int
    spent: int
    reserved: int
    remaining: int


class BudgetAnswer(TypedDict):
    """The limits that a job has."""

    usd: NotRequired[UsdBudget | None]
    calls: NotRequired[CountBudget | None]
    tokens: NotRequired[CountBudget | None]


class BudgetIn(TypedDict):
    """What a job may spend. It is never exceeded: a call starts only if its worst case fits beside all others."""

    usd: NotRequired[float | None]
    """US dollars at list prices; every model that is called must have a known price."""
    calls: NotRequired[int | None]
    """Attempts, successful or not."""
    tokens: NotRequired[int | None]
    """Input and output tokens together."""


class InstructionTotal(TypedDict):
    """Unweighted means over the cells of one group, of their runs under one instruction."""

    by: list[str]
    """Names of the keys that make the group."""
    model: str
    task: NotRequired[str | None]
    level: NotRequired[str | None]
    cells: int
    metrics: dict[str, Metric]
    """`mean`, `acc`, `rc`, `acc_atom`, `ic_atom`, `rc_atom`. Intervals are for personas like these."""


class OfInstruction(TypedDict):
    """What the runs under one persona instruction give."""

    instruction: int
    """Its number, from 0."""
    words: str | None
    """What it says, `{persona}` standing for the persona; `null` for existing texts."""
    totals: list[InstructionTotal]


class ByInstruction(TypedDict):
    """A job's results by the wording of the persona instruction."""

    job: str
    simulated: bool
    instructions: list[OfInstruction]
    """Those that are known of some runs."""


class CalibratedFigure(TypedDict):
    """A total, or the difference of two models' totals, as people would give it."""

    keys: dict[str, str]
    """What its cells have in common; of a difference the models `a` and `b`, of which it is a − b."""
    metric: Literal["mean", "acc_atom", "acc_atom_corrected"]
    judged: float | None
    """As the judges give it."""
    calibrated: Metric
    """As people would give it. n counts labels. Of totals, `ci95` is over other personas like these and `ci95_runs` over these cells measured again, `ci95_wordings` and `ci95_both` as in the results; of differences there is none."""
    ci95_texts: list[float] | None
    """For these very texts, were other sentences labelled."""
    ci95_texts_reason: NotRequired[str | None]
    labels_needed: int | None
    """For `ci95_texts` of ± `half_width`, divided over the scores as now."""
    labels_needed_at_best: int | None
    """The same, divided as well as can be: more where people and judges differ more."""
    rogan_gladen: NotRequired[Metric | None]
    """Of models' ACC_atom: the judges' figure corrected by their sensitivity and specificity in each level, taken to be the same for all models."""


class Gain(TypedDict):
    """A figure with and without the persona, and the difference."""

    with_persona: float | None
    without: float | None
    gain: Metric
    """`with_persona` − `without`, with its intervals."""


class CellGains(TypedDict):
    """One cell of the results."""

    acc_atom: Gain
    """ACC_atom; without the persona the share of sentences on the persona's level."""
    mean_toward_level: Gain
    """MEAN, in points from the end of the scale that lies away from the persona's level; missing for a level in the middle."""
    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool


class Coverage(TypedDict):
    """Which share of the planned verdicts (grades) the figures are of."""

    share: float | None
    """`counted` of `planned`; `null` where nothing is planned."""
    counted: int
    """`scored`, and `not_applicable` in responses with a scored sentence; of grades the scored ones."""
    refused: int
    """Of those that do not count, what the model's refusals cost."""
    planned: int
    """Responses without judged sentences have as many as the others of their model and task on average."""


class Corrected(TypedDict):
    """What missing responses and verdicts can do to ACC_atom. Not in the papers."""

    acc_atom_composite: Metric
    """ACC_atom with each refusal as a response that is out of character throughout."""
    acc_atom_bounds: list[float] | None
    """ACC_atom if all that is missing were out of character, and if all were in character."""


class JudgedCell(TypedDict):
    """What of a cell is told of all judges together, and of each."""

    metrics: CellMetrics
    units: UnitCounts
    responses: dict[str, int]
    runs_used: int
    """Runs with a scored sentence, of the judge who could use the fewest."""
    scores: NotRequired[dict[str, int]]
    """How many sentences got each score."""


class CellResult(TypedDict):
    """One cell: model × persona × task × dimension."""

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool
    scale: ScaleAnswer
    runs: int
    generation: ResponseStatuses
    metrics: CellMetrics
    units: UnitCounts
    responses: dict[str, int]
    runs_used: int
    """Runs with a scored sentence, of the judge who could use the fewest."""
    scores: NotRequired[dict[str, int]]
    """How many sentences got each score."""
    coverage: NotRequired[Coverage | None]
    """Missing in results from before."""
    corrected: NotRequired[Corrected | None]
    """Missing in results from before."""
    by_judge: dict[str, JudgedCell]
    wording_effects: NotRequired[dict[str, dict[str, float]] | None]
    """By metric: how far it lies above what it would be without each persona instruction, by the instruction's number. Comparisons need it. Missing in results from before, and where fewer than three instructions are known."""


class CheckError(TypedDict):
    """Why there is no reply."""

    code: str
    """The provider's code, or one of ours."""
    status: int | None
    """HTTP status; `null` where no response came."""
    message: str
    cause: str
    """What happened, in plain words."""
    remedy: str
    """What to do about it."""


class CheckIn(TypedDict):
    """A model to be tried, as a job names it."""

    model: str
    """`connection/name`."""
    label: NotRequired[str | None]
    """How results name it; `model` unless given."""
    family: NotRequired[str | None]
    """A model name that says of which family it is, where its own does not, such as that of an Azure deployment: the parameters that the family refuses are not sent."""
    temperature: NotRequired[float | None]
    """`null`: is not sent."""
    top_p: NotRequired[float | None]
    """`null`: is not sent."""
    max_tokens: NotRequired[int | None]
    seed: NotRequired[int | None]
    """Run n of a cell is sent seed + n, so that runs differ."""
    stop: NotRequired[Sequence[str]]
    extra: NotRequired[Mapping[str, Any]]
    """Further fields of the provider's request body that only say how the model samples or reasons, such as `top_k`, `reasoning_effort` or `thinking`; the operator can allow others. Anything else is a 422 that names it."""
    role: NotRequired[Literal["judge", "model", "persona_agent"]]
    """As what a job would call it: that decides which parameters it is sent."""
    call: NotRequired[bool]
    """`false`: says what a job would send, and calls nobody."""


class CheckedLimits(TypedDict):
    """The rate limits that the reply's headers name."""

    requests_per_minute: float | None
    tokens_per_minute: float | None
    input_tokens_per_minute: float | None
    output_tokens_per_minute: float | None


class CheckedPrice(TypedDict):
    """US dollars per million tokens; `null` where no price is known."""

    input: float | None
    output: float | None
    source: str | None


class CheckedReply(TypedDict):
    """What the model answered."""

    text: str
    """Its beginning."""
    finish_reason: str
    model_snapshot: str | None
    """The model's name in the reply."""
    input_tokens: int | None
    output_tokens: int | None
    thoughts: bool
    """Whether the reply has thoughts, which are kept apart from its text."""


class CloneIn(TypedDict):
    """What is to be different when a job is run again."""

    changes: NotRequired[Mapping[str, Any]]
    """Fields of a job, each in place of the original's whole field; `null` leaves it out."""


class ComparedSide(TypedDict):
    """One of the two that were compared."""

    job: str | None
    baseline: str | None
    model: str
    completeness: Literal["full", "partial"]
    coverage: float | None
    """Share of the model's planned verdicts (grades) that its figures are of; `null` where it is not known."""
    simulated: bool


class Evidence(TypedDict):
    """How sure a difference is, for what is drawn anew: personas with all their pairs, or items."""

    ci95: list[float] | None
    ci95_reason: str | None
    """Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC of different numbers of runs (`other_runs`), no p."""
    p_value: float | None
    """Two-sided. Over personas and wordings by Student's t, over personas, or items, by permutation of signs."""
    p_value_holm: float | None
    """Corrected (Holm) for all metrics over all tasks but `primary`, whose p stays as it is, or for all metrics in single tasks."""
    smallest_p_value: float | None
    """The smallest that the permutations of so few of them can give."""
    smallest_detectable: float | None
    """The true difference that this comparison would find in 80 % of cases, at 5 %; `null` where there is none."""
    smallest_detectable_reason: str | None
    """Why there is none: so few personas, or items, show nothing, or all differ alike."""


class EvidenceOverItems(TypedDict):
    """How sure a difference is for these very personas, if they were asked other items like these."""

    items: int
    """Items, each persona's for itself."""
    ci95: list[float] | None
    ci95_reason: str | None
    """Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC of different numbers of runs (`other_runs`), no p."""
    p_value: float | None
    """Two-sided. Over personas and wordings by Student's t, over personas, or items, by permutation of signs."""
    p_value_holm: float | None
    """Corrected (Holm) for all metrics over all tasks but `primary`, whose p stays as it is, or for all metrics in single tasks."""
    smallest_p_value: float | None
    """The smallest that the permutations of so few of them can give."""
    smallest_detectable: float | None
    """The true difference that this comparison would find in 80 % of cases, at 5 %; `null` where there is none."""
    smallest_detectable_reason: str | None
    """Why there is none: so few personas, or items, show nothing, or all differ alike."""


class Difference(TypedDict):
    """One metric's paired difference, a − b, and how sure it is over personas like these."""

    metric: str
    """`rc_atom_rarefied` and `ic_atom_rarefied` are RC_atom and IC_atom at the same number of scored sentences; they are there where the texts differ in length."""
    task: str | None
    """`null` for all tasks together."""
    a: float
    """Mean of a's figures that have a partner."""
    b: float
    difference: float
    pairs: int
    """Pairs of figures."""
    personas: int
    """Personas that they come from."""
    population: str
    """Whom interval and p speak of: wordings (persona instructions) like these, where both sides have three or more, they are the same, and these tell how others would change the metric."""
    ci95: list[float] | None
    ci95_reason: str | None
    """Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC of different numbers of runs (`other_runs`), no p."""
    p_value: float | None
    """Two-sided. Over personas and wordings by Student's t, over personas, or items, by permutation of signs."""
    p_value_holm: float | None
    """Corrected (Holm) for all metrics over all tasks but `primary`, whose p stays as it is, or for all metrics in single tasks."""
    smallest_p_value: float | None
    """The smallest that the permutations of so few of them can give."""
    smallest_detectable: float | None
    """The true difference that this comparison would find in 80 % of cases, at 5 %; `null` where there is none."""
    smallest_detectable_reason: str | None
    """Why there is none: so few personas, or items, show nothing, or all differ alike."""
    these_wordings: Evidence | None
    """The same for these wordings alone; only where `population` has others."""
    over_items: EvidenceOverItems | None
    """Only where the pairs are items."""


class UnpairedFigure(TypedDict):
    """A figure that has no partner."""

    metric: str
    persona: str
    task: str | None
    dimension: str | None
    item: str | None
    """What was asked, where the pairs are items."""
    reason: str


class Comparison(TypedDict):
    """Paired differences of two models."""

    object: Literal["comparison"]
    a: ComparedSide
    b: ComparedSide
    pairing: Literal["cells", "items"]
    primary: str | None
    """The metric that decides, over all tasks; named beforehand."""
    simulated: bool
    differences: list[Difference]
    calibrated: list[CalibratedFigure]
    """a − b as people would give it, where labelling rounds' sentences of both are labelled; of paired cells only."""
    left_out: list[UnpairedFigure]
    notes: list[str]
    """What a reader must know to judge the differences."""


class SideIn(TypedDict):
    """One of the two that are compared: a job's model, or a published one."""

    job: NotRequired[str | None]
    """A job that is over."""
    model: NotRequired[str | None]
    """One of its models; not needed if it has only one."""
    baseline: NotRequired[str | None]
    """A model of the atomic paper, as `/v1/baselines` names it."""


class ComparisonIn(TypedDict):
    """Two models of one job, of two jobs, or a job's model and a published one."""

    a: SideIn
    b: SideIn
    pairing: NotRequired[Literal["cells", "items"]]
    """What makes a pair: the figures of a cell, or those of one item (a question, an essay's context) that both have answered as the same persona. Items are the same if they have the same words; published figures have none."""


class ModelOfMany(TypedDict):
    """One of the models that were compared."""

    job: str | None
    baseline: str | None
    model: str
    completeness: Literal["full", "partial"]
    coverage: float | None
    """Share of the model's planned verdicts (grades) that its figures are of; `null` where it is not known."""
    simulated: bool
    name: str
    """The model; with its job's id where several jobs have a model of this name."""
    left_out: int
    """Of the primary metric, its values that some other model has no partner for."""


class RankedModel(TypedDict):
    """A model by one metric."""

    name: str
    value: float
    """Mean over the values that all models have."""
    rank: list[int]
    """The best and the worst rank that it may have; 95 % for all models at once."""


class PairDifference(TypedDict):
    """Two models' paired difference, a − b."""

    a: str
    b: str
    difference: float
    ci95: list[float] | None
    """Holds for all pairs at once."""
    ci95_reason: str | None
    p_value: float | None
    """Of this pair alone."""
    p_value_corrected: float | None
    """For all pairs; of exploratory metrics for all pairs by all of these."""


class Ranking(TypedDict):
    """All models by one metric, over all tasks."""

    metric: str
    exploratory: bool
    """Whether it was not named beforehand: its tests are corrected for all such metrics, those of the primary one not."""
    population: str
    """Whom intervals and p-values speak of."""
    values: int
    """Values that each model has."""
    personas: int
    """Personas that they come from."""
    models: list[RankedModel]
    """The highest value first."""
    differences: list[PairDifference]
    """Each pair once, the model with the higher value first."""
    smallest_p_value: float | None
    """The smallest that permutations of so few personas can give; `null` where the tests are Student's t."""
    smallest_detectable: float | None
    """The true difference of two models that another comparison like this would find in 80 % of cases, corrected as here."""
    smallest_detectable_reason: str | None


class ComparisonOfModels(TypedDict):
    """Several models compared, each with each other one."""

    object: Literal["comparison_of_models"]
    models: list[ModelOfMany]
    primary: str
    """The metric that decides; named beforehand."""
    simulated: bool
    rankings: list[Ranking]
    """By each metric, the primary one first."""
    notes: list[str]
    """What a reader must know to judge the differences."""


class ConnectionAnswer(TypedDict):
    """A configured connection; its key is never shown."""

    id: str
    kind: str
    simulated: bool
    models: list[str] | None
    """Models that jobs may use; `null` for all."""
    requests_per_minute: float | None
    tokens_per_minute: float | None
    max_in_flight: int | None


class LimitsIn(TypedDict):
    """How fast a model may be called, by all workers together; no limit where none is given."""

    requests_per_minute: NotRequired[float | None]
    tokens_per_minute: NotRequired[float | None]
    max_in_flight: NotRequired[int | None]


class ConnectionLimitsIn(TypedDict):
    """Limits for each model by itself."""

    requests_per_minute: NotRequired[float | None]
    tokens_per_minute: NotRequired[float | None]
    max_in_flight: NotRequired[int | None]
    models: NotRequired[Mapping[str, LimitsIn]]
    """Of single models; what one leaves out is taken from the connection."""


class PricesIn(TypedDict):
    """US dollars per million tokens."""

    input: float
    output: float
    cached_input: NotRequired[float | None]
    """As `input` if left out."""
    batch_share: NotRequired[float]
    """What a call in a batch costs, as a share of these."""


class ConnectionChangeIn(TypedDict):
    """What to change of a connection; what is left out stays."""

    base_url: NotRequired[str]
    """With another scheme, host or port the key has to be given anew."""
    api_key: NotRequired[str | None]
    """`null` takes it away."""
    limits: NotRequired[ConnectionLimitsIn]
    prices: NotRequired[Mapping[str, PricesIn]]
    models: NotRequired[Sequence[str] | None]
    batches: NotRequired[bool]
    families: NotRequired[Mapping[str, str]]
    description: NotRequired[str | None]


class ConnectionIn(TypedDict):
    """A connection to a model provider."""

    name: str
    """How jobs name it: a model is `name/model`."""
    kind: Literal["openai", "anthropic", "completions"]
    """The wire format that its server speaks; `completions` is OpenAI's older one for base models, which know no roles."""
    base_url: str
    """What the format's paths are appended to. `https` and a public address, unless the operator allows its network."""
    api_key: NotRequired[str | None]
    """Kept encrypted, sent to the URL's scheme, host and port alone, and never shown again."""
    limits: NotRequired[ConnectionLimitsIn]
    """For each model by itself."""
    prices: NotRequired[Mapping[str, PricesIn]]
    """US dollars per million tokens, by the model's name."""
    models: NotRequired[Sequence[str] | None]
    """What jobs may use; all if left out."""
    batches: NotRequired[bool]
    """Whether it has the batch endpoints of its wire format."""
    families: NotRequired[Mapping[str, str]]
    """Which model stands behind a name that does not say so, such as a deployment's: what its family refuses is not sent."""
    description: NotRequired[str | None]
    """For people."""


class ConnectionList(TypedDict):
    """All configured connections."""

    data: list[ConnectionAnswer]


class ControlCell(TypedDict):
    """One model's answers in one task, without a persona, on one dimension."""

    model: str
    task: str
    dimension: str
    simulated: bool
    runs: int
    generation: ResponseStatuses
    coverage: Coverage
    units: UnitCounts
    mean: Metric
    """MEAN."""
    acc_atom: dict[str, Metric]
    """By level: the share of sentences on it, which is ACC_atom of a persona who had no effect."""


class GainTotal(TypedDict):
    """Unweighted means over the cells of one group that have the figure in both arms."""

    acc_atom: Gain
    """ACC_atom; without the persona the share of sentences on the persona's level."""
    mean_toward_level: Gain
    """MEAN, in points from the end of the scale that lies away from the persona's level; missing for a level in the middle."""
    by: list[str]
    model: str
    task: NotRequired[str | None]
    persona: NotRequired[str | None]
    dimension: NotRequired[str | None]
    level: NotRequired[str | None]
    cells: int
    simulated: bool


class PersonaScoreGain(TypedDict):
    """PersonaScore of one persona and model; its interval is over other questions."""

    with_persona: float | None
    without: float | None
    gain: Metric
    """`with_persona` − `without`, with its interval."""
    model: str
    persona: str


class ScoreGain(TypedDict):
    """A score with and without the persona, over the questions graded both ways, and the difference."""

    with_persona: float | None
    without: float | None
    gain: Metric
    """`with_persona` − `without`, with its interval."""


class PersonaScoreGainTotal(TypedDict):
    """A model's mean PersonaScore over personas; its interval is over other personas."""

    with_persona: float | None
    without: float | None
    gain: Metric
    """`with_persona` − `without`, with its interval."""
    model: str
    tasks: dict[str, ScoreGain]
    coverage: Coverage
    """Of the grades planned without the persona."""


class ControlArm(TypedDict):
    """What the models are without a persona, and what the personas change."""

    cells: list[ControlCell]
    """model × task × dimension, without a persona."""
    gains: list[CellGains]
    """By cell of the results."""
    totals: list[GainTotal]
    persona_scores: list[PersonaScoreGain]
    """PersonaGym's, by persona and model."""
    persona_score_totals: list[PersonaScoreGainTotal]
    """By model."""


class Cost(TypedDict):
    """US dollars spent."""

    usd: float | None
    """`null` where no price is known."""
    unpriced_calls: int
    """Calls that cost, or may have cost, something unknown and are not in the sum."""


class Delivery(TypedDict):
    """A message to a webhook, and how its delivery goes."""

    id: str
    """The message's id, its header `webhook-id`: the same in every attempt."""
    object: Literal["webhook_delivery"]
    webhook: str
    event: str
    job: str | None
    """`null` in a test."""
    state: Literal["waiting", "delivered", "given_up"]
    attempts: int
    http_status: int | None
    """What the receiver last answered, if it did."""
    error: str | None
    """Why the last attempt failed."""
    created_at: str
    attempted_at: str | None
    next_attempt_at: str | None
    ended_at: str | None


class DeliveryList(TypedDict):
    """A page of messages, newest first."""

    data: list[Delivery]
    has_more: bool
    next_cursor: str | None


class DetectIn(TypedDict):
    """A difference of two models that a comparison of the planned job's results shall find."""

    difference: float
    """The true difference."""
    power: NotRequired[float]
    """In which share of such jobs it shall be found."""
    metric: NotRequired[Literal["acc_atom", "acc", "ic_atom", "mean"]]
    """Over all tasks."""
    population: NotRequired[Literal["both", "personas"]]
    """`both`: personas like these, wordings like these. `personas`: personas like these, these wordings."""
    models: NotRequired[int | None]
    """How many models are compared with each other at once, all pairs at 5 % together. As many as the job has, unless given."""
    from_job: NotRequired[str | None]
    """A finished job of at least two models, whose differences tell how much they vary with personas, wordings and runs."""


class JobSize(TypedDict):
    """How large a job is, and what it would find."""

    personas: int
    wordings: int
    """Persona instructions."""
    iterations: int
    power: float | None
    """Share of such jobs whose comparison finds the difference."""
    reason: str | None
    """Why they find none, however great."""
    calls: int
    """Of all the job's models and judges."""
    usd: float | None
    """Expected cost, without the plan's `unpriced_models`; `null` where no price is known."""


class NoiseOfDifferences(TypedDict):
    """A standard deviation of two models' differences."""

    of: Literal["personas", "levels", "wordings", "personas_and_wordings", "runs"]
    """What they vary with. `personas`: on one level; `levels` matter only under these wordings; `runs`: 0 where they are part of `personas_and_wordings`."""
    sd: float
    source: str
    """`from_job`; `published`: the atomic paper's 540 cells, all pairs of its models; `assumed`: nothing tells it."""


class Detection(TypedDict):
    """How large a job finds a difference of two models."""

    metric: str
    difference: float
    power: float
    models: int
    """Compared with each other at once: the chance of any false alarm is 5 %."""
    population: str
    planned: JobSize
    """The job as it is described."""
    options: list[JobSize]
    """With the fewest personas for so many wordings and iterations, cheapest first; personas like the job's on average."""
    reason: str | None
    """Why there are no options."""
    noise: list[NoiseOfDifferences]


class DimensionAnswer(TypedDict):
    """A built-in dimension."""

    id: str
    label: str
    """Its name for people."""
    in_words: dict[str, str]
    """What having each level is called, the lowest level first."""
    name: str
    """Its word in the scoring prompt, which need not name its high end."""
    minimum: int
    maximum: int
    levels: list[str]
    options: str
    questions: list[str]
    essay_context: str | None


class JudgeErrors(TypedDict):
    """A judge's errors on some sentences, each counting for as many as it stands for."""

    judge: str
    by: Literal["level", "model", "length"] | None
    """`null`: of all."""
    key: str | None
    mean_difference: Metric
    """The judge's score less the annotators'."""
    exact_agreement: Metric
    from_others: Metric
    """`mean_difference` less that of all other sentences."""
    confusion: dict[str, dict[str, Metric]]
    """By the annotators' score the share of each of the judge's."""


class DimensionCalibration(TypedDict):
    """What labels of rounds say of the figures on one dimension."""

    dimension: str
    labels: int
    """Sentences that rounds drew and somebody labelled."""
    totals: list[CalibratedFigure]
    differences: list[CalibratedFigure]
    judge_errors: list[JudgeErrors]


class ScaleIn(TypedDict):
    """The scores of a dimension."""

    minimum: NotRequired[int]
    """Lowest score."""
    maximum: NotRequired[int]
    """Highest score."""
    not_applicable: NotRequired[int]
    """Option by which a judge says that the sentence carries no such trait."""


class DimensionIn(TypedDict):
    """A dimension beyond the Big Five."""

    id: str
    """Used in traits and results."""
    name: str
    """The word in the questionnaire's scoring prompt."""
    options: str
    """The answer options as the judge reads them."""
    scale: NotRequired[ScaleIn]
    levels: NotRequired[Sequence[str]]
    """Names of the equal parts into which the scale is cut, from the lowest up."""
    questions: NotRequired[Sequence[str]]
    """Interview questions; the questionnaire needs them."""
    essay_context: NotRequired[str | None]
    """The essay's scenario; the essay task needs it."""
    label: NotRequired[str | None]
    """What people are shown as its name; `name` unless given. In no prompt."""
    level_words: NotRequired[Mapping[str, str]]
    """What levels mean, by level, where their names do not say it. In no prompt."""


class DimensionInWords(TypedDict):
    """How people are shown a dimension."""

    id: str
    label: str
    """Its name for people."""
    in_words: dict[str, str]
    """What having each level is called, the lowest level first."""


class Diversity(TypedDict):
    """How alike generated personas are: Jaccard similarities, 0 to 1, over all pairs of them."""

    pairs: int
    highest_attributes: float
    """Of two descriptions' content words."""
    mean_attributes: float
    highest_wording: float
    """Of two descriptions' sequences of three characters."""
    mean_wording: float


class FailedCalls(TypedDict):
    """Calls of one stage and model that failed alike."""

    stage: str
    model: str
    code: str
    """The provider's code, or one of ours such as `timeout`."""
    http_status: int | None
    """`null` where no answer came."""
    detail: str | None
    """The provider's words to one of them, at most 300 characters."""
    calls: int
    """Attempts; those that were repeated with success are among them."""
    last_at: str


class Finding(TypedDict):
    """A sentence for people."""

    good: bool
    text: str


FinishReason: TypeAlias = Literal["stop", "length", "content_filter", "refusal", "unstated", "other"]
"""Why a model stopped, in one vocabulary for all providers."""


class GateCheck(TypedDict):
    """One figure held to one threshold."""

    threshold: str
    of: dict[str, str]
    """What the figure is of."""
    verdict: Literal["pass", "fail", "inconclusive"]
    reason: str
    value: float | None
    ci95: list[float] | None
    coverage: float | None
    """Share of the planned verdicts, grades or cells, whichever is smaller, that the figure is of; `null` of refusal rates, and where it was not counted."""


class Gate(TypedDict):
    """`fail` if any check fails, else `inconclusive` if any is, else `pass`."""

    job: str
    object: Literal["gate"]
    verdict: Literal["pass", "fail", "inconclusive"]
    minimum_coverage: float
    """A figure of less than this is inconclusive."""
    checks: list[GateCheck]


class GradeAgreement(TypedDict):
    """The agreement of two judges' grades in one task; each figure's n is the number of responses that both graded."""

    task: str
    judges: list[str]
    """Sorted."""
    n: int
    """Responses that both graded."""
    quadratic_kappa: Metric
    """Cohen's κ with quadratic weights: 0 is chance, 1 perfect."""
    spearman: Metric
    """Spearman's ρ."""
    mean_absolute_difference: Metric
    """In points of the scale; 0 is perfect."""


class Health(TypedDict):
    """Whether the service can do its work."""

    status: Literal["ok", "unavailable"]
    """Whether all parts can be used."""
    parts: NotRequired[dict[str, str]]
    """What each says: `ok`, or what is wrong with it."""


class HeldModel(TypedDict):
    """A model that the rate limiter lets nobody call for a while."""

    model: str
    until: str
    reason: str | None
    """Such as a day's limit that is used up; `null` where it is not known."""


class WeightedAgreement(TypedDict):
    """Agreement of the sentences, or pairs, from which labelling rounds drew."""

    fleiss_kappa: Metric
    population: int
    """Sentences, or pairs, from which rounds drew; 0 without a round."""
    covered: int
    """Of them those in strata with an answer, of which all weighted figures are."""


class HumanAgreement(TypedDict):
    """How far annotators agree with the judges and with each other, on one dimension (atomic paper, Table 3)."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None
    """Where a PersonaGym task's rubric was used."""
    annotators: int
    n: int
    """Sentences, responses or pairs with an answer."""
    answers: int
    not_applicable: int
    """Those that all who answered found not applicable."""
    fleiss_kappa: Metric
    """Among the annotators; n counts those with two answers or more."""
    weighted: WeightedAgreement
    judges: list[AgreementWithJudge]


class ModelAgreement(TypedDict):
    """How far annotators agree with one judge, or with the mean of all, on one model's texts."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    """`null`: by PersonaGym's rubrics."""
    model: str | None
    """`null` of pairs, which are of all models."""
    task: str | None
    """`null` of pairs, which are of all tasks, and of the PersonaScore over personas."""
    judge: str | None
    """`null`: the mean of the judges that gave a score."""
    personas: int
    """Over how many; intervals are over personas, of pairs over pairs."""
    left_out: int
    """Things with an answer that lack the judge's score, of pairs also those with equal scores; of the PersonaScore, personas without an answer for each task."""
    kendall_tau: Metric
    """τ_b of the annotators' mean with the judge's score, of pairs τ_A. n counts sentences, responses, pairs, or personas."""
    kendall_p: float | None
    """By a permutation test: scores exchanged between personas; of pairs by a sign test."""
    spearman_rho: Metric | None
    """`null` of pairs."""
    spearman_p: float | None


class HumanStudy(TypedDict):
    """How far people agree with a job's judges by model and task, and with each other; empty where nobody has annotated."""

    job: str
    among_annotators: list[AmongAnnotators]
    data: list[ModelAgreement]
    """By kind, dimension, model, task and judge."""


JobStatus: TypeAlias = Literal[
    "queued", "running", "paused", "cancelling", "finalizing", "completed", "failed", "cancelled"
]
"""Where a job stands; the names are those of the HTTP contract."""


Priority: TypeAlias = Literal["low", "normal", "high"]
"""A job's priority; the names are those of the HTTP contract."""


class JobError(TypedDict):
    """What stopped a job; what is not known, or says nothing of it, is left out."""

    code: str
    batch: NotRequired[int | None]
    """Where it is about a batch."""
    cause: NotRequired[str | None]
    """What happened, in plain words."""
    model: NotRequired[str | None]
    """Whose calls it is about."""
    shard: NotRequired[int | None]
    """Of an error of the service, for its log."""
    stage: NotRequired[str | None]
    """Of the calls that it is about."""
    detail: str
    """The provider's words, or ours."""
    remedy: NotRequired[str | None]
    """What to change before the job can go on."""
    first_calls: NotRequired[int | None]
    """So many first calls of the stage all failed alike, where that stopped it."""


class Job(TypedDict):
    """A job."""

    id: str
    object: Literal["job"]
    name: str | None
    status: JobStatus
    status_reason: str | None
    """Why it is paused, failed or cancelled."""
    completeness: Literal["full", "partial"]
    simulated: bool
    """Whether a simulated model or judge takes part."""
    created_at: str
    started_at: str | None
    finished_at: str | None
    spec: dict[str, Any]
    """The body of the POST, existing texts left out."""
    metadata: dict[str, str]
    priority: Priority
    error: JobError | None
    """What stopped it."""
    links: dict[str, str]
    """Where to read on; `question_set` and `persona_set` once the job has made one."""


class JobCalibration(TypedDict):
    """A job's totals as people would give them; empty where no sentence that a round drew is labelled."""

    job: str
    half_width: float
    totals: list[CalibratedFigure]
    """Over all dimensions; null where on one of them no sentence is labelled."""
    differences: list[CalibratedFigure]
    not_calibrated: dict[str, str]
    """Why the other metrics are not here."""
    data: list[DimensionCalibration]
    """By dimension."""


class JobChangeIn(TypedDict):
    """What of a job can be changed."""

    budget: BudgetIn
    """New limits, of the kinds that the job was submitted with; what is left out stays."""


class StageProgress(TypedDict):
    """How far one stage is; the parts add up to the total."""

    total: int
    pending: int
    running: int
    succeeded: int
    failed: int
    estimated: bool
    """Whether the total is still an estimate."""


class ModelUsage(TypedDict):
    """Calls and tokens of one stage on one model."""

    stage: str
    model: str
    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    usd: float | None
    """`null` where no price is known."""
    unpriced_calls: int


class JobUsage(TypedDict):
    """Calls and tokens of a job."""

    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    by_model: list[ModelUsage]


class Retrying(TypedDict):
    """Calls that have all failed so far and are tried again."""

    stage: str
    model: str
    attempts: int
    cause: str
    """Why, in plain words."""
    remedy: str
    """What to do about it."""


class SparedByModel(TypedDict):
    """The same of one stage on one model."""

    stage: str
    model: str
    same_job: int
    """Replies to identical calls of the job itself."""
    other_job: int
    """Replies to calls of your other jobs."""
    input_tokens: int
    output_tokens: int
    usd: float | None
    """`null` where no price is known."""
    unpriced_replies: int
    """Replies whose price is unknown and not in the sum."""


class ReuseAnswer(TypedDict):
    """What a job was spared; nothing of it is in `usage`, `cost` or the budget."""

    same_job: int
    """Replies to identical calls of the job itself."""
    other_job: int
    """Replies to calls of your other jobs."""
    input_tokens: int
    output_tokens: int
    usd: float | None
    """`null` where no price is known."""
    unpriced_replies: int
    """Replies whose price is unknown and not in the sum."""
    oldest: str | None
    """When the oldest of these replies was asked for."""
    by_model: list[SparedByModel]


class JobDetail(TypedDict):
    """A job with its progress and what it has taken."""

    id: str
    object: Literal["job"]
    name: str | None
    status: JobStatus
    status_reason: str | None
    """Why it is paused, failed or cancelled."""
    completeness: Literal["full", "partial"]
    simulated: bool
    """Whether a simulated model or judge takes part."""
    created_at: str
    started_at: str | None
    finished_at: str | None
    spec: dict[str, Any]
    """The body of the POST, existing texts left out."""
    metadata: dict[str, str]
    priority: Priority
    error: JobError | None
    """What stopped it."""
    links: dict[str, str]
    """Where to read on; `question_set` and `persona_set` once the job has made one."""
    progress: dict[str, StageProgress]
    usage: JobUsage
    cost: Cost
    failures: list[FailedCalls]
    """Failed calls by stage, model, code and words, the most frequent first; at most 50."""
    retrying: list[Retrying]
    """Models of a job at work that have not answered any call of a stage; their calls are tried again."""
    held: list[HeldModel]
    """Models that a job at work waits for, because a provider's limit is used up for some seconds or longer."""
    budget: BudgetAnswer | None
    """`null` for a job without a budget."""
    reuse: ReuseAnswer | None
    """`null` for a job that does not ask for it."""
    batches: BatchProgress | None
    """`null` for a job whose calls are direct."""


JobEvent: TypeAlias = Literal["job.completed", "job.failed", "job.cancelled", "job.paused"]
"""What may happen to a job that somebody may want to be told of."""


class PersonaIn(TypedDict):
    """A persona written out in the job."""

    id: str
    """Unique in the job."""
    description: str
    """The words put in place of `{persona}` in the instructions."""
    traits: NotRequired[Mapping[str, str]]
    """Level by dimension. Atomic tasks measure each; each becomes a cell of its own."""


class TaskIn(TypedDict):
    """A task with options that only PersonaGym's tasks take."""

    task: str
    """The task's id."""
    atomic: NotRequired[bool | None]
    """Also judge every sentence of the answers for its consistency with the persona."""
    questions: NotRequired[int | None]
    """Questions for each persona; 10, as in the paper, unless given."""
    questions_per_environment: NotRequired[bool | None]
    """Make that many questions for each of a persona's environments."""
    runs: NotRequired[int | None]
    """How often each question is answered; once unless given."""


class ModelIn(TypedDict):
    """A model with its parameters. What is left out is the paper's for judges and PersonaGym, else the provider's default."""

    model: str
    """`connection/name`."""
    label: NotRequired[str | None]
    """How results name it; `model` unless given."""
    family: NotRequired[str | None]
    """A model name that says of which family it is, where its own does not, such as that of an Azure deployment: the parameters that the family refuses are not sent."""
    temperature: NotRequired[float | None]
    """`null`: is not sent."""
    top_p: NotRequired[float | None]
    """`null`: is not sent."""
    max_tokens: NotRequired[int | None]
    seed: NotRequired[int | None]
    """Run n of a cell is sent seed + n, so that runs differ."""
    stop: NotRequired[Sequence[str]]
    extra: NotRequired[Mapping[str, Any]]
    """Further fields of the provider's request body that only say how the model samples or reasons, such as `top_k`, `reasoning_effort` or `thinking`; the operator can allow others. Anything else is a 422 that names it."""


class ResponseIn(TypedDict):
    """A text that already exists."""

    persona: str
    """One of the job's personas."""
    task: str
    """One of the job's tasks."""
    text: str
    """The response, as it was written. Thoughts in tags at its beginning are kept apart and not judged."""
    item: NotRequired[str | None]
    """Which item it answers; needed where a cell has several."""
    run: NotRequired[int | None]
    """Which repetition; in the given order if left out."""
    instruction: NotRequired[int | None]
    """Number, from 0, of the persona instruction under which it was written."""
    model: NotRequired[str]
    """Who wrote it, as results shall name it."""


class JudgingCheckIn(TypedDict):
    """The sample that is judged sentence by sentence as well, drawn by the job's seed. It can't be left out."""

    share: NotRequired[float]
    """Share of the responses."""
    minimum: NotRequired[int]
    """At least so many responses, or all where there are fewer."""


class OrderCheckIn(TypedDict):
    """The sentences that each judge judges three times more, drawn by the job's seed; none of it counts in a metric."""

    share: float
    """Share of the sentences."""


class JudgingIn(TypedDict):
    """How sentences are judged."""

    sentences_per_call: NotRequired[int]
    """Sentences of a response that a judge is asked about in one call, at most. 1 is the papers' way; with more, with a prompt of this project's own, `judging_check` in the results says how far the verdicts differ."""
    check: NotRequired[JudgingCheckIn | None]
    """Of a job with several sentences a call: what is judged one by one as well."""
    order_check: NotRequired[OrderCheckIn | None]
    """Sentences that are judged again with the options reversed, with their numbers shuffled, and once more as they are: `order_check` in the results says how far a judge depends on the order."""


class VersionsIn(TypedDict):
    """Versions of the rules by which texts are read, for a job that is to be compared with an older one."""

    segmenter: NotRequired[str | None]
    """What splits texts into sentences."""
    refusals: NotRequired[str | None]
    """What tells refusals from responses."""
    injections: NotRequired[str | None]
    """What recognises texts that address the judge."""


class ReuseIn(TypedDict):
    """Which calls are not made where an equal request has been answered already; by default all are made."""

    judging: NotRequired[Literal["off", "in_job", "across_jobs"]]
    """For judges at temperature 0: `in_job` makes the job's identical calls once, `across_jobs` also uses, and leaves behind, replies to and from your other jobs."""
    generation: NotRequired[Literal["off", "across_jobs"]]
    """For the models under test: a text is only used for the same repetition of the same item, so that an equal job gets the same texts and no job gets one twice."""


class JobIn(TypedDict):
    """A job: personas × tasks × models, each repeated under every instruction; or existing texts to be judged."""

    name: NotRequired[str | None]
    """For people."""
    personas: Sequence[str | PersonaIn]
    """Ids of personas or persona sets (`GET /v1/personas`, `GET /v1/persona-sets`), or personas written out."""
    tasks: Sequence[str | TaskIn]
    """Task ids (`GET /v1/tasks`), or tasks with options."""
    judges: NotRequired[Sequence[str | ModelIn]]
    """Judges; each judges every sentence, and grades every PersonaGym answer, alone. Temperature 0 unless given. If none is named, those of the operator's configuration; two simulated ones where only the simulator is configured."""
    models: NotRequired[Sequence[str | ModelIn]]
    """Models under test."""
    responses: NotRequired[Sequence[ResponseIn] | None]
    """Texts that already exist, instead of `models`."""
    dimensions: NotRequired[Sequence[DimensionIn]]
    """Dimensions beyond the Big Five."""
    instructions: NotRequired[Literal["all"] | Sequence[str | int]]
    """Persona instructions of the atomic tasks: all six of the paper, or some by number (from 0, as `GET /v1/personas` lists them), or texts."""
    iterations: NotRequired[int]
    """Repetitions under each instruction."""
    seed: NotRequired[int]
    """Seed of everything random on the service's side."""
    reasoner: NotRequired[str | ModelIn | None]
    """Selects environments and makes up questions and exemplars; PersonaGym's tasks need one. Temperature and top_p 0.9 unless given."""
    questions: NotRequired[str | Mapping[str, Mapping[str, Sequence[str]]] | None]
    """Questions that exist already: a question set's id, or questions by task by persona (id, description, or the name of its published file). What is missing is made up."""
    environments: NotRequired[Sequence[str] | Mapping[str, Sequence[str]] | None]
    """Environments, for all personas or by persona id, instead of selecting them."""
    environment_pool: NotRequired[Sequence[str] | None]
    """Environments to select from, instead of the built-in 150."""
    gym_instruction: NotRequired[str | None]
    """PersonaGym's persona instruction: `adopt` (the paper's appendix) or `closely_mirror` (its section 3.2)."""
    thresholds: NotRequired[Sequence[str]]
    """What `GET /v1/jobs/{id}/gate` holds the results to, unless its query says otherwise."""
    minimum_coverage: NotRequired[float]
    """The gate is inconclusive about a figure of a smaller share of what was planned."""
    control: NotRequired[bool]
    """Also ask each model without a persona, the items of the atomic tasks once for all personas and PersonaGym's questions of each, and report in `control` how far its figures with a persona lie above those without."""
    protocol: NotRequired[Literal["paper", "hardened"]]
    """`paper`: the papers' words and definitions. `hardened`: judges are told besides what of their prompts is the judged text, and show by a key word that they follow ours and not its instructions."""
    budget: NotRequired[BudgetIn | None]
    """What it may spend; used up, the job pauses with `status_reason: budget_exhausted`."""
    confirm_calls: NotRequired[int | None]
    """How many calls you expect: a job that is planned with more is refused. Large jobs need it; the plan's `confirm_calls` says so, and what to give."""
    priority: NotRequired[Literal["low", "normal", "high"]]
    """Where its calls wait beside those of your other jobs: each step has four times the turns."""
    judging: NotRequired[JudgingIn]
    """How sentences are judged: one by one, unless given."""
    versions: NotRequired[VersionsIn | None]
    """Rules of earlier versions, as `GET /v1/tasks` lists them; those not named are the latest. A job keeps its versions, whatever a later release brings."""
    reuse: NotRequired[ReuseIn | None]
    """Whether replies are used again; what that spared is told in `reuse`."""
    execution: NotRequired[Literal["direct", "batch"]]
    """`batch` sends the calls through the providers' batch endpoints: half the price, within a day. PersonaGym's preparations are called directly all the same."""
    metadata: NotRequired[Mapping[str, str]]
    """Labels of your own; jobs can be listed by them."""


class JobList(TypedDict):
    """A page of jobs, newest first."""

    data: list[Job]
    has_more: bool
    next_cursor: str | None


class JudgeResult(TypedDict):
    """What one judge did in the whole job."""

    judge: str
    simulated: bool
    """Whether it was a simulated one."""
    units: UnitCounts


class ResponseUsage(TypedDict):
    """Tokens of one response."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int | None
    """Those of the output that are thoughts; `null` where the provider does not say."""


VerdictStatus: TypeAlias = Literal["scored", "not_applicable", "refused", "unparsed", "filtered", "failed"]
"""What became of one judgement; only `scored` carries a number."""


ReplyOrigin: TypeAlias = Literal["same_job", "other_job"]
"""Where a reply that was used again comes from."""


Suspicion: TypeAlias = Literal["text", "reply", "both"]
"""What makes a verdict doubtful."""


class UnitVerdict(TypedDict):
    """One judge's verdict on one sentence."""

    judge: str
    dimension: str
    status: VerdictStatus
    """`filtered`: refused by the content filter of the judge's provider, not by the judge."""
    score: int | None
    raw: str | None
    """The judge's reply; `null` where it was not asked or never answered. Untrusted text."""
    error: str | None
    """Why there is no reply; `null` where there is one. Untrusted text."""
    in_character: bool | None
    """Whether the score lies in the persona's level; `null` without a score or a persona."""
    group_size: int
    """Sentences that the judge was asked about in the same call; 1 where alone."""
    reused: ReplyOrigin | None
    """Which job's reply it is, if no call was made for it."""
    suspicion: Suspicion | None
    """What makes it doubtful: `text` (it addresses the judge), `reply` (under `hardened`: without the key word) or `both`."""
    finish_reason: FinishReason | None
    """Why the judge's reply ended; `null` where there is none, or if that was not kept."""
    thoughts: str | None
    """What the judge thought before; nothing of it is scored. Untrusted text."""


class JudgedUnit(TypedDict):
    """One sentence."""

    index: int
    span: list[int]
    """Offsets in the response's text, in Unicode code points."""
    text: str
    """The sentence as the judge read it. Untrusted text."""
    verdicts: list[UnitVerdict]
    """Ordered by dimension and judge; not all may be there yet."""


class ResponseGrade(TypedDict):
    """One judge's grade of a whole response, by its question's rubric."""

    judge: str
    status: VerdictStatus
    """Never `not_applicable`."""
    score: int | None
    """1 to 5."""
    justification: str | None
    """The judge's reasons; `null` without a reply. Untrusted text."""
    raw: str | None
    """The judge's reply; `null` where it was not asked or never answered. Untrusted text."""
    error: str | None
    """Why there is no reply. Untrusted text."""
    reused: ReplyOrigin | None
    """Which job's reply it is, if no call was made for it."""
    suspicion: Suspicion | None
    """What makes it doubtful: `text` (it addresses the judge), `reply` (under `hardened`: without the key word) or `both`."""
    finish_reason: FinishReason | None
    """Why the judge's reply ended; `null` where there is none, or if that was not kept."""
    thoughts: str | None
    """What the judge thought before; nothing of it is scored. Untrusted text."""


class JudgedResponse(TypedDict):
    """A response with its sentences and their verdicts."""

    id: str
    """Stable over retries."""
    model: str
    persona: str
    """Its id; in the control arm empty, or of PersonaGym whose question it is."""
    levels: dict[str, str]
    """The persona's, by dimension on which this response is judged."""
    task: str
    item: AskedItem
    run: int
    """Repetition, from 0."""
    instruction: int | None
    """Number of the persona instruction, from 0, in the order of the manifest; `null` if unknown."""
    iteration: int | None
    """Repetition under that instruction, from 0; `null` if unknown."""
    status: Literal["answered", "refused", "filtered", "no_answer", "failed"]
    """`filtered`: refused or stopped by the provider's content filter. `no_answer`: nothing but thoughts, or stopped for a reason that ends no answer. Only what is `answered` is judged."""
    text: str | None
    """`null` where the call failed. Untrusted text."""
    refusal: bool
    """Whether `status` is `refused`."""
    error: str | None
    """Why there is no text, or none to be judged."""
    finish_reason: FinishReason | None
    """Why the model stopped; `null` for existing texts."""
    usage: ResponseUsage | None
    thoughts: str | None
    """What the model thought before it wrote the text, which is not judged; empty where its provider keeps that to itself, `null` where it did not think. Untrusted text."""
    units: list[JudgedUnit]
    question: str | None
    """What a PersonaGym task asked; `null` for other tasks."""
    grades: list[ResponseGrade]
    """Grades of a PersonaGym response, ordered by judge; not all may be there yet."""
    score: float | None
    """The mean over the judges that gave a score."""
    reused: ReplyOrigin | None
    """Which job's text it is, if no call was made for it."""
    persona_description: str
    """The persona's. Untrusted text."""
    persona_traits: list[str]
    """All of the persona's traits in words, such as `high in extraversion`."""


class JudgesDistances(TypedDict):
    """What one judge's scores say of the runs."""

    judge: str
    distances: list[list[float | None]]
    """Run by run, in the order of `runs`; `null` where one of the two has no scored sentence."""


class JudgingAgreement(TypedDict):
    """How far one judge's verdicts agree, over all tasks (`task` is `null`) or in one; each n counts sentences."""

    judge: str
    task: str | None
    scale: dict[str, int]
    """`minimum` and `maximum`; dimensions with another have a row of their own."""
    sentences: int
    """Judged both ways."""
    responses: int
    left_out: int
    """Without a readable verdict alone; in none of the figures."""
    suspicious: NotRequired[int | None]
    """Whose grouped verdict has a `suspicion`; in all of the figures. Missing in results from before it was counted."""
    exact_agreement: Metric
    mean_absolute_difference: Metric
    mean_difference: Metric
    """Grouped minus alone, in points of the scale."""
    quadratic_kappa: Metric
    acc_grouped: Metric
    """Share of the sentences scored in a group that are in character."""
    acc_alone: Metric
    acc_difference: Metric


class JudgingCheck(TypedDict):
    """A sample's verdicts on several sentences a call beside those on one. Its verdicts alone are in no other figure."""

    sentences_per_call: int
    sample: dict[str, float]
    """`share` and `minimum` as asked for, the `responses` drawn, and how many they were `drawn_from`."""
    responses: int
    """With sentences judged both ways; refusals have none."""
    sentences: int
    asked_alone: dict[str, int]
    """Sentences whose part of a reply about several could not be used, by what became of it."""
    agreement: list[JudgingAgreement]


class KeptAnnotations(TypedDict):
    """What became of annotations that were sent."""

    created: int
    changed: int
    """Those that replaced another answer of the same annotator."""
    unchanged: int
    """Those that were there already."""


class KeptLimits(TypedDict):
    """How fast a model may be called; `null` for no limit."""

    requests_per_minute: NotRequired[float | None]
    tokens_per_minute: NotRequired[float | None]
    max_in_flight: NotRequired[int | None]


class KeptConnectionLimits(TypedDict):
    """Limits for each model by itself, and those of single models."""

    requests_per_minute: NotRequired[float | None]
    tokens_per_minute: NotRequired[float | None]
    max_in_flight: NotRequired[int | None]
    models: dict[str, KeptLimits]


class KeptPrices(TypedDict):
    """US dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None
    batch_share: float
    """What a call in a batch costs, as a share of these."""


class KeptConnection(TypedDict):
    """A connection to a model provider, without its key."""

    name: str
    object: Literal["connection"]
    version: str
    """Another one after each change of URL, limits or prices. Jobs keep the one with which they were submitted."""
    kind: Literal["openai", "anthropic", "completions"]
    base_url: str
    key_set: bool
    key_hint: str | None
    """The key's last four characters; `null` without a key, or with one of less than 20 characters."""
    limits: KeptConnectionLimits
    prices: dict[str, KeptPrices]
    models: list[str] | None
    """`null` for all."""
    batches: bool
    families: dict[str, str]
    """By model: the name by which the model table knows its family."""
    description: str | None
    created_at: str
    """Of this version."""
    updated_at: str


class KeptConnectionList(TypedDict):
    """All connections of the tenant, by name."""

    data: list[KeptConnection]


class Labelled(TypedDict):
    """How far an annotator has come."""

    annotator: str
    answered: int


LabellingKind: TypeAlias = Literal["sentences", "responses", "pairs"]
"""What people are shown."""


class Stratum(TypedDict):
    """What was drawn of the sentences, or pairs, that the judges gave the same; of responses of one model and task."""

    task: str
    model: NotRequired[str | None]
    """Of responses."""
    scores: list[int]
    """The judges' mean score, rounded: one, of a pair two, of responses none."""
    drawn: int
    available: int
    """Sentences or responses; of a pair those with the first score times the others."""
    spread: NotRequired[float | None]
    """Of a Neyman round: the standard deviation of how far people and judges are apart in ACC_atom, by earlier labels."""


class LabellingRound(TypedDict):
    """A sample that people are shown: the same for everybody, in a different order for each."""

    id: str
    object: Literal["labelling_round"]
    job: str
    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    """`null` of responses."""
    size: int
    """How many were asked for."""
    seed: int
    allocation: Literal["even", "neyman"]
    answers_each: int | None
    """How many people answer each; `null`: everybody answers all."""
    n: int
    """How many there are."""
    strata: list[Stratum]
    annotators: list[Labelled]
    created_at: str
    links: dict[str, str]


class LabellingRoundIn(TypedDict):
    """A sample of a job's sentences, whole responses or pairs of sentences, for people to label."""

    job: str
    """A job that is over."""
    kind: LabellingKind
    """`sentences` are scored, of `pairs` the one is chosen that is nearer to the scale's upper end; whole `responses` to PersonaGym tasks are graded by the rubric that judges grade by."""
    dimension: NotRequired[str | None]
    """On which; may be left out where the job has only one. Not of `responses`."""
    size: NotRequired[int]
    """How many; fewer if there are not so many."""
    seed: NotRequired[int]
    allocation: NotRequired[Allocation]
    """`even`: as many of each score; `neyman`: sentences that no round has drawn, more where by earlier labels people and judges differ more, so that calibrated figures have the narrowest intervals."""
    answers_each: NotRequired[int | None]
    """How many people answer each; what so many have answered is not shown to others. `null`: everybody answers all."""


class LengthEffect(TypedDict):
    """How a metric goes with the length of responses over cells (atomic paper, section 6)."""

    task: str | None
    """`null` for all tasks together."""
    metric: str
    units: Metric
    """Pearson's r with the mean number of sentences in a cell's responses."""
    scored_units: Metric
    """The same with those that have a score."""


class RefusedParameter(TypedDict):
    """A parameter that the provider refused and that the model table does not know to be refused."""

    parameter: str
    said: str
    """The provider's words."""


class ModelEnds(TypedDict):
    """When a model ends."""

    day: str
    """The day from which on it is not answered."""
    source: str
    certainty: Literal["vendor", "secondary", "inferred"]


class NotSent(TypedDict):
    """A parameter that is asked for and not sent."""

    parameter: str
    """A field of `extra` as `extra.<name>`."""
    value: Any
    reason: str


class SentParameters(TypedDict):
    """What a job would send of the model's parameters."""

    family: str | None
    """Its family in the model table; `null` where it knows none."""
    sent: dict[str, Any]
    """Fields of the request's body."""
    not_sent: list[NotSent]
    without_effect: list[str]
    """Parameters that the model takes and ignores."""


class ModelCheck(TypedDict):
    """What a check of a model found."""

    object: Literal["model_check"]
    model: str
    role: Literal["judge", "model", "persona_agent"]
    kind: str
    base_url: str
    simulated: bool
    works: bool | None
    """Whether it answered with a text; `null` where it was not called."""
    calls: int
    latency_ms: float | None
    """Of the last call."""
    usd: float | None
    """What the answered call cost, where that is known."""
    reply: CheckedReply | None
    limits: CheckedLimits | None
    error: CheckError | None
    refused: list[RefusedParameter]
    price: CheckedPrice
    ends: ModelEnds | None
    model_table: str | None
    """Version of the data on what families of models take."""
    parameters: SentParameters
    findings: list[Finding]
    """All of it in sentences."""


class ModelsIn(TypedDict):
    """Several models, each to be compared with each other one."""

    models: Sequence[SideIn]
    """A job without `model` stands for all of its models; 2 to 20 in all."""


class NewApiKey(TypedDict):
    """A key that was just made or rotated."""

    id: str
    object: Literal["api_key"]
    name: str
    prefix: str
    """How the key begins, which is no secret."""
    scopes: list[Literal["read", "submit", "admin"]]
    status: Literal["live", "expired", "revoked"]
    former: FormerKey | None
    requests_per_minute: int | None
    spending: Spending | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    """To the minute."""
    key: str
    """Shown now and never again."""


class NewWebhook(TypedDict):
    """A webhook with a secret that was just made."""

    id: str
    object: Literal["webhook"]
    url: str
    description: str | None
    events: list[str]
    enabled: bool
    disabled_reason: Literal["by_user", "gone"] | None
    """`gone`: the receiver answered 410. `enabled: true` switches it on again."""
    former_secret_until: str | None
    """Until then, messages are also signed with the previous secret; `null` if none was replaced."""
    created_at: str
    updated_at: str
    secret: str
    """Signs the messages (Standard Webhooks, `v1`). Shown only once."""


Order: TypeAlias = Literal["repeated", "reversed", "shuffled"]
"""How the options stand when a sentence is judged again."""


class OrderAgreement(TypedDict):
    """How far one judge's verdicts in one order agree with those that count, over all dimensions (`null`) or on one."""

    judge: str
    order: Order
    """Of the options: `repeated` as they were, which shows the judge's own noise; `reversed` from the highest score to the lowest; `shuffled` with each number before other words."""
    dimension: str | None
    scale: dict[str, int]
    """`minimum` and `maximum`; dimensions with another have a row of their own."""
    sentences: int
    """Judged both ways."""
    responses: int
    left_out: int
    """Without a readable verdict in this order; in none of the figures."""
    exact_agreement: Metric
    """Share of the sentences with the same verdict."""
    mean_absolute_difference: Metric
    mean_difference: Metric
    """As asked minus in this order, in points of the scale: the effect of the order on MEAN."""
    quadratic_kappa: Metric
    acc_as_asked: Metric
    """Share of the sentences scored as asked that are in character."""
    acc_in_order: Metric
    acc_difference: Metric
    """As asked minus in this order: the effect of the order on ACC_atom."""


class OrderCheckResult(TypedDict):
    """A sample's verdicts with the options in other orders beside those that count. They are in no other figure."""

    share: float
    """Of the sentences, as asked for."""
    responses: int
    """With sentences judged again; refusals have none."""
    agreement: list[OrderAgreement]
    """By judge, order and dimension. Intervals are over responses."""


class PairAgreement(TypedDict):
    """How far two judges agree; each n counts the sentences that both scored."""

    judges: list[str]
    left_out: int
    """Sentences that only one of them scored."""
    quadratic_kappa: Metric
    """Cohen's κ with quadratic weights, −1 to 1; 0 is chance, 1 perfect."""
    exact_agreement: Metric
    """Share of sentences to which both gave the same score."""
    mean_absolute_difference: Metric
    """In points of the scale; 0 is perfect."""


class Trait(TypedDict):
    """A persona's stand on one dimension."""

    dimension: str
    level: str
    words: str
    """For people."""


class PersonaAnswer(TypedDict):
    """A built-in persona."""

    id: str
    description: str
    """Untrusted text."""
    traits: list[Trait]
    sets: list[str]


class PersonaGenerationResult(TypedDict):
    """What came of a job that makes up personas."""

    id: str | None
    """The set; `null` while there is none."""
    wanted: int
    found: int
    asks: int
    dropped: dict[str, int]
    """`duplicate`, `alike`, `unusable`, `surplus`."""
    error: str | None
    """What is missing, and why."""
    diversity: Diversity | None


class PersonaInWords(TypedDict):
    """Who a persona is."""

    id: str
    description: str
    """Untrusted text."""
    traits: list[Trait]


class PersonaList(TypedDict):
    """All built-in personas and sets."""

    data: list[PersonaAnswer]
    sets: dict[str, list[str]]
    instructions: list[str]


class PersonaScoreCorrected(TypedDict):
    """What missing grades can do to PersonaScore. Not in the paper."""

    persona_score_bounds: list[float] | None
    """If all missing grades were the lowest, and if all were the highest; `null` where none is planned."""


class TaskTotal(TypedDict):
    """A task's score over personas."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Of a cell: its runs repeated with these wordings. Of a total: personas like these, these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Of a total: these personas, these wordings, their runs repeated."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """These personas, wordings like these."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Of a total: personas like these, wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells, or personas, that lack the metric."""
    sd: float | None
    """Denominator n − 1; `null` for fewer than two personas."""
    coverage: NotRequired[Coverage | None]
    """Missing in results from before."""


class PersonaScoreTotal(TypedDict):
    """A model's scores over personas: a row of PersonaGym's Table 1."""

    model: str
    persona_score: Spread
    tasks: dict[str, TaskTotal]
    refusal_rate: Metric
    """Refusals among answers and refusals, as in Figure 4."""
    responses: GymResponses
    grades: UnitCounts
    coverage: NotRequired[Coverage | None]
    """Of the planned grades. Missing in results from before."""
    corrected: NotRequired[PersonaScoreCorrected | None]
    """Missing in results from before."""
    matched: NotRequired[Metric | None]
    """PersonaScore over the personas of which every model has one; `null` where these are all."""


class SetMember(TypedDict):
    """A persona of a set."""

    id: str
    description: str
    traits: dict[str, str]
    """Level by dimension."""


class PersonaSet(TypedDict):
    """An immutable list of personas."""

    id: str
    object: Literal["persona_set"]
    name: str | None
    built_in: bool
    diversity: Diversity | None
    """`null` for personas that were brought along."""
    personas: list[SetMember]


class PersonaSetSummary(TypedDict):
    """A persona set in a list."""

    id: str
    object: Literal["persona_set"]
    name: str | None
    created_at: str
    personas: int


class PersonaSetList(TypedDict):
    """A page of persona sets, newest first."""

    data: list[PersonaSetSummary]
    has_more: bool
    next_cursor: str | None


class PlanStage(TypedDict):
    """What a stage is expected to take on one model."""

    stage: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    price_source: str | None


class PlanCost(TypedDict):
    """The expected cost in US dollars."""

    usd_low: float | None
    """`null` where no price is known."""
    usd_high: float | None
    unpriced_models: list[str]


class PlanControl(TypedDict):
    """What the control arm adds to a job; the plan's other figures include it."""

    responses: int
    calls: int
    cost: PlanCost


class PlanParameters(TypedDict):
    """What of a model's parameters is sent in one role."""

    role: Literal["model", "persona_agent", "judge", "reasoner"]
    model: str
    family: str | None
    """Its family in the model table; `null` where it knows none."""
    sent: dict[str, Any]
    """Fields of the request's body."""
    not_sent: list[NotSent]
    without_effect: list[str]
    """Parameters that the model takes and ignores."""


class Plan(TypedDict):
    """What a job would take."""

    object: Literal["plan"]
    cells: int
    """Cells of the results: model × persona × task × trait."""
    persona_scores: int
    """PersonaScores of the results: persona × model."""
    runs_per_cell: int | None
    """Of the atomic tasks."""
    responses: int
    calls: int
    confirm_calls: int | None
    """What the job has to give as `confirm_calls` because of its size; `null` where it needs nothing."""
    estimated: bool
    """Whether judging is estimated; it is exact for existing texts."""
    stages: list[PlanStage]
    cost: PlanCost
    control: NotRequired[PlanControl | None]
    """`null` for a job without `control`."""
    shortest_seconds: float
    """Under the configured rate limits."""
    simulated: bool
    model_table: str | None
    """Version of the data by which parameters are sent or left out: what each family of models takes."""
    parameters: list[PlanParameters]
    warnings: list[str]
    detection: NotRequired[Detection | None]
    """Where `detect` asks for it."""


class PlanIn(TypedDict):
    """A job to be planned."""

    name: NotRequired[str | None]
    """For people."""
    personas: Sequence[str | PersonaIn]
    """Ids of personas or persona sets (`GET /v1/personas`, `GET /v1/persona-sets`), or personas written out."""
    tasks: Sequence[str | TaskIn]
    """Task ids (`GET /v1/tasks`), or tasks with options."""
    judges: NotRequired[Sequence[str | ModelIn]]
    """Judges; each judges every sentence, and grades every PersonaGym answer, alone. Temperature 0 unless given. If none is named, those of the operator's configuration; two simulated ones where only the simulator is configured."""
    models: NotRequired[Sequence[str | ModelIn]]
    """Models under test."""
    responses: NotRequired[Sequence[ResponseIn] | None]
    """Texts that already exist, instead of `models`."""
    dimensions: NotRequired[Sequence[DimensionIn]]
    """Dimensions beyond the Big Five."""
    instructions: NotRequired[Literal["all"] | Sequence[str | int]]
    """Persona instructions of the atomic tasks: all six of the paper, or some by number (from 0, as `GET /v1/personas` lists them), or texts."""
    iterations: NotRequired[int]
    """Repetitions under each instruction."""
    seed: NotRequired[int]
    """Seed of everything random on the service's side."""
    reasoner: NotRequired[str | ModelIn | None]
    """Selects environments and makes up questions and exemplars; PersonaGym's tasks need one. Temperature and top_p 0.9 unless given."""
    questions: NotRequired[str | Mapping[str, Mapping[str, Sequence[str]]] | None]
    """Questions that exist already: a question set's id, or questions by task by persona (id, description, or the name of its published file). What is missing is made up."""
    environments: NotRequired[Sequence[str] | Mapping[str, Sequence[str]] | None]
    """Environments, for all personas or by persona id, instead of selecting them."""
    environment_pool: NotRequired[Sequence[str] | None]
    """Environments to select from, instead of the built-in 150."""
    gym_instruction: NotRequired[str | None]
    """PersonaGym's persona instruction: `adopt` (the paper's appendix) or `closely_mirror` (its section 3.2)."""
    thresholds: NotRequired[Sequence[str]]
    """What `GET /v1/jobs/{id}/gate` holds the results to, unless its query says otherwise."""
    minimum_coverage: NotRequired[float]
    """The gate is inconclusive about a figure of a smaller share of what was planned."""
    control: NotRequired[bool]
    """Also ask each model without a persona, the items of the atomic tasks once for all personas and PersonaGym's questions of each, and report in `control` how far its figures with a persona lie above those without."""
    protocol: NotRequired[Literal["paper", "hardened"]]
    """`paper`: the papers' words and definitions. `hardened`: judges are told besides what of their prompts is the judged text, and show by a key word that they follow ours and not its instructions."""
    budget: NotRequired[BudgetIn | None]
    """What it may spend; used up, the job pauses with `status_reason: budget_exhausted`."""
    confirm_calls: NotRequired[int | None]
    """How many calls you expect: a job that is planned with more is refused. Large jobs need it; the plan's `confirm_calls` says so, and what to give."""
    priority: NotRequired[Literal["low", "normal", "high"]]
    """Where its calls wait beside those of your other jobs: each step has four times the turns."""
    judging: NotRequired[JudgingIn]
    """How sentences are judged: one by one, unless given."""
    versions: NotRequired[VersionsIn | None]
    """Rules of earlier versions, as `GET /v1/tasks` lists them; those not named are the latest. A job keeps its versions, whatever a later release brings."""
    reuse: NotRequired[ReuseIn | None]
    """Whether replies are used again; what that spared is told in `reuse`."""
    execution: NotRequired[Literal["direct", "batch"]]
    """`batch` sends the calls through the providers' batch endpoints: half the price, within a day. PersonaGym's preparations are called directly all the same."""
    metadata: NotRequired[Mapping[str, str]]
    """Labels of your own; jobs can be listed by them."""
    detect: NotRequired[DetectIn | None]
    """Asks how many personas, wordings and iterations find a difference; of jobs of atomic tasks alone. A job itself does not take it."""


class PreparationAsks(TypedDict):
    """What the reasoner was asked for in the steps of one kind and task."""

    kind: str
    """`personas`, `environments`, `questions` or `exemplars`."""
    task: str
    """Empty for personas and environments."""
    steps: int
    """Those that have ended, failed ones included."""
    failed: int
    """Steps that were given up."""
    asks: int
    dropped: int
    """What its replies gave and was not used."""


class ProblemField(TypedDict):
    """An invalid field."""

    pointer: str
    """JSON pointer into the body; `/query/…`, `/path/…` or `/header/…` for other parts of the request."""
    message: str
    """What is wrong with it."""


class Problem(TypedDict):
    """An error (RFC 9457)."""

    type: str
    """URI of the kind of problem."""
    title: str
    """The HTTP status's name."""
    status: int
    """The HTTP status."""
    detail: str
    """What went wrong, for people."""
    code: str
    """What went wrong, for programs."""
    errors: list[ProblemField]
    """The invalid fields, up to 100."""
    request_id: str
    """Identifies this request in the service's logs."""


class QuestionSet(TypedDict):
    """An immutable set of questions."""

    id: str
    object: Literal["question_set"]
    name: str | None
    questions: dict[str, dict[str, list[str]]]
    """Questions by task id by persona description."""


class QuestionSetIn(TypedDict):
    """Questions to be kept as a set; PersonaGym's published files go in as they are, by persona description."""

    name: NotRequired[str | None]
    """For people."""
    questions: Mapping[str, Mapping[str, Sequence[str]]]
    """Questions by task (id, title or alias) by persona: its description, or the name of its published file, which is the description with `.json`, in a directory `questions` or in none."""


class QuestionSetSummary(TypedDict):
    """A question set in a list."""

    id: str
    object: Literal["question_set"]
    name: str | None
    created_at: str
    personas: int
    questions: int


class QuestionSetList(TypedDict):
    """A page of question sets, newest first."""

    data: list[QuestionSetSummary]
    has_more: bool
    next_cursor: str | None


class ResponseList(TypedDict):
    """A page of responses."""

    data: list[JudgedResponse]
    has_more: bool
    next_cursor: str | None


class TotalResult(TypedDict):
    """Unweighted means over the cells of one group; the group's keys stand beside `by`."""

    by: list[str]
    """Names of the keys that make the group."""
    model: str
    """Of every group."""
    persona: NotRequired[str | None]
    task: NotRequired[str | None]
    level: NotRequired[str | None]
    dimension: NotRequired[str | None]
    simulated: bool
    cells: int
    generation: NotRequired[ResponseStatuses | None]
    """The responses of the cells; those that several cells share count once. Missing in results from before."""
    metrics: CellMetrics
    matched: NotRequired[CellMetrics | None]
    """Of models: the same over the cells of which every model has the metric; `null` where no model lacks what another has."""
    units: UnitCounts
    coverage: NotRequired[Coverage | None]
    """Missing in results from before."""
    corrected: NotRequired[Corrected | None]
    """Missing in results from before."""


class VerdictAgreement(TypedDict):
    """How far all judges agree in one group of cells; each n counts the sentences with two scores or more."""

    by: list[str]
    """What the group's cells have in common, none for all cells."""
    task: NotRequired[str | None]
    dimension: NotRequired[str | None]
    left_out: int
    """Sentences that only one judge scored."""
    alpha_ordinal: Metric
    """Krippendorff's α by the scores' order, up to 1; 0 is chance."""
    alpha_interval: Metric
    """The same by their distances."""
    pairs: list[PairAgreement]
    """Every pair of judges, in the judges' order."""


class WorstSentence(TypedDict):
    """The sentence that is farthest out of character: by the mean distance of its scores from the persona's level."""

    text: str
    """The sentence as the judges read it. Untrusted text."""
    model: str
    persona: str
    task: str
    dimension: str
    """On which it is farthest from the persona."""
    level: str
    """The persona's."""
    scores: dict[str, int]
    """By judge."""
    response: str
    """The id of its response."""
    run: int
    unit: int
    """Its position in the response, from 0."""


class SuspicionCounts(TypedDict):
    """Doubtful judgements, by what makes them so."""

    total: int
    of: int
    """Judgements there are."""
    text: int
    reply: int
    both: int


class SuspicionOfModel(TypedDict):
    """Those of one model's texts by one judge."""

    model: str
    judge: str
    verdicts: int
    """On sentences."""
    grades: int
    """Of PersonaGym responses."""


class WithoutSuspicion(TypedDict):
    """The figures without the doubtful judgements."""

    totals: list[TotalResult]
    """By model, and by model and task."""
    persona_score_totals: list[PersonaScoreTotal]


class SuspicionSummary(TypedDict):
    """Judgements of texts that address the judge, or replied to as if they had. All of them are in the figures."""

    verdicts: SuspicionCounts
    grades: SuspicionCounts
    by_model: list[SuspicionOfModel]
    """Where there are any."""
    without: WithoutSuspicion | None
    """`null` where there are none."""


class Results(TypedDict):
    """Every metric by cell and by total."""

    job: str
    name: str | None
    completeness: Literal["full", "partial"]
    completeness_reasons: NotRequired[list[str]]
    """Why it is `partial`, each `code: words`: `calls_missing`, `control_calls_missing` (only the control arm lacks some), `cells_without_figure`, `personas_without_score`. Missing in results from before."""
    simulated: bool
    personas: NotRequired[list[PersonaInWords]]
    """Who the job's personas are, by the ids that cells have."""
    dimensions: NotRequired[list[DimensionInWords]]
    """How people are shown the dimensions of the cells."""
    cells: list[CellResult]
    totals: list[TotalResult]
    judges: list[JudgeResult]
    correlations: NotRequired[list[Correlation]]
    length_effects: NotRequired[list[LengthEffect]]
    verdict_agreement: NotRequired[list[VerdictAgreement]]
    """How well several judges' verdicts on the same sentences agree: over all of them, by task, by dimension."""
    persona_scores: list[PersonaResult]
    """PersonaScore and task scores of each persona and model."""
    persona_score_totals: NotRequired[list[PersonaScoreTotal]]
    """By model; missing for a job without PersonaGym tasks."""
    judge_agreement: NotRequired[list[GradeAgreement]]
    """How well each two judges' grades agree, by task."""
    persona_set: NotRequired[PersonaGenerationResult | None]
    """Of a job that makes up personas and does nothing else."""
    preparation: NotRequired[list[PreparationAsks]]
    """What the reasoner was asked, by kind and task."""
    worst_sentence: NotRequired[WorstSentence | None]
    """`null` if every sentence is in character. Texts that may have swayed a judge are left out. Missing in results from before."""
    suspicion: NotRequired[SuspicionSummary | None]
    """Verdicts that a judged text may have swayed; `null` for a job in which nothing is judged."""
    judging_check: NotRequired[JudgingCheck | None]
    """Of a job that judges several sentences a call: how far that agrees with one by one."""
    order_check: NotRequired[OrderCheckResult | None]
    """Of a job that asks for it: how far its judges depend on the order of their options."""
    control: NotRequired[ControlArm | None]
    """`null` for a job without `control`."""
    started_at: str | None
    computed_at: str
    usage: JobUsage
    cost: Cost
    failures: NotRequired[list[FailedCalls]]
    """Failed calls, as a job shows them."""
    reuse: NotRequired[ReuseAnswer | None]
    """`null` for a job that does not ask for it."""
    manifest: dict[str, Any]
    human_agreement: NotRequired[list[HumanAgreement]]
    """How far annotators agree with the judges; only where there are any."""


class RotationIn(TypedDict):
    """How a key is rotated."""

    overlap_seconds: NotRequired[int]
    """For how long the former key is still taken; 0 ends it at once."""


class RunOfCell(TypedDict):
    """One run of a cell."""

    run: int
    instruction: int | None
    """Number of the persona instruction, from 0; `null` if unknown."""


class RunDistances(TypedDict):
    """How far a cell's runs are apart: Wasserstein distances of their scores, 0 to the scale's width."""

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool
    width: int
    """The greatest distance that there can be."""
    runs: list[RunOfCell]
    """At most 100, the first ones."""
    runs_in_all: int
    """Runs that have verdicts."""
    by_judge: list[JudgesDistances]


class TaskAnswer(TypedDict):
    """A task."""

    id: str
    title: str
    framework: Literal["atomic", "personagym"]
    prompt: str | None
    """`null` where each persona is asked questions of its own."""
    scoring_prompt: str
    expected_units: float


class TaskList(TypedDict):
    """All tasks and the dimensions that they measure."""

    data: list[TaskAnswer]
    dimensions: list[DimensionAnswer]
    instrument: dict[str, str]
    versions: dict[str, list[str]]
    """What a job's `versions` can name, by kind, oldest first; the last is what it gets otherwise."""


class Webhook(TypedDict):
    """A receiver of messages about jobs."""

    id: str
    object: Literal["webhook"]
    url: str
    description: str | None
    events: list[str]
    enabled: bool
    disabled_reason: Literal["by_user", "gone"] | None
    """`gone`: the receiver answered 410. `enabled: true` switches it on again."""
    former_secret_until: str | None
    """Until then, messages are also signed with the previous secret; `null` if none was replaced."""
    created_at: str
    updated_at: str


class WebhookChangeIn(TypedDict):
    """What to change of a webhook; what is left out stays."""

    url: NotRequired[str]
    events: NotRequired[Sequence[JobEvent]]
    """What to tell of."""
    description: NotRequired[str | None]
    enabled: NotRequired[bool]
    """A webhook that is off is told nothing; events meanwhile are not kept, nor what waits when it is switched off."""


class WebhookIn(TypedDict):
    """A receiver of messages about jobs."""

    url: str
    """Where to post. `https` and a public address, unless the operator allows the host."""
    events: NotRequired[Sequence[JobEvent]]
    """What to tell of."""
    description: NotRequired[str | None]
    """For people."""


class WebhookList(TypedDict):
    """A page of webhooks, newest first."""

    data: list[Webhook]
    has_more: bool
    next_cursor: str | None
