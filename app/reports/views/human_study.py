"""How far people agree with judges, laid out as PersonaGym's Table 2 and, of pairs, the atomic paper's Table 3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.labels.human_agreement import AmongAnnotators, HumanStudy, ModelAgreement, PublishedAgreement

PERSONA_SCORE = "PersonaScore"


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One judge on one model.

    Attributes:
        model: The model's label; ``None`` of pairs.
        judge: The judge's label; ``None`` for the mean of all.
        cells: One for each column; ``None`` where nobody has annotated any.
    """

    model: str | None
    judge: str | None
    cells: Sequence[ModelAgreement | None]


@dataclass(frozen=True, slots=True)
class StudyTable:
    """What was annotated in one way.

    Attributes:
        kind: ``sentences``, ``responses`` or ``pairs``.
        dimension: On which; ``None`` of responses that were graded by rubrics, and of pairs, whose dimensions are the columns.
        columns: Tasks and perhaps ``PersonaScore``, or dimensions.
        rows: By model and judge.
        among: How far the annotators agree with each other.
        published: By model PersonaGym's own, one for each column; ``None`` where it has none. Of graded responses only.
    """

    kind: str
    dimension: str | None
    columns: Sequence[str]
    rows: Sequence[StudyRow]
    among: Sequence[AmongAnnotators]
    published: Mapping[str, Sequence[PublishedAgreement | None]]


def study_tables(study: HumanStudy) -> list[StudyTable]:
    """A table for each kind and dimension, of pairs one for all dimensions."""
    groups: dict[tuple[str, str | None], list[ModelAgreement]] = {}
    for each in study.data:
        groups.setdefault(_group(each), []).append(each)
    return [
        _table(
            group,
            found,
            [each for each in study.among_annotators if _group(each) == group],
            study.published if group == ("responses", None) else [],
        )
        for group, found in groups.items()
    ]


def _group(each: ModelAgreement | AmongAnnotators) -> tuple[str, str | None]:
    return each.kind, None if each.kind == "pairs" else each.dimension


def _column(each: ModelAgreement) -> str:
    if each.kind == "pairs":
        return each.dimension or ""
    return _of_task(each.task)


def _of_task(task: str | None) -> str:
    return PERSONA_SCORE if task is None else task.replace("_", " ")


def _table(
    group: tuple[str, str | None],
    found: Sequence[ModelAgreement],
    among: Sequence[AmongAnnotators],
    published: Sequence[PublishedAgreement],
) -> StudyTable:
    # PersonaScore comes last also where the first model lacks a task.
    columns = sorted(dict.fromkeys(map(_column, found)), key=PERSONA_SCORE.__eq__)
    cells = {(each.model, each.judge, _column(each)): each for each in found}
    printed = {(each.model, _of_task(each.task)): each for each in published}
    rows = dict.fromkeys((each.model, each.judge) for each in found)
    return StudyTable(
        kind=group[0],
        dimension=group[1],
        columns=columns,
        rows=[StudyRow(*row, [cells.get((*row, column)) for column in columns]) for row in rows],
        among=among,
        published={
            model: [printed.get((model, column)) for column in columns]
            for model in dict.fromkeys(each.model for each in published)
        },
    )
