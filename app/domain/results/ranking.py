"""Several models on the same personas, tasks and dimensions: which differ, and which rank each may have."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Literal

from pydantic import Field

from app.domain.contract import Answer
from app.domain.instruments.contract import PersonaInWords
from app.domain.labels.contract import CalibratedFigure
from app.domain.results.comparison import (
    ACC_ATOM,
    METRICS,
    PERSONA_SCORE,
    RAREFIED,
    TASK_SCORE,
    ComparedSide,
    Figures,
    Pairing,
    Place,
    asked_of,
    obstacle_to_tests,
    primary_of,
)
from app.domain.statistics.design import DesignCell, Stratum
from app.domain.statistics.models import PairOfModels, compare_all, ranks
from app.domain.statistics.paired import ALPHA
from app.domain.statistics.variability import Variability

ANY_ITEM = Stratum("", "", "")
"""Items are drawn from all that a persona may be asked, as in comparisons of two models."""


class ModelOfMany(ComparedSide):
    """One of the models compared."""

    name: str = Field(
        description="The model's name; with its job's id if several jobs have a model of this name."
    )
    left_out: int = Field(description="Values of the primary metric that some other model lacks.")


class RankedModel(Answer):
    """A model by one metric."""

    name: str
    value: float = Field(description="Mean over the values that all models have.", examples=[0.81])
    rank: tuple[int, int] = Field(
        description="The best and the worst possible rank, with 95 % confidence for all models at once.",
        examples=[[1, 3]],
    )


class PairDifference(Answer):
    """Two models' paired difference, a − b."""

    a: str
    b: str
    difference: float
    ci95: tuple[float, float] | None = Field(description="Holds for all pairs at once.")
    ci95_reason: str | None
    p_value: float | None = Field(description="Of this pair alone.")
    p_value_corrected: float | None = Field(
        description="Corrected for all pairs; for exploratory metrics, for all pairs of all these metrics."
    )


class Ranking(Answer):
    """All models by one metric."""

    metric: str = Field(examples=["acc_atom"])
    task: str | None = Field(None, description="`null`: all tasks.")
    exploratory: bool = Field(
        description="Whether the metric was not chosen in advance: tests are corrected for all such metrics, "
        "but not those of the primary metric."
    )
    population: str = Field(description="The population that intervals and p-values refer to.")
    values: int = Field(description="Values that each model has.")
    personas: int = Field(description="Number of personas behind them.")
    models: list[RankedModel] = Field(description="The highest value first.")
    differences: list[PairDifference] = Field(
        description="Each pair once, the model with the higher value first."
    )
    over_items: list[PairDifference] | None = Field(
        None,
        description="With `pairing` items: the same pairs, with items drawn anew instead of personas: these personas, asked other"
        " items like these.",
    )
    smallest_p_value: float | None = Field(
        description="The smallest p-value that permutations of so few personas can give; `null` for Student's "
        "t tests."
    )
    smallest_detectable: float | None = Field(
        description="The true difference of two models that a comparison like this would detect with 80 % "
        "power, with the same correction."
    )
    smallest_detectable_reason: str | None


class ComparisonOfModels(Answer):
    """Several models compared pairwise."""

    object: Literal["comparison_of_models"] = "comparison_of_models"
    models: list[ModelOfMany]
    pairing: Pairing
    primary: str = Field(description="The metric that decides; chosen in advance.")
    simulated: bool
    rankings: list[Ranking] = Field(description="By each metric over all tasks, the primary one first.")
    in_tasks: list[Ranking] = Field(
        description="By `acc_atom` and `task_score` in each task where there are several; corrected for all of these."
    )
    calibrated: list[CalibratedFigure] = Field(
        description="Differences a − b as people would give them, from what labelling rounds drew; empty where one of the jobs has"
        " no such labels, or with published models."
    )
    personas: list[PersonaInWords] = Field(description="The personas of the values, compared or left out.")
    notes: list[str] = Field(description="What to know before judging the differences.")


def rank_models(models: Mapping[str, Figures]) -> list[Ranking]:
    """Compares models by each metric over the places where all have a value; nothing where there are none.

    Args:
        models: Two or more models' figures.
    """
    shared = {
        metric: found
        for metric in (PERSONA_SCORE, *METRICS, *RAREFIED.values())
        if (found := shared_places(models, metric))
    }
    if primary_of(shared) is None and (found := shared_places(models, TASK_SCORE)):
        shared = {
            TASK_SCORE: found,
            **shared,
        }  # of answers to PersonaGym's questions, that have no PersonaScore
    primary = primary_of(shared) or next((name for name in shared if name == TASK_SCORE), None)
    if primary is None:
        return []
    others = [metric for metric in shared if metric != primary]
    return [
        rank_by(models, primary, shared[primary]),
        *(rank_by(models, metric, shared[metric], exploratory=len(others)) for metric in others),
    ]


