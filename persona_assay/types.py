"""What the service is sent and what it answers; made from its OpenAPI document by ``make types``.

A newer service may answer with more than stands here, never with less.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Metric(TypedDict):
    """A value with its n; `null` with a reason if it does not exist."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Cell: over repeated runs with these wordings. Total: over personas like these, with these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Total: 95 % interval over repeated runs, for these personas and wordings."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """95 % interval over wordings like these, for these personas."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Total: 95 % interval over personas and wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells (or personas) without the metric."""


class WithNotApplicable(TypedDict):
    """Agreement on single sentences if "not applicable" is an answer like each score; n counts sentences."""

    exact_agreement: Metric
    """Share of answers equal to the judge's."""
    kappa: Metric
    """Cohen's unweighted κ of the judge with each answer."""
    judge_scored: Metric
    """Share of the annotators' answers "not applicable" to which the judge gave a score; n counts the sentences with such an answer."""


class WeightedWithJudge(TypedDict):
    """The same for the sentences (or pairs) from which labelling rounds drew, weighted by the number that each represents."""

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
    """For scores, τ_b between the judge's score and the mean of the annotators'; for pairs, τ_A: (answers in the order of the judge's scores − answers against it) ÷ all answers. n counts what was compared."""
    spearman_rho: NotRequired[Metric | None]
    """Of scores only."""
    exact_agreement: NotRequired[Metric | None]
    """Share of answers equal to the judge's score; each sentence or grade counts once. Only for single sentences and grades, like the two fields after it."""
    quadratic_kappa: NotRequired[Metric | None]
    """Cohen's κ of the judge with each answer."""
    alpha_ordinal: NotRequired[Metric | None]
    """Krippendorff's α of the judge with each answer."""
    with_not_applicable: NotRequired[WithNotApplicable | None]
    """Of sentences only: the agreement with "not applicable" as an answer of its own."""
    weighted: WeightedWithJudge
    """The same for everything that was drawn from; the fields above are for what was drawn."""
    left_out: dict[str, int]
    """`without_score`: the judge gave no score; for pairs, `same_score`: the judge gave both the same score."""


Cause: TypeAlias = Literal["model", "judge", "model_or_judge"]
"""What has drifted."""


class Alarm(TypedDict):
    """A change of the watched value that is more than chance."""

    cause: Cause
    """`model`: beyond what the anchors moved. `judge`: the anchors moved. `model_or_judge`: the schedule has no anchors; or, beside `judge`, the value moved otherwise than anchors of fewer than four personas, which hardly tell how differently the judge moves."""
    since: str
    """When the first run after the change was due."""
    before: float
    """Mean before it: for `judge` of the anchors, otherwise of the value, minus the anchors' if there are any."""
    after: float
    """Mean since then."""
    runs_before: NotRequired[int | None]
    """Number of runs, since the last change, that `before` is a mean of."""
    runs_after: NotRequired[int | None]
    """Number of runs that `after` is a mean of."""
    shift: float
    ci95: list[float]
    """95 % interval of the shift."""


Allocation: TypeAlias = Literal["even", "neyman"]
"""How a round's sentences are divided over the strata."""


class AmongAnnotators(TypedDict):
    """How far annotators agree with each other."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None
    """The PersonaGym task whose rubric was used, if any."""
    annotators: int
    n: int
    """Sentences, responses or pairs with an answer."""
    answers: int
    fleiss_kappa: Metric
    alpha_ordinal: Metric | None
    """Krippendorff's α of the scores; `null` for pairs."""


class AnchorSampleIn(TypedDict):
    """How many of the job's responses are anchors."""

    responses: NotRequired[int]
    """Number of responses."""
    seed: NotRequired[int]
    """Random seed of the draw."""


class AnchorsIn(TypedDict):
    """Existing responses that each run judges again: their figure moves only if the judge does."""

    job: str
    """The job whose responses they are."""
    sample: NotRequired[AnchorSampleIn]
    """The sample, the same in each run."""


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
    """`null` for a pair."""
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
    """The key before the last rotation, while still valid."""

    prefix: str
    expires_at: str


class Spending(TypedDict):
    """A cap on the total spending of a key's jobs, and the amount spent."""

    usd_limit: float
    usd_spent: float
    """Recorded calls, plus the worst case of calls in flight or of unknown cost; includes deleted jobs."""


class ApiKey(TypedDict):
    """An API key, without the secret."""

    id: str
    object: Literal["api_key"]
    name: str
    prefix: str
    """The key's first characters, which are not secret."""
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
    """A cap on the total spending of a key's jobs."""

    usd_limit: float
    """US dollars at list prices."""


class ApiKeyChangeIn(TypedDict):
    """Changes to a key; omitted fields stay as they are."""

    name: NotRequired[str]
    requests_per_minute: NotRequired[int | None]
    """`null` for no limit."""
    spending: NotRequired[SpendingIn]
    """Only for a key that was created with a cap: without one, its jobs' spending was not counted."""


Scope: TypeAlias = Literal["read", "submit", "admin"]
"""What a key may do. Each scope includes those before it."""


class ApiKeyIn(TypedDict):
    """A key to create."""

    name: str
    """Who or what uses the key."""
    scopes: Sequence[Scope]
    """`read` reads; `submit` also spends money and stores or deletes things; `admin` also manages keys, webhooks and connections."""
    expires_at: NotRequired[str | None]
    """When the key expires; `null` for never."""
    requests_per_minute: NotRequired[int | None]
    """Rate limit; `null` for none."""
    spending: NotRequired[SpendingIn | None]
    """A cap on the total spending of all jobs that the key submits; `null` for none."""


class ApiKeyList(TypedDict):
    """A page of keys, newest first."""

    data: list[ApiKey]
    has_more: bool
    next_cursor: str | None


Archived: TypeAlias = Literal["false", "true", "any"]
"""Which jobs are listed by whether they are archived."""


class AskedItem(TypedDict):
    """What was asked: a question or context."""

    id: str
    text: str
    """Empty if the task has none."""


class ScaleAnswer(TypedDict):
    """Integer scores from `minimum` to `maximum`, divided into equal levels."""

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
    """95 % confidence interval. Cell: over repeated runs with these wordings. Total: over personas like these, with these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Total: 95 % interval over repeated runs, for these personas and wordings."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """95 % interval over wordings like these, for these personas."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Total: 95 % interval over personas and wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells (or personas) without the metric."""
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
    """95 % confidence interval. Cell: over repeated runs with these wordings. Total: over personas like these, with these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Total: 95 % interval over repeated runs, for these personas and wordings."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """95 % interval over wordings like these, for these personas."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Total: 95 % interval over personas and wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells (or personas) without the metric."""
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
    """Not published, nor is anything that follows from it."""
    corrected: NotRequired[None]


class BaselineLength(TypedDict):
    """How long a model's responses to a task are (atomic paper, Table 15)."""

    source: Literal["atomic"]
    model: str
    task: str
    sentences: float
    """Of a response, on average."""
    scored: float
    """The share of them that has a score, 0 to 1."""


class BaselineRenameIn(TypedDict):
    """Another name for a baseline."""

    name: str


class Spread(TypedDict):
    """A mean and standard deviation over personas."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Cell: over repeated runs with these wordings. Total: over personas like these, with these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Total: 95 % interval over repeated runs, for these personas and wordings."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """95 % interval over wordings like these, for these personas."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Total: 95 % interval over personas and wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells (or personas) without the metric."""
    sd: float | None
    """Denominator n − 1; `null` for fewer than two personas."""


class BaselineScores(TypedDict):
    """A row of PersonaGym's Table 1: mean, standard deviation and interval over 200 personas."""

    source: Literal["personagym"]
    model: str
    simulated: bool
    tasks_in_paper: int
    persona_score: NotRequired[Spread | None]
    """Absent if one task was requested."""
    tasks: dict[str, Spread]


class BaselineSource(TypedDict):
    """A paper whose results these are."""

    id: Literal["atomic", "personagym"]
    title: str
    year: int
    """Of the paper."""
    tables: str
    judges: list[str] | None
    """The judges, as the paper names them."""


class ResponseStatuses(TypedDict):
    """A cell's responses by status before judging."""

    planned: int
    answered: int
    """Texts other than refusals, including empty ones."""
    refused: int
    """By the model."""
    filtered: NotRequired[int]
    """Refused or stopped by the provider's content filter; not judged."""
    no_answer: NotRequired[int]
    """Only thoughts, or ended early for an unknown reason; not judged."""
    failed: int
    empty: int
    """Answers without a sentence."""
    truncated: NotRequired[int]
    """Answers cut off at the maximum length; judged like the others."""
    refused_units: int
    """Sentences not judged because they are refusals."""
    sentences: NotRequired[int]
    """Judged sentences of the answers."""
    unknown_tags: NotRequired[int]
    """Texts with unknown tags or special tokens."""
    unknown_finish_word: NotRequired[int]
    """Texts that ended for a reason that is not known."""
    cut_off: NotRequired[int]
    """Answers whose last sentence has no end."""
    repeated_sentences: NotRequired[int]
    """Sentences that repeat an earlier one of their answer."""
    left_out: NotRequired[int]
    """Of these two, sentences that were left out of judging."""
    role_breaks: NotRequired[int]
    """Sentences of answers in which the model says that it is one, or leaves its role."""
    refusal_check: NotRequired[int]
    """Texts of which a judge was asked whether they are refusals."""


class BaselineTotal(TypedDict):
    """Unweighted means over published cells; the group's keys stand beside `by`."""

    source: Literal["atomic"]
    by: list[str]
    model: str
    """Present in every group."""
    persona: NotRequired[str | None]
    task: NotRequired[str | None]
    level: NotRequired[str | None]
    dimension: NotRequired[str | None]
    simulated: bool
    cells: int
    generation: ResponseStatuses
    """Zeros: not published."""
    metrics: CellMetrics
    matched: NotRequired[CellMetrics | None]
    """As of results."""
    coverage: NotRequired[None]
    """Not published, nor is anything that follows from it."""
    corrected: NotRequired[None]


class Correlation(TypedDict):
    """The correlation of two metrics over cells (atomic paper, Tables 4 and 8)."""

    metrics: list[str]
    r: Metric
    """Pearson's; n counts the cells that have both."""


class UnitCounts(TypedDict):
    """Judged sentences by verdict status."""

    total: int
    scored: int
    not_applicable: int
    refused: int
    unparsed: int
    failed: int
    filtered: NotRequired[int]
    """Refused by the content filter of the judge's provider."""


class GymResponses(TypedDict):
    """Responses to PersonaGym questions by status."""

    planned: int
    answered: int
    refused: int
    """By the model."""
    failed: int
    filtered: NotRequired[int]
    """Refused or stopped by the provider's content filter."""
    no_answer: NotRequired[int]
    """Only thoughts, ended early for an unknown reason, or missing among existing answers; not graded."""


class TaskScore(TypedDict):
    """A model's score on one persona in one task, 1–5; n counts questions with a grade."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Cell: over repeated runs with these wordings. Total: over personas like these, with these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Total: 95 % interval over repeated runs, for these personas and wordings."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """95 % interval over wordings like these, for these personas."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Total: 95 % interval over personas and wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells (or personas) without the metric."""
    questions: int
    """Questions asked."""
    grades: UnitCounts
    """Number of grades; a response graded by two judges counts twice."""
    by_judge: dict[str, Metric]
    """The score by each judge alone."""
    responses: GymResponses


class PersonaResult(TypedDict):
    """A model's scores on one persona."""

    model: str
    persona: str
    persona_score: Metric
    """PersonaScore, 1–5: the mean over tasks, missing if any task's score is; n counts questions."""
    tasks_in_job: int
    tasks_in_paper: int
    """A PersonaScore over fewer tasks is not comparable to the paper's."""
    tasks: dict[str, TaskScore]
    """Each of the job's tasks, even without grades."""
    responses: GymResponses


class ModelGroup(TypedDict):
    """Models that have an attribute in common."""

    cells: int
    acc_atom: Metric
    ic_atom: Metric
    rc_atom: Metric
    less_desired: Metric
    """ACC_atom of personas that the atomic paper's section 5.2 calls not socially preferred: neither open nor close-minded, neither emotionally stable nor neurotic, close-minded, careless."""
    others: Metric
    """ACC_atom of all other personas."""
    attribute: str
    """`model` for one model alone."""
    value: str
    models: list[str]


class NamedBaseline(TypedDict):
    """A model of a job under a name of your own."""

    name: str
    object: Literal["baseline"]
    job: str
    job_name: str | None
    model: str
    created_at: str
    """When it was named."""


class Baselines(TypedDict):
    """Published results in the form of a job's."""

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
    """Empty: not published by persona."""
    persona_score_totals: list[BaselineScores]
    groups: NotRequired[list[ModelGroup]]
    """The atomic paper's models, alone and by their attributes, over the cells that pass the filters."""
    lengths: NotRequired[list[BaselineLength]]
    """Empty where one persona was asked for: no paper tells them by persona."""
    own: NotRequired[list[NamedBaseline]]
    """Models of your own jobs that are named as baselines; left out if there are none, or one of the papers was asked for."""


class BatchProgress(TypedDict):
    """A job's batches."""

    open: int
    """Batches that have not ended."""
    ended: int
    calls_in_open: int
    calls_waiting: int
    """Calls not yet in a batch."""
    cut_for_budget: int
    """Batches that took fewer calls than were waiting, because the budget or the key's cap did not cover the worst case of more."""
    waiting_for: str | None
    """Which batches the job waits for, in words."""


class BridgeSide(TypedDict):
    """A judge in a job."""

    job: str
    judge: str
    imported: bool
    """Whether its verdicts were given elsewhere."""


class BridgeAgreement(TypedDict):
    """How far the two judges agree on the same sentences, over all dimensions (`null`) or on one."""

    responses: int
    left_out: int
    """Without a readable verdict of either."""
    exact_agreement: Metric
    mean_absolute_difference: Metric
    shift: Metric
    """New − old, in points of the scale, where both gave a score."""
    quadratic_kappa: Metric
    dimension: str | None
    scale: dict[str, int]
    """`minimum` and `maximum`; each scale has its own row."""
    sentences: int
    """Judged by both."""
    acc_old: Metric
    """Share of sentences in character by the old judge."""
    acc_new: Metric
    acc_shift: Metric
    """New − old."""


class BridgeGradeAgreement(TypedDict):
    """How far the two judges agree on the same things that both judged."""

    responses: int
    left_out: int
    """Without a readable verdict of either."""
    exact_agreement: Metric
    mean_absolute_difference: Metric
    shift: Metric
    """New − old, in points of the scale, where both gave a score."""
    quadratic_kappa: Metric


class BridgedFigure(TypedDict):
    """A total by the old judge, and what the new one would give it."""

    group: dict[str, str]
    """Empty for all texts; or `model`; or `task`."""
    metric: Literal["acc_atom", "ic_atom", "rc_atom", "mean", "persona_score"]
    old: Metric
    """By the old judge, of all texts: the mean over cells, as in results."""
    bridged: Metric
    """An estimate of the figure by the new judge. It was not measured."""
    effect: Metric
    """Bridged − old. Its interval is for these very texts."""
    anchors: int
    """Responses that both judged."""
    finding: Literal["interchangeable", "different", "undecided"] | None
    """`interchangeable`: the effect's 95 % interval lies within ± `within` of the figure's range. `different`: it lies outside. `undecided`: neither, or the judges agree no better than chance. `null` without an interval."""
    anchors_needed: int | None
    """About how many anchors would decide, if undecided."""


