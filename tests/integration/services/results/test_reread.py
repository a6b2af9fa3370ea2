"""Reading the stored replies of an ended job again, on a real database with a scripted model."""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.instruments.instrument import READER_VERSION
from app.domain.jobs.request import JudgingIn, OrderCheckIn
from app.domain.jobs.reread import Reread, RereadIn
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Usage
from app.services.errors import NotFoundError, WrongStateError
from app.services.jobs.control import delete_job
from app.services.results.reread import reread_job
from tests.integration.jobs import TENANT, execute, new_job
from tests.integration.services.execution.test_prepare_persona import new_gym_job, usual
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_response, a_task, grouped

pytestmark = pytest.mark.usefixtures("looks_often")

TEXT = "I stay at home. I read alone. I like it. I sleep. I wake."
REPLIES = ("2", "9", "Score: 4", "It is hard to say.", "1) Very extroverted", "I'm sorry, I can't rate this.")
GRADES = ("It fits. Therefore, the final score is 4.", "It fits well.", "Score: 2")
TABLES = ("verdicts", "second_verdicts", "grades")


@dataclass
class Judges(Provider):
    """Judges whose replies differ from call to call; some can't be read."""

    text: str = TEXT
    replies: tuple[str, ...] = REPLIES
    cut_off: bool = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await super().complete(request)
        path = self.calls[-1]
        reason = FinishReason.LENGTH if self.cut_off else FinishReason.STOP
        if not path.startswith(("judging", "checking", "repairing")):
            gym = path.startswith(("environments", "questions", "exemplars"))
            return reply._replace(text=usual(path, request.user)) if gym else reply
        if path.startswith("judging") and path.count("/") == 4:
            return ChatReply(self._one_of(GRADES, path), reason, Usage(10, 4))
        labels = re.findall(r"<S(\d+)>", request.user)
        said = "\n".join(f"S{n}: {self._one_of(self.replies, path + n)}" for n in labels)
        said = said or self._one_of(self.replies, path)
        key = re.search(r"\b[A-Z]{12}\b", request.system or "")
        if key is not None and crc32(path.encode()) % 3:
            said = f"{key[0]}\n{said}"
        return ChatReply(said, reason, Usage(10, 4))

    def _one_of(self, replies: tuple[str, ...], path: str) -> str:
        return replies[crc32(path.encode()) % len(replies)]


@pytest.fixture
def provider() -> Judges:
    return Judges()


async def an_essay(engine: AsyncEngine, judging: JudgingIn | None = None, **changes: Any) -> JobRow:
    return await new_job(
        engine,
        models=(),
        instructions=None,
        responses=(a_response("E-low", "essay", TEXT), a_response("E-low", "essay", TEXT)),
        judges=(a_model("simulated/sim-judge"), a_model("simulated/sim-judge-harsh")),
        judging=judging,
        **changes,
    )


async def a_gym_job(engine: AsyncEngine) -> JobRow:
    task = a_task("expected_action", questions=4, atomic=True)
    return await new_gym_job(engine, tasks=(task,))


async def ended(engine: AsyncEngine, worker: Worker, job: JobRow) -> JobRow:
    await worker.run_all(job)
    return await worker.finalize(job)


async def results(engine: AsyncEngine, job: JobRow) -> dict[str, Any]:
    async with engine.connect() as connection:
        found: dict[str, Any] = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "{}")
    return found


async def rows(engine: AsyncEngine) -> list[Any]:
    found = []
    for table in TABLES:
        rows = await execute(engine, f"SELECT to_jsonb(t) FROM {table} t ORDER BY 1")
        found += [row[0] for row in rows]
    return found


async def misread(engine: AsyncEngine) -> None:
    """Store verdicts as an earlier reader may have read the replies."""
    unread = "CASE WHEN score = 4 THEN 'no_answer' END"
    also = {
        # Of groups the stored reason and doubt stay: parts of a reply don't tell them.
        "verdicts": f"unread = CASE WHEN group_size > 1 THEN unread ELSE {unread} END, suspicion = CASE"
        " WHEN group_size > 1 THEN suspicion WHEN suspicion IN ('text', 'both') THEN 'text' END"
    }
    for table in TABLES:
        alone = " AND alone" if table == "second_verdicts" else ""
        await execute(
            engine,
            f"UPDATE {table} SET status = CASE WHEN score = 4 THEN 'unparsed' ELSE 'scored' END,"
            f" score = CASE WHEN score = 4 THEN NULL ELSE 1 END, {also.get(table, f'unread = {unread}')}"
            f" WHERE raw IS NOT NULL{alone}",
        )
    await execute(
        engine, "UPDATE jobs SET spec = jsonb_set(spec::jsonb, '{instrument,replies}', '\"replies-v0\"')"
    )


async def reread(engine: AsyncEngine, worker: Worker, job: JobRow, **wanted: Any) -> Reread:
    return await reread_job(engine, worker.queue, worker.deps.contexts, TENANT, job.id, RereadIn(**wanted))


KINDS: dict[str, Callable[[AsyncEngine], Awaitable[JobRow]]] = {
    "sentences": an_essay,
    "groups": lambda engine: an_essay(engine, grouped(3, 1.0, 1)),
    "orders": lambda engine: an_essay(engine, JudgingIn(order_check=OrderCheckIn(share=1.0))),
    "hardened": lambda engine: an_essay(engine, protocol="hardened"),
    "grades": a_gym_job,
}


