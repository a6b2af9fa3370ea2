"""Agreement between annotators and judges as clients are shown it."""

from typing import Literal

from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.metric import Metric


class WeightedWithJudge(Answer):
    """The same for the sentences (or pairs) from which labelling rounds drew, weighted by the number that each represents."""

    kendall_tau: Metric
    spearman_rho: Metric | None = Field(None, description="Of scores only.")
    exact_agreement: Metric | None = None
    quadratic_kappa: Metric | None = None
    alpha_ordinal: Metric | None = None


class WeightedAgreement(Answer):
    """Agreement over the sentences (or pairs) from which labelling rounds drew."""

    fleiss_kappa: Metric
    population: int = Field(
        description="Number of sentences (or pairs) from which rounds drew; 0 without a round."
    )
    covered: int = Field(description="Those in strata with an answer, to which all weighted values refer.")


class WithNotApplicable(Answer):
    """Agreement on single sentences if "not applicable" is an answer like each score; n counts sentences."""

    exact_agreement: Metric = Field(description="Share of answers equal to the judge's.")
    kappa: Metric = Field(description="Cohen's unweighted κ of the judge with each answer.")
    judge_scored: Metric = Field(
        description='Share of the annotators\' answers "not applicable" to which the judge gave a score; n counts '
        "the sentences with such an answer."
    )


class AgreementWithJudge(Answer):
    """How far annotators agree with one judge."""

    judge: str
    kendall_tau: Metric = Field(
        description="For scores, τ_b between the judge's score and the mean of the annotators'; for pairs, "
        "τ_A: (answers in the order of the judge's scores − answers against it) ÷ all answers. n "
        "counts what was compared."
    )
    spearman_rho: Metric | None = Field(None, description="Of scores only.")
    exact_agreement: Metric | None = Field(
        None,
        description="Share of answers equal to the judge's score; each sentence or grade counts once. Only "
        "for single sentences and grades, like the two fields after it.",
    )
    quadratic_kappa: Metric | None = Field(None, description="Cohen's κ of the judge with each answer.")
    alpha_ordinal: Metric | None = Field(None, description="Krippendorff's α of the judge with each answer.")
    with_not_applicable: WithNotApplicable | None = Field(
        None, description='Of sentences only: the agreement with "not applicable" as an answer of its own.'
    )
    weighted: WeightedWithJudge = Field(
        description="The same for everything that was drawn from; the fields above are for what was drawn."
    )
    left_out: dict[str, int] = Field(
        description="`without_score`: the judge gave no score; for pairs, `same_score`: the judge gave both "
        "the same score.",
        examples=[{"without_score": 2}],
    )


class ModelAgreement(Answer):
    """How far annotators agree with one judge, or with the mean of all judges, on one model's texts."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None = Field(description="`null`: by PersonaGym's rubrics.")
    model: str | None = Field(description="`null` for pairs, which cover all models.")
    task: str | None = Field(
        description="`null` for pairs, which cover all tasks, and for the PersonaScore over personas."
    )
    judge: str | None = Field(description="`null`: the mean of the judges that gave a score.")
    personas: int = Field(
        description="Number of personas; intervals are over personas, for pairs over pairs."
    )
    left_out: int = Field(
        description="Answered, but without the judge's score (for pairs, also those with equal scores); for "
        "the PersonaScore, personas without an answer for each task."
    )
    kendall_tau: Metric = Field(
        description="τ_b of the annotators' mean with the judge's score; for pairs τ_A. n counts sentences, "
        "responses, pairs or personas."
    )
    kendall_p: float | None = Field(
        description="By a permutation test that exchanges scores between personas; for pairs, by a sign test."
    )
    spearman_rho: Metric | None = Field(description="`null` for pairs.")
    spearman_p: float | None


class AmongAnnotators(Answer):
    """How far annotators agree with each other."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None = Field(description="The PersonaGym task whose rubric was used, if any.")
    annotators: int
    n: int = Field(description="Sentences, responses or pairs with an answer.")
    answers: int
    fleiss_kappa: Metric
    alpha_ordinal: Metric | None = Field(description="Krippendorff's α of the scores; `null` for pairs.")


class PublishedAgreement(Answer):
    """How far PersonaGym's authors found people to agree with their judges (Table 2): 100 personas, two people."""

    model: str = Field(description="As the paper names it.")
    task: str | None = Field(description="`null`: PersonaScore over personas.")
    spearman_rho: float
    kendall_tau: float


class HumanStudy(Answer):
    """How far people agree with a job's judges by model and task, and with each other; empty if there are no annotations."""

    job: str
    among_annotators: list[AmongAnnotators]
    data: list[ModelAgreement] = Field(description="By kind, dimension, model, task and judge.")
    published: list[PublishedAgreement] = Field(
        description="PersonaGym's Table 2, where people have graded responses by its rubrics; else empty."
    )


class HumanAgreement(Answer):
    """How far annotators agree with the judges and with each other, on one dimension (atomic paper, Table 3)."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None = Field(description="The PersonaGym task whose rubric was used, if any.")
    annotators: int
    n: int = Field(description="Sentences, responses or pairs with an answer.")
    answers: int
    not_applicable: int = Field(description="Those that everyone who answered marked not applicable.")
    fleiss_kappa: Metric = Field(description="Among annotators; n counts those with at least two answers.")
    weighted: WeightedAgreement
    judges: list[AgreementWithJudge]