class Bridge(TypedDict):
    """Two judges of the same texts: their agreement, and totals of the old judge as the new one would give them."""

    object: Literal["bridge"]
    old: BridgeSide
    new: BridgeSide
    texts: int
    """Responses that the old judge scored, of those from which the anchors were drawn."""
    anchors: int
    """Responses of the new job whose text the old job has, at the same place."""
    unpaired: int
    """Answered responses of the new job without such a text."""
    design: Literal["all", "random", "not_random"]
    """How the anchors came about. `all`: the new judge was given all texts. `random`: a sample that the service drew. `not_random`: nobody can say how they were chosen; intervals then hold only if nothing of the judges depends on it."""
    within: float
    """The margin, as a share of a figure's range."""
    agreement: list[BridgeAgreement]
    """Intervals are over responses."""
    graded: BridgeGradeAgreement | None
    """How far the two agree on PersonaGym's answers, by their grades; `null` without such answers."""
    figures: list[BridgedFigure]
    not_bridged: dict[str, str]
    """Figures that these anchors can't bridge, with the reason."""
    interchangeable: bool | None
    """Whether all figures are; `null` if one is undecided and none different."""
    recommendation: str
    """In words."""
    simulated: bool
    """Whether a model or judge of either job was simulated."""
    notes: list[str]
    """What to mind, each as `code: message`."""


class JudgeIn(TypedDict):
    """A judge of a finished job."""

    job: str
    judge: NotRequired[str | None]
    """Its label; required if the job has several."""


class BridgeIn(TypedDict):
    """Two judges of the same texts: of one job, or of two jobs of which the new one judged texts of the old one again."""

    old: JudgeIn
    new: JudgeIn
    within: NotRequired[float]
    """The margin within which the judges count as interchangeable, as a share of a figure's range."""


class UsdBudget(TypedDict):
    """A budget in US dollars."""

    limit: float
    spent: float
    """Cost of recorded calls; the worst case if a call's cost is unknown."""
    reserved: float
    """The worst case of calls in flight, and of those lost with a worker."""
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
    exceeded_calls: NotRequired[int]
    """Calls that were billed beyond their worst case, if any. Their model takes one call at a time."""


class BudgetIn(TypedDict):
    """Limits on a job's spending, never exceeded: a call starts only if its worst case fits beside those of all other calls."""

    usd: NotRequired[float | None]
    """US dollars at list prices; every model called must have a known price."""
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
    """A total, or a difference of two models' totals, estimated as people would score it."""

    keys: dict[str, str]
    """What its cells have in common; for a difference (a − b), the models `a` and `b`."""
    metric: Literal["mean", "acc_atom", "acc_atom_corrected", "persona_score"]
    """`persona_score`: the model's PersonaScore, or its score in `task`, from graded answers."""
    judged: float | None
    """The judges' value."""
    calibrated: Metric
    """The value people would give. n counts labels. For totals, `ci95` is over other personas like these, `ci95_runs` over these cells measured again, and `ci95_wordings` and `ci95_both` are as in the results; differences have none of them."""
    ci95_texts: list[float] | None
    """Interval for these texts, over other draws of the labelled texts; of this figure alone, also where several models are compared."""
    ci95_texts_reason: NotRequired[str | None]
    labels_needed: int | None
    """Labels needed for `ci95_texts` of ± `half_width`, divided over the scores as now; for `persona_score`, grades of answers of more personas."""
    labels_needed_at_best: int | None
    """The same with the best division: more labels where people and judges differ more."""
    rogan_gladen: NotRequired[Metric | None]
    """For models' ACC_atom: the judges' value corrected by their sensitivity and specificity at each level, assumed to be the same for all models."""


class Gain(TypedDict):
    """A value with the persona and of the control, and the difference."""

    with_persona: float | None
    without: float | None
    """Of the control: without a persona, or in `opposite` of the opposite personas."""
    gain: Metric
    """`with_persona` − `without`, with its intervals."""


class CellGains(TypedDict):
    """Gains of one cell of the results."""

    acc_atom: Gain
    """ACC_atom; of the control, the share of sentences in the persona's level."""
    mean_toward_level: Gain
    """MEAN, in points from the end of the scale opposite to the persona's level; missing for a middle level."""
    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool


class Coverage(TypedDict):
    """The share of planned verdicts (grades) that values are based on."""

    share: float | None
    """`counted` ÷ `planned`; `null` if nothing is planned."""
    counted: int
    """`scored` verdicts, and `not_applicable` ones in responses with a scored sentence; for grades, the scored ones."""
    refused: int
    """Those missing because the model refused."""
    planned: int
    """A response without judged sentences counts as many as the average of its model and task."""


class Corrected(TypedDict):
    """How missing responses and verdicts could affect ACC_atom. Not in the papers."""

    acc_atom_composite: Metric
    """ACC_atom with each refusal counted as a response entirely out of character."""
    acc_atom_bounds: list[float] | None
    """ACC_atom if everything missing were out of character, and if everything were in character."""


class JudgedCell(TypedDict):
    """A cell's values, for all judges together or for one."""

    metrics: CellMetrics
    units: UnitCounts
    responses: dict[str, int]
    runs_used: int
    """Runs with a scored sentence, for the judge with the fewest."""
    scores: NotRequired[dict[str, int]]
    """Number of sentences with each score."""


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
    """Runs with a scored sentence, for the judge with the fewest."""
    scores: NotRequired[dict[str, int]]
    """Number of sentences with each score."""
    coverage: NotRequired[Coverage | None]
    corrected: NotRequired[Corrected | None]
    by_judge: dict[str, JudgedCell]
    wording_effects: NotRequired[dict[str, dict[str, float]] | None]
    """By metric and instruction number: how much the metric would drop without that persona instruction. Used by comparisons. Missing if fewer than three instructions are known."""


class CheckError(TypedDict):
    """Why there is no reply."""

    code: str
    """The provider's code, or one of ours."""
    status: int | None
    """HTTP status; `null` if no response came."""
    message: str
    cause: str
    """What happened, in plain words."""
    remedy: str
    """What to do about it."""


class CheckIn(TypedDict):
    """A model to check, as a job names it."""

    model: str
    """`connection/name`."""
    label: NotRequired[str | None]
    """The name in results; default: `model`."""
    family: NotRequired[str | None]
    """A model name that tells its family if its own name does not, as for an Azure deployment: parameters that the family refuses are not sent."""
    temperature: NotRequired[float | None]
    """`null`: not sent."""
    top_p: NotRequired[float | None]
    """`null`: not sent."""
    max_tokens: NotRequired[int | None]
    seed: NotRequired[int | None]
    """Run n of a cell is sent seed + n, so that runs differ."""
    stop: NotRequired[Sequence[str]]
    system: NotRequired[Literal["message", "in_user_turn"]]
    """Where the persona is sent: as the system message, or `in_user_turn`, at the head of the user's message, for models whose chat template or provider takes no system message."""
    extra: NotRequired[Mapping[str, Any]]
    """Further fields of the provider's request body that only affect sampling or reasoning, such as `top_k`, `reasoning_effort` or `thinking`; the operator can allow others. Any other field is a 422 that names it."""
    profile: NotRequired[str | None]
    """For a judge model with a prompt form of its own: `prometheus-2`, `m-prometheus`, `selene` or `flow-judge`. It is asked in that form, and its native reply is read. It scores from 1 to 5 and cannot say that a sentence does not show the trait."""
    attributes: NotRequired[Mapping[str, str]]
    """What is known of a model under test, such as its size: models with the same value are shown as a group."""
    role: NotRequired[Literal["judge", "model", "persona_agent"]]
    """The model's role in a job, which decides the parameters sent."""
    call: NotRequired[bool]
    """`false`: only shows what a job would send; no call is made."""


class CheckedLimits(TypedDict):
    """The rate limits that the reply's headers name."""

    requests_per_minute: float | None
    tokens_per_minute: float | None
    input_tokens_per_minute: float | None
    output_tokens_per_minute: float | None


class CheckedPrice(TypedDict):
    """US dollars per million tokens; `null` if no price is known."""

    input: float | None
    output: float | None
    source: str | None


class CheckedReply(TypedDict):
    """What the model answered."""

    text: str
    """The beginning of the text."""
    finish_reason: str
    model_snapshot: str | None
    """The model's name in the reply."""
    input_tokens: int | None
    output_tokens: int | None
    thoughts: bool
    """Whether the reply contains thoughts, which are stored apart from its text."""


class CloneIn(TypedDict):
    """Changes for running a job again."""

    changes: NotRequired[Mapping[str, Any]]
    """Fields of a job; each replaces the original's whole field, and `null` omits it."""


class ResultWarning(TypedDict):
    """A reason to doubt the results."""

    code: str
    """`one_score`, `chance_agreement`, `contradicting_replies`, `never_not_applicable`, `unreadable_replies` (judges); `no_effect` (control arm); `time_outs`, `unknown_tags`, `unknown_finish_word`, `cut_off`, `repeated_sentences`, `role_breaks` (models under test); `conversations` (existing texts)."""
    message: str
    """In words. May contain names that the client chose."""
    summary: NotRequired[str | None]
    """One line for this warning and those like it on other dimensions; `null` if it stands alone."""
    of: Literal["sentences", "grades", "all"]
    """The verdicts concerned: on sentences, PersonaGym's grades, or both."""
    judges: NotRequired[list[str]]
    """The judges concerned."""
    model: NotRequired[str | None]
    """The model under test concerned."""
    dimension: NotRequired[str | None]
    """The dimension concerned; `null` for all."""
    value: float | None
    """The figure that was checked: a share, κ or a gain."""
    ci95: NotRequired[list[float] | None]
    """Its 95 % interval, if the check uses one."""
    n: int
    """Number of sentences, replies, answers or cells behind the figure."""
    limit: float
    """The limit that the figure, or its interval, reached."""


class ComparedSide(TypedDict):
    """One of the two models compared."""

    job: str | None
    baseline: str | None
    named: NotRequired[str | None]
    """The baseline of your own that it is, if it is one."""
    model: str
    completeness: Literal["full", "partial"]
    coverage: float | None
    """Share of the model's planned verdicts (grades) behind its values; `null` if unknown."""
    simulated: bool
    warnings: NotRequired[list[ResultWarning]]
    """Reasons to doubt its values, the gravest first."""


class Evidence(TypedDict):
    """The uncertainty of a difference over personas with all their pairs, or over items."""

    ci95: list[float] | None
    ci95_reason: str | None
    """Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC of different numbers of runs (`other_runs`), no p."""
    p_value: float | None
    """Two-sided. Over personas and wordings: Student's t; over personas or items only: permutation of signs."""
    p_value_holm: float | None
    """Holm-corrected for all metrics over all tasks except `primary`, which is not corrected, or for all metrics in single tasks."""
    smallest_p_value: float | None
    """The smallest p-value that permutations of so few can give."""
    smallest_detectable: float | None
    """The true difference that this comparison would detect with 80 % power at 5 %; `null` if there is none."""
    smallest_detectable_reason: str | None
    """Why there is none: too few personas or items, or all differ by the same amount."""


class EvidenceOverItems(TypedDict):
    """The uncertainty of a difference for these personas, over other items like these."""

    items: int
    """Items, counted for each persona separately."""
    ci95: list[float] | None
    ci95_reason: str | None
    """Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC of different numbers of runs (`other_runs`), no p."""
    p_value: float | None
    """Two-sided. Over personas and wordings: Student's t; over personas or items only: permutation of signs."""
    p_value_holm: float | None
    """Holm-corrected for all metrics over all tasks except `primary`, which is not corrected, or for all metrics in single tasks."""
    smallest_p_value: float | None
    """The smallest p-value that permutations of so few can give."""
    smallest_detectable: float | None
    """The true difference that this comparison would detect with 80 % power at 5 %; `null` if there is none."""
    smallest_detectable_reason: str | None
    """Why there is none: too few personas or items, or all differ by the same amount."""


class Difference(TypedDict):
    """One metric's paired difference, a − b, with its uncertainty over personas like these."""

    metric: str
    """`rc_atom_rarefied` and `ic_atom_rarefied` are RC_atom and IC_atom at equal numbers of scored sentences, given if the texts differ in length."""
    task: str | None
    """`null` for all tasks together."""
    a: float
    """Mean of a's paired values."""
    b: float
    difference: float
    pairs: int
    """Pairs of values."""
    personas: int
    """Number of personas behind them."""
    population: str
    """The population that interval and p refer to: wordings (persona instructions) like these, if both sides have the same three or more and these suffice to estimate how other wordings would change the metric."""
    ci95: list[float] | None
    ci95_reason: str | None
    """Why there is no interval, and of ACC, RC, RC_atom and IC_atom of texts of different length (`other_length`), and RC of different numbers of runs (`other_runs`), no p."""
    p_value: float | None
    """Two-sided. Over personas and wordings: Student's t; over personas or items only: permutation of signs."""
    p_value_holm: float | None
    """Holm-corrected for all metrics over all tasks except `primary`, which is not corrected, or for all metrics in single tasks."""
    smallest_p_value: float | None
    """The smallest p-value that permutations of so few can give."""
    smallest_detectable: float | None
    """The true difference that this comparison would detect with 80 % power at 5 %; `null` if there is none."""
    smallest_detectable_reason: str | None
    """Why there is none: too few personas or items, or all differ by the same amount."""
    these_wordings: Evidence | None
    """The same for these wordings only; given only if `population` includes other wordings."""
    over_items: EvidenceOverItems | None
    """Only if the pairs are items."""


class UnpairedDifference(TypedDict):
    """The difference of two means over different personas, a − b: Welch's interval, for other personas of both."""

    metric: str
    task: str | None
    """`null` for PersonaScore."""
    a: float
    b: float
    difference: float
    ci95: list[float] | None
    ci95_reason: str | None
    personas_a: int
    personas_b: int


class UnpairedFigure(TypedDict):
    """A value without a partner."""

    metric: str
    persona: str
    task: str | None
    dimension: str | None
    item: str | None
    """The item, if the pairs are items."""
    reason: str


class Trait(TypedDict):
    """A persona's level on one dimension."""

    dimension: str
    level: str
    words: str
    """The level in words."""


class PersonaInWords(TypedDict):
    """Who a persona is."""

    id: str
    description: str
    """Untrusted text."""
    traits: list[Trait]


class Comparison(TypedDict):
    """Paired differences of two models."""

    object: Literal["comparison"]
    a: ComparedSide
    b: ComparedSide
    pairing: Literal["cells", "items"]
    primary: str | None
    """The metric that decides, over all tasks; chosen in advance."""
    simulated: bool
    differences: list[Difference]
    calibrated: list[CalibratedFigure]
    """a − b as people would score it, if sentences of both were labelled in labelling rounds; only for paired cells."""
    unpaired: NotRequired[list[UnpairedDifference]]
    """With a published PersonaGym model: differences of means over different personas, in place of `differences`."""
    left_out: list[UnpairedFigure]
    personas: list[PersonaInWords]
    """The personas of the values, compared or left out."""
    notes: list[str]
    """What to know before judging the differences."""


class SideIn(TypedDict):
    """A model to compare: a job's or a published one."""

    job: NotRequired[str | None]
    """A finished job."""
    model: NotRequired[str | None]
    """One of its models; required if it has several."""
    baseline: NotRequired[str | None]
    """A baseline of your own by its name, or a published model, as `/v1/baselines` names them; one of PersonaGym's paper only beside one other, unpaired."""


class ComparisonIn(TypedDict):
    """Two models of one job, of two jobs, or a job's model and a published one."""

    a: SideIn
    b: SideIn
    pairing: NotRequired[Literal["cells", "items"]]
    """What is paired: the values of a cell, or of one item (a question, an essay's context) that all answered as the same persona. Items are the same if their words are; published results have no items."""


class ModelOfMany(TypedDict):
    """One of the models compared."""

    job: str | None
    baseline: str | None
    named: NotRequired[str | None]
    """The baseline of your own that it is, if it is one."""
    model: str
    completeness: Literal["full", "partial"]
    coverage: float | None
    """Share of the model's planned verdicts (grades) behind its values; `null` if unknown."""
    simulated: bool
    warnings: NotRequired[list[ResultWarning]]
    """Reasons to doubt its values, the gravest first."""
    name: str
    """The model's name; with its job's id if several jobs have a model of this name."""
    left_out: int
    """Values of the primary metric that some other model lacks."""


