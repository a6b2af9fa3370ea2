"""A job's result in one figure for each model, as lists of jobs show it."""

from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.metric import Metric
from app.domain.results.comparison import ACC_ATOM, PERSONA_SCORE
from app.domain.results.contract import Results


class ModelScore(Answer):
    """A model's figure in the metric that the job's report orders models by."""

    model: str
    metric: str = Field(description="`acc_atom`; `persona_score` for a job with only PersonaGym tasks.")
    value: float | None = Field(description="`null` if it can't be computed.")
    n: int = Field(description="How many cells, or personas, it is the mean of.")


def model_scores(results: Results) -> list[ModelScore]:
    """Each model's figure, the highest first and those without one last."""
    graded = {task for total in results.persona_score_totals for task in total.tasks}
    if results.graded and {cell.task for cell in results.cells} <= graded:
        metric = PERSONA_SCORE
        figures: list[tuple[str, Metric]] = [
            (total.model, total.persona_score) for total in results.persona_score_totals
        ]
    else:
        metric = ACC_ATOM
        figures = [
            (total.group["model"], total.metrics[ACC_ATOM])
            for total in results.totals
            if total.by == ["model"]
        ]
    found = [
        ModelScore(model=model, metric=metric, value=figure.value, n=figure.n) for model, figure in figures
    ]
    return sorted(found, key=lambda score: (score.value is None, -(score.value or 0), score.model))
