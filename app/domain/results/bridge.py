"""What is answered of two judges of the same texts: how far they agree, and totals of the old one as the new one would give them."""

from typing import Literal

from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.metric import Metric

MetricName = Literal["acc_atom", "ic_atom", "rc_atom", "mean", "persona_score"]
Finding = Literal["interchangeable", "different", "undecided"]
Design = Literal["all", "random", "not_random"]


class BridgeSide(Answer):
    """A judge in a job."""

    job: str
    judge: str
    imported: bool = Field(description="Whether its verdicts were given elsewhere.")


class BridgeGradeAgreement(Answer):
    """How far the two judges agree on the same things that both judged."""

    responses: int
    left_out: int = Field(description="Without a readable verdict of either.")
    exact_agreement: Metric
    mean_absolute_difference: Metric
    shift: Metric = Field(description="New − old, in points of the scale, where both gave a score.")
    quadratic_kappa: Metric


class BridgeAgreement(BridgeGradeAgreement):
    """How far the two judges agree on the same sentences, over all dimensions (`null`) or on one."""

    dimension: str | None
    scale: dict[str, int] = Field(description="`minimum` and `maximum`; each scale has its own row.")
    sentences: int = Field(description="Judged by both.")
    acc_old: Metric = Field(description="Share of sentences in character by the old judge.")
    acc_new: Metric
    acc_shift: Metric = Field(description="New − old.")


class BridgedFigure(Answer):
    """A total by the old judge, and what the new one would give it."""

    group: dict[str, str] = Field(description="Empty for all texts; or `model`; or `task`.")
    metric: MetricName
    old: Metric = Field(description="By the old judge, of all texts: the mean over cells, as in results.")
    bridged: Metric = Field(description="An estimate of the figure by the new judge. It was not measured.")
    effect: Metric = Field(description="Bridged − old. Its interval is for these very texts.")
    anchors: int = Field(description="Responses that both judged.")
    finding: Finding | None = Field(
        description="`interchangeable`: the effect's 95 % interval lies within ± `within` of the figure's range. `different`: "
        "it lies outside. `undecided`: neither, or the judges agree no better than chance. `null` without an interval."
    )
    anchors_needed: int | None = Field(description="About how many anchors would decide, if undecided.")


class Bridge(Answer):
    """Two judges of the same texts: their agreement, and totals of the old judge as the new one would give them."""

    object: Literal["bridge"] = "bridge"
    old: BridgeSide
    new: BridgeSide
    texts: int = Field(
        description="Responses that the old judge scored, of those from which the anchors were drawn."
    )
    anchors: int = Field(
        description="Responses of the new job whose text the old job has, at the same place."
    )
    unpaired: int = Field(description="Answered responses of the new job without such a text.")
    design: Design = Field(
        description="How the anchors came about. `all`: the new judge was given all texts. `random`: a sample that the service"
        " drew. `not_random`: nobody can say how they were chosen; intervals then hold only if nothing of the judges depends on it."
    )
    within: float = Field(description="The margin, as a share of a figure's range.")
    agreement: list[BridgeAgreement] = Field(description="Intervals are over responses.")
    graded: BridgeGradeAgreement | None = Field(
        description="How far the two agree on PersonaGym's answers, by their grades; `null` without such answers."
    )
    figures: list[BridgedFigure]
    not_bridged: dict[str, str] = Field(
        description="Figures that these anchors can't bridge, with the reason."
    )
    interchangeable: bool | None = Field(
        description="Whether all figures are; `null` if one is undecided and none different."
    )
    recommendation: str = Field(description="In words.")
    simulated: bool = Field(description="Whether a model or judge of either job was simulated.")
    notes: list[str] = Field(description="What to mind, each as `code: message`.")
