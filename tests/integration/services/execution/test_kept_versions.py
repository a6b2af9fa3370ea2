"""A release in mid-job changes nothing: jobs keep the versions of their rules, on a real database with a scripted model."""

import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.instruments.refusal import LanguageRules, RefusalRules
from app.domain.instruments.rules import RuleBook, Versions
from app.domain.instruments.segmentation import Unit
from app.domain.jobs.status import JobStatus
from app.instruments.rules import RULES
from app.services.jobs.control import resume_job, retry_job
from tests.integration.jobs import TENANT, claimed, execute, expire, new_job, response_row, shard_ids
from tests.integration.services.execution.test_prepare_persona import Reasoner, new_gym_job
from tests.integration.services.jobs.test_retry import BAD_TEXT, UNJUDGED, Moody
from tests.integration.services.scheduling.test_run_shard import TEXT, Provider, Worker
from tests.job_requests import a_response


class WholeText:
    """A segmenter that is another: a text is one unit."""

    name = "whole-v2"

    def segment(self, text: str, most: int) -> tuple[Unit, ...]:
        return (Unit(0, 0, len(text), text),)


REFUSES_ALL = RefusalRules(400, 3, {"en": LanguageRules({}, (), ("i stay at home",))})
OLD = RULES
NEW = RuleBook(
    Versions(
        "segmenter", {"punkt-en-v1": lambda: RULES.segmenter.load("punkt-en-v1"), "whole-v2": WholeText}
    ),
    Versions(
        "version of the refusal rules",
        {"refusals-v1": lambda: RULES.refusals.load("refusals-v1"), "v2": lambda: REFUSES_ALL},
    ),
    Versions(
        "version of the injection patterns",
        {
            "injections-v1": lambda: RULES.injections.load("injections-v1"),
            "v2": lambda: lambda text: "read" in text,
        },
    ),
)
"""A later release, by which the scripted text would be one sentence, a refusal and an attempt at the judge."""
WITHOUT_OLD = RuleBook(Versions("segmenter", {"whole-v2": WholeText}), NEW.refusals, NEW.injections)
"""A still later one, which dropped a version."""
MOMENT = re.compile(r'"20\d\d-\d\d-\d\dT[^"]*"')
SEVERAL: dict[str, Any] = {"personas": ("E-low", "E-high", "A-low"), "iterations": 3}
EXISTING: dict[str, Any] = {
    "responses": (a_response("E-low", "essay", TEXT),),
    "models": (),
    "instructions": None,
}


@contextlib.asynccontextmanager
async def release(
    engine: AsyncEngine, rules: RuleBook, provider: Provider | None = None
) -> AsyncIterator[Worker]:
    """A worker of a release with these rules."""
    worker = Worker(engine, provider or Provider(), rules=rules)
    async with worker.deps.writer.running(), worker.deps.leases.running():
        yield worker


async def done_by(
    engine: AsyncEngine, rules: RuleBook, job: JobRow, provider: Provider | None = None
) -> JobRow:
    async with release(engine, rules, provider) as worker:
        await worker.run_all(job)
        return await worker.finalize(job)


async def results(engine: AsyncEngine, job: JobRow) -> str:
    """A job's results as they are stored, without what differs between any two jobs."""
    async with engine.connect() as connection:
        stored = await jobs.stored_result(connection, TENANT, job.id)
    assert stored is not None
    return MOMENT.sub('"a moment"', stored).replace(job.id.removeprefix("job_"), "this job")


async def rows(engine: AsyncEngine, job: JobRow) -> list[Any]:
    """What was split, recognised and marked."""
    return await execute(
        engine,
        "SELECT c.ordinal, r.run, r.item, r.status, r.text, r.unit_starts, r.unit_ends, v.unit, v.trait, v.status,"
        " v.score, v.suspicion FROM cells c JOIN responses r ON r.cell_id = c.id"
        " LEFT JOIN verdicts v ON (v.cell_id, v.run, v.item) = (r.cell_id, r.run, r.item)"
        " WHERE c.job_id = :job ORDER BY 1, 2, 3, 8, 9",
        job=job.id,
    )


async def assert_equal(engine: AsyncEngine, job: JobRow, other: JobRow) -> None:
    assert await rows(engine, job) == await rows(engine, other)
    assert await results(engine, job) == await results(engine, other)