class RankedModel(TypedDict):
    """A model by one metric."""

    name: str
    value: float
    """Mean over the values that all models have."""
    rank: list[int]
    """The best and the worst possible rank, with 95 % confidence for all models at once."""


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
    """Corrected for all pairs; for exploratory metrics, for all pairs of all these metrics."""


class Ranking(TypedDict):
    """All models by one metric."""

    metric: str
    task: NotRequired[str | None]
    """`null`: all tasks."""
    exploratory: bool
    """Whether the metric was not chosen in advance: tests are corrected for all such metrics, but not those of the primary metric."""
    population: str
    """The population that intervals and p-values refer to."""
    values: int
    """Values that each model has."""
    personas: int
    """Number of personas behind them."""
    models: list[RankedModel]
    """The highest value first."""
    differences: list[PairDifference]
    """Each pair once, the model with the higher value first."""
    over_items: NotRequired[list[PairDifference] | None]
    """With `pairing` items: the same pairs, with items drawn anew instead of personas: these personas, asked other items like these."""
    smallest_p_value: float | None
    """The smallest p-value that permutations of so few personas can give; `null` for Student's t tests."""
    smallest_detectable: float | None
    """The true difference of two models that a comparison like this would detect with 80 % power, with the same correction."""
    smallest_detectable_reason: str | None


class ComparisonOfModels(TypedDict):
    """Several models compared pairwise."""

    object: Literal["comparison_of_models"]
    models: list[ModelOfMany]
    pairing: Literal["cells", "items"]
    primary: str
    """The metric that decides; chosen in advance."""
    simulated: bool
    rankings: list[Ranking]
    """By each metric over all tasks, the primary one first."""
    in_tasks: list[Ranking]
    """By `acc_atom` and `task_score` in each task where there are several; corrected for all of these."""
    calibrated: list[CalibratedFigure]
    """Differences a − b as people would give them, from what labelling rounds drew; empty where one of the jobs has no such labels, or with published models."""
    personas: list[PersonaInWords]
    """The personas of the values, compared or left out."""
    notes: list[str]
    """What to know before judging the differences."""


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
    """Rate limits of a model, for all workers together; default: none."""

    requests_per_minute: NotRequired[float | None]
    tokens_per_minute: NotRequired[float | None]
    max_in_flight: NotRequired[int | None]


class ConnectionLimitsIn(TypedDict):
    """Limits for each model separately."""

    requests_per_minute: NotRequired[float | None]
    tokens_per_minute: NotRequired[float | None]
    max_in_flight: NotRequired[int | None]
    models: NotRequired[Mapping[str, LimitsIn]]
    """For single models; omitted limits are the connection's."""


class PricesIn(TypedDict):
    """US dollars per million tokens."""

    input: float
    output: float
    cached_input: NotRequired[float | None]
    """Default: as `input`."""
    batch_share: NotRequired[float]
    """The price of a batch call as a share of these prices."""


class ConnectionChangeIn(TypedDict):
    """Changes to a connection; omitted fields stay as they are."""

    base_url: NotRequired[str]
    """If the scheme, host or port changes, the key must be given again."""
    api_key: NotRequired[str | None]
    """`null` removes it."""
    limits: NotRequired[ConnectionLimitsIn]
    prices: NotRequired[Mapping[str, PricesIn]]
    models: NotRequired[Sequence[str] | None]
    batches: NotRequired[bool]
    stream: NotRequired[bool]
    families: NotRequired[Mapping[str, str]]
    description: NotRequired[str | None]


class ConnectionIn(TypedDict):
    """A connection to a model provider."""

    name: str
    """Its name in jobs: a model is `name/model`."""
    kind: Literal["openai", "anthropic", "completions"]
    """The server's wire format; `completions` is OpenAI's older one for base models, which have no roles."""
    base_url: str
    """The base of the format's paths. `https` and a public address, unless the operator allows its network."""
    api_key: NotRequired[str | None]
    """Stored encrypted, sent only to the URL's scheme, host and port, and never shown again."""
    limits: NotRequired[ConnectionLimitsIn]
    """For each model separately."""
    prices: NotRequired[Mapping[str, PricesIn]]
    """US dollars per million tokens, by the model's name."""
    models: NotRequired[Sequence[str] | None]
    """Models that jobs may use; default: all."""
    batches: NotRequired[bool]
    """Whether the server has its wire format's batch endpoints."""
    stream: NotRequired[bool]
    """Whether calls ask for event streams, for a server that answers no other way."""
    families: NotRequired[Mapping[str, str]]
    """By name: the model behind a name that does not tell, such as a deployment's. Parameters that its family refuses are not sent."""
    description: NotRequired[str | None]
    """A description, for people."""


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
    """By level: the share of sentences in it, which is the ACC_atom of a persona without effect."""


class GainTotal(TypedDict):
    """Unweighted means over the cells of one group that have the value in both arms."""

    acc_atom: Gain
    """ACC_atom; of the control, the share of sentences in the persona's level."""
    mean_toward_level: Gain
    """MEAN, in points from the end of the scale opposite to the persona's level; missing for a middle level."""
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
    """A score with and without the persona, over the questions graded in both arms, and the difference."""

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
    """Coverage of the grades planned without the persona."""


class ControlArm(TypedDict):
    """The models without a persona, and how much the personas change."""

    cells: list[ControlCell]
    """model × task × dimension, without a persona."""
    gains: list[CellGains]
    """By cell of the results."""
    totals: list[GainTotal]
    persona_scores: list[PersonaScoreGain]
    """PersonaGym's, by persona and model."""
    persona_score_totals: list[PersonaScoreGainTotal]
    """By model."""


class ControlIn(TypedDict):
    """What values with a persona are compared with."""

    without_persona: NotRequired[bool]
    """Also ask each model without a persona; `"control": true` means this alone."""
    opposite_persona: NotRequired[bool]
    """Report in `opposite` how much higher values are than those of the job's personas at the opposite level of the same dimension. Needs no further calls."""


class Cost(TypedDict):
    """US dollars spent."""

    usd: float | None
    """`null` if no price is known."""
    unpriced_calls: int
    """Calls of unknown, possibly zero, cost; not included in the sum."""


class Delivery(TypedDict):
    """A message to a webhook and its delivery."""

    id: str
    """The message's id, its header `webhook-id`: the same in every attempt."""
    object: Literal["webhook_delivery"]
    webhook: str
    event: str
    job: str | None
    """`null` for a test, and where there is no job."""
    state: Literal["waiting", "delivered", "given_up"]
    attempts: int
    http_status: int | None
    """The receiver's last answer, if any."""
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
    """A difference of two models that the planned job should be able to detect."""

    difference: float
    """The true difference."""
    power: NotRequired[float]
    """Share of such jobs that should detect it."""
    metric: NotRequired[Literal["acc_atom", "acc", "ic_atom", "mean"]]
    """Over all tasks."""
    population: NotRequired[Literal["both", "personas"]]
    """`both`: personas like these, wordings like these. `personas`: personas like these, these wordings."""
    models: NotRequired[int | None]
    """Number of models compared at once, with an overall error rate of 5 % for all pairs. Default: the job's models."""
    from_job: NotRequired[str | None]
    """A finished job of at least two models, from which the variation over personas, wordings and runs is estimated."""


class JobSize(TypedDict):
    """A job size and its power."""

    personas: int
    wordings: int
    """Persona instructions."""
    iterations: int
    power: float | None
    """Share of such jobs that detect the difference."""
    reason: str | None
    """Why no difference can be detected."""
    calls: int
    """Calls to all of the job's models and judges."""
    usd: float | None
    """Expected cost, without the plan's `unpriced_models`; `null` if no price is known."""


class NoiseOfDifferences(TypedDict):
    """A standard deviation of two models' differences."""

    of: Literal["personas", "levels", "wordings", "personas_and_wordings", "runs"]
    """What they vary with. `personas`: on one level; `levels` matter only under these wordings; `runs`: 0 where they are part of `personas_and_wordings`."""
    sd: float
    source: str
    """`from_job`; `published`: the atomic paper's 540 cells, all pairs of its models; `assumed`: no data."""


class Detection(TypedDict):
    """The job size that detects a difference of two models."""

    metric: str
    difference: float
    power: float
    models: int
    """Number of models compared at once: the chance of any false alarm is 5 %."""
    population: str
    planned: JobSize
    """The job as described."""
    options: list[JobSize]
    """Sizes with the fewest personas for each number of wordings and iterations, cheapest first; assumes personas like the job's."""
    reason: str | None
    """Why there are no options."""
    noise: list[NoiseOfDifferences]


class DimensionAnswer(TypedDict):
    """A built-in dimension."""

    id: str
    label: str
    """Display name."""
    in_words: dict[str, str]
    """Each level in words, the lowest first."""
    name: str
    """Its word in the scoring prompt, which need not name the high end."""
    minimum: int
    maximum: int
    levels: list[str]
    options: str
    questions: list[str]
    essay_context: str | None


class JudgeErrors(TypedDict):
    """A judge's errors on a group of sentences, each weighted by the number it represents."""

    judge: str
    by: Literal["level", "model", "length"] | None
    """`null`: all sentences."""
    key: str | None
    mean_difference: Metric
    """The judge's score − the annotators'."""
    exact_agreement: Metric
    from_others: Metric
    """`mean_difference` − that of all other sentences."""
    confusion: dict[str, dict[str, Metric]]
    """By the annotators' score: the share of each judge's score."""


class DimensionCalibration(TypedDict):
    """What labels from labelling rounds say about the values on one dimension."""

    dimension: str
    labels: int
    """Sentences that rounds drew and people labelled."""
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
    """The option for a sentence that does not show the trait."""


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
    """Names of the levels, equal parts of the scale, lowest first."""
    questions: NotRequired[Sequence[str]]
    """Interview questions; required by the questionnaire."""
    essay_context: NotRequired[str | None]
    """The essay's scenario; required by the essay task."""
    label: NotRequired[str | None]
    """Display name; default: `name`. In no prompt."""
    level_words: NotRequired[Mapping[str, str]]
    """The meaning of each level, if its name does not tell. In no prompt."""


class DimensionInWords(TypedDict):
    """A dimension's display names."""

    id: str
    label: str
    """Display name."""
    in_words: dict[str, str]
    """Each level in words, the lowest first."""


class Diversity(TypedDict):
    """How similar generated personas are: Jaccard similarities, 0 to 1, over all pairs."""

    pairs: int
    highest_attributes: float
    """Of two descriptions' content words."""
    mean_attributes: float
    highest_wording: float
    """Of two descriptions' sequences of three characters."""
    mean_wording: float


class EnvironmentUse(TypedDict):
    """How often an environment was chosen."""

    environment: str
    """Untrusted text."""
    personas: int
    """Personas placed in it."""


class EnvironmentsOfPersona(TypedDict):
    """The environments of one persona."""

    persona: str
    environments: list[str]
    """Untrusted texts."""
    given: bool
    """Whether they came with the job; else the reasoner chose them."""


class Environments(TypedDict):
    """The environments of a job's personas."""

    job: str
    pool: int
    """Environments that the reasoner could choose from."""
    personas: list[EnvironmentsOfPersona]
    """Those that have any."""
    environments: list[EnvironmentUse]
    """The most chosen first."""


class FailedAsks(TypedDict):
    """Unusable replies of the reasoner in steps of its preparation that are not ready."""

    stage: str
    task: str | None
    """`null` for environments and personas."""
    model: str | None
    """The reasoner; `null` before its first call is recorded."""
    asks: int
    """Unusable replies so far."""
    steps: int
    """Steps that they concern; each is asked for several times."""
    given_up: int
    """Steps that failed."""
    reason: str
    """What the last reply lacks."""
    reply: str
    """The first 160 characters of the last reply. Untrusted text."""


class FailedCalls(TypedDict):
    """Calls of one stage and model that failed in the same way."""

    stage: str
    model: str
    code: str
    """The provider's code, or one of ours such as `timeout`."""
    http_status: int | None
    """`null` if no answer came."""
    detail: str | None
    """The provider's message for one of them, at most 300 characters."""
    remedy: str
    """What to do about it, in sentences."""
    calls: int
    """Attempts, including those that succeeded when retried."""
    last_at: str


class FilterIn(TypedDict):
    """Which of the texts; all of them where nothing is named."""

    models: NotRequired[Sequence[str]]
    """Labels of models."""
    personas: NotRequired[Sequence[str]]
    tasks: NotRequired[Sequence[str]]
    items: NotRequired[Sequence[str]]
    instructions: NotRequired[Sequence[int]]
    """Numbers of persona instructions, from 0."""
    runs: NotRequired[Sequence[int]]
    """Numbers of repetitions, from 0."""
    status: NotRequired[Sequence[Literal["answered", "refused", "filtered", "no_answer"]]]
    """Failed responses have no text: they are left out."""


class Finding(TypedDict):
    """A finding, as a sentence."""

    good: bool
    text: str


FinishReason: TypeAlias = Literal["stop", "length", "content_filter", "refusal", "unstated", "other"]
"""Why a model stopped, in one vocabulary for all providers."""


class Flag(TypedDict):
    """A flag on a sentence or a whole response. Flags count in no metric, agreement or calibration."""

    id: str
    object: Literal["flag"]
    job: str
    annotator: str
    response: str
    unit: int | None
    """`null`: the whole response."""
    dimension: str | None
    score: int | Literal["not_applicable"] | None
    """The score that the judges should have given."""
    note: str | None
    created_at: str
    updated_at: str


class FlagIn(TypedDict):
    """A flag on a sentence or a whole response."""

    annotator: str
    """Who flags it; the same name is the same person."""
    response: str
    """A response's id."""
    unit: NotRequired[int | None]
    """A sentence's `index`; omitted for the whole response."""
    dimension: NotRequired[str | None]
    """Dimension of `score`; may be omitted if there is only one."""
    score: NotRequired[int | Literal["not_applicable"] | None]
    """The score that the judges should have given."""
    note: NotRequired[str | None]


class FlagList(TypedDict):
    """A page of flags, newest first."""

    data: list[Flag]
    has_more: bool
    next_cursor: str | None


class FoundName(TypedDict):
    """A model, persona or task, with its number of texts."""

    name: str
    count: int
    description: NotRequired[str | None]
    """Of a persona: its description, shortened."""


class FoundScore(TypedDict):
    """The scores that the tool's own scorer gave."""

    name: str
    count: int
    lowest: float
    highest: float


class GateCheck(TypedDict):
    """One value checked against one threshold."""

    threshold: str
    of: dict[str, str]
    """What the value describes."""
    verdict: Literal["pass", "fail", "inconclusive"]
    reason: str
    value: float | None
    ci95: list[float] | None
    coverage: float | None
    """Share of the planned verdicts, grades or cells (whichever is smaller) behind the value; `null` for refusal rates, and if not counted."""


class Gate(TypedDict):
    """`fail` if any check fails, else `inconclusive` if any is, else `pass`."""

    job: str
    object: Literal["gate"]
    verdict: Literal["pass", "fail", "inconclusive"]
    minimum_coverage: float
    """A value with less coverage is inconclusive."""
    checks: list[GateCheck]


class GradeAgreement(TypedDict):
    """The agreement of two judges' grades in one task; n is the number of responses that both graded."""

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
    """Whether the service is ready."""

    status: Literal["ok", "degraded", "unavailable"]
    """`unavailable` if the API can't serve, `degraded` if jobs don't run as they should."""
    parts: NotRequired[dict[str, str]]
    """Each part's status: `ok`, or what is wrong."""


class HeldModel(TypedDict):
    """A model that the rate limiter has on hold."""

    model: str
    until: str
    reason: str | None
    """For example, a daily limit used up; `null` if unknown."""


class WeightedAgreement(TypedDict):
    """Agreement over the sentences (or pairs) from which labelling rounds drew."""

    fleiss_kappa: Metric
    population: int
    """Number of sentences (or pairs) from which rounds drew; 0 without a round."""
    covered: int
    """Those in strata with an answer, to which all weighted values refer."""


