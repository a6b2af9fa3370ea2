"""Pages of responses, and what judges said of them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.places import place_arrays
from app.domain.judging.judged_response import ResponseStatus
from app.domain.judging.text_notes import TextNote
from app.domain.providers.model import FinishReason

Position = tuple[int, int, int]
"""(cell ordinal, run, item): what names a response in its job."""


class ResponseRecord(NamedTuple):
    """A response as it is stored, its cell named by ordinal."""

    cell: int
    run: int
    item: int
    instruction: int | None
    status: ResponseStatus
    text: str | None
    unit_starts: Sequence[int]
    unit_ends: Sequence[int]
    finish_reason: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    thoughts: str | None
    notes: Mapping[str, Any] | None
    conversation: str | None
    over: bool
    """Whether it would make its page too large: it comes without text and units then."""


Said = tuple[
    int,
    int,
    str,
    int | None,
    str | None,
    int,
    str | None,
    str | None,
    str | None,
    str | None,
    str | None,
    str | None,
]
"""Stored fields of a verdict on a known sentence: trait, judge, status, score, the judge's reply, group size, suspicion, finish reason,
thoughts, why the reply was unread, the reply to the follow-up, the error of the follow-up."""


@dataclass(frozen=True, slots=True)
class GradeRecord:
    """A grade of a known response, as it is stored."""

    judge: int
    status: str
    score: int | None
    raw: str | None
    error: str | None
    suspicion: str | None
    finish_reason: str | None
    thoughts: str | None
    unread: str | None
    repair_raw: str | None


@dataclass(slots=True)
class Judgements:
    """What judges said about one response. Not frozen, as a big export makes one for each; nobody changes one.

    Attributes:
        units: For each verdict its unit; ordered by unit, dimension and judge.
        said: For each verdict what else is stored of it.
        grades: Ordered by judge.
        ends_page: Whether the replies up to this response reach the limit of bytes.
    """

    units: Sequence[int] = ()
    said: Sequence[Said] = ()
    grades: Sequence[GradeRecord] = ()
    ends_page: bool = False


_RESPONSE_COLUMNS = (
    "ordinal, run, item, instruction, status, CASE WHEN NOT over THEN text END,"
    " CASE WHEN NOT over THEN unit_starts END, CASE WHEN NOT over THEN unit_ends END,"
    " finish_reason, error, input_tokens, output_tokens, reasoning_tokens, CASE WHEN NOT over THEN thoughts END,"
    " notes, conversation, over"
)
_GRADE_BYTES = (
    "(SELECT coalesce(sum(coalesce(octet_length(g.raw), 0) + coalesce(octet_length(g.thoughts), 0)"
    " + coalesce(octet_length(g.repair_raw), 0)), 0) FROM grades g"
    " WHERE g.cell_id = page.cell_id AND g.run = page.run AND g.item = page.item AND g.tenant = :tenant)"
)


def _over(*, graded: bool) -> str:
    return (
        "row_number() OVER so_far > 1 AND sum(coalesce(octet_length(text), 0) + coalesce(octet_length(thoughts), 0)"
        f"{f' + {_GRADE_BYTES}' if graded else ''}) OVER so_far > :most_bytes AS over"
    )


_SO_FAR = "WINDOW so_far AS (ORDER BY ordinal, run, item ROWS UNBOUNDED PRECEDING)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of a job's responses to read.

    Attributes:
        cells: Only these cells, by ordinal.
        levels: For each (cell, trait) the lowest and the highest score in the persona's level; empty where nothing of
            the following is asked for.
        out_of_character: Only responses with a score outside it.
        judges_disagree: Only responses of which one judge finds a sentence in the level and another does not, or whose
            grades lie ``apart`` or more points apart.
        apart: See there.
        suspicious: Only responses with a doubtful verdict or grade.
        people_gap: Only responses to which people gave a score, or to a sentence of them, that lies so many or more points from the mean
            of the judges'; ``None`` for all.
        dimensions: For each (cell, trait) its dimension; empty unless there is a ``people_gap``.
        text: Only responses whose text contains this, in small letters or capitals; ``None`` for all.
        flagged: Only responses with a flag, or with one on a sentence.
        noted: Only responses with this note.
    """

    cells: Sequence[int]
    levels: Mapping[tuple[int, int], tuple[int, int]]
    out_of_character: bool
    judges_disagree: bool
    apart: int
    suspicious: bool = False
    people_gap: float | None = None
    dimensions: Mapping[tuple[int, int], str] = field(default_factory=dict)
    text: str | None = None
    flagged: bool = False
    noted: TextNote | None = None


