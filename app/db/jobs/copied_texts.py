"""Texts of a job that another job judges again: what is planned of them is read, and their words are copied by the database itself."""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs.new_verdicts import NewGrade, NewVerdicts

ROWS_AT_ONCE = 5_000
"""Rows that one message reads or copies: they are numbers alone, but where texts are split anew."""
TEXTS_AT_ONCE = 500


class TextRow(NamedTuple):
    """What is planned of a response."""

    cell: int
    run: int
    item: int
    instruction: int | None
    status: str
    sentences: int
    cell_id: int


class Words(NamedTuple):
    """A response's text, to be read by other rules."""

    cell_id: int
    run: int
    item: int
    status: str
    text: str
    finish_reason: str | None
    finish_word: str | None


class TextsGoneError(Exception):
    """Texts that were to be copied are not there any more."""


@dataclass(frozen=True, slots=True)
class CopiedText:
    """A row of ``responses`` whose words are copied from another one, its cell named by ordinal.

    Attributes:
        cell: Ordinal of its cell.
        run: Its run, which is that of the other.
        item: Index of its item in its cell.
        instruction: Number of its persona instruction.
        status: Its status.
        sentences: How many it has.
        verdicts_due: How many verdicts it calls for.
        key: Cell id, run and item of the other.
        spans: Where its sentences are; ``None`` where the other has them.
        notes: What is odd about it, as JSON text, if it has ``spans``.
        upload: The upload that has its words, its record's ordinal being the first number of ``key``; ``None`` where a job has.
        whole: Whether all of it counts as one sentence, whatever the upload has.
        verdicts: What imported judges said of it, and ``grades`` of an answer to PersonaGym's question.
        doubtful: The sentences that address the judge.
    """

    cell: int
    run: int
    item: int
    instruction: int | None
    status: str
    sentences: int
    verdicts_due: int
    key: tuple[int, int, int]
    spans: tuple[str, str] | None = None
    notes: str | None = None
    upload: str | None = None
    whole: bool = False
    verdicts: Sequence[NewVerdicts] = ()
    doubtful: Collection[int] = ()
    grades: Sequence[NewGrade] = ()


async def read_rows(
    connection: AsyncConnection, tenant: str, job_id: str, cells: int
) -> AsyncIterator[Sequence[TextRow]]:
    """The responses of a job's first cells, in their order, some at a time; what has failed, or was never given, has the status ``failed``."""
    found = await connection.stream(
        text(
            "SELECT c.ordinal, r.run, r.item, r.instruction,"
            "  CASE WHEN r.text = '' AND cardinality(r.unit_starts) > 0 THEN 'failed' ELSE r.status END,"
            "  cardinality(r.unit_starts), r.cell_id"
            " FROM cells c JOIN responses r ON r.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant AND c.ordinal < :cells"
            " ORDER BY c.ordinal, r.run, r.item"
        ),
        {"job": job_id, "tenant": tenant, "cells": cells},
    )
    async for some in found.partitions(ROWS_AT_ONCE):
        yield [TextRow(*row) for row in some]


async def read_words(
    connection: AsyncConnection, tenant: str, keys: Sequence[tuple[int, int, int]]
) -> AsyncIterator[Sequence[Words]]:
    """The words of responses, some at a time."""
    for start in range(0, len(keys), TEXTS_AT_ONCE):
        columns = zip(*keys[start : start + TEXTS_AT_ONCE], strict=True)
        found = await connection.execute(
            text(
                "SELECT r.cell_id, r.run, r.item, r.status, r.text, r.finish_reason, r.notes ->> 'unknown_finish_word'"
                f" FROM unnest({_GIVEN_KEYS}) AS given (of_cell, of_run, of_item)"
                " JOIN responses r ON r.cell_id = of_cell AND r.run = of_run AND r.item = of_item"
                " WHERE r.tenant = :tenant"
            ),
            {"tenant": tenant} | dict(zip(_KEYS, map(list, columns), strict=True)),
        )
        yield [Words(*row) for row in found]


