"""Responses and results as flat rows, in the columns of :mod:`app.reports.columns`."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from app.domain.grouping_check import CHECK_METRICS
from app.domain.judged import JudgedResponse, JudgedUnit, ResponseGrade, UnitVerdict
from app.reports.columns import (
    GENERATION_COUNTS,
    GRADE_STATUSES,
    METRICS,
    RC_ATOM_PARTS,
    RESPONSE_COUNTS,
    RESPONSE_STATUSES,
    UNIT_STATUSES,
)

Value = str | int | float | bool | None
Row = tuple[Value, ...]

CHUNK_ROWS = 4_000
CHUNK_CHARACTERS = 4_000_000
"""A chunk ends at whichever limit comes first, so that huge sentences cannot make huge chunks."""


async def chunks(responses: AsyncIterator[JudgedResponse]) -> AsyncIterator[list[Row]]:
    """All verdict rows in the responses' order, some thousand at a time; no chunk is empty."""
    chunk: list[Row] = []
    characters = 0
    async for response in responses:
        for row in verdict_rows(response):
            chunk.append(row)
            characters += sum(len(value) for value in row if isinstance(value, str))
            if len(chunk) == CHUNK_ROWS or characters > CHUNK_CHARACTERS:
                yield chunk
                chunk, characters = [], 0
    if chunk:
        yield chunk


def verdict_rows(response: JudgedResponse) -> Iterator[Row]:
    """A response's rows, in the order of ``VERDICT_COLUMNS``; at least one for each dimension."""
    for unit in response.units or (None,):
        if unit is not None and unit.verdicts:
            for verdict in unit.verdicts:
                yield _row(response, verdict.dimension, unit, verdict)
        else:
            for dimension in response.levels:
                yield _row(response, dimension, unit, None)
    if response.question is not None:
        for grade in response.grades or (None,):
            yield _row(response, None, None, grade, judged="response")


def _row(
    response: JudgedResponse,
    dimension: str | None,
    unit: JudgedUnit | None,
    verdict: UnitVerdict | ResponseGrade | None,
    judged: str = "sentence",
) -> Row:
    return (
        response.model,
        response.persona,
        response.task,
        dimension,
        None if dimension is None else response.levels[dimension],
        response.item,
        response.item_text,
        response.run,
        response.instruction,
        response.iteration,
        response.id,
        response.status,
        response.error,
        *((None,) * 4 if unit is None else (unit.index, unit.start, unit.end, unit.text)),
        *((None,) * 5 if verdict is None else _verdict_values(verdict)),
        judged,
        verdict.group_size if isinstance(verdict, UnitVerdict) else None,
        response.reused,
        None if verdict is None else verdict.reused,
    )


def _verdict_values(verdict: UnitVerdict | ResponseGrade) -> Row:
    in_character = verdict.in_character if isinstance(verdict, UnitVerdict) else None
    return verdict.judge, verdict.status.value, verdict.score, in_character, verdict.raw


def cell_rows(results: Mapping[str, Any]) -> list[Row]:
    """The results document's cells, in the order of ``CELL_COLUMNS``."""
    return [_cell_row(cell) for cell in results["cells"]]


def _cell_row(cell: Mapping[str, Any]) -> Row:
    metrics = cell["metrics"]
    generation = cell.get("generation", {})
    return (
        *(cell[name] for name in ("model", "persona", "task", "dimension", "level", "simulated")),
        cell["scale"]["minimum"],
        cell["scale"]["maximum"],
        cell["runs"],
        cell["runs_used"],
        *(metrics[name].get(key) for name in METRICS for key in ("value", "n", "reason")),
        *(
            metrics["rc_atom"].get(key)
            for part in RC_ATOM_PARTS
            for key in (part, f"{part}_n", f"{part}_reason")
        ),
        *(cell["units"][name] for name in UNIT_STATUSES),
        *(cell["responses"][name] for name in RESPONSE_COUNTS),
        *(generation.get(name) for name in GENERATION_COUNTS),
    )


def persona_score_rows(results: Mapping[str, Any]) -> list[Row]:
    """The results document's task scores and PersonaScores, in the order of ``PERSONA_SCORE_COLUMNS``."""
    return [
        row for one in results["persona_scores"] for row in _persona_score_rows(one, results["simulated"])
    ]


def _persona_score_rows(one: Mapping[str, Any], simulated: bool) -> Iterator[Row]:
    tasks = one["tasks"]
    for id_, task in tasks.items():
        yield (
            *(one["model"], one["persona"], "task", id_, simulated),
            *(task.get(name) for name in ("value", "n", "reason")),
            task["questions"],
            *(task["grades"][name] for name in GRADE_STATUSES),
            *(task["responses"][name] for name in RESPONSE_STATUSES),
        )
    score = one["persona_score"]
    yield (
        *(one["model"], one["persona"], "persona", None, simulated),
        *(score.get(name) for name in ("value", "n", "reason")),
        sum(task["questions"] for task in tasks.values()),
        *(sum(task["grades"][name] for task in tasks.values()) for name in GRADE_STATUSES),
        *(one["responses"][name] for name in RESPONSE_STATUSES),
    )


def judging_check_rows(results: Mapping[str, Any]) -> list[Row]:
    """How far two ways of judging agree, in the order of ``JUDGING_CHECK_COLUMNS``; none for a job with only one."""
    check = results.get("judging_check")
    return [] if check is None else [_judging_check_row(one) for one in check["agreement"]]


def _judging_check_row(one: Mapping[str, Any]) -> Row:
    metrics = [one[name] for name in CHECK_METRICS]
    return (
        *(one["judge"], one["task"], one["scale"]["minimum"], one["scale"]["maximum"]),
        *(one["sentences"], one["responses"], one["left_out"]),
        *(
            value
            for metric in metrics
            for value in (
                metric["value"],
                metric["n"],
                *(metric.get("ci95") or (None, None)),
                metric.get("reason"),
            )
        ),
    )