LEVELS = (
    "WITH levels AS (SELECT cell, array_agg(lowest ORDER BY trait) AS lowest, array_agg(highest ORDER BY trait) AS highest"
    " FROM unnest(CAST(:of_cells AS int[]), CAST(:of_traits AS int[]), CAST(:lowest AS int[]), CAST(:highest AS int[]))"
    " AS given (cell, trait, lowest, highest) GROUP BY cell)"
)
"""The bounds of a persona's levels, a row for each cell, so that they are not searched for each response."""

_SCORES = (
    " FROM verdicts v WHERE v.cell_id = r.cell_id AND v.run = r.run AND v.item = r.item AND v.tenant = :tenant"
    " AND v.score IS NOT NULL"
)
_IN_CHARACTER = "v.score BETWEEN r.lowest[v.trait + 1] AND r.highest[v.trait + 1]"
_OUT_OF_CHARACTER = f"EXISTS (SELECT{_SCORES} AND NOT ({_IN_CHARACTER}) OFFSET 0)"
"""The offset keeps it, as others below, from becoming a join, for which all verdicts of a job may be read."""
_JUDGES_DISAGREE = (
    f"(EXISTS (SELECT{_SCORES} GROUP BY v.unit, v.trait"
    f"  HAVING bool_or({_IN_CHARACTER}) AND bool_or(NOT ({_IN_CHARACTER})))"
    " OR EXISTS (SELECT FROM grades g WHERE g.cell_id = r.cell_id AND g.run = r.run AND g.item = r.item"
    "  AND g.tenant = :tenant HAVING max(g.score) - min(g.score) >= :apart))"
)


_SUSPICIOUS = (
    "(EXISTS (SELECT FROM verdicts v WHERE v.cell_id = r.cell_id AND v.run = r.run AND v.item = r.item"
    "  AND v.tenant = :tenant AND v.suspicion IS NOT NULL OFFSET 0)"
    " OR EXISTS (SELECT FROM grades g WHERE g.cell_id = r.cell_id AND g.run = r.run AND g.item = r.item"
    "  AND g.tenant = :tenant AND g.suspicion IS NOT NULL OFFSET 0))"
)


_AGAINST_PEOPLE = (
    ", against_people AS MATERIALIZED (SELECT said.cell, said.run, said.item FROM (SELECT cell, run, item, unit, dimension,"
    "  avg(score) AS score FROM annotations WHERE job_id = :job AND tenant = :tenant AND score IS NOT NULL"
    "  AND other_cell IS NULL GROUP BY cell, run, item, unit, dimension) said"
    " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = said.cell"
    " LEFT JOIN unnest(CAST(:trait_cells AS int[]), CAST(:traits AS int[]), CAST(:dimensions AS text[]))"
    "  AS d (cell, trait, dimension) ON d.cell = said.cell AND d.dimension = said.dimension"
    " WHERE abs(said.score - CASE WHEN said.dimension IS NULL THEN (SELECT avg(g.score) FROM grades g"
    "   WHERE g.cell_id = c.id AND g.run = said.run AND g.item = said.item AND g.tenant = :tenant)"
    "  ELSE (SELECT avg(v.score) FROM verdicts v WHERE v.cell_id = c.id AND v.run = said.run AND v.item = said.item"
    "   AND v.trait = d.trait AND v.unit = coalesce(said.unit, v.unit) AND v.tenant = :tenant) END)"
    "  >= CAST(:gap AS float8))"
)
"""The places of those responses, found once for a page: there are as many as people have annotated, at most."""


