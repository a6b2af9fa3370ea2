"""Agreement between annotators and judges as clients are shown it."""

from typing import Literal

from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.metric import Metric


class WeightedWithJudge(Answer):
    """The same of the sentences, or pairs, from which labelling rounds drew, each counting for as many as it stands for."""

    kendall_tau: Metric
    spearman_rho: Metric | None = Field(None, description="Of scores only.")
    exact_agreement: Metric | None = None
    quadratic_kappa: Metric | None = None
    alpha_ordinal: Metric | None = None


class WeightedAgreement(Answer):
    """Agreement of the sentences, or pairs, from which labelling rounds drew."""

    fleiss_kappa: Metric
    population: int = Field(description="Sentences, or pairs, from which rounds drew; 0 without a round.")
    covered: int = Field(
        description="Of them those in strata with an answer, of which all weighted figures are."
    )


class AgreementWithJudge(Answer):
    """How far annotators agree with one judge."""

    judge: str
    kendall_tau: Metric = Field(
        description="Of scores τ_b between the judge's and the annotators' mean; of pairs τ_A: answers in the order of the"
        " judge's scores less those against it, by all. n counts the things compared."
    )
    spearman_rho: Metric | None = Field(None, description="Of scores only.")
    exact_agreement: Metric | None = Field(
        None,
        description="Share of answers that are the judge's score, each thing counting once. Of single sentences and grades"
        " only, like the two that follow.",
    )
    quadratic_kappa: Metric | None = Field(None, description="Cohen's κ of the judge with each answer.")
    alpha_ordinal: Metric | None = Field(None, description="Krippendorff's α of the judge with each answer.")
    weighted: WeightedWithJudge = Field(
        description="The same, of all that was drawn from; those above are of what was drawn."
    )
    left_out: dict[str, int] = Field(
        description="`without_score`: the judge gave none; of pairs `same_score`: the same to both.",
        examples=[{"without_score": 2}],
    )


class ModelAgreement(Answer):
    """How far annotators agree with one judge, or with the mean of all, on one model's texts."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None = Field(description="`null`: by PersonaGym's rubrics.")
    model: str | None = Field(description="`null` of pairs, which are of all models.")
    task: str | None = Field(
        description="`null` of pairs, which are of all tasks, and of the PersonaScore over personas."
    )
    judge: str | None = Field(description="`null`: the mean of the judges that gave a score.")
    personas: int = Field(description="Over how many; intervals are over personas, of pairs over pairs.")
    left_out: int = Field(
        description="Things with an answer that lack the judge's score, of pairs also those with equal scores; of the"
        " PersonaScore, personas without an answer for each task."
    )
    kendall_tau: Metric = Field(
        description="τ_b of the annotators' mean with the judge's score, of pairs τ_A. n counts sentences, responses, pairs, or"
        " personas."
    )
    kendall_p: float | None = Field(
        description="By a permutation test: scores exchanged between personas; of pairs by a sign test."
    )
    spearman_rho: Metric | None = Field(description="`null` of pairs.")
    spearman_p: float | None


class AmongAnnotators(Answer):
    """How far annotators agree with each other."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None = Field(description="Where a PersonaGym task's rubric was used.")
    annotators: int
    n: int = Field(description="Sentences, responses or pairs with an answer.")
    answers: int
    fleiss_kappa: Metric
    alpha_ordinal: Metric | None = Field(description="Krippendorff's α of the scores; `null` of pairs.")


class HumanStudy(Answer):
    """How far people agree with a job's judges by model and task, and with each other; empty where nobody has annotated."""

    job: str
    among_annotators: list[AmongAnnotators]
    data: list[ModelAgreement] = Field(description="By kind, dimension, model, task and judge.")


class HumanAgreement(Answer):
    """How far annotators agree with the judges and with each other, on one dimension (atomic paper, Table 3)."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None = Field(description="Where a PersonaGym task's rubric was used.")
    annotators: int
    n: int = Field(description="Sentences, responses or pairs with an answer.")
    answers: int
    not_applicable: int = Field(description="Those that all who answered found not applicable.")
    fleiss_kappa: Metric = Field(description="Among the annotators; n counts those with two answers or more.")
    weighted: WeightedAgreement
    judges: list[AgreementWithJudge]