class HumanAgreement(TypedDict):
    """How far annotators agree with the judges and with each other, on one dimension (atomic paper, Table 3)."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None
    """The PersonaGym task whose rubric was used, if any."""
    annotators: int
    n: int
    """Sentences, responses or pairs with an answer."""
    answers: int
    not_applicable: int
    """Those that everyone who answered marked not applicable."""
    fleiss_kappa: Metric
    """Among annotators; n counts those with at least two answers."""
    weighted: WeightedAgreement
    judges: list[AgreementWithJudge]


class ModelAgreement(TypedDict):
    """How far annotators agree with one judge, or with the mean of all judges, on one model's texts."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    """`null`: by PersonaGym's rubrics."""
    model: str | None
    """`null` for pairs, which cover all models."""
    task: str | None
    """`null` for pairs, which cover all tasks, and for the PersonaScore over personas."""
    judge: str | None
    """`null`: the mean of the judges that gave a score."""
    personas: int
    """Number of personas; intervals are over personas, for pairs over pairs."""
    left_out: int
    """Answered, but without the judge's score (for pairs, also those with equal scores); for the PersonaScore, personas without an answer for each task."""
    kendall_tau: Metric
    """τ_b of the annotators' mean with the judge's score; for pairs τ_A. n counts sentences, responses, pairs or personas."""
    kendall_p: float | None
    """By a permutation test that exchanges scores between personas; for pairs, by a sign test."""
    spearman_rho: Metric | None
    """`null` for pairs."""
    spearman_p: float | None


class PublishedAgreement(TypedDict):
    """How far PersonaGym's authors found people to agree with their judges (Table 2): 100 personas, two people."""

    model: str
    """As the paper names it."""
    task: str | None
    """`null`: PersonaScore over personas."""
    spearman_rho: float
    kendall_tau: float


class HumanStudy(TypedDict):
    """How far people agree with a job's judges by model and task, and with each other; empty if there are no annotations."""

    job: str
    among_annotators: list[AmongAnnotators]
    data: list[ModelAgreement]
    """By kind, dimension, model, task and judge."""
    published: list[PublishedAgreement]
    """PersonaGym's Table 2, where people have graded responses by its rubrics; else empty."""


class ReasonCount(TypedDict):
    """How many records were refused for a reason."""

    reason: str
    count: int


class RefusedRecord(TypedDict):
    """A record that was not taken."""

    place: str
    """JSON pointer into the file; `/lines/<n>`, `/rows/<n>`, `/files/<name>` or `/chunks/<n>` where it is not JSON."""
    reason: str


class SampleRecord(TypedDict):
    """One of the first records, shortened."""

    place: str
    persona: str | None
    model: str | None
    task: str | None
    prompt: str | None
    text: str | None
    scores: dict[str, float]


class ImportPreview(TypedDict):
    """What a file has and how it maps."""

    object: Literal["import"]
    kind: str
    """The file's kind."""
    found: int
    """Texts, personas or questions found, and records that have none."""
    mapped: int
    """How many of them the bodies below have."""
    refused: int
    """How many were refused: `found` − `mapped`."""
    reasons: list[ReasonCount]
    """Why, most frequent first; all refused ones are counted."""
    refused_records: list[RefusedRecord]
    """The first 1,000 refused ones."""
    mapping: dict[str, str]
    """What of the file becomes what."""
    models: list[FoundName]
    personas: list[FoundName]
    """The first 1,000."""
    persona_count: int
    tasks: list[FoundName]
    prompts: int
    """Number of different prompts."""
    scores: list[FoundScore]
    samples: list[SampleRecord]
    """The first five records."""
    notes: list[str]
    """What is not taken as it is, and what still has to be chosen."""
    job: dict[str, Any] | None
    """A body for `POST /v1/jobs`, if there are texts; add judges. Of an upload, its `responses` name that."""
    persona_set: dict[str, Any] | None
    """A body for `POST /v1/persona-sets`, if there are personas without texts."""
    question_set: dict[str, Any] | None
    """A body for `POST /v1/question-sets`, if there are questions without answers."""


class ImportReading(TypedDict):
    """An upload that is being read; the same request answers what it has, once that is done."""

    object: Literal["import_reading"]
    upload: str


class ImportedFrom(TypedDict):
    """Where an imported job was computed."""

    job: str
    """Its id there."""
    release: str
    """The release of the service that wrote the bundle."""
    sha256: str
    """Hash of the bundle."""
    imported_at: str


JobStatus: TypeAlias = Literal[
    "queued", "running", "paused", "cancelling", "finalizing", "completed", "failed", "cancelled"
]
"""A job's status."""


class ModelScore(TypedDict):
    """A model's figure in the metric that the job's report orders models by."""

    model: str
    metric: str
    """`acc_atom`; `persona_score` for a job with only PersonaGym tasks."""
    value: float | None
    """`null` if it can't be computed."""
    n: int
    """How many cells, or personas, it is the mean of."""


Priority: TypeAlias = Literal["low", "normal", "high"]
"""A job's priority."""


class JobError(TypedDict):
    """What stopped a job; unknown fields are omitted."""

    code: str
    batch: NotRequired[int | None]
    """The batch concerned, if any."""
    cause: NotRequired[str | None]
    """What happened, in plain words."""
    model: NotRequired[str | None]
    """The model concerned."""
    shard: NotRequired[int | None]
    """For an internal error: the shard, as in the service's log."""
    stage: NotRequired[str | None]
    """The stage of the calls concerned."""
    detail: str
    """The provider's message, or ours."""
    remedy: NotRequired[str | None]
    """What to change before the job can go on."""
    first_calls: NotRequired[int | None]
    """Number of calls of the stage, its first ones or later ones in a row, that all failed in the same way, if that stopped the job."""


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
    """Whether any model or judge is simulated."""
    created_at: str
    started_at: str | None
    finished_at: str | None
    spec: dict[str, Any]
    """The submitted body, without existing texts."""
    metadata: dict[str, str]
    tags: list[str]
    """Like the name and the notes, they can be changed at any time."""
    notes: str | None
    archived_at: str | None
    """When it was archived. Archived jobs are only listed on request."""
    models: list[str]
    """Labels of the models under test."""
    imported_judges: list[str]
    """Names of judges whose verdicts came with the responses; empty if all judges are called."""
    scores: list[ModelScore]
    """The models' main scores, best first, once the job has ended."""
    warnings: list[ResultWarning]
    """Reasons to doubt its results, the gravest first, once the job has ended."""
    priority: Priority
    error: JobError | None
    """What stopped it."""
    imported_from: ImportedFrom | None
    """Of a job that was not computed here, but imported from a bundle."""
    links: dict[str, str]
    """Related URLs; `question_set` and `persona_set` once the job has created one, `source` the job whose texts it judges."""


class ImportedJob(TypedDict):
    """A job that was imported from a bundle."""

    job: Job
    responses: int
    verdicts: int
    calls: int
    recomputed: NotRequired[Literal["equal"]]
    """The results were computed again from the rows and are those of the bundle."""


class ProvenanceIn(TypedDict):
    """Where an imported judge's verdicts come from."""

    source: str
    """A file, a paper, a service."""
    date: NotRequired[str | None]
    """When they were given: a year, month or day."""
    note: NotRequired[str | None]
    """More, for people."""


class ImportedJudgeIn(TypedDict):
    """A judge whose verdicts come with the responses. It is never called."""

    imported: str
    """Its name in verdicts and results."""
    provenance: ProvenanceIn


ItemSource: TypeAlias = Literal["questions", "essay_context", "common"]
"""Where a task's items come from."""


class JobCalibration(TypedDict):
    """A job's totals as people would score them; empty if nothing that was drawn has been labelled."""

    job: str
    half_width: float
    totals: list[CalibratedFigure]
    """Over all dimensions, `null` if one of them has no labelled sentence; and `persona_score`."""
    differences: list[CalibratedFigure]
    not_calibrated: dict[str, str]
    """Why other metrics are not calibrated."""
    data: list[DimensionCalibration]
    """By dimension."""


class JobChangeIn(TypedDict):
    """Changes to a job; its configuration and results stay as they are."""

    budget: NotRequired[BudgetIn]
    """New limits, of the kinds that the job was submitted with; omitted limits stay as they are."""
    name: NotRequired[str | None]
    tags: NotRequired[Sequence[str]]
    """All tags, at most 50 characters each; they replace the present ones."""
    notes: NotRequired[str | None]
    archived: NotRequired[bool]
    """Archived jobs are only listed on request."""


class StageProgress(TypedDict):
    """One stage's progress; the parts add up to the total."""

    total: int
    pending: int
    running: int
    """Parts that workers have taken. Only `on_the_wire` of the job's calls are sent; the others wait their turn."""
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
    """`null` if no price is known."""
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
    """Calls that have all failed so far and are being retried."""

    stage: str
    model: str
    attempts: int
    cause: str
    """Why, in plain words."""
    remedy: str
    """What to do about it."""


class SparedByModel(TypedDict):
    """The same for one stage and model."""

    stage: str
    model: str
    same_job: int
    """Replies to identical calls of the job itself."""
    other_job: int
    """Replies to calls of your other jobs."""
    input_tokens: int
    output_tokens: int
    usd: float | None
    """`null` if no price is known."""
    unpriced_replies: int
    """Replies of unknown price, not in the sum."""


class ReuseAnswer(TypedDict):
    """What reuse saved; none of it is in `usage`, `cost` or the budget."""

    same_job: int
    """Replies to identical calls of the job itself."""
    other_job: int
    """Replies to calls of your other jobs."""
    input_tokens: int
    output_tokens: int
    usd: float | None
    """`null` if no price is known."""
    unpriced_replies: int
    """Replies of unknown price, not in the sum."""
    oldest: str | None
    """When the oldest of these replies was requested."""
    by_model: list[SparedByModel]


class JobDetail(TypedDict):
    """A job with its progress and usage."""

    id: str
    object: Literal["job"]
    name: str | None
    status: JobStatus
    status_reason: str | None
    """Why it is paused, failed or cancelled."""
    completeness: Literal["full", "partial"]
    simulated: bool
    """Whether any model or judge is simulated."""
    created_at: str
    started_at: str | None
    finished_at: str | None
    spec: dict[str, Any]
    """The submitted body, without existing texts."""
    metadata: dict[str, str]
    tags: list[str]
    """Like the name and the notes, they can be changed at any time."""
    notes: str | None
    archived_at: str | None
    """When it was archived. Archived jobs are only listed on request."""
    models: list[str]
    """Labels of the models under test."""
    imported_judges: list[str]
    """Names of judges whose verdicts came with the responses; empty if all judges are called."""
    scores: list[ModelScore]
    """The models' main scores, best first, once the job has ended."""
    warnings: list[ResultWarning]
    """Reasons to doubt its results, the gravest first, once the job has ended."""
    priority: Priority
    error: JobError | None
    """What stopped it."""
    imported_from: ImportedFrom | None
    """Of a job that was not computed here, but imported from a bundle."""
    links: dict[str, str]
    """Related URLs; `question_set` and `persona_set` once the job has created one, `source` the job whose texts it judges."""
    progress: dict[str, StageProgress]
    on_the_wire: int | None
    """Calls sent and not yet answered, as workers last reported, at most five seconds ago by default. `null` if a worker that has just begun has not reported yet."""
    usage: JobUsage
    cost: Cost
    failures: list[FailedCalls]
    """Failed calls by stage, model, code and message, the most frequent first; at most 50."""
    retrying: list[Retrying]
    """Models of a running job that have not yet answered any call of a stage; their calls are being retried."""
    failed_asks: list[FailedAsks]
    """Unusable replies of the reasoner, by stage and task, while PersonaGym's preparation or the generation of personas lacks something."""
    held: list[HeldModel]
    """Models that a running job waits for because a provider's limit is used up for several seconds or longer."""
    budget: BudgetAnswer | None
    """`null` for a job without a budget."""
    reuse: ReuseAnswer | None
    """`null` for a job without it."""
    batches: BatchProgress | None
    """`null` for a job without batches."""


class JobExemplars(TypedDict):
    """A question's exemplars, as a job grades by them."""

    persona: str
    """The persona's ID."""
    task: str
    item: str
    """The question's item, such as `Q-1`."""
    question: str
    exemplars: list[str]
    """Five texts, which deserve the scores 1 to 5."""
    reused: bool
    """Whether they came with the question set instead of a call of this job."""


class JobExemplarList(TypedDict):
    """A page of a job's exemplars."""

    data: list[JobExemplars]
    has_more: bool
    next_cursor: str | None


class PersonaIn(TypedDict):
    """A persona defined in the job."""

    id: str
    """Unique in the job."""
    description: str
    """The words that replace `{persona}` in the instructions."""
    traits: NotRequired[Mapping[str, str]]
    """Level by dimension. Atomic tasks measure each in a cell of its own."""


class TaskIn(TypedDict):
    """A task with options that only PersonaGym's tasks take."""

    task: str
    """The task's id."""
    atomic: NotRequired[bool | None]
    """Also judge every sentence of the answers for its consistency with the persona."""
    questions: NotRequired[int | None]
    """Questions per persona; default: 10, as in the paper."""
    questions_per_environment: NotRequired[bool | None]
    """Write this many questions for each of a persona's environments."""
    runs: NotRequired[int | None]
    """How often each question is answered; default: once."""


class ModelIn(TypedDict):
    """A model with its parameters. Omitted parameters are the papers' for judges and PersonaGym, otherwise the provider's defaults."""

    model: str
    """`connection/name`."""
    label: NotRequired[str | None]
    """The name in results; default: `model`."""
    family: NotRequired[str | None]
    """A model name that tells its family if its own name does not, as for an Azure deployment: parameters that the family refuses are not sent."""
    temperature: NotRequired[float | None]
    """`null`: not sent."""
    top_p: NotRequired[float | None]
    """`null`: not sent."""
    max_tokens: NotRequired[int | None]
    seed: NotRequired[int | None]
    """Run n of a cell is sent seed + n, so that runs differ."""
    stop: NotRequired[Sequence[str]]
    system: NotRequired[Literal["message", "in_user_turn"]]
    """Where the persona is sent: as the system message, or `in_user_turn`, at the head of the user's message, for models whose chat template or provider takes no system message."""
    extra: NotRequired[Mapping[str, Any]]
    """Further fields of the provider's request body that only affect sampling or reasoning, such as `top_k`, `reasoning_effort` or `thinking`; the operator can allow others. Any other field is a 422 that names it."""
    profile: NotRequired[str | None]
    """For a judge model with a prompt form of its own: `prometheus-2`, `m-prometheus`, `selene` or `flow-judge`. It is asked in that form, and its native reply is read. It scores from 1 to 5 and cannot say that a sentence does not show the trait."""
    attributes: NotRequired[Mapping[str, str]]
    """What is known of a model under test, such as its size: models with the same value are shown as a group."""


class VerdictsIn(TypedDict):
    """What one imported judge said of a response on one dimension: `scores`, or one `score` for all of it."""

    judge: str
    """An imported judge of the job."""
    dimension: NotRequired[str | None]
    """Required if the response is judged on several."""
    scores: NotRequired[
        Sequence[int | Literal["not_applicable", "refused", "unparsed", "filtered"] | None] | None
    ]
    """One for each sentence, in order; `null` is missing."""
    score: NotRequired[int | Literal["not_applicable", "refused", "unparsed", "filtered"] | None]
    """The whole response's, which then counts as one sentence; `null` is missing."""