_FLAGGED = (
    "EXISTS (SELECT FROM flags f WHERE f.job_id = :job AND f.tenant = :tenant AND f.cell = r.ordinal AND f.run = r.run"
    " AND f.item = r.item OFFSET 0)"
)

HAS_TEXT = "strpos(lower(r.text), lower(:text)) > 0"

_IN_CELLS = "FROM responses r JOIN cells c ON c.id = r.cell_id"
_WITH_LEVELS = " LEFT JOIN levels ON levels.cell = c.ordinal"


def _judged(wanted: Wanted) -> list[str]:
    """What has to be true of the responses ``r`` that are looked at; empty if all are wanted."""
    asked = (
        (wanted.out_of_character, _OUT_OF_CHARACTER),
        (wanted.judges_disagree, _JUDGES_DISAGREE),
        (wanted.suspicious, _SUSPICIOUS),
        (wanted.people_gap is not None, "(r.ordinal, r.run, r.item) IN (SELECT * FROM against_people)"),
        (wanted.text is not None, HAS_TEXT),
        (wanted.flagged, _FLAGGED),
        (wanted.noted is not None, "r.notes ? :noted"),
    )
    return [condition for is_asked, condition in asked if is_asked]


def levels_of(wanted: Wanted) -> dict[str, Any]:
    """The values of :data:`LEVELS`, and how far grades have to lie apart."""
    return {
        "of_cells": [cell for cell, _ in wanted.levels],
        "of_traits": [trait for _, trait in wanted.levels],
        "lowest": [lowest for lowest, _ in wanted.levels.values()],
        "highest": [highest for _, highest in wanted.levels.values()],
    } | ({"apart": wanted.apart} if wanted.judges_disagree else {})


