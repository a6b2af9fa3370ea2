"""What is read back: score counts for the metrics, pages of responses, rows for exports."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

Position = tuple[int, int, int]
"""(cell ordinal, run, item): what names a response in its job."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One judge's verdicts on one response for one trait, added up.

    Attributes:
        cell: The cell's ordinal.
        trait: Index among the persona's traits.
        judge: Index among the job's judges.
        run: The response's run.
        instruction: Index of the persona instruction, if known.
        scores: The scored units' scores, in no particular order.
        not_applicable: Units of that status, and likewise the following.
        item: Which of its cell's items the response answers.
        suspicious: Units whose verdict is doubtful, whatever its status.
    """

    cell: int
    trait: int
    judge: int
    run: int
    instruction: int | None
    scores: Sequence[int]
    not_applicable: int
    refused: int
    unparsed: int
    failed: int
    item: int = 0
    suspicious: int = 0


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """Both verdicts of one judge on a sentence for one trait: status and score in a group, and alone.

    ``suspicious`` is whether the one that counts, in the group, is doubtful; the other has no mark of its own.
    """

    cell: int
    run: int
    item: int
    trait: int
    judge: int
    grouped: str
    grouped_score: int | None
    alone: str
    alone_score: int | None
    suspicious: bool


@dataclass(frozen=True, slots=True)
class ResponseTally:
    """Responses of one cell by what became of them.

    Attributes:
        cell: The cell's ordinal.
        answered: Texts that are not refusals, empty ones included.
        refused: Refusals; their units were not sent to a judge.
        failed: Calls that never succeeded.
        empty: Answers without a single sentence.
        refused_units: Sentences of the refusals.
        runs: Different runs that have a response.
    """

    cell: int
    answered: int
    refused: int
    failed: int
    empty: int
    refused_units: int
    runs: int


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """A response as it is stored, its cell named by ordinal."""

    cell: int
    run: int
    item: int
    instruction: int | None
    status: str
    text: str | None
    unit_starts: Sequence[int]
    unit_ends: Sequence[int]
    finish_reason: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    over: bool
    """Whether it would make its page too large: it comes without text and units then."""


Said = tuple[int, int, str, int | None, str | None, int, str | None]
"""What is stored of a verdict on a known sentence: trait, judge, status, score, the judge's reply, group size, suspicion."""


@dataclass(frozen=True, slots=True)
class GradeRecord:
    """A grade of a known response, as it is stored."""

    judge: int
    status: str
    score: int | None
    raw: str | None
    error: str | None
    suspicion: str | None


@dataclass(frozen=True, slots=True)
class Judgements:
    """What judges said about one response.

    Attributes:
        units: For each verdict its unit; ordered by unit, dimension and judge.
        said: For each verdict what else is stored of it.
        grades: Ordered by judge.
    """

    units: Sequence[int] = ()
    said: Sequence[Said] = ()
    grades: Sequence[GradeRecord] = ()


async def grades(
    connection: AsyncConnection, tenant: str, job_id: str, cells: Sequence[int], judges: int
) -> AsyncIterator[tuple[int, int, int, int, str, int | None, str | None]]:
    """Every grade as (cell ordinal, run, item, judge, status, score, suspicion).

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job's.
        cells: The cells whose responses are graded. A failed response there counts as failed for every judge.
        judges: How many judges there are.
    """
    rows = await connection.stream(
        text(
            "SELECT c.ordinal, g.run, g.item, g.judge::int, g.status, g.score, g.suspicion"
            " FROM cells c JOIN grades g ON g.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND g.tenant = :tenant"
            " UNION ALL SELECT c.ordinal, r.run, r.item, judge, 'failed', NULL, NULL"
            " FROM cells c JOIN responses r ON r.cell_id = c.id, generate_series(0, :judges - 1) judge"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant"
            " AND r.status = 'failed' AND c.ordinal = ANY(:cells)"
        ),
        {"job": job_id, "tenant": tenant, "cells": list(cells), "judges": judges},
    )
    async for part in rows.partitions(FETCHED):
        for cell, run, item, judge, status, score, suspicion in part:
            yield cell, run, item, judge, status, score, suspicion


