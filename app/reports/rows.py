"""Responses and results as flat rows, in the columns of :mod:`app.reports.columns`."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from app.domain.grouping_check import CHECK_METRICS
from app.domain.injection import Suspicion
from app.domain.judged import JudgedResponse, ResponseGrade, UnitVerdict
from app.domain.reuse import ReplyOrigin
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
Encoder = Callable[[Row], bytes]

CHUNK_ROWS = 4_000
CHUNK_CHARACTERS = 4_000_000
"""A chunk ends with the response that reaches one of these limits, so that huge sentences cannot make huge chunks."""


VerdictRow = tuple[Row, Row, Row]
"""A row in three parts, which together stand in the order of ``VERDICT_COLUMNS``: what is said of the response and the
dimension, what of the sentence, and what the judge said, with whose replies the response and this are. Rows of the same
response, sentence or verdict mostly have the same object there, so whoever encodes them does it once. A plain tuple, as
a big export makes hundreds of thousands."""

PART_SIZES = (13, 4, 10)
"""Columns of each part of a row."""

_NO_UNIT: Row = (None,) * 4


async def chunks(responses: AsyncIterator[JudgedResponse]) -> AsyncIterator[list[VerdictRow]]:
    """All verdict rows in the responses' order, some thousand at a time; no chunk is empty."""
    chunk: list[VerdictRow] = []
    known: _Known = {}
    characters = 0
    async for response in responses:
        rows = _verdict_rows(response, known)
        chunk += rows
        characters += _characters(response, len(rows))
        if len(chunk) >= CHUNK_ROWS or characters > CHUNK_CHARACTERS:
            yield chunk
            chunk, known, characters = [], {}, 0
    if chunk:
        yield chunk


def _characters(response: JudgedResponse, rows: int) -> int:
    """About how long the texts in a response's rows are, at least."""
    of_verdicts = sum([len(verdict.raw or "") for unit in response.units for verdict in unit.verdicts])
    of_grades = sum([len(grade.raw or "") for grade in response.grades])
    times = max(rows // max(1, len(response.units)), 1)  # that each sentence is there
    of_units = times * len(response.text or "")
    return of_units + of_verdicts + of_grades + rows * (len(response.item_text) + len(response.error or ""))


_Known = dict[ReplyOrigin | None, dict[int, tuple[UnitVerdict, Row]]]
"""The verdicts' parts of the rows of a chunk, by whose text the response is and the verdict's identity. Most judges say the same few
words, and equal verdicts are mostly one object. It is kept with its row, so that no other object gets its id."""


def _verdict_rows(response: JudgedResponse, known: _Known) -> list[VerdictRow]:
    """A response's rows; at least one for each dimension."""
    rows: list[VerdictRow] = []
    said = {dimension: _of_response(response, dimension) for dimension in response.levels}
    of_verdicts = known.setdefault(response.reused, {})
    for unit in response.units or (None,):
        of_unit = _NO_UNIT if unit is None else (unit.index, unit.start, unit.end, unit.text)
        if unit is not None and unit.verdicts:
            for verdict in unit.verdicts:
                if (found := of_verdicts.get(id(verdict))) is None:
                    found = of_verdicts[id(verdict)] = (verdict, _of_verdict(verdict, "sentence", response))
                rows.append((said[verdict.dimension], of_unit, found[1]))
        else:
            rows += [(part, of_unit, _of_verdict(None, "sentence", response)) for part in said.values()]
    if response.question is not None:
        of_response = _of_response(response, None)
        rows += [
            (of_response, _NO_UNIT, _of_verdict(grade, "response", response))
            for grade in response.grades or (None,)
        ]
    return rows


def _of_response(response: JudgedResponse, dimension: str | None) -> Row:
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
    )


def _of_verdict(verdict: UnitVerdict | ResponseGrade | None, judged: str, response: JudgedResponse) -> Row:
    of_response = _word(response.reused)
    if verdict is None:
        return None, None, None, None, None, judged, None, of_response, None, None
    said = (verdict.judge, str(verdict.status), verdict.score)
    last = (of_response, _word(verdict.reused), _word(verdict.suspicion))
    if isinstance(verdict, UnitVerdict):
        return *said, verdict.in_character, verdict.raw, judged, verdict.group_size, *last
    return *said, None, verdict.raw, judged, None, *last


def _word(origin: ReplyOrigin | Suspicion | None) -> str | None:
    return None if origin is None else str(origin)


def encoded(rows: Sequence[VerdictRow], encoders: tuple[Encoder, Encoder, Encoder]) -> bytes:
    """Rows as bytes.

    Args:
        rows: They stay as they are meanwhile: their parts are told apart by identity, which costs a tenth of hashing them.
        encoders: What makes bytes of each of the three parts, with all that stands between them; asked once for parts that
            are the same object.
    """
    of_response, of_unit, of_verdict = encoders
    known: dict[int, bytes] = {}
    found: list[bytes] = []
    last: Row | None = None
    second = b""
    for response, unit, verdict in rows:
        if (first := known.get(id(response))) is None:
            first = known[id(response)] = of_response(response)
        if unit is not last:
            last, second = unit, of_unit(unit)
        if (third := known.get(id(verdict))) is None:
            third = known[id(verdict)] = of_verdict(verdict)
        found += (first, second, third)
    return b"".join(found)


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
        *(one["sentences"], one["responses"], one["left_out"], one.get("suspicious")),
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