def _chosen(wanted: Wanted) -> tuple[str, str, dict[str, Any]]:
    """What stands before a query of those of the responses looked at that are wanted, what has to be true of them, and both's values."""
    given, values = LEVELS, levels_of(wanted)
    if wanted.text is not None:
        values["text"] = wanted.text
    if wanted.noted is not None:
        values["noted"] = wanted.noted
    if wanted.people_gap is not None:
        given += _AGAINST_PEOPLE
        values |= {
            "trait_cells": [cell for cell, _ in wanted.dimensions],
            "traits": [trait for _, trait in wanted.dimensions],
            "dimensions": list(wanted.dimensions.values()),
            "gap": wanted.people_gap,
        }
    return given, " AND ".join(_judged(wanted)), values


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
    graded: bool,
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
        most_bytes: Limit of texts and grades. The responses beyond it are ``over``, except the first one.
        graded: Whether the responses may have grades.
    """
    where, values = _between(tenant, job_id, wanted.cells, after, until)
    given, chosen = "", f"SELECT r.*, c.ordinal {_IN_CELLS} WHERE {' AND '.join(where)}"
    if _judged(wanted):
        given, condition, more = _chosen(wanted)
        values |= more
        looked_at = f"SELECT r.*, c.ordinal, lowest, highest {_IN_CELLS}{_WITH_LEVELS}"
        looked_at += f" WHERE {' AND '.join(where)} ORDER BY c.ordinal, r.run, r.item OFFSET 0"
        chosen = f"SELECT * FROM ({looked_at}) r WHERE {condition}"
    rows = await connection.execute(
        text(
            f"{given} SELECT {_RESPONSE_COLUMNS} FROM (SELECT *, {_over(graded=graded)} FROM ("
            f"{chosen} ORDER BY ordinal, r.run, r.item LIMIT :limit"
            f") page {_SO_FAR}) measured ORDER BY ordinal, run, item"
        ),
        values | {"limit": limit, "most_bytes": most_bytes},
    )
    return list(map(ResponseRecord._make, rows))


async def responses_at(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    places: Sequence[Position],
    *,
    most_bytes: int,
    graded: bool,
) -> list[ResponseRecord]:
    """The existing responses at these places, in this order; see :func:`response_page` for the other arguments."""
    rows = await connection.execute(
        text(
            f"SELECT {_RESPONSE_COLUMNS} FROM (SELECT *, {_over(graded=graded)} FROM (SELECT r.*, c.ordinal, nth{_AT_PLACES}) page"
            " WINDOW so_far AS (ORDER BY nth ROWS UNBOUNDED PRECEDING)) measured ORDER BY nth"
        ),
        {"job": job_id, "tenant": tenant, "most_bytes": most_bytes, **place_arrays(places)},
    )
    return list(map(ResponseRecord._make, rows))


async def wanted_among(
    connection: AsyncConnection, tenant: str, job_id: str, wanted: Wanted, places: Sequence[Position]
) -> set[Position]:
    """Those of these places whose responses are wanted, by what judges said of them and by their texts."""
    given, condition, values = _chosen(wanted)
    rows = await connection.execute(
        text(
            f"{given} SELECT ordinal, run, item FROM (SELECT r.*, c.ordinal, lowest, highest"
            f" {_AT_PLACES.replace(' WHERE', f'{_WITH_LEVELS} WHERE')} OFFSET 0) r WHERE {condition}"
        ),
        {"job": job_id, "tenant": tenant, **place_arrays(places), **values},
    )
    return {(row.ordinal, row.run, row.item) for row in rows}


async def position_of(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    cells: Sequence[int],
    *,
    after: Position | None,
    number: int,
) -> Position | None:
    """Which response of these cells is the ``number``-th, from 1, after another; ``None`` where none follows it."""
    where, values = _between(tenant, job_id, cells, after, None)
    rows = await connection.execute(
        text(
            f"SELECT c.ordinal, r.run, r.item {_IN_CELLS} WHERE {' AND '.join(where)}"
            " ORDER BY c.ordinal, r.run, r.item OFFSET :before LIMIT 2"
        ),
        values | {"before": number - 1},
    )
    found = rows.all()
    return (found[0].ordinal, found[0].run, found[0].item) if found[1:] else None


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
    " FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[])) WITH ORDINALITY AS wanted (cell, run, item, nth)"
    " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = wanted.cell,"
)
"""The responses that are wanted, for what follows to be looked up for each of them; see :func:`place_arrays`."""


_AT_PLACES = (
    " FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[])) WITH ORDINALITY AS wanted (cell, run, item, nth)"
    " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = wanted.cell"
    " JOIN responses r ON r.cell_id = c.id AND r.run = wanted.run AND r.item = wanted.item WHERE r.tenant = :tenant"
)


_FIRST, _ALONE, _NOTHING, _ENDED = repeat(0), repeat(1), repeat(None), repeat(FinishReason.STOP.value)
"""What most verdicts have in place of an array: the first dimension or judge, a call of their own, no doubt and no thoughts, a reply that came
to its end. Without end, and so used again and again."""


def _said(
    traits: Sequence[int] | None,
    judges: Sequence[int] | None,
    statuses: Sequence[str],
    scores: Sequence[int | None],
    raws: Sequence[str | None],
    sizes: Sequence[int] | None,
    suspicions: Sequence[str | None] | None,
    finish_reasons: Sequence[str | None] | None,
    thoughts: Sequence[str | None] | None,
    unread: Sequence[str | None] | None,
    repairs: Sequence[str | None] | None,
    errors: Sequence[str | None] | None,
) -> list[Said]:
    """A response's verdicts from arrays of which some are missing where all verdicts have what most have."""
    of_whom = traits or _FIRST, judges or _FIRST
    how = sizes or _ALONE, suspicions or _NOTHING, finish_reasons or _ENDED, thoughts or _NOTHING
    repaired = unread or _NOTHING, repairs or _NOTHING, errors or _NOTHING
    return list(zip(*of_whom, statuses, scores, raws, *how, *repaired, strict=False))  # some have no end


