"""Responses and results as flat rows, in the columns of :mod:`app.reports.exports.columns`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from app.domain.judging.judged_response import JudgedResponse, ResponseGrade, UnitVerdict
from app.domain.judging.prompt_injection import Suspicion
from app.domain.metrics.registry import METRICS
from app.domain.providers.reuse import ReplyOrigin
from app.domain.results.grouping_check import CHECK_METRICS
from app.reports.exports.columns import (
    GENERATION_COUNTS,
    GRADE_STATUSES,
    RESPONSE_COUNTS,
    RESPONSE_STATUSES,
    UNIT_STATUSES,
)

Value = str | int | float | bool | None
Row = tuple[Value, ...]

CHUNK_ROWS, CHUNK_CHARACTERS = 500, 500_000
"""A chunk of lines ends with the response that reaches one of these limits, so that huge sentences cannot make huge chunks.
Memory that is larger comes fresh from the kernel each time, page by page, which costs as much as all of the encoding."""

GROUP_ROWS, GROUP_CHARACTERS = 8 * CHUNK_ROWS, 8 * CHUNK_CHARACTERS
"""The same for a chunk that becomes a row group of its own, and for what is encoded before any of it is handed on."""

PART_SIZES = (7, 8, 4, 13)
"""Columns of each part of a row; see :class:`Chunk`."""

_NO_UNIT: Row = (None,) * 4


class Chunk:
    """Rows in four parts, which together stand in the order of ``VERDICT_COLUMNS``.

    Many rows have a part in common. It is there once, so whoever encodes it does so once.

    Attributes:
        items: What was asked for: model, persona, task, dimension and item.
        responses: What came of it in one run.
        units: Sentences.
        verdicts: What a judge said, and with whose replies the response and this are. Most judges say the same few words.
        rows: The rows: for each of their parts its place in these lists.
    """

    def __init__(self) -> None:
        self.items: list[Row] = []
        self.responses: list[Row] = []
        self.units: list[Row] = []
        self.verdicts: list[Row] = []
        self.rows: list[tuple[int, int, int, int]] = []
        self._places_of_items: dict[Row, int] = {}
        self._places_of_verdicts: dict[ReplyOrigin | None, dict[int, int]] = {}
        self._characters = 0
        self._longest_reply = 0

    @property
    def parts(self) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
        """The parts, in the order of their columns."""
        return self.items, self.responses, self.units, self.verdicts

    @property
    def characters(self) -> int:
        """About how long the texts in its rows are, at most."""
        return self._characters + len(self.rows) * self._longest_reply

    def add(self, response: JudgedResponse) -> None:
        """Adds a response's rows; at least one for each dimension. Who adds it keeps it for as long as he adds others."""
        before = len(self.rows)
        first = said = len(self.responses)
        self.responses.append(_of_response(response, response.thoughts))
        if response.thoughts:  # once is enough
            said += 1
            self.responses.append(_of_response(response, None))
        asked = {dimension: self._item(response, dimension) for dimension in response.levels}
        # By identity: equal verdicts are mostly one object, and its hash would cost ten times as much.
        places, add = self._places_of_verdicts.setdefault(response.reused, {}), self.rows.append
        for sentence, unit in enumerate(response.units, len(self.units)):
            for verdict in unit.verdicts:
                if (place := places.get(id(verdict))) is None:
                    place = places[id(verdict)] = self._verdict(verdict, "sentence", response)
                add((asked[verdict.dimension], said, sentence, place))
            if not unit.verdicts:
                self._add_unjudged(asked.values(), said, sentence, response)
        self.units += [(unit.index, unit.start, unit.end, unit.text) for unit in response.units]
        if not response.units:
            self._add_unjudged(asked.values(), said, self._no_unit(), response)
        if response.question is not None:
            self._add_grades(said, response)
        if self.rows[before:]:
            item, _, sentence, place = self.rows[before]
            self.rows[before] = item, first, sentence, place
        rows = len(self.rows) - before
        times = max(1, rows // max(1, len(response.units)))  # that each sentence is there
        self._characters += times * len(response.text or "")
        self._characters += rows * (len(response.item_text) + len(response.error or ""))
        self._characters += len(response.thoughts or "")

    def _add_unjudged(self, asked: Iterable[int], said: int, sentence: int, response: JudgedResponse) -> None:
        nothing = self._verdict(None, "sentence", response)
        self.rows += [(item, said, sentence, nothing) for item in asked]

    def _add_grades(self, said: int, response: JudgedResponse) -> None:
        item, no_unit = self._item(response, None), self._no_unit()
        self.rows += [
            (item, said, no_unit, self._verdict(grade, "response", response))
            for grade in response.grades or (None,)
        ]

    def _item(self, response: JudgedResponse, dimension: str | None) -> int:
        item = _of_item(response, dimension)
        place = self._places_of_items.setdefault(item, len(self.items))
        if place == len(self.items):
            self.items.append(item)
        return place

    def _no_unit(self) -> int:
        self.units.append(_NO_UNIT)
        return len(self.units) - 1

    def _verdict(
        self, verdict: UnitVerdict | ResponseGrade | None, judged: str, response: JudgedResponse
    ) -> int:
        if verdict is not None:
            said = (verdict.raw, verdict.thoughts, verdict.error)
            self._longest_reply = max(self._longest_reply, sum(map(len, filter(None, said))))
        self.verdicts.append(_of_verdict(verdict, judged, response))
        return len(self.verdicts) - 1


def chunks(
    page: Iterable[JudgedResponse], rows: int = CHUNK_ROWS, characters: int = CHUNK_CHARACTERS
) -> Iterator[Chunk]:
    """All verdict rows of these responses in their order, about so many at a time; no chunk is empty."""
    chunk = Chunk()
    for response in page:
        chunk.add(response)
        if len(chunk.rows) >= rows or chunk.characters > characters:
            yield chunk
            chunk = Chunk()
    if chunk.rows:
        yield chunk


async def written(
    pages: AsyncIterator[Sequence[JudgedResponse]],
    write: Callable[[Sequence[JudgedResponse]], Iterator[bytes]],
) -> AsyncIterator[bytes]:
    """What ``write`` makes of each page, on threads: neither making rows nor encoding them holds up the event loop."""
    async for page in pages:
        parts = write(page)
        while some := await asyncio.to_thread(_some, parts):
            for part in some:
                yield part


def _some(parts: Iterator[bytes]) -> list[bytes]:
    """The next parts, which together are about as long as is good for a step on another thread."""
    taken: list[bytes] = []
    size = 0
    for part in parts:
        taken.append(part)
        size += len(part)
        if size > GROUP_CHARACTERS:
            break
    return taken


def _of_item(response: JudgedResponse, dimension: str | None) -> Row:
    return (
        response.model,
        response.persona,
        response.task,
        dimension,
        None if dimension is None else response.levels[dimension],
        response.item,
        response.item_text,
    )


def _of_response(response: JudgedResponse, thoughts: str | None) -> Row:
    return (
        response.run,
        response.instruction,
        response.iteration,
        response.id,
        response.status,
        response.error,
        response.finish_reason,
        thoughts,
    )


def _of_verdict(verdict: UnitVerdict | ResponseGrade | None, judged: str, response: JudgedResponse) -> Row:
    of_response = _word(response.reused)
    if verdict is None:
        return None, None, None, None, None, judged, None, of_response, None, None, None, None, None
    said = (verdict.judge, str(verdict.status), verdict.score)
    last = (of_response, _word(verdict.reused), _word(verdict.suspicion), *_end_of(verdict))
    if isinstance(verdict, UnitVerdict):
        return *said, verdict.in_character, verdict.raw, judged, verdict.group_size, *last
    return *said, None, verdict.raw, judged, None, *last


def _end_of(verdict: UnitVerdict | ResponseGrade) -> tuple[Value, Value, Value]:
    return verdict.finish_reason, verdict.thoughts, verdict.error


def _word(origin: ReplyOrigin | Suspicion | None) -> str | None:
    return None if origin is None else str(origin)


def encoded(chunk: Chunk, encoders: Sequence[Callable[[Sequence[Row]], Sequence[bytes]]]) -> bytes:
    """A chunk's rows as bytes.

    Args:
        chunk: The rows.
        encoders: For each of the four parts what makes bytes of it, row by row, with all that stands between columns.
    """
    items, responses, units, verdicts = (
        encode(part) for encode, part in zip(encoders, chunk.parts, strict=True)
    )
    return b"".join(
        [part for i, r, u, v in chunk.rows for part in (items[i], responses[r], units[u], verdicts[v])]
    )


def cell_rows(results: Mapping[str, Any]) -> list[Row]:
    """The results document's cells, in the order of ``CELL_COLUMNS``."""
    return [_cell_row(cell) for cell in results["cells"]]


def _cell_row(cell: Mapping[str, Any]) -> Row:
    metrics = cell["metrics"]
    generation = cell.get("generation", {})
    # Results from before these were counted have neither.
    coverage, corrected = cell.get("coverage") or {}, cell.get("corrected") or {}
    return (
        *(cell[name] for name in ("model", "persona", "task", "dimension", "level", "simulated")),
        cell["scale"]["minimum"],
        cell["scale"]["maximum"],
        cell["runs"],
        cell["runs_used"],
        *(metrics.get(metric.name, {}).get(key) for metric in METRICS for key in ("value", "n", "reason")),
        *(
            metrics.get(metric.name, {}).get(key)
            for metric in METRICS
            for part in metric.parts
            for key in (part, f"{part}_n", f"{part}_reason")
        ),
        *(cell["units"].get(name) for name in UNIT_STATUSES),
        *(cell["responses"][name] for name in RESPONSE_COUNTS),
        *(generation.get(name) for name in GENERATION_COUNTS),
        *(coverage.get(name) for name in ("share", "counted", "planned")),
        corrected.get("acc_atom_composite", {}).get("value"),
        *(corrected.get("acc_atom_bounds") or (None, None)),
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
            *(task["grades"].get(name) for name in GRADE_STATUSES),
            *(task["responses"].get(name) for name in RESPONSE_STATUSES),
        )
    score = one["persona_score"]
    yield (
        *(one["model"], one["persona"], "persona", None, simulated),
        *(score.get(name) for name in ("value", "n", "reason")),
        sum(task["questions"] for task in tasks.values()),
        *(sum(task["grades"].get(name, 0) for task in tasks.values()) for name in GRADE_STATUSES),
        *(one["responses"].get(name) for name in RESPONSE_STATUSES),
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