class TestReadAgain:
    @pytest.mark.parametrize("kind", KINDS)
    async def test_replies_give_what_they_gave_first_and_the_results_follow(
        self, kind: str, engine: AsyncEngine, worker: Worker, provider: Judges
    ) -> None:
        job = await ended(engine, worker, await KINDS[kind](engine))
        first, stored, calls = await results(engine, job), await rows(engine), len(provider.calls)
        assert first["manifest"]["instrument"]["replies"] == READER_VERSION
        await misread(engine)
        assert await rows(engine) != stored

        found = await reread(engine, worker, job, apply=True)
        assert found.changed == sum(each.count for each in found.changes) > 0
        assert (found.reader, found.applied) == (READER_VERSION, True)
        assert await rows(engine) == stored
        assert (await worker.job(job)).status is JobStatus.FINALIZING
        assert worker.queue.finals[-1] == job.id
        again = await worker.finalize(job)
        assert (again.status, again.completeness) == (job.status, job.completeness)
        assert len(provider.calls) == calls
        second = await results(engine, job)
        assert second.pop("manifest")["instrument"]["replies"] == READER_VERSION
        for each in (first, second):
            each.pop("computed_at")
        first.pop("manifest")
        assert second == first
        assert (await reread(engine, worker, job)).changed == 0

    async def test_replies_cut_off_are_read_as_such(
        self, engine: AsyncEngine, worker: Worker, provider: Judges
    ) -> None:
        provider.cut_off = True
        job = await ended(engine, worker, await an_essay(engine))
        assert (await reread(engine, worker, job)).changed == 0

    async def test_by_default_it_shows_the_changes_and_stores_nothing(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await ended(engine, worker, await an_essay(engine))
        await execute(
            engine,
            "UPDATE verdicts SET status = 'scored', score = 1, unread = NULL WHERE status = 'unparsed'",
        )
        stored, before = await rows(engine), await results(engine, job)
        found = await reread(engine, worker, job, examples=2)
        (change,) = found.changes
        assert (change.of, change.before, change.after) == ("sentences", "scored", "unparsed")
        assert change.count == found.changed > len(change.examples) == 2
        (example, _) = change.examples
        assert (example.score_before, example.score_after) == (1, None)
        assert example.text in TEXT
        assert example.reply in {"It is hard to say.", "1) Very extroverted"}
        assert await rows(engine) == stored
        assert await results(engine, job) == before
        assert (await worker.job(job)).status is JobStatus.COMPLETED

    async def test_the_manifest_names_both_readers(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await ended(engine, worker, await an_essay(engine))
        await execute(
            engine, "UPDATE jobs SET spec = jsonb_set(spec::jsonb, '{instrument,replies}', '\"replies-v0\"')"
        )
        worker.deps.contexts._known.clear()
        found = await reread(engine, worker, job, apply=True)
        assert (found.reader_before, found.reader, found.changed) == ("replies-v0", READER_VERSION, 0)
        await worker.finalize(job)
        used = (await results(engine, job))["manifest"]["instrument"]
        assert (used["replies"], used["replies_first"]) == (READER_VERSION, "replies-v0")
        assert (await reread(engine, worker, job)).reader_before == READER_VERSION


class TestState:
    async def test_a_job_without_a_score_completes_once_its_replies_are_readable(
        self, engine: AsyncEngine, worker: Worker, provider: Judges
    ) -> None:
        provider.replies = ("2",)
        job = await an_essay(engine)
        await worker.run_all(job)
        await execute(engine, "UPDATE verdicts SET status = 'unparsed', score = NULL")
        failed = await worker.finalize(job)
        assert (failed.status, failed.status_reason) == (JobStatus.FAILED, "no_score")
        await reread(engine, worker, job, apply=True)
        again = await worker.finalize(job)
        assert (again.status, again.status_reason, again.error) == (JobStatus.COMPLETED, None, None)

    async def test_a_cancelled_job_stays_cancelled(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await an_essay(engine)
        await worker.run_all(job)
        await execute(engine, "UPDATE jobs SET status = 'cancelling', status_reason = 'cancelled_by_user'")
        assert (await worker.finalize(job)).status is JobStatus.CANCELLED
        await execute(engine, "UPDATE verdicts SET status = 'scored', score = 1 WHERE score = 4")
        assert (await reread(engine, worker, job, apply=True)).changed > 0
        again = await worker.finalize(job)
        assert (again.status, again.status_reason) == (JobStatus.CANCELLED, "cancelled_by_user")

    async def test_a_job_that_has_not_ended_is_refused(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await an_essay(engine)
        with pytest.raises(WrongStateError, match="wait until it has ended"):
            await reread(engine, worker, job)
        await worker.run_all(job)
        with pytest.raises(WrongStateError, match="finalizing"):
            await reread(engine, worker, job, apply=True)

    async def test_a_job_that_changes_meanwhile_is_refused(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = await ended(engine, worker, await an_essay(engine))
        await execute(engine, "UPDATE verdicts SET status = 'scored', score = 1 WHERE score = 4")
        read = worker.deps.contexts.get

        async def get(tenant: str, job_id: str) -> Any:
            await execute(engine, "UPDATE shards SET retries = retries + 1")
            return await read(tenant, job_id)

        monkeypatch.setattr(worker.deps.contexts, "get", get)
        with pytest.raises(WrongStateError, match="read them again"):
            await reread(engine, worker, job, apply=True)
        assert (await worker.job(job)).status is JobStatus.COMPLETED

    async def test_a_deleted_job_is_not_found(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await ended(engine, worker, await an_essay(engine))
        await delete_job(worker.control, TENANT, job.id)
        with pytest.raises(NotFoundError):
            await reread(engine, worker, job)
