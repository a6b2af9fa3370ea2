"""The figures of a calibration that a gate is about."""

from collections.abc import Mapping, Sequence

from app.domain.labels.calibration import GROUPINGS, METRICS, NOT_CALIBRATED, PERSONA_SCORE
from app.domain.labels.contract import CalibratedFigure, JobCalibration
from app.domain.metrics.metric import Metric
from app.domain.results.contract import Results

NOT_LABELLED = "it has no calibrated figure: nothing of it that a labelling round drew is labelled"


def check_calibrated(metric: str, where: Mapping[str, str]) -> None:
    """Refuses what is never calibrated.

    Raises:
        ValueError: With the reason.
    """
    if metric not in (*METRICS, PERSONA_SCORE):
        why = NOT_CALIBRATED.get(metric, ": there is none").partition(": ")[2]
        raise ValueError(
            f"{metric} has no calibrated figure, only {', '.join((*METRICS, PERSONA_SCORE))}: {why}"
        )
    if {"model", *where} - {"dimension"} not in [set(by) for by in GROUPINGS]:
        raise ValueError(
            f"there are no calibrated figures by {', '.join(where)}; give level or task, dimension"
        )


def calibrated_totals(
    calibration: JobCalibration, results: Results, metric: str, where: Mapping[str, str]
) -> list[tuple[dict[str, str], Metric, float | None]]:
    """What each figure is of, the figure, and the share of planned verdicts that it is of.

    Args:
        calibration: The job's.
        results: Its results, for the coverage.
        metric: Whose.
        where: By key what the figure is of; every model if it names none, all dimensions if it names none.
    """
    dimension = {key: value for key, value in where.items() if key == "dimension"}
    wanted = {"model", *where} - {"dimension"}
    found: list[tuple[dict[str, str], Metric, float | None]] = []
    for figure in _totals(calibration, where.get("dimension")):
        of = {**figure.keys, **dimension}
        if figure.metric == metric and set(figure.keys) == wanted and where.items() <= of.items():
            found.append((of, figure.calibrated, _coverage(results, of, metric)))
    return found


def _totals(calibration: JobCalibration, dimension: str | None) -> Sequence[CalibratedFigure]:
    if dimension is None:
        return calibration.totals
    return next((each.totals for each in calibration.data if each.dimension == dimension), ())


def _coverage(results: Results, of: Mapping[str, str], metric: str) -> float | None:
    if metric == PERSONA_SCORE:
        for total in results.persona_score_totals:
            if total.model == of["model"]:
                graded = total.tasks[of["task"]] if "task" in of else total
                return graded.coverage.share
    return next((total.covered(metric) for total in results.totals if total.group == of), None)