class ResponseIn(TypedDict):
    """A text that already exists."""

    persona: str
    """One of the job's personas."""
    task: str
    """One of the job's tasks."""
    text: NotRequired[str | None]
    """The response as written. Thoughts in tags at the beginning are separated and not judged. May be left out if only imported judges judge it."""
    item: NotRequired[str | None]
    """The item it answers; required if a cell has several. Atomic tasks only."""
    question: NotRequired[str | None]
    """The question it answers, in its own words; required for PersonaGym's tasks, in place of `item`."""
    run: NotRequired[int | None]
    """The repetition; default: in the given order."""
    instruction: NotRequired[int | None]
    """Number of its persona instruction, from 0."""
    model: NotRequired[str]
    """The model's name for the results."""
    conversation: NotRequired[str | None]
    """Its conversation, if it is a turn of one. Turns depend on each other: cells with several of one conversation have no intervals and no RC_atom."""
    units: NotRequired[Sequence[str]]
    """Its sentences, if another segmentation is to be used than the service's."""
    verdicts: NotRequired[Sequence[VerdictsIn]]
    """What imported judges said of it."""
    grades: NotRequired[Mapping[str, int | None]]
    """Of an answer to PersonaGym's question: what imported judges gave it, 1 to 5; `null` is missing."""


class QaIn(TypedDict):
    """Answers to PersonaGym's questions as its released code saves them."""

    qa: Mapping[str, Mapping[str, Mapping[str, Sequence[Sequence[str]]]]]
    """By model and persona (id, description, or the file's name) the content of a `_qa.json` file: by task a list of `[question, answer]`."""


class SampleIn(TypedDict):
    """A sample of the texts in which each is as likely as any other, spread over models, tasks, personas' levels and personas."""

    responses: int
    """How many, of pairs of runs about how many; all if there are fewer."""
    seed: NotRequired[int]
    by: NotRequired[Literal["responses", "run_pairs"]]
    """What is drawn: single responses; or pairs of runs of a cell with all of their responses, which a bridge needs for RC_atom."""


class JobTextsIn(TypedDict):
    """The texts of another of your jobs, which has ended."""

    job: str
    filter: NotRequired[FilterIn]
    sample: NotRequired[SampleIn | None]


class UploadTextsIn(TypedDict):
    """The texts of an upload that is ready."""

    upload: str


class JudgingCheckIn(TypedDict):
    """The sample that is also judged one sentence per call, drawn with the job's seed. Required."""

    share: NotRequired[float]
    """Share of the responses."""
    minimum: NotRequired[int]
    """Minimum number of responses, or all if there are fewer."""


class OrderCheckIn(TypedDict):
    """The sentences that each judge judges three more times, drawn with the job's seed; none of these verdicts counts in a metric."""

    share: float
    """Share of the sentences."""


class JudgingIn(TypedDict):
    """How sentences are judged."""

    sentences_per_call: NotRequired[int]
    """Maximum number of a response's sentences per judging call. 1 is the papers' way; larger groups use this project's own prompt, and `judging_check` in the results shows how much verdicts differ."""
    check: NotRequired[JudgingCheckIn | None]
    """With several sentences per call: the sample that is also judged one per call."""
    order_check: NotRequired[OrderCheckIn | None]
    """Sentences that are judged again with the options reversed, with their numbers shuffled, and unchanged: `order_check` in the results shows how much a judge depends on the order."""
    repair: NotRequired[bool]
    """Whether a judge whose reply cannot be read is asked once more, in the same conversation, for the option's number only. At most one further call for each reply."""
    refusals: NotRequired[Literal["rules", "judge", "judge_all"]]
    """Who tells refusals of generated texts from answers: the rules alone; with `judge` also the first judge where the rules are unsure; with `judge_all` also the first judge for every text that the rules don't call a refusal. One call for each such text; `refusal_check` of a response's notes is its reply."""
    reply: NotRequired[Literal["text", "choice", "json_schema"]]
    """Form of the judges' replies, enforced by their servers: `choice` allows one of the options' numbers, `json_schema` a JSON object with it. A judge whose connection cannot do that is a 422; `assay check` shows what it can do."""
    leave_out: NotRequired[Sequence[Literal["cut_off", "repeated_sentences"]] | None]
    """Sentences that judges are not asked about: last ones that are `cut_off`, and `repeated_sentences`. Default: none, or as in the job whose texts are judged again."""


class VersionsIn(TypedDict):
    """Versions of the rules for reading texts, for a job to be compared with an older one."""

    segmenter: NotRequired[str | None]
    """Splits texts into sentences: `punkt-en-v1`; `punkt-en-wide-v2`, which also knows the final signs of other scripts; or `roleplay-en-v1`, for actions in asterisks, speaker labels and emoji."""
    refusals: NotRequired[str | None]
    """Detects refusals."""
    injections: NotRequired[str | None]
    """Detects prompt injections."""


class ReuseIn(TypedDict):
    """Which calls are skipped if an identical request has already been answered; default: none."""

    judging: NotRequired[Literal["off", "in_job", "across_jobs"]]
    """For judges at temperature 0: `in_job` makes identical calls of the job once; `across_jobs` also shares replies with your other jobs."""
    generation: NotRequired[Literal["off", "across_jobs"]]
    """For the evaluated models: a text is reused only for the same repetition of the same item, so that an identical job gets the same texts and no job gets one twice."""


class JobIn(TypedDict):
    """A job: personas × tasks × models, each repeated under every instruction; or existing texts to judge."""

    name: NotRequired[str | None]
    """A name, for people."""
    personas: NotRequired[Sequence[str | PersonaIn]]
    """Ids of personas or persona sets (`GET /v1/personas`, `GET /v1/persona-sets`), or personas written out. Required, but for texts of another job, which has its own."""
    tasks: NotRequired[Sequence[str | TaskIn]]
    """Task ids (`GET /v1/tasks`), or tasks with options. Required as `personas` are."""
    judges: NotRequired[Sequence[str | ModelIn | ImportedJudgeIn]]
    """Judges; each scores every sentence, and grades every PersonaGym answer, independently. Default temperature: 0. Default judges: the operator's, or two simulated ones if only the simulator is configured. An imported judge is never called: its verdicts come with `responses`."""
    models: NotRequired[Sequence[str | ModelIn]]
    """Models to evaluate."""
    responses: NotRequired[Sequence[ResponseIn] | QaIn | JobTextsIn | UploadTextsIn | None]
    """Existing texts to judge, instead of `models`: a list, PersonaGym's `_qa.json` files, the texts of another job, or an upload."""
    dimensions: NotRequired[Sequence[DimensionIn]]
    """Dimensions beyond the Big Five."""
    instructions: NotRequired[Literal["all"] | Sequence[str | int]]
    """Persona instructions for the atomic tasks: all six of the paper, some by number (from 0, as `GET /v1/personas` lists them), or texts."""
    iterations: NotRequired[int]
    """Repetitions under each instruction."""
    seed: NotRequired[int]
    """Random seed for everything that the service draws."""
    reasoner: NotRequired[str | ModelIn | None]
    """Selects environments and writes questions and exemplars; required by PersonaGym's tasks. Default temperature and top_p: 0.9."""
    questions: NotRequired[str | Mapping[str, Mapping[str, Sequence[str]]] | None]
    """Existing questions: a question set's id, or questions by task by persona (id, description, or the name of its published file). Missing ones are written by the reasoner."""
    environments: NotRequired[Sequence[str] | Mapping[str, Sequence[str]] | None]
    """Environments, for all personas or by persona id; none are selected then."""
    environment_pool: NotRequired[Sequence[str] | None]
    """Environments to select from, instead of the built-in 150."""
    gym_instruction: NotRequired[str | None]
    """PersonaGym's persona instruction: `adopt` (the paper's appendix), `closely_mirror` (its section 3.2), or a text with `{persona}`."""
    rubrics: NotRequired[str | None]
    """ID of a rubric set (`GET /v1/rubric-sets`), whose words replace those of the tasks; it may also bring tasks of its own."""
    thresholds: NotRequired[Sequence[str]]
    """Thresholds that `GET /v1/jobs/{id}/gate` checks by default."""
    minimum_coverage: NotRequired[float]
    """Below this coverage, the gate finds a value inconclusive."""
    control: NotRequired[bool | ControlIn]
    """Also ask each model without a persona (the atomic tasks' items once for all personas, PersonaGym's questions of each persona), and report in `control` how much higher values are with a persona. As an object, it can also compare opposite personas."""
    protocol: NotRequired[Literal["paper", "hardened"]]
    """`paper`: the papers' prompts and definitions. `hardened`: judges are also told which part of the prompt is the judged text, and prove with a key word that they follow our prompt and not the text's instructions."""
    budget: NotRequired[BudgetIn | None]
    """Spending limits; once used up, the job pauses with `status_reason: budget_exhausted`."""
    confirm_calls: NotRequired[int | None]
    """The most calls that you accept; a job that may need more is refused. Required for large jobs: the plan's `confirm_calls` gives the number."""
    priority: NotRequired[Literal["low", "normal", "high"]]
    """Priority among your own jobs; each step up gets four times as many turns."""
    judging: NotRequired[JudgingIn]
    """How sentences are judged; default: one per call."""
    versions: NotRequired[VersionsIn | None]
    """Earlier versions of rules, as listed by `GET /v1/tasks`; default: the latest. A job keeps its versions after later releases."""
    reuse: NotRequired[ReuseIn | None]
    """Whether replies are reused; `reuse` reports the savings."""
    execution: NotRequired[Literal["direct", "batch"]]
    """`batch` sends calls through the providers' batch endpoints: half the price, within a day. PersonaGym's preparation is always called directly."""
    tags: NotRequired[Sequence[str]]
    """Tags, at most 50 characters each."""
    metadata: NotRequired[Mapping[str, str]]
    """Your own labels, by which jobs can be listed."""


class ListedJob(TypedDict):
    """A job of a list."""

    id: str
    object: Literal["job"]
    name: str | None
    status: JobStatus
    status_reason: str | None
    """Why it is paused, failed or cancelled."""
    completeness: Literal["full", "partial"]
    simulated: bool
    """Whether any model or judge is simulated."""
    created_at: str
    started_at: str | None
    finished_at: str | None
    spec: dict[str, Any]
    """The submitted body, without existing texts."""
    metadata: dict[str, str]
    tags: list[str]
    """Like the name and the notes, they can be changed at any time."""
    notes: str | None
    archived_at: str | None
    """When it was archived. Archived jobs are only listed on request."""
    models: list[str]
    """Labels of the models under test."""
    imported_judges: list[str]
    """Names of judges whose verdicts came with the responses; empty if all judges are called."""
    scores: list[ModelScore]
    """The models' main scores, best first, once the job has ended."""
    warnings: list[ResultWarning]
    """Reasons to doubt its results, the gravest first, once the job has ended."""
    priority: Priority
    error: JobError | None
    """What stopped it."""
    imported_from: ImportedFrom | None
    """Of a job that was not computed here, but imported from a bundle."""
    links: dict[str, str]
    """Related URLs; `question_set` and `persona_set` once the job has created one, `source` the job whose texts it judges."""
    cost: Cost


class JobList(TypedDict):
    """A page of jobs."""

    data: list[ListedJob]
    has_more: bool
    next_cursor: str | None


VerdictStatus: TypeAlias = Literal["scored", "not_applicable", "refused", "unparsed", "filtered", "failed"]
"""The status of one judgement; only `scored` has a number."""


Unread: TypeAlias = Literal["empty", "cut_off", "no_answer", "ambiguous", "contradiction"]
"""Reason why no score was read from a reply."""


Suspicion: TypeAlias = Literal["text", "reply", "both"]
"""Why a verdict is uncertain."""


ReplyOrigin: TypeAlias = Literal["same_job", "other_job"]
"""Where a reused reply comes from."""


class JudgeCall(TypedDict):
    """One judge's reply, and the prompt that it answers."""

    purpose: Literal["verdict", "grade", "group", "alone", "repeated", "reversed", "shuffled"]
    """`verdict` and `grade` are what counts. `group`: the reply about several sentences gave nothing usable for this one. `alone`: the check of grouped judging. `repeated`, `reversed`, `shuffled`: the order check."""
    judge: str
    dimension: str | None
    """`null` for a grade."""
    units: list[int]
    """The sentences that the call is about; empty for the whole response."""
    system: str | None
    """The system prompt; `null` where there is none. Untrusted text."""
    prompt: str | None
    """The user prompt; `null` where no judge was asked. Untrusted text."""
    parameters: dict[str, Any]
    """Those that the judge's specification has sent with the prompt."""
    status: VerdictStatus
    score: int | None
    raw: str | None
    """The reply; `null` where there is none. Untrusted text."""
    error: str | None
    """Why there is no reply, or none to the follow-up. Untrusted text."""
    finish_reason: FinishReason | None
    """Why the reply ended."""
    thoughts: str | None
    """What the judge thought before. Untrusted text."""
    unread: Unread | None
    """Why the first reply could not be read; `null` if it could."""
    repair_raw: str | None
    """The reply to the follow-up request; `null` without one. Untrusted text."""
    suspicion: Suspicion | None
    reused: ReplyOrigin | None
    """Which job's reply it is, if no call was made for it."""
    notes: list[str]
    """What about this call is not as it looks."""


class JudgeCalls(TypedDict):
    """What the judges were asked about one sentence, or about a response as a whole."""

    response: str
    """The response's id."""
    unit: int | None
    """The sentence's index; `null` for the whole response."""
    text: str | None
    """The sentence as judges read it, or the response. Untrusted text."""
    certain: bool
    """Prompts are not stored. They are made again from the stored job by the code that made the calls; whether this is the release that computed the job's results, so that the code is the same."""
    release: str | None
    """The release that computed the results; `null` before there are any."""
    data: list[JudgeCall]


class JudgeRepairs(TypedDict):
    """One judge's follow-up requests and their outcome."""

    unread: int
    """Verdicts and grades whose first reply could not be read."""
    repaired: int
    """Those that the second reply gave."""
    unparsed: int
    """The others: no figure contains them."""
    failed: NotRequired[int]
    """The unparsed ones whose follow-up request failed: there is no second reply."""
    judge: str


class Provenance(TypedDict):
    """Where an imported judge's verdicts come from."""

    source: str
    """A file, a paper, a service."""
    date: NotRequired[str | None]
    """When they were given: a year, month or day."""
    note: NotRequired[str | None]
    """More, for people."""


class JudgeResult(TypedDict):
    """One judge's verdicts in the whole job."""

    judge: str
    simulated: bool
    """Whether the judge is simulated."""
    imported: NotRequired[Provenance | None]
    """For an imported judge: where its verdicts come from. Else missing."""
    units: UnitCounts


class ResponseUsage(TypedDict):
    """Tokens of one response."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int | None
    """Output tokens that are thoughts; `null` if the provider does not report them."""


class UnitVerdict(TypedDict):
    """One judge's verdict on one sentence."""

    judge: str
    dimension: str
    status: VerdictStatus
    """`filtered`: refused by the content filter of the judge's provider, not by the judge."""
    score: int | None
    raw: str | None
    """The judge's reply; `null` if it was not asked or did not answer. Untrusted text."""
    error: str | None
    """Why there is no reply, or none to the follow-up. Untrusted text."""
    in_character: bool | None
    """Whether the score lies in the persona's level; `null` without a score or a persona."""
    group_size: int
    """Number of sentences in the same judging call."""
    reused: ReplyOrigin | None
    """Where the reply was reused from, if no call was made."""
    suspicion: Suspicion | None
    """Why it is uncertain: `text` (contains a prompt injection), `reply` (under `hardened`: lacks the key word) or `both`."""
    finish_reason: FinishReason | None
    """Why the judge's reply ended; `null` without a reply, or if not recorded."""
    thoughts: str | None
    """The judge's thoughts before its reply, which are not scored. Untrusted text."""
    unread: NotRequired[Unread | None]
    """Why the judge's first reply could not be read; `null` if it could. With a score, the reply to the follow-up request gave it."""
    repair_raw: NotRequired[str | None]
    """The judge's reply to the follow-up request; `null` if there was none. Untrusted text."""