def rank_in_tasks(models: Mapping[str, Figures]) -> list[Ranking]:
    """Compares models in each task; nothing where there is a single one.

    Args:
        models: Two or more models' figures.
    """
    found: dict[tuple[str, str], list[Place]] = {}
    for metric in (ACC_ATOM, TASK_SCORE):
        for place in shared_places(models, metric):
            found.setdefault((metric, place.task), []).append(place)
    if len(found) == 1:
        return []
    return [
        rank_by(models, metric, places, exploratory=len(found)).model_copy(update={"task": task})
        for (metric, task), places in found.items()
    ]


def shared_places(models: Mapping[str, Figures], metric: str) -> list[Place]:
    """Where all models have the metric, on the same scale."""
    first, *others = models.values()
    return sorted(
        place
        for (name, place), figure in first.items()
        if name == metric
        and figure.value is not None
        and all(
            (other := figures.get((name, place))) is not None
            and other.value is not None
            and other.scale == figure.scale
            for figures in others
        )
    )


def differ(p_value_corrected: float | None) -> bool:
    """Whether two models are said to differ."""
    return p_value_corrected is not None and p_value_corrected <= ALPHA


def rank_by(
    models: Mapping[str, Figures], metric: str, places: Sequence[Place], exploratory: int = 0
) -> Ranking:
    """Compares models by one metric.

    Args:
        models: Their figures.
        metric: The metric.
        places: See :func:`shared_places`; at least one.
        exploratory: Metrics that were not named beforehand, of which this is one; 0 if it was.
    """
    own = {
        name: {(metric, place): figures[metric, place] for place in places}
        for name, figures in models.items()
    }
    means = {name: fmean(each.value or 0.0 for each in figures.values()) for name, figures in own.items()}
    order = sorted(models, key=lambda name: -means[name])
    obstacles = {
        (a, b): reason
        for a, b in combinations(order, 2)
        if (reason := obstacle_to_tests(metric, None, own[a], own[b]))
    }
    width = max(each.scale[1] - each.scale[0] for each in own[order[0]].values())
    wordings = sorted(
        {w for figures in own.values() for each in figures.values() for w in each.wordings or ()}
    )
    numbers = {words: n for n, words in enumerate(wordings)}
    cells = {name: _design(own[name], numbers) for name in order}
    found = compare_all(cells, width, obstacles, max(1, exploratory))
    of_items = None
    if any(place.item for place in places):
        asked = [asked_of(place) for place in places]
        items = {
            name: [
                replace(cell, persona=item, stratum=ANY_ITEM) for item, cell in zip(asked, each, strict=True)
            ]
            for name, each in cells.items()
        }
        of_items = compare_all(items, width, obstacles, max(1, exploratory)).pairs
    by_rank = ranks(order, found.pairs)
    return Ranking(
        metric=metric,
        exploratory=exploratory > 0,
        population=found.population.value,
        values=len(places),
        personas=len({place.persona for place in places}),
        models=[RankedModel(name=name, value=means[name], rank=by_rank[name]) for name in order],
        differences=[_pair(pair) for pair in found.pairs],
        over_items=None if of_items is None else [_of_items(pair) for pair in of_items],
        smallest_p_value=found.smallest_p,
        smallest_detectable=found.detectable,
        smallest_detectable_reason=found.detectable_reason,
    )


def _design(figures: Figures, numbers: Mapping[str, int]) -> list[DesignCell]:
    """Figures at their places in the design, with their wordings by number."""
    return [
        DesignCell(
            place.persona,
            Stratum(place.task, place.dimension, place.level),
            Variability(
                figure.value or 0.0,
                None
                if figure.wordings is None
                else {numbers[w]: effect for w, effect in figure.wordings.items()},
                count=len(figure.wordings or ()),
            ),
        )
        for (_, place), figure in sorted(figures.items())
    ]


def _pair(pair: PairOfModels) -> PairDifference:
    return PairDifference(
        a=pair.a,
        b=pair.b,
        difference=pair.value,
        ci95=pair.interval.ends,
        ci95_reason=pair.interval.reason,
        p_value=pair.p,
        p_value_corrected=pair.corrected,
    )


def _of_items(pair: PairOfModels) -> PairDifference:
    """A pair of which items stood where personas do."""
    reason = pair.interval.reason
    return _pair(pair).model_copy(
        update={"ci95_reason": None if reason is None else reason.replace("persona", "item")}
    )
