"""Figures of groups of models, and of personas by how desired they are (atomic paper, Table 7 and section 5.2)."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from pydantic import BaseModel, Field

from app.domain.contract import Answer
from app.domain.metrics.definition import Family
from app.domain.metrics.metric import Metric, values_of
from app.domain.metrics.registry import names
from app.domain.results.contract import CellMetrics

Attributes: TypeAlias = Mapping[str, Mapping[str, str]]
"""What is known of models, by their labels: values by name."""
GROUP_METRICS = names(Family.ATOMIC)
LESS_DESIRED = frozenset({("O", "neutral"), ("N", "neutral"), ("O", "low"), ("C", "low")})
"""The personas that section 5.2 of the atomic paper calls not socially preferred: dimension and level."""
OF_MODEL = "model"

_NO_CELL = "no_cell: no cell of the group has the metric"


class Cell(Protocol):
    """What is asked for of a cell, which may be a job's or a paper's."""

    model: str
    dimension: str
    level: str
    metrics: CellMetrics


class GroupFigures(BaseModel):
    """A group's cells: unweighted means, each n the cells that have the metric."""

    cells: int
    acc_atom: Metric
    ic_atom: Metric
    rc_atom: Metric
    less_desired: Metric = Field(
        description="ACC_atom of personas that the atomic paper's section 5.2 calls not socially preferred: neither open nor close-minded,"
        " neither emotionally stable nor neurotic, close-minded, careless."
    )
    others: Metric = Field(description="ACC_atom of all other personas.")


class ModelGroup(GroupFigures):
    """Models that have an attribute in common."""

    attribute: str = Field(description="`model` for one model alone.", examples=["tuning"])
    value: str = Field(examples=["instruction-tuned"])
    models: list[str]


class ModelGroups(Answer):
    """A job's models, alone and by their attributes."""

    job: str
    simulated: bool
    groups: list[ModelGroup]


def model_groups(cells: Sequence[Cell], attributes: Attributes) -> list[ModelGroup]:
    """Each model, then for each attribute the models with each of its values.

    Args:
        cells: The models'.
        attributes: Those of some of the models.
    """
    by_model: dict[str, list[Cell]] = {}
    for cell in cells:
        by_model.setdefault(cell.model, []).append(cell)
    found = [_group(OF_MODEL, model, [model], by_model) for model in sorted(by_model)]
    known = {model: attributes.get(model, {}) for model in by_model}
    for name in sorted({name for own in known.values() for name in own}):
        values: dict[str, list[str]] = {}
        for model in sorted(by_model):
            if name in known[model]:
                values.setdefault(known[model][name], []).append(model)
        found += [_group(name, value, models, by_model) for value, models in sorted(values.items())]
    return found


def _group(
    attribute: str, value: str, models: list[str], by_model: Mapping[str, Sequence[Cell]]
) -> ModelGroup:
    cells = [cell for model in models for cell in by_model[model]]
    less = [cell for cell in cells if (cell.dimension, cell.level) in LESS_DESIRED]
    others = [cell for cell in cells if (cell.dimension, cell.level) not in LESS_DESIRED]
    return ModelGroup(
        attribute=attribute,
        value=value,
        models=models,
        cells=len(cells),
        **{name: _mean(name, cells) for name in GROUP_METRICS},
        less_desired=_mean("acc_atom", less),
        others=_mean("acc_atom", others),
    )


def _mean(name: str, cells: Sequence[Cell]) -> Metric:
    values = values_of([cell.metrics[name] for cell in cells])
    left_out = len(cells) - len(values)
    return Metric.average(values, _NO_CELL).model_copy(update={"left_out": left_out})