class JudgedUnit(TypedDict):
    """One sentence."""

    index: int
    span: list[int]
    """Offsets in the response's text, in Unicode code points."""
    text: str
    """The sentence as the judge read it. Untrusted text."""
    verdicts: list[UnitVerdict]
    """Ordered by dimension and judge; possibly incomplete while the job runs."""


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
    """The judge's reply; `null` if it was not asked or did not answer. Untrusted text."""
    error: str | None
    """Why there is no reply, or none to the follow-up. Untrusted text."""
    reused: ReplyOrigin | None
    """Where the reply was reused from, if no call was made."""
    suspicion: Suspicion | None
    """Why it is uncertain: `text` (contains a prompt injection), `reply` (under `hardened`: lacks the key word) or `both`."""
    finish_reason: FinishReason | None
    """Why the judge's reply ended; `null` without a reply, or if not recorded."""
    thoughts: str | None
    """The judge's thoughts before its reply, which are not scored. Untrusted text."""
    unread: NotRequired[Unread | None]
    """Why the judge's first reply could not be read; `null` if it could. With a score, the reply to the follow-up request gave it."""
    repair_raw: NotRequired[str | None]
    """The judge's reply to the follow-up request; `null` if there was none. Untrusted text."""


class ResponseFigures(TypedDict):
    """One response on one dimension; of several judges, means over those that have the figure."""

    dimension: str
    n: int
    """Scored sentences; of several judges, of the one with the fewest who has any. Without one there is no figure."""
    mean: float | None
    """The mean of its sentences' scores."""
    acc: float | None
    """1 if that lies in the persona's level, else 0; `null` without a persona."""
    acc_atom: float | None
    """The share of scored sentences in character; likewise."""
    ic_atom: float | None
    """Internal consistency; needs two scored sentences of a judge."""


class TextNotes(TypedDict):
    """What is odd about one text."""

    unknown_tags: NotRequired[list[str]]
    """Unknown tags or special tokens that stayed in the text: parts of it may be thoughts."""
    unknown_finish_word: NotRequired[str | None]
    """The provider's word for why the model stopped, if its meaning is not known."""
    cut_off: NotRequired[list[int] | None]
    """Offsets of the last sentence if its end is missing."""
    repeated_sentences: NotRequired[list[list[int]]]
    """Offsets of sentences that repeat an earlier one of the text."""
    role_breaks: NotRequired[list[list[int]]]
    """Offsets of sentences in which the model says that it is one, or leaves its role."""
    refusal_check: NotRequired[str | None]
    """The judge's reply to whether the text is a refusal, if it was asked. Untrusted text."""


class LeftOutSentence(TypedDict):
    """A sentence that the job left out of judging (`judging.leave_out`)."""

    span: list[int]
    """Offsets in the response's text."""
    text: str
    """The sentence. Untrusted text."""
    reason: Literal["cut_off", "repeated_sentences"]


class JudgedResponse(TypedDict):
    """A response with its sentences and their verdicts."""

    id: str
    """The same after retries."""
    model: str
    persona: str
    """The persona's id; in the control arm, empty, or for PersonaGym the persona whose question it is."""
    levels: dict[str, str]
    """The persona's levels, by dimension on which this response is judged."""
    task: str
    item: AskedItem
    run: int
    """Repetition, from 0."""
    instruction: int | None
    """Number of the persona instruction, from 0, as in the manifest; `null` if unknown."""
    iteration: int | None
    """Repetition under that instruction, from 0; `null` if unknown."""
    status: Literal["answered", "refused", "filtered", "no_answer", "failed"]
    """`filtered`: refused or stopped by the provider's content filter. `no_answer`: only thoughts, or ended early for an unknown reason. Only `answered` responses are judged."""
    text: str | None
    """`null` if the call failed, or if only verdicts were imported. Untrusted text."""
    refusal: bool
    """Whether `status` is `refused`."""
    error: str | None
    """Why there is no text, or none to judge."""
    finish_reason: FinishReason | None
    """Why the model stopped; `null` for existing texts."""
    usage: ResponseUsage | None
    thoughts: str | None
    """The model's thoughts before the text, which are not judged; empty if the provider hides them, `null` if the model did not think. Untrusted text."""
    units: list[JudgedUnit]
    question: str | None
    """The question of a PersonaGym task; `null` for other tasks."""
    grades: list[ResponseGrade]
    """Grades of a PersonaGym response, ordered by judge; possibly incomplete while the job runs."""
    score: float | None
    """Mean over the judges that gave a score."""
    reused: ReplyOrigin | None
    """Where the text was reused from, if no call was made."""
    persona_description: str
    """The persona's description. Untrusted text."""
    persona_traits: list[str]
    """All of the persona's traits in words, such as `high in extraversion`."""
    conversation: NotRequired[str | None]
    """The conversation of which it is a turn; `null` for other texts."""
    figures: NotRequired[list[ResponseFigures]]
    """Its figures on each dimension on which its sentences have verdicts."""
    notes: NotRequired[TextNotes | None]
    """What is odd about the text; `null` if nothing."""
    left_out: NotRequired[list[LeftOutSentence]]
    """Sentences that were not judged; not among `units`."""
    imported_judges: NotRequired[list[str]]
    """Judges that were never called: their verdicts were imported."""


class JudgesDistances(TypedDict):
    """Distances between runs by one judge's scores."""

    judge: str
    distances: list[list[float | None]]
    """Each run with each other, in the order of `runs`; `null` if either has no scored sentence."""


class JudgingAgreement(TypedDict):
    """How well one judge's grouped and single verdicts agree, over all tasks (`task` is `null`) or in one; n counts sentences."""

    judge: str
    task: str | None
    scale: dict[str, int]
    """`minimum` and `maximum`; each scale has its own row."""
    sentences: int
    """Judged both ways."""
    responses: int
    left_out: int
    """Sentences whose single verdict could not be parsed; excluded from all values."""
    suspicious: int
    """Sentences whose grouped verdict has a `suspicion`; included in all values."""
    exact_agreement: Metric
    mean_absolute_difference: Metric
    mean_difference: Metric
    """Grouped minus alone, in points of the scale."""
    quadratic_kappa: Metric
    acc_grouped: Metric
    """Share of sentences in character when judged in groups."""
    acc_alone: Metric
    acc_difference: Metric


class JudgingCheck(TypedDict):
    """For a sample, verdicts on several sentences per call beside verdicts on one per call. The latter are used in no other value."""

    sentences_per_call: int
    sample: dict[str, float]
    """`share` and `minimum` as asked for, the `responses` drawn, and how many they were `drawn_from`."""
    responses: int
    """Responses with sentences judged both ways; refusals have none."""
    sentences: int
    asked_alone: dict[str, int]
    """Sentences judged alone because their part of a group's reply was unusable, by status."""
    agreement: list[JudgingAgreement]


class KeptAnnotations(TypedDict):
    """The outcome of adding annotations."""

    created: int
    changed: int
    """Those that replaced an earlier answer by the same annotator."""
    unchanged: int
    """Those that were already stored."""


class KeptLimits(TypedDict):
    """Rate limits of a model; `null` for none."""

    requests_per_minute: NotRequired[float | None]
    tokens_per_minute: NotRequired[float | None]
    max_in_flight: NotRequired[int | None]


class KeptConnectionLimits(TypedDict):
    """Limits for each model separately, and for single models."""

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
    """The price of a batch call as a share of these prices."""


class KeptConnection(TypedDict):
    """A connection to a model provider, without its key."""

    name: str
    object: Literal["connection"]
    version: str
    """Changes with URL, limits or prices. A job keeps the version it was submitted with."""
    kind: Literal["openai", "anthropic", "completions"]
    base_url: str
    key_set: bool
    key_hint: str | None
    """The key's last four characters; `null` without a key, or if it is shorter than 20 characters."""
    limits: KeptConnectionLimits
    prices: dict[str, KeptPrices]
    models: list[str] | None
    """`null` for all."""
    batches: bool
    stream: bool
    """Whether calls ask for event streams, for a server that answers no other way."""
    families: dict[str, str]
    """By model: a name from which the model table knows its family."""
    description: str | None
    created_at: str
    """When this version was created."""
    updated_at: str


class KeptConnectionList(TypedDict):
    """All connections of the tenant, by name."""

    data: list[KeptConnection]


class Labelled(TypedDict):
    """An annotator's progress."""

    annotator: str
    answered: int


LabellingKind: TypeAlias = Literal["sentences", "responses", "pairs"]
"""What people label."""


class Stratum(TypedDict):
    """What was drawn from the sentences (or pairs) with the same judges' score, or from the responses of one model and task."""

    task: str
    model: NotRequired[str | None]
    """Only for responses."""
    scores: list[int]
    """The judges' mean score, rounded: one for sentences, two for pairs, none for responses."""
    drawn: int
    available: int
    """Number to draw from; for pairs, the number with the first score × the number with the second."""
    spread: NotRequired[float | None]
    """For a Neyman round: the standard deviation of the difference of people and judges in ACC_atom, by earlier labels."""


class LabellingRound(TypedDict):
    """A sample for people to label: the same for everyone, each in a different order."""

    id: str
    object: Literal["labelling_round"]
    job: str
    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    """`null` for responses."""
    size: int
    """Number requested."""
    seed: int
    allocation: Literal["even", "neyman"]
    answers_each: int | None
    """Number of people who answer each; `null`: everyone answers all."""
    n: int
    """Number drawn."""
    strata: list[Stratum]
    annotators: list[Labelled]
    created_at: str
    links: dict[str, str]


class LabellingRoundIn(TypedDict):
    """A sample of a job's sentences, whole responses or pairs of sentences, for people to label."""

    job: str
    """A finished job."""
    kind: LabellingKind
    """`sentences` are scored; in `pairs`, the sentence closer to the scale's upper end is chosen; whole `responses` to PersonaGym tasks are graded by the judges' rubric."""
    dimension: NotRequired[str | None]
    """Required if the job has several; not for `responses`."""
    size: NotRequired[int]
    """Number to draw; fewer if there are fewer."""
    seed: NotRequired[int]
    allocation: NotRequired[Allocation]
    """`even`: equally many of each score; `neyman`: sentences not drawn before, more where earlier labels of people and judges differ more, so that calibrated values have the narrowest intervals."""
    answers_each: NotRequired[int | None]
    """Number of people who answer each; then it is no longer shown to others. `null`: everyone answers all."""


class LengthEffect(TypedDict):
    """The correlation of a metric with response length over cells (atomic paper, section 6)."""

    task: str | None
    """`null` for all tasks together."""
    metric: str
    units: Metric
    """Pearson's r with the mean number of sentences in a cell's responses."""
    scored_units: Metric
    """The same with scored sentences."""


class LimitInUse(TypedDict):
    """A limit and its current use."""

    limit: int
    used: int


class Limits(TypedDict):
    """A tenant's limits and their current use."""

    object: Literal["limits"]
    paused: bool
    """Whether the operator has paused the tenant: its jobs make no calls, and new ones are refused."""
    models: list[str] | None
    """The models that jobs may call, as `connection/model` or `connection/*`; `null` for all."""
    spending: Spending | None
    """The tenant's spending cap; `null` without one."""
    unfinished_jobs: LimitInUse
    """Jobs that have not ended. A job beyond the limit is refused (429)."""
    streams: LimitInUse
    """Open event streams and imports at the API process that answers."""
    upload_bytes: LimitInUse
    """Bytes of all uploads together, unpacked."""
    planned_calls: int
    """Largest number of calls that one job may plan."""


class RefusedParameter(TypedDict):
    """A parameter that the provider refused although the model table lists it as accepted."""

    parameter: str
    said: str
    """The provider's message."""


class ModelEnds(TypedDict):
    """When a model is retired."""

    day: str
    """The first day on which it no longer answers."""
    source: str
    certainty: Literal["vendor", "secondary", "inferred"]


class NotSent(TypedDict):
    """A requested parameter that is not sent."""

    parameter: str
    """A field of `extra` as `extra.<name>`."""
    value: Any
    reason: str


class SentParameters(TypedDict):
    """Which of the model's parameters a job would send."""

    family: str | None
    """The family in the model table; `null` if unknown."""
    sent: dict[str, Any]
    """Fields of the request's body."""
    not_sent: list[NotSent]
    without_effect: list[str]
    """Parameters that the model accepts but ignores."""


class ModelCheck(TypedDict):
    """The findings of a model check."""

    object: Literal["model_check"]
    model: str
    role: Literal["judge", "model", "persona_agent"]
    kind: str
    base_url: str
    simulated: bool
    works: bool | None
    """Whether it answered with a text; `null` if it was not called."""
    calls: int
    latency_ms: float | None
    """Of the last call."""
    usd: float | None
    """Cost of the answered call, if known."""
    reply: CheckedReply | None
    limits: CheckedLimits | None
    error: CheckError | None
    refused: list[RefusedParameter]
    price: CheckedPrice
    ends: ModelEnds | None
    model_table: str | None
    """Version of the table of model families and their parameters."""
    parameters: SentParameters
    reply_forms: list[Literal["text", "choice", "json_schema"]] | None
    """Of a judge: the forms of `judging.reply` that its server enforced; `null` if none was tried."""
    findings: list[Finding]
    """All findings as sentences."""


class ModelGroups(TypedDict):
    """A job's models, alone and by their attributes."""

    job: str
    simulated: bool
    groups: list[ModelGroup]


class ModelsIn(TypedDict):
    """Several models to compare pairwise."""

    models: Sequence[SideIn]
    """A job without `model` stands for all of its models; 2 to 20 in all."""
    pairing: NotRequired[Literal["cells", "items"]]
    """What is paired: the values of a cell, or of one item (a question, an essay's context) that all answered as the same persona. Items are the same if their words are; published results have no items."""


class NamedBaselineIn(TypedDict):
    """A model of a finished job that is to be compared with."""

    job: str
    """A finished job."""
    model: NotRequired[str | None]
    """One of its models; required if it has several."""


class NewApiKey(TypedDict):
    """A new key."""

    id: str
    object: Literal["api_key"]
    name: str
    prefix: str
    """The key's first characters, which are not secret."""
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
    """Shown only once."""


class NewShareLink(TypedDict):
    """A share link that was just created."""

    id: str
    object: Literal["share_link"]
    job: str
    description: str | None
    responses: bool
    status: Literal["live", "expired", "revoked"]
    created_at: str
    expires_at: str
    revoked_at: str | None
    path: str
    """The link, behind the service's address. Shown only once."""


class NewWebhook(TypedDict):
    """A webhook with a new secret."""

    id: str
    object: Literal["webhook"]
    url: str
    description: str | None
    events: list[str]
    enabled: bool
    disabled_reason: Literal["by_user", "gone"] | None
    """`gone`: the receiver answered 410. `enabled: true` enables it again."""
    former_secret_until: str | None
    """Until then, messages are also signed with the previous secret; `null` if none was replaced."""
    created_at: str
    updated_at: str
    secret: str
    """Signs the messages (Standard Webhooks, `v1`). Shown only once."""


class WithoutOpposite(TypedDict):
    """A persona that has no opposite one in the job."""

    persona: str
    dimension: str
    level: str
    reason: str
    """`code: words`: `middle_level`, `no_opposite`."""


class OppositeControl(TypedDict):
    """How much higher values are than those of the job's personas at the opposite level of the same dimension."""

    gains: list[CellGains]
    """By cell of the results, if it has an opposite persona."""
    totals: list[GainTotal]
    """Over the cells that have an opposite persona."""
    left_out: list[WithoutOpposite]
    """Personas without an opposite one."""


Order: TypeAlias = Literal["repeated", "reversed", "shuffled"]
"""The order of the options when a sentence is judged again."""


class OrderAgreement(TypedDict):
    """How well one judge's verdicts in one order agree with the verdicts used, over all dimensions (`null`) or on one."""

    judge: str
    order: Order
    """Of the options: `repeated` as they were, which shows the judge's own noise; `reversed` from the highest score to the lowest; `shuffled` with each number before other words."""
    dimension: str | None
    scale: dict[str, int]
    """`minimum` and `maximum`; each scale has its own row."""
    sentences: int
    """Judged both ways."""
    responses: int
    left_out: int
    """Sentences whose verdict in this order could not be parsed; excluded from all values."""
    exact_agreement: Metric
    """Share of the sentences with the same verdict."""
    mean_absolute_difference: Metric
    mean_difference: Metric
    """Verdicts used − verdicts in this order, in points of the scale: the order's effect on MEAN."""
    quadratic_kappa: Metric
    acc_as_asked: Metric
    """Share of sentences in character by the verdicts used."""
    acc_in_order: Metric
    acc_difference: Metric
    """Verdicts used − verdicts in this order: the order's effect on ACC_atom."""