async def scores(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    cells: Sequence[int] | None = None,
    *,
    unsuspicious: bool = False,
) -> AsyncIterator[ScoreRow]:
    """Every response's verdicts, added up by trait and judge, in no order; of some cells, named by ordinal, where asked for.

    ``unsuspicious`` leaves out the doubtful verdicts.
    """
    only = "" if cells is None else " AND c.ordinal = ANY(:cells)"
    only += " AND v.suspicion IS NULL" if unsuspicious else ""
    rows = await connection.stream(
        text(
            "SELECT c.ordinal, v.trait, v.judge, v.run, min(r.instruction),"
            " coalesce(array_agg(v.score) FILTER (WHERE v.status = 'scored'), '{}'),"
            " count(*) FILTER (WHERE v.status = 'not_applicable'),"
            " count(*) FILTER (WHERE v.status = 'refused'),"
            " count(*) FILTER (WHERE v.status = 'unparsed'),"
            " count(*) FILTER (WHERE v.status = 'failed'), v.item, count(v.suspicion)"
            " FROM cells c JOIN verdicts v ON v.cell_id = c.id"
            " JOIN responses r ON r.cell_id = v.cell_id AND r.run = v.run AND r.item = v.item"
            f" WHERE c.job_id = :job AND c.tenant = :tenant AND v.tenant = :tenant AND r.tenant = :tenant{only}"
            " GROUP BY c.ordinal, v.trait, v.judge, v.run, v.item"
        ),
        {"job": job_id, "tenant": tenant} | ({} if cells is None else {"cells": list(cells)}),
    )
    async for part in rows.partitions(FETCHED):
        for row in part:
            yield ScoreRow(*row)


async def suspicious_verdicts(
    connection: AsyncConnection, tenant: str, job_id: str
) -> list[tuple[int, int, str, int]]:
    """How many verdicts are doubtful, as (cell ordinal, judge, suspicion, how many)."""
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, v.judge, v.suspicion, count(*) FROM cells c JOIN verdicts v ON v.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND v.tenant = :tenant AND v.suspicion IS NOT NULL"
            " GROUP BY c.ordinal, v.judge, v.suspicion"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


async def checked_sentences(connection: AsyncConnection, tenant: str, job_id: str) -> list[CheckedRow]:
    """Every verdict on a sentence that was judged in a group and alone.

    A sentence that had to be asked about alone in the first place has no grouped verdict and is not among them.
    """
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, s.run, s.item, s.trait, s.judge, v.status, v.score, s.status, s.score,"
            " v.suspicion IS NOT NULL"
            " FROM cells c JOIN second_verdicts s ON s.cell_id = c.id"
            " JOIN verdicts v USING (cell_id, run, item, unit, trait, judge)"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND s.tenant = :tenant AND v.tenant = :tenant"
            " AND s.alone AND v.group_size > 1"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [CheckedRow(*row) for row in rows]