async def judgements_of(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    responses: Sequence[Position],
    *,
    graded: bool,
    most_bytes: int = sys.maxsize,
) -> dict[Position, Judgements]:
    """Everything that judges said about these responses, each named by (cell ordinal, run, item).

    Responses may be ``graded`` as a whole only if they answer a PersonaGym task. Verdicts are read up to the response with
    which their replies reach ``most_bytes``.

    A response's verdicts come as one row of arrays: a row for each verdict would cost several times as much to read. Nine of
    the arrays come only where they say anything: most jobs have one dimension and one judge who is asked sentence by sentence,
    and most responses a verdict on each sentence.
    """
    values = {
        "job": job_id,
        "tenant": tenant,
        "most_bytes": most_bytes,
        **place_arrays(responses),
    }
    verdicts = await connection.execute(
        text(
            "SELECT cell, run, item, so_far >= :most_bytes, units, traits, judges, statuses, scores, raws, sizes,"
            " suspicions, finish_reasons, thoughts, unread, repairs, errors"
            " FROM (SELECT wanted.*, found.*, sum(bytes) OVER (ORDER BY nth) AS so_far"
            f"{_OF_WANTED} LATERAL (SELECT array_agg(status) AS statuses,"
            "  CASE WHEN max(unit) >= count(*) OR max(trait) > 0 OR max(judge) > 0 THEN array_agg(unit) END AS units,"
            "  array_agg(score) AS scores, array_agg(coalesce(raw, error)) AS raws,"
            "  CASE WHEN max(trait) > 0 THEN array_agg(trait) END AS traits,"
            "  CASE WHEN max(judge) > 0 THEN array_agg(judge) END AS judges,"
            "  CASE WHEN max(group_size) > 1 THEN array_agg(group_size) END AS sizes,"
            "  CASE WHEN count(suspicion) > 0 THEN array_agg(suspicion) END AS suspicions,"
            "  CASE WHEN count(*) FILTER (WHERE finish_reason = 'stop') < count(*) THEN array_agg(finish_reason) END"
            "   AS finish_reasons,"
            "  CASE WHEN count(thoughts) > 0 THEN array_agg(thoughts) END AS thoughts,"
            "  CASE WHEN count(unread) > 0 THEN array_agg(unread) END AS unread,"
            "  CASE WHEN count(repair_raw) > 0 THEN array_agg(repair_raw) END AS repairs,"
            "  CASE WHEN count(error) FILTER (WHERE unread IS NOT NULL) > 0"
            "   THEN array_agg(error) END AS errors,"
            "  sum(coalesce(octet_length(raw), 0) + coalesce(octet_length(thoughts), 0)"
            "   + coalesce(octet_length(repair_raw), 0)) AS bytes"
            "  FROM (SELECT * FROM verdicts v WHERE v.cell_id = c.id AND v.run = wanted.run"
            "   AND v.item = wanted.item AND v.tenant = :tenant ORDER BY unit, trait, judge) ordered) found"
            " WHERE found.statuses IS NOT NULL) sized WHERE so_far - bytes < :most_bytes ORDER BY nth"
        ),
        values,
    )
    found: dict[Position, Judgements] = {}
    for cell, run, item, ends_page, units, *arrays in verdicts:
        said = _said(*arrays)
        found[cell, run, item] = Judgements(units or range(len(said)), said, ends_page=ends_page)
    if graded:
        for position, grades in (await _grades(connection, values)).items():
            found.setdefault(position, Judgements()).grades = grades
    return found


async def _grades(
    connection: AsyncConnection, values: Mapping[str, Any]
) -> dict[Position, list[GradeRecord]]:
    grades: dict[Position, list[GradeRecord]] = {}
    rows = await connection.execute(
        text(
            "SELECT wanted.cell, wanted.run, wanted.item, g.judge, g.status, g.score, g.raw, g.error, g.suspicion,"
            " g.finish_reason, g.thoughts, g.unread, g.repair_raw"
            f"{_OF_WANTED} grades g WHERE g.cell_id = c.id AND g.run = wanted.run AND g.item = wanted.item"
            " AND g.tenant = :tenant ORDER BY g.judge"
        ),
        values,
    )
    for cell, run, item, *grade in rows:
        grades.setdefault((cell, run, item), []).append(GradeRecord(*grade))
    return grades