class OrderCheckResult(TypedDict):
    """For a sample, verdicts with the options in other orders beside the verdicts used. The former are in no other value."""

    share: float
    """Share of the sentences, as requested."""
    responses: int
    """Responses with sentences judged again; refusals have none."""
    agreement: list[OrderAgreement]
    """By judge, order and dimension. Intervals are over responses."""


class PairAgreement(TypedDict):
    """How well two judges agree; n counts the sentences that both scored."""

    judges: list[str]
    left_out: int
    """Sentences that only one of them scored."""
    quadratic_kappa: Metric
    """Cohen's κ with quadratic weights, −1 to 1; 0 is chance, 1 perfect."""
    exact_agreement: Metric
    """Share of sentences with the same score."""
    mean_absolute_difference: Metric
    """In points of the scale; 0 is perfect."""


class PersonaAnswer(TypedDict):
    """A built-in persona."""

    id: str
    description: str
    """Untrusted text."""
    traits: list[Trait]
    sets: list[str]


class PersonaGenerationResult(TypedDict):
    """The outcome of a job that generates personas."""

    id: str | None
    """The set's id; `null` until it exists."""
    wanted: int
    found: int
    asks: int
    dropped: dict[str, int]
    """`duplicate`, `alike`, `unusable`, `surplus`."""
    error: str | None
    """What is missing, and why."""
    diversity: Diversity | None


class PersonaList(TypedDict):
    """All built-in personas and sets."""

    data: list[PersonaAnswer]
    sets: dict[str, list[str]]
    instructions: list[str]


class PersonaScoreCorrected(TypedDict):
    """How missing grades could affect the PersonaScore. Not in the paper."""

    persona_score_bounds: list[float] | None
    """PersonaScore if all missing grades were the lowest, and if all were the highest; `null` if none is planned."""


class TaskTotal(TypedDict):
    """A task's score over personas."""

    value: float | None
    n: int
    reason: NotRequired[str | None]
    ci95: NotRequired[list[float] | None]
    """95 % confidence interval. Cell: over repeated runs with these wordings. Total: over personas like these, with these wordings."""
    ci95_reason: NotRequired[str | None]
    """Why there is no interval."""
    ci95_runs: NotRequired[list[float] | None]
    """Total: 95 % interval over repeated runs, for these personas and wordings."""
    ci95_runs_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_wordings: NotRequired[list[float] | None]
    """95 % interval over wordings like these, for these personas."""
    ci95_wordings_reason: NotRequired[str | None]
    """Why there is no such interval."""
    ci95_both: NotRequired[list[float] | None]
    """Total: 95 % interval over personas and wordings like these."""
    ci95_both_reason: NotRequired[str | None]
    """Why there is no such interval."""
    left_out: NotRequired[int | None]
    """In totals: cells (or personas) without the metric."""
    sd: float | None
    """Denominator n − 1; `null` for fewer than two personas."""
    coverage: NotRequired[Coverage | None]


class PersonaScoreTotal(TypedDict):
    """A model's scores over personas: a row of PersonaGym's Table 1."""

    model: str
    persona_score: Spread
    tasks: dict[str, TaskTotal]
    refusal_rate: Metric
    """Refusals ÷ (answers + refusals), as in Figure 4."""
    responses: GymResponses
    grades: UnitCounts
    coverage: NotRequired[Coverage | None]
    """Coverage of the planned grades."""
    corrected: NotRequired[PersonaScoreCorrected | None]
    matched: NotRequired[Metric | None]
    """PersonaScore over the personas for which every model has one; `null` if these are all."""


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
    """`null` unless the personas were generated."""
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
    """A stage's expected calls and cost on one model."""

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
    """`null` if no price is known."""
    usd_high: float | None
    """With long texts, a repair of every judge's reply and a refusal check of every text."""
    unpriced_models: list[str]


class PlanControl(TypedDict):
    """What the control arm adds to a job; included in the plan's other figures."""

    responses: int
    calls: int
    cost: PlanCost


class PlanParameters(TypedDict):
    """Which of a model's parameters are sent in one role."""

    role: Literal["model", "persona_agent", "judge", "reasoner"]
    model: str
    family: str | None
    """The family in the model table; `null` if unknown."""
    sent: dict[str, Any]
    """Fields of the request's body."""
    not_sent: list[NotSent]
    without_effect: list[str]
    """Parameters that the model accepts but ignores."""


class Plan(TypedDict):
    """A job's estimated calls and cost."""

    object: Literal["plan"]
    cells: int
    """Cells of the results: model × persona × task × trait."""
    persona_scores: int
    """PersonaScores of the results: persona × model."""
    runs_per_cell: int | None
    """Of the atomic tasks."""
    responses: int
    calls: int
    most_repair_calls: NotRequired[int]
    """Further calls if no judge's first reply can be read. `confirm_calls` and `usd_high` include them."""
    most_refusal_checks: NotRequired[int]
    """Further calls if the refusal rules are unsure of every text. `confirm_calls` and `usd_high` include them. 0 with `judging.refusals: judge_all`, whose checks `calls` includes."""
    confirm_calls: int | None
    """The `confirm_calls` that a job of this size requires; `null` if none."""
    estimated: bool
    """Whether the number of judging calls is an estimate; it is exact for existing texts."""
    stages: list[PlanStage]
    cost: PlanCost
    control: NotRequired[PlanControl | None]
    """`null` for a job without `control`."""
    shortest_seconds: float
    """Under the configured rate limits."""
    simulated: bool
    model_table: str | None
    """Version of the table of model families and the parameters they take."""
    parameters: list[PlanParameters]
    warnings: list[str]
    detection: NotRequired[Detection | None]
    """If `detect` requests it."""


class PlanIn(TypedDict):
    """A job to estimate."""

    name: NotRequired[str | None]
    """A name, for people."""
    personas: NotRequired[Sequence[str | PersonaIn]]
    """Ids of personas or persona sets (`GET /v1/personas`, `GET /v1/persona-sets`), or personas written out. Required, but for texts of another job, which has its own."""
    tasks: NotRequired[Sequence[str | TaskIn]]
    """Task ids (`GET /v1/tasks`), or tasks with options. Required as `personas` are."""
    judges: NotRequired[Sequence[str | ModelIn | ImportedJudgeIn]]
    """Judges; each scores every sentence, and grades every PersonaGym answer, independently. Default temperature: 0. Default judges: the operator's, or two simulated ones if only the simulator is configured. An imported judge is never called: its verdicts come with `responses`."""
    models: NotRequired[Sequence[str | ModelIn]]
    """Models to evaluate."""
    responses: NotRequired[Sequence[ResponseIn] | QaIn | JobTextsIn | UploadTextsIn | None]
    """Existing texts to judge, instead of `models`: a list, PersonaGym's `_qa.json` files, the texts of another job, or an upload."""
    dimensions: NotRequired[Sequence[DimensionIn]]
    """Dimensions beyond the Big Five."""
    instructions: NotRequired[Literal["all"] | Sequence[str | int]]
    """Persona instructions for the atomic tasks: all six of the paper, some by number (from 0, as `GET /v1/personas` lists them), or texts."""
    iterations: NotRequired[int]
    """Repetitions under each instruction."""
    seed: NotRequired[int]
    """Random seed for everything that the service draws."""
    reasoner: NotRequired[str | ModelIn | None]
    """Selects environments and writes questions and exemplars; required by PersonaGym's tasks. Default temperature and top_p: 0.9."""
    questions: NotRequired[str | Mapping[str, Mapping[str, Sequence[str]]] | None]
    """Existing questions: a question set's id, or questions by task by persona (id, description, or the name of its published file). Missing ones are written by the reasoner."""
    environments: NotRequired[Sequence[str] | Mapping[str, Sequence[str]] | None]
    """Environments, for all personas or by persona id; none are selected then."""
    environment_pool: NotRequired[Sequence[str] | None]
    """Environments to select from, instead of the built-in 150."""
    gym_instruction: NotRequired[str | None]
    """PersonaGym's persona instruction: `adopt` (the paper's appendix), `closely_mirror` (its section 3.2), or a text with `{persona}`."""
    rubrics: NotRequired[str | None]
    """ID of a rubric set (`GET /v1/rubric-sets`), whose words replace those of the tasks; it may also bring tasks of its own."""
    thresholds: NotRequired[Sequence[str]]
    """Thresholds that `GET /v1/jobs/{id}/gate` checks by default."""
    minimum_coverage: NotRequired[float]
    """Below this coverage, the gate finds a value inconclusive."""
    control: NotRequired[bool | ControlIn]
    """Also ask each model without a persona (the atomic tasks' items once for all personas, PersonaGym's questions of each persona), and report in `control` how much higher values are with a persona. As an object, it can also compare opposite personas."""
    protocol: NotRequired[Literal["paper", "hardened"]]
    """`paper`: the papers' prompts and definitions. `hardened`: judges are also told which part of the prompt is the judged text, and prove with a key word that they follow our prompt and not the text's instructions."""
    budget: NotRequired[BudgetIn | None]
    """Spending limits; once used up, the job pauses with `status_reason: budget_exhausted`."""
    confirm_calls: NotRequired[int | None]
    """The most calls that you accept; a job that may need more is refused. Required for large jobs: the plan's `confirm_calls` gives the number."""
    priority: NotRequired[Literal["low", "normal", "high"]]
    """Priority among your own jobs; each step up gets four times as many turns."""
    judging: NotRequired[JudgingIn]
    """How sentences are judged; default: one per call."""
    versions: NotRequired[VersionsIn | None]
    """Earlier versions of rules, as listed by `GET /v1/tasks`; default: the latest. A job keeps its versions after later releases."""
    reuse: NotRequired[ReuseIn | None]
    """Whether replies are reused; `reuse` reports the savings."""
    execution: NotRequired[Literal["direct", "batch"]]
    """`batch` sends calls through the providers' batch endpoints: half the price, within a day. PersonaGym's preparation is always called directly."""
    tags: NotRequired[Sequence[str]]
    """Tags, at most 50 characters each."""
    metadata: NotRequired[Mapping[str, str]]
    """Your own labels, by which jobs can be listed."""
    detect: NotRequired[DetectIn | None]
    """Requests the number of personas, wordings and iterations that detects a difference; only for jobs of atomic tasks. Not a field of jobs."""


class PreparationAsks(TypedDict):
    """Requests to the reasoner in the steps of one kind and task."""

    kind: str
    """`personas`, `environments`, `questions` or `exemplars`."""
    task: str
    """Empty for personas and environments."""
    steps: int
    """Finished steps, including failed ones."""
    failed: int
    """Steps that failed."""
    asks: int
    dropped: int
    """Items in replies that were not used."""


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
    """Questions to store as a set; PersonaGym's published files are accepted unchanged, by persona description."""

    name: NotRequired[str | None]
    """A name, for people."""
    questions: Mapping[str, Mapping[str, Sequence[str]]]
    """Questions by task (id, title or alias) by persona: its description, or its published file's name (the description with `.json`, optionally in a directory `questions`)."""
    rubrics: NotRequired[str | None]
    """A rubric set, if the questions are for tasks that it adds."""
    exemplars: NotRequired[Mapping[str, Mapping[str, Sequence[Sequence[str] | None]]] | None]
    """Exemplars to grade by, in the same order as the questions of a persona and task: for each question five texts, which deserve the scores 1 to 5, or `null` for those that a reasoner shall write."""


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


class Repairs(TypedDict):
    """Counts of follow-up requests and their outcome."""

    unread: int
    """Verdicts and grades whose first reply could not be read."""
    repaired: int
    """Those that the second reply gave."""
    unparsed: int
    """The others: no figure contains them."""
    failed: NotRequired[int]
    """The unparsed ones whose follow-up request failed: there is no second reply."""


class RereadExample(TypedDict):
    """One verdict that changes."""

    response: str
    unit: int | None
    """Index of the sentence; `null` for a grade."""
    judge: str
    dimension: str | None
    text: str
    """The judged sentence or response."""
    reply: str
    repair_reply: str | None
    """The reply to the follow-up request, if there was one."""
    score_before: int | None
    score_after: int | None


class RereadChange(TypedDict):
    """Verdicts that change in the same way."""

    of: Literal["sentences", "checks", "grades"]
    """`checks` are second verdicts of grouping and order checks."""
    before: VerdictStatus
    after: VerdictStatus
    count: int
    examples: list[RereadExample]


class Reread(TypedDict):
    """The verdicts that change when a job's stored replies are read with the current rules."""

    object: Literal["reread"]
    job: str
    reader_before: str
    """Version of the rules that read the stored verdicts."""
    reader: str
    """Version of the current rules."""
    replies: int
    """Verdicts and grades whose replies are stored."""
    changed: int
    changes: list[RereadChange]
    """By kind, the most frequent first."""
    applied: bool
    """Whether the new verdicts are stored. The job is then `finalizing` until its results are computed."""


class RereadIn(TypedDict):
    """Request to read a job's stored replies again."""

    apply: NotRequired[bool]
    """Store the new verdicts and compute the results again."""
    examples: NotRequired[int]
    """Examples shown of each kind of change."""


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
    """Present in every group."""
    persona: NotRequired[str | None]
    task: NotRequired[str | None]
    level: NotRequired[str | None]
    dimension: NotRequired[str | None]
    simulated: bool
    cells: int
    generation: NotRequired[ResponseStatuses | None]
    """The cells' responses; those shared by several cells count once."""
    metrics: CellMetrics
    matched: NotRequired[CellMetrics | None]
    """For models: the same over the cells for which every model has the metric; `null` if no model lacks what another has."""
    units: UnitCounts
    coverage: NotRequired[Coverage | None]
    corrected: NotRequired[Corrected | None]


class VerdictAgreement(TypedDict):
    """How well all judges agree in one group of cells; n counts the sentences with at least two scores."""

    by: list[str]
    """What the group's cells have in common; empty for all cells."""
    task: NotRequired[str | None]
    dimension: NotRequired[str | None]
    left_out: int
    """Sentences that only one judge scored."""
    alpha_ordinal: Metric
    """Ordinal Krippendorff's α, at most 1; 0 is chance."""
    alpha_interval: Metric
    """Interval Krippendorff's α."""
    pairs: list[PairAgreement]
    """Every pair of judges, in the judges' order."""


class WorstSentence(TypedDict):
    """The sentence farthest out of character, by the mean distance of its scores from the persona's level."""

    text: str
    """The sentence as the judges read it. Untrusted text."""
    model: str
    persona: str
    task: str
    dimension: str
    """The dimension on which it is farthest from the persona's level."""
    level: str
    """The persona's level."""
    scores: dict[str, int]
    """By judge."""
    response: str
    """The id of its response."""
    run: int
    unit: int
    """Its position in the response, from 0."""


class SuspicionCounts(TypedDict):
    """Uncertain judgements by cause."""

    total: int
    of: int
    """All judgements."""
    text: int
    reply: int
    both: int


class SuspicionOfModel(TypedDict):
    """Uncertain judgements of one model's texts by one judge."""

    model: str
    judge: str
    verdicts: int
    """On sentences."""
    grades: int
    """On PersonaGym responses."""


class WithoutSuspicion(TypedDict):
    """The values without uncertain judgements."""

    totals: list[TotalResult]
    """By model, and by model and task."""
    persona_score_totals: list[PersonaScoreTotal]


class SuspicionSummary(TypedDict):
    """Judgements possibly affected by prompt injection. All values include them."""

    verdicts: SuspicionCounts
    grades: SuspicionCounts
    by_model: list[SuspicionOfModel]
    """Only those with any."""
    without: WithoutSuspicion | None
    """`null` if there are none."""