async def asked_alone(connection: AsyncConnection, tenant: str, job_id: str) -> dict[str, int]:
    """How many sentences' part of a reply about several could not be used, by what became of it."""
    rows = await connection.execute(
        text(
            "SELECT s.status, count(*) FROM cells c JOIN second_verdicts s ON s.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND s.tenant = :tenant AND NOT s.alone GROUP BY s.status"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return {row[0]: row[1] for row in rows}


async def response_tallies(connection: AsyncConnection, tenant: str, job_id: str) -> dict[int, ResponseTally]:
    """Every cell's responses by what became of them; cells without any are missing."""
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, count(*) FILTER (WHERE status = 'answered'),"
            " count(*) FILTER (WHERE status = 'refused'), count(*) FILTER (WHERE status = 'failed'),"
            " count(*) FILTER (WHERE status = 'answered' AND cardinality(unit_starts) = 0),"
            " coalesce(sum(cardinality(unit_starts)) FILTER (WHERE status = 'refused'), 0),"
            " count(DISTINCT r.run)"
            " FROM cells c JOIN responses r ON r.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant GROUP BY c.ordinal"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return {row[0]: ResponseTally(*row) for row in rows}


async def snapshots(connection: AsyncConnection, tenant: str, job_id: str) -> list[Mapping[str, Any]]:
    """The model snapshots and system fingerprints that providers reported, with the number of calls of each."""
    rows = await connection.execute(
        text(
            "SELECT connection, model, model_snapshot AS snapshot, system_fingerprint, count(*) AS calls"
            " FROM calls WHERE shard_id IN (SELECT id FROM shards WHERE job_id = :job AND tenant = :tenant)"
            " AND outcome = 'ok' GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [dict(row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name for it


FETCHED = 1_000
"""Rows that are taken from a stream at a time: each taking costs as much as twenty rows do."""

_RESPONSE_COLUMNS = (
    "ordinal, run, item, instruction, status, CASE WHEN NOT over THEN text END,"
    " CASE WHEN NOT over THEN unit_starts END, CASE WHEN NOT over THEN unit_ends END,"
    " finish_reason, error, input_tokens, output_tokens, over"
)
_OVER = (
    "row_number() OVER so_far > 1 AND sum(coalesce(octet_length(text), 0)) OVER so_far > :most_bytes AS over"
)
_SO_FAR = "WINDOW so_far AS (ORDER BY ordinal, run, item ROWS UNBOUNDED PRECEDING)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of a job's responses to read.

    Attributes:
        cells: Only these cells, by ordinal.
        levels: For each (cell, trait) the lowest and the highest score in the persona's level; empty where neither of the
            following is asked for.
        out_of_character: Only responses with a score outside it.
        judges_disagree: Only responses of which one judge finds a sentence in the level and another does not, or whose
            grades lie ``apart`` or more points apart.
        apart: See there.
        suspicious: Only responses with a doubtful verdict or grade.
    """

    cells: Sequence[int]
    levels: Mapping[tuple[int, int], tuple[int, int]]
    out_of_character: bool
    judges_disagree: bool
    apart: int
    suspicious: bool = False


_LEVELS = (
    "WITH levels AS (SELECT cell, array_agg(lowest ORDER BY trait) AS lowest, array_agg(highest ORDER BY trait) AS highest"
    " FROM unnest(CAST(:of_cells AS int[]), CAST(:of_traits AS int[]), CAST(:lowest AS int[]), CAST(:highest AS int[]))"
    " AS given (cell, trait, lowest, highest) GROUP BY cell) "
)
"""The bounds of a persona's levels, a row for each cell, so that they are not searched for each response."""

_SCORES = (
    " FROM verdicts v WHERE v.cell_id = r.cell_id AND v.run = r.run AND v.item = r.item AND v.tenant = :tenant"
    " AND v.score IS NOT NULL"
)
_IN_CHARACTER = "v.score BETWEEN levels.lowest[v.trait + 1] AND levels.highest[v.trait + 1]"
_OUT_OF_CHARACTER = f"EXISTS (SELECT{_SCORES} AND NOT ({_IN_CHARACTER}))"
_JUDGES_DISAGREE = (
    f"(EXISTS (SELECT{_SCORES} GROUP BY v.unit, v.trait"
    f"  HAVING bool_or({_IN_CHARACTER}) AND bool_or(NOT ({_IN_CHARACTER})))"
    " OR EXISTS (SELECT FROM grades g WHERE g.cell_id = r.cell_id AND g.run = r.run AND g.item = r.item"
    "  AND g.tenant = :tenant HAVING max(g.score) - min(g.score) >= :apart))"
)


_SUSPICIOUS = (
    "(EXISTS (SELECT FROM verdicts v WHERE v.cell_id = r.cell_id AND v.run = r.run AND v.item = r.item"
    "  AND v.tenant = :tenant AND v.suspicion IS NOT NULL)"
    " OR EXISTS (SELECT FROM grades g WHERE g.cell_id = r.cell_id AND g.run = r.run AND g.item = r.item"
    "  AND g.tenant = :tenant AND g.suspicion IS NOT NULL))"
)


async def response_page(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    wanted: Wanted,
    *,
    after: Position | None,
    until: Position | None,
    limit: int,
    most_bytes: int,
) -> list[ResponseRecord]:
    """Responses in the order cell, run, item.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job's.
        wanted: Which of them.
        after: The last response of the page before.
        until: The last response that is looked at; ``None`` for all.
        limit: At most so many.
        most_bytes: Of texts. The responses that go beyond it are ``over``, except the first one.
    """
    where, values = _between(tenant, job_id, wanted.cells, after, until)
    if wanted.out_of_character:
        where.append(_OUT_OF_CHARACTER)
    if wanted.judges_disagree:
        where.append(_JUDGES_DISAGREE)
        values["apart"] = wanted.apart
    if wanted.suspicious:
        where.append(_SUSPICIOUS)
    given, levels = "", ""
    if wanted.out_of_character or wanted.judges_disagree:
        given, levels = _LEVELS, " LEFT JOIN levels ON levels.cell = c.ordinal"
        values |= {
            "of_cells": [cell for cell, _ in wanted.levels],
            "of_traits": [trait for _, trait in wanted.levels],
            "lowest": [lowest for lowest, _ in wanted.levels.values()],
            "highest": [highest for _, highest in wanted.levels.values()],
        }
    rows = await connection.execute(
        text(
            f"{given}SELECT {_RESPONSE_COLUMNS} FROM (SELECT *, {_OVER} FROM ("
            f" SELECT r.*, c.ordinal FROM responses r JOIN cells c ON c.id = r.cell_id{levels}"
            f" WHERE {' AND '.join(where)} ORDER BY c.ordinal, r.run, r.item LIMIT :limit"
            f") page {_SO_FAR}) measured ORDER BY ordinal, run, item"
        ),
        values | {"limit": limit, "most_bytes": most_bytes},
    )
    return [ResponseRecord(*row) for row in rows]


async def position_of(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    cells: Sequence[int],
    *,
    after: Position | None,
    number: int,
) -> Position | None:
    """Which response of these cells is the ``number``-th, from 1, after another; ``None`` where there are fewer."""
    where, values = _between(tenant, job_id, cells, after, None)
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, r.run, r.item FROM responses r JOIN cells c ON c.id = r.cell_id"
            f" WHERE {' AND '.join(where)} ORDER BY c.ordinal, r.run, r.item OFFSET :before LIMIT 1"
        ),
        values | {"before": number - 1},
    )
    row = rows.first()
    return None if row is None else (row.ordinal, row.run, row.item)


def _between(
    tenant: str, job_id: str, cells: Sequence[int], after: Position | None, until: Position | None
) -> tuple[list[str], dict[str, Any]]:
    """The conditions that keep a job's responses of these cells between two of them, and their values."""
    where = ["c.job_id = :job", "c.tenant = :tenant", "r.tenant = :tenant", "c.ordinal = ANY(:cells)"]
    values: dict[str, Any] = {"job": job_id, "tenant": tenant, "cells": list(cells)}
    for name, position, than in (("after", after, ">"), ("until", until, "<=")):
        if position is not None:
            # The first of the two is implied by the second, but only the first spares the cells outside.
            where.append(f"c.ordinal {than[0]}= :{name}_cell")
            where.append(f"(c.ordinal, r.run, r.item) {than} (:{name}_cell, :{name}_run, :{name}_item)")
            values |= dict(zip((f"{name}_cell", f"{name}_run", f"{name}_item"), position, strict=True))
    return where, values


_OF_WANTED = (
    " FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[])) AS wanted (cell, run, item)"
    " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = wanted.cell,"
)
"""The responses that are wanted, for what follows to be looked up for each of them."""


def _array(numbers: Iterable[int]) -> str:
    """An array as Postgres spells it, of integers that are cast there: the driver takes ten times as long for a long list."""
    return f"{{{','.join(map(str, numbers))}}}"


async def judgements_of(
    connection: AsyncConnection, tenant: str, job_id: str, responses: Sequence[Position]
) -> dict[Position, Judgements]:
    """Everything that judges said about these responses, each named by (cell ordinal, run, item).

    A response's verdicts come as one row of arrays: a row for each verdict would cost several times as much to read.
    """
    values = {
        "job": job_id,
        "tenant": tenant,
        "cells": _array(cell for cell, _, _ in responses),
        "runs": _array(run for _, run, _ in responses),
        "items": _array(item for _, _, item in responses),
    }
    verdicts = await connection.execute(
        text(
            "SELECT wanted.cell, wanted.run, wanted.item,"
            " found.units, found.traits, found.judges, found.statuses, found.scores, found.raws,"
            " found.sizes, found.suspicions"
            f"{_OF_WANTED} LATERAL (SELECT array_agg(unit) AS units, array_agg(trait) AS traits,"
            "  array_agg(judge) AS judges, array_agg(status) AS statuses, array_agg(score) AS scores,"
            "  array_agg(raw) AS raws, array_agg(group_size) AS sizes, array_agg(suspicion) AS suspicions"
            "  FROM (SELECT * FROM verdicts v WHERE v.cell_id = c.id AND v.run = wanted.run"
            "   AND v.item = wanted.item AND v.tenant = :tenant ORDER BY unit, trait, judge) ordered) found"
            " WHERE found.units IS NOT NULL"
        ),
        values,
    )
    found = {
        (cell, run, item): Judgements(units, list(zip(*said, strict=True)))
        for cell, run, item, units, *said in verdicts
    }
    grades: dict[Position, list[GradeRecord]] = {}
    rows = await connection.execute(
        text(
            "SELECT wanted.cell, wanted.run, wanted.item, g.judge, g.status, g.score, g.raw, g.error, g.suspicion"
            f"{_OF_WANTED} grades g WHERE g.cell_id = c.id AND g.run = wanted.run AND g.item = wanted.item"
            " AND g.tenant = :tenant ORDER BY g.judge"
        ),
        values,
    )
    for cell, run, item, *grade in rows:
        grades.setdefault((cell, run, item), []).append(GradeRecord(*grade))
    for position, graded in grades.items():
        found[position] = replace(found.get(position, Judgements()), grades=graded)
    return found