async def copy(
    connection: AsyncConnection, tenant: str, ids: Mapping[int, int], copied: Sequence[CopiedText]
) -> None:
    """Copies texts into the cells of a job.

    Args:
        connection: Where.
        tenant: Whose.
        ids: Ids of the cells by ordinal.
        copied: What is copied.

    Raises:
        TextsGoneError: If not all of it is there any more.
    """
    upload = copied[0].upload if copied else None  # a job's texts are of one source
    statement, of_upload = _COPY, {}
    if upload is not None:
        statement, of_upload = _COPY_WHOLE if copied[0].whole else _COPY_RECORDS, {"upload": upload}
    for rows in _some_at_a_time(ids, copied):
        columns = map(list, zip(*rows, strict=True))
        given = {"tenant": tenant} | of_upload | dict(zip(_COLUMNS, columns, strict=True))
        done = await connection.execute(statement, given)
        if done.rowcount != len(rows):
            raise TextsGoneError


_KEYS = {"of_cell": "bigint", "of_run": "int", "of_item": "int"}
_COLUMNS = (
    {"cell_id": "bigint", "run": "int", "item": "int", "instruction": "int", "status": "text"}
    | {"verdicts_due": "int"}
    | _KEYS
    | {"starts": "text", "ends": "text", "notes": "text"}
)


def _given(columns: dict[str, str]) -> str:
    return ", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in columns.items())


_GIVEN_KEYS = _given(_KEYS)
_INSERT = (
    "INSERT INTO responses (tenant, cell_id, run, item, instruction, status, verdicts_due, text, thoughts, error,"
    " notes, conversation, unit_starts, unit_ends)"
    " SELECT :tenant, given.cell_id, given.run, given.item, given.instruction, given.status, given.verdicts_due,"
    "  r.text, r.thoughts, r.error, CASE WHEN given.starts IS NULL THEN {notes} ELSE {split_anew} END, r.conversation,"
    "  coalesce(CAST(given.starts AS int[]), {starts}),"
    "  coalesce(CAST(given.ends AS int[]), {ends})"
    f" FROM unnest({_given(_COLUMNS)}) AS given ({', '.join(_COLUMNS)})"
    " JOIN {source} WHERE r.tenant = :tenant"
)
_ANEW = {  # a judge's answer to whether it is a refusal does not depend on its sentences
    "split_anew": "nullif(coalesce(CAST(given.notes AS jsonb), '{}') || CASE WHEN r.notes ? 'refusal_check'"
    " THEN jsonb_build_object('refusal_check', r.notes -> 'refusal_check') ELSE '{}' END, '{}')"
}
_ALL = _ANEW | {"starts": "r.unit_starts", "ends": "r.unit_ends", "notes": "r.notes"}
_ONE = (
    _ANEW
    | {"starts": "r.unit_starts[1 : 1]", "ends": "r.unit_ends[cardinality(r.unit_ends):]"}
    | {
        "notes": "nullif(r.notes - ARRAY['cut_off', 'repeated_sentences', 'role_breaks'] || CASE WHEN r.notes ? 'role_breaks'"
        " THEN jsonb_build_object('role_breaks', jsonb_build_array(jsonb_build_array(r.unit_starts[1],"
        " r.unit_ends[cardinality(r.unit_ends)]))) ELSE '{}' END, '{}')"
    }
)
_RECORDS = "upload_records r ON r.upload_id = :upload AND r.ordinal = of_cell"
_COPY = text(
    _INSERT.format(
        source="responses r ON r.cell_id = of_cell AND r.run = of_run AND r.item = of_item", **_ALL
    )
)
_COPY_RECORDS = text(_INSERT.format(source=_RECORDS, **_ALL))
_COPY_WHOLE = text(_INSERT.format(source=_RECORDS, **_ONE))
"""No finish reason and no tokens: these texts were not asked for by the job that has the copies."""


def _some_at_a_time(
    ids: Mapping[int, int], copied: Sequence[CopiedText]
) -> Iterator[list[tuple[object, ...]]]:
    for start in range(0, len(copied), ROWS_AT_ONCE):
        yield [
            (
                *(ids[c.cell], c.run, c.item, c.instruction, c.status, c.verdicts_due, *c.key),
                *(c.spans or (None, None)),
                c.notes,
            )
            for c in copied[start : start + ROWS_AT_ONCE]
        ]