class SourceOfTexts(TypedDict):
    """Where the job's texts were copied from."""

    job: str
    """The job that had them; it may be deleted since."""
    filter: dict[str, list[str | int]]
    """Which of its texts; empty for all."""
    sample: dict[str, int | str] | None
    """The sample drawn of them, if any."""
    responses: int
    left_out: int
    """Failed responses among those asked for; they have no text."""
    attributes: dict[str, dict[str, str]]
    """What is known of the models, by label."""
    other_personas: NotRequired[list[str]]
    """Ids of personas for which that job has other words or traits."""


class Results(TypedDict):
    """Every metric by cell and by total."""

    job: str
    name: str | None
    completeness: Literal["full", "partial"]
    completeness_reasons: NotRequired[list[str]]
    """Why it is `partial`, each as `code: message`: `calls_missing`, `cells_without_figure`, `personas_without_score`."""
    simulated: bool
    headline: NotRequired[str | None]
    """The conclusion in one sentence if the figures must not be taken at face value, for example because a judge cannot be trusted; else `null`."""
    warnings: NotRequired[list[ResultWarning]]
    """Reasons to doubt the results, the gravest first."""
    personas: NotRequired[list[PersonaInWords]]
    """The job's personas, by the ids in cells."""
    dimensions: NotRequired[list[DimensionInWords]]
    """Display names of the cells' dimensions."""
    cells: list[CellResult]
    totals: list[TotalResult]
    judges: list[JudgeResult]
    correlations: NotRequired[list[Correlation]]
    length_effects: NotRequired[list[LengthEffect]]
    verdict_agreement: NotRequired[list[VerdictAgreement]]
    """How well the judges' verdicts on the same sentences agree: overall, by task, by dimension."""
    persona_scores: list[PersonaResult]
    """PersonaScore and task scores of each persona and model."""
    persona_score_totals: NotRequired[list[PersonaScoreTotal]]
    """By model; missing for a job without PersonaGym tasks."""
    judge_agreement: NotRequired[list[GradeAgreement]]
    """How well each two judges' grades agree, by task."""
    persona_set: NotRequired[PersonaGenerationResult | None]
    """For a job that generates personas."""
    preparation: NotRequired[list[PreparationAsks]]
    """Requests to the reasoner, by kind and task."""
    worst_sentence: NotRequired[WorstSentence | None]
    """`null` if every sentence is in character. Texts with possible prompt injections are excluded."""
    suspicion: NotRequired[SuspicionSummary | None]
    """Verdicts possibly affected by prompt injection; `null` if nothing is judged."""
    judging_check: NotRequired[JudgingCheck | None]
    """For a job with several sentences per judging call: how well its verdicts agree with one per call."""
    order_check: NotRequired[OrderCheckResult | None]
    """If requested: how much the judges depend on the order of their options."""
    repairs: NotRequired[list[JudgeRepairs]]
    """By judge: replies that could not be read and were followed by a second request."""
    repairs_total: NotRequired[Repairs | None]
    """Sum of `repairs`; `null` if judges were asked once."""
    control: NotRequired[ControlArm | None]
    """`null` for a job without `control`."""
    opposite: NotRequired[OppositeControl | None]
    """`null` for a job without `control.opposite_persona`."""
    source: NotRequired[SourceOfTexts | None]
    """For a job on the texts of another job."""
    started_at: str | None
    computed_at: str
    usage: JobUsage
    cost: Cost
    failures: NotRequired[list[FailedCalls]]
    """Failed calls, as a job shows them."""
    reuse: NotRequired[ReuseAnswer | None]
    """`null` for a job without it."""
    manifest: dict[str, Any]
    human_agreement: NotRequired[list[HumanAgreement]]
    """How far annotators agree with the judges; only where there are any."""


class RotationIn(TypedDict):
    """How a key is rotated."""

    overlap_seconds: NotRequired[int]
    """How long the replaced key stays valid; 0 revokes it at once."""


class RubricSet(TypedDict):
    """An immutable set of rubrics and prompts."""

    id: str
    object: Literal["rubric_set"]
    name: str | None
    tasks: dict[str, dict[str, str | list[str]]]
    """The given words by field by task ID."""
    rubric: str | None
    score_examples: str | None


class RubricTaskIn(TypedDict):
    """A task's own words. A built-in task keeps those that are left out."""

    title: NotRequired[str | None]
    """Its name in prompts; required for a new task."""
    description: NotRequired[str | None]
    """PersonaGym: the rubric's task description."""
    guidelines: NotRequired[Sequence[str] | None]
    """PersonaGym: what a response must be like for each score, from 1 to 5."""
    question_criteria: NotRequired[str | None]
    """PersonaGym: what the questions must be like that the reasoner writes."""
    rubric: NotRequired[str | None]
    """PersonaGym: the rubric's whole text, as in its released files, with `{persona}`, `{question}`, `{response}` and `{score_example}`; instead of description and guidelines."""
    items: NotRequired[ItemSource | None]
    """Atomic tasks: where the items come from; required for a new task."""
    prompt: NotRequired[str | None]
    """Atomic tasks: the request for a text, with `{question}` or `{context}` if the items have one."""
    scoring_prompt: NotRequired[str | None]
    """Atomic tasks: the judge's prompt for one sentence, with `{atomic unit}` and `{options}`, and if you like `{dimension}` and `{question}`."""


class RubricSetIn(TypedDict):
    """Words to store as a set. PersonaGym's released rubric files are accepted unchanged, each text by its task or file name."""

    name: NotRequired[str | None]
    """A name, for people."""
    tasks: NotRequired[Mapping[str, str | RubricTaskIn]]
    """By task: its ID, title or alias, the name of a released file (`Toxicity.txt`), or the ID of a new task. A text stands for `{"rubric": text}`."""
    rubric: NotRequired[str | None]
    """The rubric of PersonaGym's tasks that have no whole text of their own, with `{task}`, `{task_description}`, `{guidelines}`, `{score_example}`, `{persona}`, `{question}` and `{response}`."""
    score_examples: NotRequired[str | None]
    """Asks the reasoner for exemplars, with `{persona}`, `{question}` and `{rubric}`."""


class RubricSetSummary(TypedDict):
    """A rubric set in a list."""

    id: str
    object: Literal["rubric_set"]
    name: str | None
    created_at: str
    tasks: int


class RubricSetList(TypedDict):
    """A page of rubric sets, newest first."""

    data: list[RubricSetSummary]
    has_more: bool
    next_cursor: str | None


class RunOfCell(TypedDict):
    """One run of a cell."""

    run: int
    instruction: int | None
    """Number of the persona instruction, from 0; `null` if unknown."""


class RunDistances(TypedDict):
    """Wasserstein distances between the scores of a cell's runs, 0 to the scale's width."""

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool
    width: int
    """The greatest possible distance."""
    runs: list[RunOfCell]
    """The first 100 at most."""
    runs_in_all: int
    """Runs that have verdicts."""
    by_judge: list[JudgesDistances]


class ScheduleBudget(TypedDict):
    """A schedule's limits and what its runs have spent."""

    run_usd: float | None
    total_usd: float | None
    spent_usd: float


class ScheduleRun(TypedDict):
    """A due time of a schedule and what became of it."""

    id: str
    object: Literal["schedule_run"]
    schedule: str
    due: str
    state: Literal["due", "running", "measured", "failed", "skipped", "missed"]
    """`missed`: the service was down, or an internal error put the schedule off. `skipped`: the previous run had not ended, or the budget is used up. `failed`: the job was refused, or has no value."""
    reason: str | None
    """Why there is no value."""
    missed: int
    """For `missed`: the number of due times up to this one that were missed."""
    job: str | None
    anchor_job: str | None
    value: float | None
    """The watched value. Kept when the job is deleted."""
    n: NotRequired[int | None]
    """Number of cells that the value is a mean of; of a PersonaScore, personas. `null` without a value."""
    left_out: NotRequired[int | None]
    """Number of cells or personas without the value."""
    coverage: NotRequired[float | None]
    """Share of the planned verdicts, grades or cells (whichever is smaller) behind the value."""
    limits: list[float] | None
    """If three runs in a row lie beyond the same limit, there is an alarm; two do if far beyond. `null` for the first runs."""
    anchor_value: float | None
    anchor_n: NotRequired[int | None]
    """As `n`, of the anchors."""
    anchor_left_out: NotRequired[int | None]
    anchor_coverage: NotRequired[float | None]
    anchor_limits: list[float] | None
    alarms: list[Alarm]
    usd: float | None
    """What it cost, as far as known."""
    ended_at: str | None


class Schedule(TypedDict):
    """A schedule."""

    id: str
    object: Literal["schedule"]
    name: str | None
    cron: str
    time_zone: str
    job: dict[str, Any]
    """The body of each run's job."""
    figure: str
    anchors: AnchorsIn | None
    budget: ScheduleBudget
    paused: bool
    paused_reason: Literal["by_user", "budget_used_up", "key_ended"] | None
    next_due: str | None
    last_run: ScheduleRun | None
    simulated: bool
    """Whether a model or judge of one of its runs was simulated."""
    created_at: str
    updated_at: str


class ScheduleBudgetIn(TypedDict):
    """Limits on what a schedule spends. Unset limits are none."""

    run_usd: NotRequired[float | None]
    """US dollars for one run, anchors included."""
    total_usd: NotRequired[float | None]
    """US dollars for all runs together; once used up, the schedule is paused."""


class ScheduleChangeIn(TypedDict):
    """Changes to a schedule; omitted fields stay as they are. Another job or figure is another schedule."""

    name: NotRequired[str | None]
    cron: NotRequired[str]
    time_zone: NotRequired[str]
    budget: NotRequired[ScheduleBudgetIn | None]
    """All limits; `null` removes them."""
    paused: NotRequired[bool]
    """What was due while it was paused is not run later."""


class ScheduleIn(TypedDict):
    """A job that is run again and again."""

    name: NotRequired[str | None]
    """A name, for people."""
    cron: str
    """When it is due: minute, hour, day of month, month, day of week; at most every 15 minutes."""
    time_zone: NotRequired[str]
    """IANA time zone of `cron`. A time that a change of the clock leaves out is due when the clock has moved on; one that comes twice is due once."""
    job: NotRequired[Mapping[str, Any] | None]
    """The job, as for `POST /v1/jobs`, without texts of its own."""
    clone: NotRequired[str | None]
    """Instead of `job`: an existing job to run again."""
    figure: NotRequired[str | None]
    """The watched value, as in a threshold: `acc_atom`, `mean@task=essay,level=low`, `persona_score`. With several models it needs `model=LABEL`. Default: `acc_atom`, or `persona_score` for a job with only PersonaGym tasks."""
    anchors: NotRequired[AnchorsIn | None]
    """Tell drift of the judge from drift of the model; without them, it is not known."""
    budget: NotRequired[ScheduleBudgetIn | None]
    paused: NotRequired[bool]
    """A paused schedule is not due."""


class ScheduleList(TypedDict):
    """A page of schedules, newest first."""

    data: list[Schedule]
    has_more: bool
    next_cursor: str | None


class ScheduleRunList(TypedDict):
    """A page of runs, newest first."""

    data: list[ScheduleRun]
    has_more: bool
    next_cursor: str | None


class SetExemplars(TypedDict):
    """A question's exemplars, as a question set keeps them."""

    persona: str
    """The persona's description."""
    task: str
    question: str
    exemplars: list[str]
    """Five texts, which deserve the scores 1 to 5."""
    reasoner: str | None
    """The model that wrote them; `null` if they came with the set."""
    key: str
    """A hash of what the reasoner was asked, which includes the rubric, and of its parameters."""


class SetExemplarList(TypedDict):
    """A page of a question set's exemplars."""

    data: list[SetExemplars]
    has_more: bool
    next_cursor: str | None


class ShareLink(TypedDict):
    """A share link, without what would let anybody use it."""

    id: str
    object: Literal["share_link"]
    job: str
    description: str | None
    responses: bool
    status: Literal["live", "expired", "revoked"]
    created_at: str
    expires_at: str
    revoked_at: str | None


class ShareLinkIn(TypedDict):
    """A share link to be created."""

    days: NotRequired[int]
    """How long it works, unless it is revoked."""
    responses: NotRequired[bool]
    """Whether it also gives all responses, with every verdict; a report has a sample."""
    description: NotRequired[str | None]
    """For people: whom it is for."""


class ShareLinkList(TypedDict):
    """A job's share links, newest first."""

    data: list[ShareLink]


class TaskAnswer(TypedDict):
    """A task."""

    id: str
    title: str
    framework: Literal["atomic", "personagym"]
    prompt: str | None
    """`null` if each persona gets its own questions."""
    scoring_prompt: str
    expected_units: float


class TaskList(TypedDict):
    """All tasks and the dimensions that they measure."""

    data: list[TaskAnswer]
    dimensions: list[DimensionAnswer]
    instrument: dict[str, str]
    versions: dict[str, list[str]]
    """Versions that a job's `versions` can name, by kind, oldest first; the last is the default."""


class UploadError(TypedDict):
    """Something wrong with a record."""

    line: int
    """The line, or of Parquet the row, from 1; 0: the whole file."""
    field: str
    """JSON pointer into the record; empty: the whole record."""
    message: str
    """What is wrong with it."""


class Upload(TypedDict):
    """A file of responses that is sent in parts."""

    id: str
    object: Literal["upload"]
    name: str | None
    """The file's name."""
    metadata: dict[str, str]
    """What its client said of the file. Our clients give its `sha256`, to find it again."""
    status: Literal["receiving", "reading", "ready", "invalid"]
    """`receiving`: parts are missing. `reading`: all of a packed file is there and is read. `ready`: jobs can use its records. `invalid`: records are wrong; none is stored."""
    format: Literal["lines", "gzip", "zstd", "parquet", "tool_file"] | None
    """`lines`: JSON Lines. `gzip`, `zstd`: the same, compressed. By the first bytes; `null` before these. `tool_file`: another tool's file, by its `purpose`; `POST /v1/imports` makes records of it."""
    size: int
    """The file's bytes."""
    received: int
    """Bytes received so far."""
    records: int
    """Records read so far."""
    error_count: int
    """Wrong records and fields found so far."""
    errors: list[UploadError]
    """The first 20 of them."""
    created_at: str
    expires_at: str
    """When it is deleted, unless further parts arrive."""


class UploadList(TypedDict):
    """A page of uploads, newest first."""

    data: list[Upload]
    has_more: bool
    next_cursor: str | None


class Webhook(TypedDict):
    """A receiver of messages about events."""

    id: str
    object: Literal["webhook"]
    url: str
    description: str | None
    events: list[str]
    enabled: bool
    disabled_reason: Literal["by_user", "gone"] | None
    """`gone`: the receiver answered 410. `enabled: true` enables it again."""
    former_secret_until: str | None
    """Until then, messages are also signed with the previous secret; `null` if none was replaced."""
    created_at: str
    updated_at: str


WebhookEvent: TypeAlias = Literal[
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.paused",
    "drift.detected",
    "schedule.run_missed",
    "schedule.run_skipped",
    "schedule.run_failed",
    "connection.bill_exceeded",
    "connection.surplus_replies",
    "file.reader_ended",
]
"""An event that a webhook can report."""


class WebhookChangeIn(TypedDict):
    """Changes to a webhook; omitted fields stay as they are."""

    url: NotRequired[str]
    events: NotRequired[Sequence[WebhookEvent]]
    """Events to report."""
    description: NotRequired[str | None]
    enabled: NotRequired[bool]
    """A disabled webhook receives nothing; events in the meantime, and messages still waiting when it is disabled, are not kept."""


class WebhookIn(TypedDict):
    """A receiver of messages about events."""

    url: str
    """The URL to post to. `https` and a public address, unless the operator allows the host."""
    events: NotRequired[Sequence[WebhookEvent]]
    """Events to report."""
    description: NotRequired[str | None]
    """A description, for people."""


class WebhookList(TypedDict):
    """A page of webhooks, newest first."""

    data: list[Webhook]
    has_more: bool
    next_cursor: str | None
