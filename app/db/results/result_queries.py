"""What results are computed from: scores, grades and tallies of a job's responses."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

FETCHED = 1_000
"""Rows that are taken from a stream at a time: each taking costs as much as twenty rows do."""


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
        filtered: Units of that status.
        units: All of the response's units; those without a verdict are still to be judged, or never will be.
        contradicting: Units whose first reply contradicts itself.
        unread: Units whose first reply could not be read.
        repaired: Units whose second reply has an answer.
        unrepaired: Units whose follow-up request failed.
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
    filtered: int = 0
    units: int = 0
    contradicting: int = 0
    unread: int = 0
    repaired: int = 0
    unrepaired: int = 0


@dataclass(frozen=True, slots=True)
class JudgedAgainRow:
    """A verdict with the options in an order, under its number in the judge's place, beside the verdict that counts."""

    cell: int
    run: int
    item: int
    trait: int
    number: int
    status: str
    score: int | None
    again: str
    again_score: int | None


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
        filtered: Refused or stopped by the provider's content filter.
        no_answer: Nothing but thoughts, or no finished answer.
        truncated: Answers that end at the longest length.
        sentences: Sentences of the answers.
        unknown_tags: Texts with unknown tags or special tokens, and likewise the following.
        cut_off: Answers whose last sentence has no end.
        repeated_sentences: Sentences that repeat an earlier one of their answer.
        role_breaks: Sentences of answers in which the model says that it is one, or leaves its role.
        refusal_check: Texts of which a judge was asked whether they are refusals.
        tags: Different unknown tags, each text's first.
        finish_words: Different unknown words for why models stopped.
        turns: Responses that are turns of conversations.
        conversations: Different conversations.
    """

    cell: int
    answered: int
    refused: int
    failed: int
    empty: int
    refused_units: int
    runs: int
    filtered: int
    no_answer: int
    truncated: int
    sentences: int = 0
    unknown_tags: int = 0
    unknown_finish_word: int = 0
    cut_off: int = 0
    repeated_sentences: int = 0
    role_breaks: int = 0
    refusal_check: int = 0
    tags: Sequence[str] = ()
    finish_words: Sequence[str] = ()
    turns: int = 0
    conversations: int = 0

    @property
    def dependent(self) -> bool:
        """Whether several responses are turns of one conversation."""
        return self.turns > self.conversations

    @property
    def independent(self) -> int:
        """Conversations, and responses that belong to none."""
        written = self.answered + self.refused + self.failed + self.filtered + self.no_answer
        return self.conversations + written - self.turns


@dataclass(frozen=True, slots=True)
class UnjudgedResponse:
    """A response without a verdict, and mostly without a sentence that a judge could be asked about.

    Attributes:
        run: Its run.
        item: Which of its cell's items it answers.
        refused: Whether it is a refusal; else it is empty, filtered, failed, no answer, or an existing text that no judge
            has been asked about.
    """

    run: int
    item: int
    refused: bool


async def unjudged_responses(
    connection: AsyncConnection, tenant: str, job_id: str, *, provided: bool
) -> dict[int, list[UnjudgedResponse]]:
    """Each cell's responses that no judge is asked about, by the cell's ordinal; of existing texts all without a verdict.

    Responses that are generated are known from the plan; how many existing texts there are only their rows say.
    """
    unasked = (
        " OR NOT EXISTS (SELECT FROM verdicts v"
        " WHERE v.tenant = :tenant AND v.cell_id = r.cell_id AND v.run = r.run AND v.item = r.item)"
    )
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, r.run, r.item, r.status = 'refused' FROM cells c JOIN responses r ON r.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant"
            f" AND (r.status <> 'answered' OR cardinality(r.unit_starts) = 0{unasked if provided else ''})"
        ),
        {"job": job_id, "tenant": tenant},
    )
    found: dict[int, list[UnjudgedResponse]] = {}
    for ordinal, *response in rows:
        found.setdefault(ordinal, []).append(UnjudgedResponse(*response))
    return found


async def grades(
    connection: AsyncConnection, tenant: str, job_id: str, cells: Sequence[int], judges: int
) -> AsyncIterator[tuple[int, int, int, int, str, int | None, str | None, str | None, bool]]:
    """Return every grade of these cells as (cell ordinal, run, item, judge, status, score, suspicion, unread, has an error).

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job's.
        cells: The cells whose responses are graded. One that failed or has no answer counts as failed for every judge, one that
            a content filter refused as filtered.
        judges: How many judges there are.
    """
    rows = await connection.stream(
        text(
            "SELECT c.ordinal, g.run, g.item, g.judge::int, g.status, g.score, g.suspicion, g.unread,"
            " g.error IS NOT NULL"
            " FROM cells c JOIN grades g ON g.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND g.tenant = :tenant AND c.ordinal = ANY(:cells)"
            " UNION ALL SELECT c.ordinal, r.run, r.item, judge,"
            "  CASE r.status WHEN 'filtered' THEN 'filtered' ELSE 'failed' END, NULL, NULL, NULL, true"
            " FROM cells c JOIN responses r ON r.cell_id = c.id, generate_series(0, :judges - 1) judge"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant"
            " AND r.status IN ('failed', 'no_answer', 'filtered') AND c.ordinal = ANY(:cells)"
        ),
        {"job": job_id, "tenant": tenant, "cells": list(cells), "judges": judges},
    )
    async for part in rows.partitions(FETCHED):
        for row in part:
            yield tuple(row)


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
            " count(*) FILTER (WHERE v.status = 'failed'), v.item, count(v.suspicion),"
            " count(*) FILTER (WHERE v.status = 'filtered'), min(cardinality(r.unit_starts)),"
            " count(*) FILTER (WHERE v.unread = 'contradiction'), count(v.unread),"
            " count(v.unread) FILTER (WHERE v.status IN ('scored', 'not_applicable')),"
            " count(v.unread) FILTER (WHERE v.error IS NOT NULL)"
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


async def checked_sentences(
    connection: AsyncConnection, tenant: str, job_id: str
) -> AsyncIterator[CheckedRow]:
    """Every verdict on a sentence that was judged in a group and alone, in the responses' order.

    A sentence that had to be asked about alone in the first place has no grouped verdict and is not among them.
    """
    rows = await connection.stream(
        text(
            "SELECT c.ordinal, s.run, s.item, s.trait, s.judge, v.status, v.score, s.status, s.score,"
            " v.suspicion IS NOT NULL"
            " FROM cells c JOIN second_verdicts s ON s.cell_id = c.id"
            " JOIN verdicts v USING (cell_id, run, item, unit, trait, judge)"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND s.tenant = :tenant AND v.tenant = :tenant"
            " AND s.alone AND v.group_size > 1 ORDER BY c.ordinal, s.run, s.item"
        ),
        {"job": job_id, "tenant": tenant},
    )
    async for part in rows.partitions(FETCHED):
        for row in part:
            yield CheckedRow(*row)


async def sentences_judged_again(
    connection: AsyncConnection, tenant: str, job_id: str, judges: int
) -> AsyncIterator[JudgedAgainRow]:
    """Every verdict with the options in an order, beside the one that counts, in the responses' order.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job.
        judges: How many it has; see :func:`app.domain.judging.order_check.number_of`.
    """
    rows = await connection.stream(
        text(
            "SELECT c.ordinal, s.run, s.item, s.trait, s.judge, v.status, v.score, s.status, s.score"
            " FROM cells c JOIN second_verdicts s ON s.cell_id = c.id JOIN verdicts v ON v.cell_id = s.cell_id"
            "  AND v.run = s.run AND v.item = s.item AND v.unit = s.unit AND v.trait = s.trait"
            "  AND v.judge = s.judge % CAST(:judges AS smallint)"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND s.tenant = :tenant AND v.tenant = :tenant"
            " AND s.judge >= :judges ORDER BY c.ordinal, s.run, s.item"
        ),
        {"job": job_id, "tenant": tenant, "judges": judges},
    )
    async for part in rows.partitions(FETCHED):
        for row in part:
            yield JudgedAgainRow(*row)


async def asked_alone(connection: AsyncConnection, tenant: str, job_id: str, cells: int) -> dict[str, int]:
    """How many sentences' part of a reply about several could not be used, by what became of it; of the first so many cells."""
    rows = await connection.execute(
        text(
            "SELECT s.status, count(*) FROM cells c JOIN second_verdicts s ON s.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND s.tenant = :tenant AND NOT s.alone"
            " AND c.ordinal < :cells GROUP BY s.status"
        ),
        {"job": job_id, "tenant": tenant, "cells": cells},
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
            " count(DISTINCT r.run), count(*) FILTER (WHERE status = 'filtered'),"
            " count(*) FILTER (WHERE status = 'no_answer'),"
            " count(*) FILTER (WHERE status = 'answered' AND finish_reason = 'length'),"
            " coalesce(sum(cardinality(unit_starts)) FILTER (WHERE status = 'answered'), 0),"
            " count(notes -> 'unknown_tags'), count(notes -> 'unknown_finish_word'),"
            " count(notes -> 'cut_off') FILTER (WHERE status = 'answered'),"
            " coalesce(sum(jsonb_array_length(notes -> 'repeated_sentences')) FILTER (WHERE status = 'answered'), 0),"
            " coalesce(sum(jsonb_array_length(notes -> 'role_breaks')) FILTER (WHERE status = 'answered'), 0),"
            " count(notes -> 'refusal_check'),"
            " coalesce(array_agg(DISTINCT notes -> 'unknown_tags' ->> 0) FILTER (WHERE notes ? 'unknown_tags'), '{}'),"
            " coalesce(array_agg(DISTINCT notes ->> 'unknown_finish_word')"
            "  FILTER (WHERE notes ? 'unknown_finish_word'), '{}'),"
            " count(r.conversation), count(DISTINCT r.conversation)"
            " FROM cells c JOIN responses r ON r.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant GROUP BY c.ordinal"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return {row[0]: ResponseTally(*row) for row in rows}


async def wordy_refusal_checks(
    connection: AsyncConnection, tenant: str, job_id: str
) -> AsyncIterator[Sequence[str]]:
    """The judges' replies to whether a text is a refusal that are more than the word yes or no, some at a time."""
    rows = await connection.stream(
        text(
            "SELECT r.notes ->> 'refusal_check' FROM cells c JOIN responses r ON r.cell_id = c.id"
            " WHERE c.job_id = :job AND c.tenant = :tenant AND r.tenant = :tenant AND r.notes ->> 'refusal_check' <> ''"
            " AND r.notes ->> 'refusal_check' !~* '^[^[:alnum:]]*(yes|no)[^[:alnum:]]*$'"
        ),
        {"job": job_id, "tenant": tenant},
    )
    async for some in rows.scalars().partitions(1_000):
        yield some


async def failed_refusal_checks(connection: AsyncConnection, tenant: str, job_id: str) -> int:
    """The number of texts whose check for a refusal failed."""
    found = await connection.execute(
        text(
            "SELECT count(*) FROM cells c JOIN responses r ON r.cell_id = c.id WHERE c.job_id = :job"
            " AND c.tenant = :tenant AND r.tenant = :tenant AND r.status = 'answered' AND r.error LIKE 'refusal check: %'"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return int(found.scalar_one())


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
