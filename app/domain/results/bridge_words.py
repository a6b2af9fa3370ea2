"""Puts the conclusion of a bridge into words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from app.domain.metrics.registry import BY_NAME
from app.domain.results.bridge import BridgeAgreement, BridgedFigure, BridgeGradeAgreement, Design
from app.domain.results.judge_sanity import CHANCE, by_chance
from app.domain.results.warnings import ResultWarning
from app.domain.statistics.prediction_powered import FEWEST_LABELS

MOST_LISTED = 4
NOT_RANDOM = (
    "not_random: the service did not draw the anchors, so that they may differ from the other texts. Bridged figures and intervals"
    " take for granted that they do not. Let the service draw a sample."
)
PART = (
    "part: figures are of the models, personas, tasks, runs and items from which the new job's texts were taken, not of all texts of"
    " the old job."
)
SIMULATED = "simulated: models or judges are simulated; the figures describe no real one."


def decided(figures: Sequence[BridgedFigure]) -> bool | None:
    """Whether the judges are interchangeable: all figures with an interval are, or one is different; ``None`` if that is open.

    Those of all texts must have one; a model or a task may have too few anchors.
    """
    findings = {figure.finding for figure in figures if figure.finding is not None or _decides(figure)}
    if "different" in findings:
        return False
    return True if findings == {"interchangeable"} else None


class Doubt(NamedTuple):
    """A reason not to trust figures of the two judges.

    Attributes:
        code: The code of the warning.
        message: The reason, without a full stop.
        of: The verdicts concerned.
    """

    code: str
    message: str
    of: Literal["sentences", "grades", "all"]


def doubts(
    warnings: Iterable[ResultWarning],
    agreement: Sequence[BridgeAgreement],
    graded: BridgeGradeAgreement | None,
) -> list[Doubt]:
    """Return the jobs' warnings about the two judges, then chance agreement of the two.

    Two judges that ignore the texts can have equal totals.
    """
    found = [Doubt(each.code, each.message.rstrip("."), each.of) for each in warnings]
    for each in agreement:
        if each.dimension is None:
            reason = by_chance(each.quadratic_kappa, each.exact_agreement.n, "sentences")
            found += [Doubt(CHANCE, reason, "sentences")] if reason else []
    if graded is not None:
        reason = by_chance(graded.quadratic_kappa, graded.exact_agreement.n, "answers")
        found += [Doubt(CHANCE, reason, "grades")] if reason else []
    return found


def without_doubted(figures: Sequence[BridgedFigure], found: Sequence[Doubt]) -> list[BridgedFigure]:
    """Call no figure interchangeable that a doubt concerns."""
    doubted = {each.of for each in found}

    def checked(figure: BridgedFigure) -> BridgedFigure:
        of = "grades" if figure.metric == "persona_score" else "sentences"
        if doubted.isdisjoint({of, "all"}) or figure.finding != "interchangeable":
            return figure
        return figure.model_copy(update={"finding": "undecided", "anchors_needed": None})

    return [checked(figure) for figure in figures]


def recommendation(
    figures: Sequence[BridgedFigure], within: float, design: Design = "random", found: Sequence[Doubt] = ()
) -> str:
    """What to do, in words."""
    if found:
        reasons = "; ".join(dict.fromkeys(each.message for each in found))
        return (
            f"Do not replace one judge by the other: {reasons}. Equal totals of such judges say nothing about the texts."
            " Check both judges."
        )
    warning = (
        "The anchors were not drawn at random, so that this holds only if they are like the other texts. "
        if design == "not_random"
        else ""
    )
    return warning + _advice(figures, f"± {within * 100:g} % of each figure's range")


def _advice(figures: Sequence[BridgedFigure], margin: str) -> str:
    found = decided(figures)
    if found:
        return f"Interchangeable within {margin}: every total's 95 % interval of the change lies inside."
    if found is False:
        worst = [figure for figure in figures if figure.finding == "different"]
        return (
            f"Not interchangeable within {margin}: {_listed(worst)}. Compare earlier results only with bridged figures,"
            " or judge all texts again by the new judge."
        )
    unsure = [
        figure
        for figure in figures
        if figure.finding == "undecided" or (figure.finding is None and _decides(figure))
    ]
    needed = max((figure.anchors_needed or 0 for figure in unsure), default=0)
    more = f" About {needed:,} anchors for each of them would decide." if needed else ""
    if any(figure.finding is None and figure.anchors < FEWEST_LABELS for figure in unsure):
        more += f" Draw more anchors: an interval needs {FEWEST_LABELS}."
    return (
        f"Not shown to be interchangeable within {margin}. Undecided: {_listed(unsure)}.{more} Until then compare"
        " earlier results only with bridged figures."
    )


def _decides(figure: BridgedFigure) -> bool:
    """Whether it is of all texts, and one that the old judge's scores have."""
    return not figure.group and figure.old.value is not None


def _listed(figures: Sequence[BridgedFigure]) -> str:
    """The figures, those of all texts first, with their changes."""
    told = [
        f"{_label(figure)}{_of(figure.group)}"
        + ("" if figure.effect.value is None else f" changes by {_signed(figure.effect.value)}")
        for figure in figures[:MOST_LISTED]
    ]
    more = len(figures) - len(told)
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _label(figure: BridgedFigure) -> str:
    return "PersonaScore" if figure.metric == "persona_score" else BY_NAME[figure.metric].label


def _signed(change: float) -> str:
    """With its sign; what rounds to nothing has none."""
    return f"{change:+z.3f}".replace("+0.000", "0.000")


def _of(group: Mapping[str, str]) -> str:
    return "".join(
        f" of {value.replace('_', ' ') if name == 'task' else value}" for name, value in group.items()
    )