class TestReleaseInMidJob:
    async def test_the_later_release_is_another_one(self, engine: AsyncEngine) -> None:
        old = await done_by(engine, OLD, await new_job(engine, **SEVERAL))
        new = await done_by(engine, NEW, await new_job(engine, rules=NEW, **SEVERAL))
        assert [row[3] for row in await rows(engine, new)] == ["refused"] * 9
        assert {row[3] for row in await rows(engine, old)} == {"answered"}

    async def test_a_job_that_was_begun_before_ends_as_if_there_had_been_none(
        self, engine: AsyncEngine
    ) -> None:
        whole = await done_by(engine, OLD, await new_job(engine, **SEVERAL))
        job = await new_job(engine, **SEVERAL)
        first, *_ = await shard_ids(engine, job.id)
        async with release(engine, OLD) as worker:
            await worker.run(first)
        assert 0 < len(await rows(engine, job)) < len(await rows(engine, whole))
        await assert_equal(engine, await done_by(engine, NEW, job), whole)

    async def test_so_does_a_shard_whose_worker_died(self, engine: AsyncEngine) -> None:
        whole = await done_by(engine, OLD, await new_job(engine))
        job = await new_job(engine)
        dead = await claimed(engine, job.id)
        ours = [response_row(dead, 1, content=TEXT)._replace(unit_starts=[0, 16], unit_ends=[15, 29])]
        await ResultWriter(engine).write({(dead.shard_id, dead.token): ours})
        await expire(engine, dead)
        finished = await done_by(engine, NEW, job)
        assert finished.status is JobStatus.COMPLETED
        assert await rows(engine, finished) == await rows(engine, whole)

    async def test_existing_texts_are_judged_by_what_split_them(self, engine: AsyncEngine) -> None:
        whole = await done_by(engine, OLD, await new_job(engine, **EXISTING))
        job = await done_by(engine, NEW, await new_job(engine, **EXISTING))
        await assert_equal(engine, job, whole)
        assert [row[3:4] + row[7:8] for row in await rows(engine, job)] == [("answered", 0), ("answered", 1)]

    async def test_personagym_answers_keep_theirs_too(self, engine: AsyncEngine) -> None:
        marks = {}
        for rules in (OLD, NEW):
            job = await new_gym_job(engine)
            assert (await done_by(engine, rules, job, Reasoner(text=TEXT))).status is JobStatus.COMPLETED
            grades = await execute(
                engine,
                "SELECT g.run, g.item, g.score, g.suspicion FROM grades g JOIN cells c ON c.id = g.cell_id"
                " WHERE c.job_id = :job ORDER BY 1, 2",
                job=job.id,
            )
            assert grades
            marks[rules is NEW] = [await rows(engine, job), grades]
        assert marks[True] == marks[False]

    async def test_a_retry_by_the_later_release_reads_new_texts_as_the_old_ones(
        self, engine: AsyncEngine
    ) -> None:
        ended = {}
        for later in (OLD, NEW):
            job = await new_job(engine, iterations=3)
            model = Moody(fails=frozenset({BAD_TEXT, UNJUDGED}))
            partial = await done_by(engine, OLD, job, model)
            assert partial.completeness == "partial"
            async with release(engine, later) as worker:
                await retry_job(worker.control, TENANT, job.id)
            ended[later is NEW] = await done_by(engine, later, job)
            assert ended[later is NEW].completeness == "full"
        await assert_equal(engine, ended[True], ended[False])


class TestOlderVersion:
    async def test_can_be_chosen_and_gives_what_it_gave(self, engine: AsyncEngine) -> None:
        whole = await done_by(engine, OLD, await new_job(engine, **SEVERAL))
        versions = {kind: names[0] for kind, names in NEW.known.items()}
        job = await new_job(engine, rules=NEW, versions=versions, **SEVERAL)
        await assert_equal(engine, await done_by(engine, NEW, job), whole)

    async def test_can_be_chosen_for_one_kind_alone(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, rules=NEW, versions={"refusals": "refusals-v1"})
        await done_by(engine, NEW, job)
        assert [row[3:4] + row[7:8] + row[11:] for row in await rows(engine, job)] == [
            ("answered", 0, "text")
        ] * 2
        manifest = json.loads(await results(engine, job))["manifest"]
        assert manifest["instrument"] | {"version": "", "sha256": ""} == {
            "version": "",
            "sha256": "",
            "segmenter": "whole-v2",
            "refusals": "refusals-v1",
            "injections": "v2",
            "replies": "replies-v1",
        }

    async def test_splits_existing_texts_when_it_is_submitted(self, engine: AsyncEngine) -> None:
        versions = {"segmenter": "punkt-en-v1", "refusals": "refusals-v1"}
        job = await new_job(engine, rules=NEW, versions=versions, **EXISTING)
        (row,) = await execute(
            engine, "SELECT status, unit_starts FROM responses WHERE tenant = :t", t=TENANT
        )
        assert tuple(row) == ("answered", [0, 16])
        assert job.status is JobStatus.QUEUED


class TestDroppedVersion:
    @pytest.mark.parametrize("later", ["retry", "resume"])
    async def test_pauses_the_job_with_the_reason_and_loses_nothing(
        self, engine: AsyncEngine, later: str
    ) -> None:
        job = await new_job(engine, iterations=3)
        if later == "retry":
            await done_by(engine, OLD, job, Moody(fails=frozenset({BAD_TEXT, UNJUDGED})))
        before = await rows(engine, job)
        async with release(engine, WITHOUT_OLD) as worker:
            if later == "retry":
                await retry_job(worker.control, TENANT, job.id)
                before = await rows(engine, job)
            await worker.run_all(job)
            paused = await worker.job(job)
            assert worker.provider.calls == []
            assert (paused.status, paused.status_reason) == (JobStatus.PAUSED, "unknown_version")
            assert paused.error == {
                "code": "unknown_version",
                "detail": "unknown segmenter 'punkt-en-v1'; known: whole-v2",
                "remedy": "Upgrade the workers to a release that has the job's version, then resume the job.",
            }
            assert await rows(engine, job) == before
            await resume_job(worker.control, TENANT, job.id)
            await worker.run_all(job)
            assert (await worker.job(job)).status is JobStatus.PAUSED
        async with release(engine, NEW) as worker:
            await resume_job(worker.control, TENANT, job.id)
        whole = await done_by(engine, OLD, await new_job(engine, iterations=3))
        finished = await done_by(engine, NEW, job)
        assert (finished.status, finished.completeness, finished.error) == (JobStatus.COMPLETED, "full", None)
        assert await rows(engine, finished) == await rows(engine, whole)
