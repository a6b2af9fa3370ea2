"""Schedules on a real database: each due time gets one run, whatever crashes and however many look."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.request import JobIn
from app.domain.watching.contract import Schedule, ScheduleIn, ScheduleRun
from app.services.jobs.submit import SubmissionDependencies
from app.services.watching import due
from app.services.watching.due import begin_due
from app.services.watching.process import run_due
from app.services.watching.schedules import create_schedule, find_schedule, list_runs
from tests.integration.jobs import (
    TENANT,
    RecordingQueue,
    execute,
    new_job,
    scalar,
    submission_dependencies,
)
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

JOB: dict[str, Any] = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 2,
}


@pytest.fixture
def deps(engine: AsyncEngine) -> SubmissionDependencies:
    return submission_dependencies(engine, RecordingQueue())


@pytest.fixture
async def worker(engine: AsyncEngine) -> AsyncIterator[Worker]:
    made = Worker(engine, Provider())
    async with made.deps.writer.running(), made.deps.leases.running():
        yield made


@pytest.fixture(autouse=True)
async def receiver(engine: AsyncEngine) -> None:
    """A webhook that is told of everything."""
    await execute(
        engine,
        "INSERT INTO webhooks (id, tenant, url, events, secret) VALUES ('whk_1', :tenant, 'https://a.example', :events, '')",
        tenant=TENANT,
        events=["drift.detected", "schedule.run_missed", "schedule.run_skipped", "schedule.run_failed"],
    )


async def new_schedule(deps: SubmissionDependencies, **changes: Any) -> Schedule:
    job = changes.pop("job", JOB)
    key = changes.pop("key_id", None)
    wanted = ScheduleIn.model_validate({"cron": "30 2 * * *", "job": job} | changes)
    return await create_schedule(deps, TENANT, wanted, job, JobIn.model_validate(job), key)


async def due_ago(engine: AsyncEngine, schedule: Schedule, ago: timedelta) -> None:
    """Has a schedule wait since then to be looked at."""
    due = (datetime.now(UTC) - ago).replace(microsecond=0)
    await execute(engine, "UPDATE schedules SET next_due = :due WHERE id = :id", due=due, id=schedule.id)


async def look(deps: SubmissionDependencies) -> None:
    await run_due(deps.engine, lambda: deps)


async def the_runs(engine: AsyncEngine, schedule: Schedule) -> list[ScheduleRun]:
    return list(await list_runs(engine, TENANT, schedule.id, limit=500))[::-1]


async def messages(engine: AsyncEngine) -> list[tuple[str, dict[str, Any]]]:
    rows = await execute(engine, "SELECT event, payload FROM webhook_deliveries ORDER BY created_at, id")
    return [(row.event, json.loads(row.payload)["data"]) for row in rows]


async def finish(worker: Worker, job_id: str) -> None:
    for shard in await execute(worker.engine, "SELECT id FROM shards WHERE job_id = :job", job=job_id):
        await worker.run(shard.id)
    await worker.finalize_by_id(job_id)


class TestDue:
    async def test_many_sweepers_at_once_make_one_run_with_one_job(
        self, deps: SubmissionDependencies
    ) -> None:
        made = [await new_schedule(deps) for _ in range(3)]
        for schedule in made:
            await due_ago(deps.engine, schedule, timedelta(seconds=1))
        await asyncio.gather(*(look(deps) for _ in range(8)))
        await look(deps)
        assert await scalar(deps.engine, "SELECT count(*) FROM schedule_runs") == 3
        assert await scalar(deps.engine, "SELECT count(*) FROM jobs") == 3
        for schedule in made:
            assert [run.state for run in await the_runs(deps.engine, schedule)] == ["running"]

    @pytest.mark.slow  # a process for each death
    async def test_whenever_the_sweeper_dies_and_however_long_nobody_looks_there_is_one_job(
        self, deps: SubmissionDependencies, database_url: str
    ) -> None:
        died, places = 0, [*range(1, 200, 9)]
        for place in places:
            schedule = await new_schedule(deps)
            await due_ago(deps.engine, schedule, timedelta(seconds=1))
            look_and_die = (sys.executable, "-m", "tests.integration.services.watching.dying_sweeper")
            ended = await asyncio.to_thread(
                subprocess.run, (*look_and_die, database_url, str(place)), timeout=120, check=False
            )
            assert ended.returncode == -signal.SIGKILL
            for statement in (
                "DELETE FROM idempotency_keys",
                "UPDATE schedule_runs SET due = due - interval '3 days'",
                "UPDATE jobs SET created_at = created_at - interval '3 days'",
            ):
                await execute(deps.engine, statement)
            had_one = await scalar(deps.engine, "SELECT count(*) FROM jobs") == 1
            await look(deps)
            (run,) = await the_runs(deps.engine, schedule)
            assert [run.job] == [row.id for row in await execute(deps.engine, "SELECT id FROM jobs")]
            died += 1
            await execute(deps.engine, "DELETE FROM jobs")
            await execute(deps.engine, "DELETE FROM schedules")
            if had_one:  # it has died after the last statement: telling the queue
                break
        assert 3 < died < len(places)


class TestThinning:
    async def test_of_runs_before_the_last_ones_each_day_keeps_one_and_all_alarms(
        self, deps: SubmissionDependencies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Four a day for ten days, at 0.25 dollars each; the last one of the fifth day has no value. The last four are kept."""
        monkeypatch.setattr(due, "KEPT_WHOLE", 4)
        schedule = await new_schedule(deps, cron="0 */6 * * *")
        await execute(
            deps.engine,
            "INSERT INTO schedule_runs (id, tenant, schedule_id, due, state, value, alarms, usd, ended_at)"
            " SELECT 'srun_' || n, :tenant, :id, '2026-01-01Z'::timestamptz + n * interval '6 hours',"
            " CASE WHEN n = 19 THEN 'failed' ELSE 'measured' END, CASE WHEN n <> 19 THEN n / 100.0 END,"
            " CASE WHEN n = 8 THEN '[{}]'::jsonb ELSE '[]' END, 0.25, now() FROM generate_series(0, 39) n",
            tenant=TENANT,
            id=schedule.id,
        )
        await due_ago(deps.engine, schedule, timedelta(0))
        await begin_due(deps.engine)
        rows = await execute(deps.engine, "SELECT id FROM schedule_runs ORDER BY due")
        kept = [int(row.id.removeprefix("srun_")) for row in rows[:-1]]
        assert kept == [3, 7, 8, 11, 15, 18, 23, 27, 31, 35, 36, 37, 38, 39]
        found = await find_schedule(deps.engine, TENANT, schedule.id)
        assert found.budget.spent_usd == 10.0  # 40 × 0.25, whatever is kept


class TestTold:
    async def test_a_used_up_budget_skips_and_pauses(self, deps: SubmissionDependencies) -> None:
        schedule = await new_schedule(deps)
        await execute(
            deps.engine,
            "INSERT INTO schedule_runs (id, tenant, schedule_id, due, state, usd, ended_at)"
            " VALUES ('srun_0', :tenant, :id, now() - interval '1 day', 'measured', 3.0, now())",
            tenant=TENANT,
            id=schedule.id,
        )
        await execute(deps.engine, "UPDATE schedules SET total_usd = 3.0")
        await due_ago(deps.engine, schedule, timedelta(0))
        await look(deps)
        found = await find_schedule(deps.engine, TENANT, schedule.id)
        assert (found.paused_reason, found.next_due, found.budget.spent_usd) == ("budget_used_up", None, 3.0)
        assert found.last_run is not None
        assert (found.last_run.state, found.last_run.reason) == (
            *("skipped", "the schedule's budget is used up"),
        )
        await look(deps)
        assert [event for event, _ in await messages(deps.engine)] == ["schedule.run_skipped"]

    @pytest.mark.parametrize(
        ("paused", "said"), [("budget_exhausted", "budget"), ("spending_cap_reached", "spending cap")]
    )
    async def test_a_run_that_may_spend_no_more_has_no_figure_and_holds_up_no_other(
        self, deps: SubmissionDependencies, paused: str, said: str
    ) -> None:
        schedule = await new_schedule(deps)
        await due_ago(deps.engine, schedule, timedelta(seconds=10))
        await look(deps)
        await execute(deps.engine, "UPDATE jobs SET status = 'paused', status_reason = :why", why=paused)
        await look(deps)
        await due_ago(deps.engine, schedule, timedelta(0))
        await look(deps)
        first, second = await the_runs(deps.engine, schedule)
        assert (first.state, second.state) == ("failed", "running")
        assert said in (first.reason or "")

    async def test_a_schedule_ends_with_its_key(self, deps: SubmissionDependencies) -> None:
        schedule = await new_schedule(deps, key_id="key_gone")
        await due_ago(deps.engine, schedule, timedelta(0))
        await look(deps)
        found = await find_schedule(deps.engine, TENANT, schedule.id)
        assert (found.paused_reason, found.last_run and found.last_run.state) == ("key_ended", "skipped")
        assert await scalar(deps.engine, "SELECT count(*) FROM jobs") == 0

    async def test_of_a_schedule_that_is_deleted_nothing_is_begun(self, deps: SubmissionDependencies) -> None:
        schedule = await new_schedule(deps)
        await due_ago(deps.engine, schedule, timedelta(0))
        assert await begin_due(deps.engine)
        await execute(deps.engine, "DELETE FROM schedules")
        await look(deps)
        assert await scalar(deps.engine, "SELECT count(*) FROM jobs") == 0


class TestDrift:
    async def test_a_figure_that_has_moved_for_some_runs_is_an_alarm_once(
        self, deps: SubmissionDependencies, worker: Worker
    ) -> None:
        """Thirty runs near 0.5 and two at 1; the next ones are 1 as well."""
        schedule = await new_schedule(deps)
        found = []
        for n in range(3):
            await due_ago(deps.engine, schedule, timedelta(seconds=10 - n))
            await look(deps)
            run = (await the_runs(deps.engine, schedule))[-1]
            assert run.job is not None
            await finish(worker, run.job)
            await look(deps)
            if n == 0:
                await self.earlier(deps.engine, schedule, [0.5 + 0.01 * (k % 3) for k in range(30)] + [1.0])
            found.append((await the_runs(deps.engine, schedule))[-1])
        assert [len(run.alarms) for run in found] == [0, 1, 0]
        (alarm,) = found[1].alarms
        assert (alarm.cause, alarm.after) == ("model_or_judge", 1.0)
        assert alarm.before == pytest.approx(0.51, abs=0.01)
        assert alarm.ci95[0] < alarm.shift < alarm.ci95[1]
        assert found[1].limits is not None
        assert found[1].limits[1] < 1.0
        ((event, data),) = await messages(deps.engine)
        assert (event, data["alarm"]["cause"], data["figure"]) == (
            "drift.detected",
            "model_or_judge",
            "acc_atom",
        )
        assert data["links"]["job"] == f"/v1/jobs/{found[1].job}"

    async def test_runs_of_another_design_are_not_compared(
        self, deps: SubmissionDependencies, worker: Worker
    ) -> None:
        schedule = await new_schedule(deps)
        await self.earlier(deps.engine, schedule, [0.5 + 0.01 * (k % 3) for k in range(30)] + [1.0, 1.0])
        await execute(deps.engine, "UPDATE schedule_runs SET design = 'another'")
        await due_ago(deps.engine, schedule, timedelta(0))
        await look(deps)
        run = (await the_runs(deps.engine, schedule))[-1]
        assert run.job is not None
        await finish(worker, run.job)
        await look(deps)
        run = (await the_runs(deps.engine, schedule))[-1]
        assert (run.state, run.alarms, run.limits) == ("measured", [], None)

    @staticmethod
    async def earlier(engine: AsyncEngine, schedule: Schedule, values: list[float]) -> None:
        """Runs of days before today, of the design of the one that there is."""
        for n, value in enumerate(reversed(values), 1):
            await execute(
                engine,
                "INSERT INTO schedule_runs (id, tenant, schedule_id, due, state, design, value, ended_at) VALUES"
                " (:id, :tenant, :schedule, now() - make_interval(days => :ago), 'measured',"
                " (SELECT design FROM schedule_runs LIMIT 1), :value, now())",
                id=f"srun_{n}",
                tenant=TENANT,
                schedule=schedule.id,
                ago=n,
                value=value,
            )


class TestAnchors:
    @pytest.mark.parametrize(
        ("judge_moved", "model_moved", "causes"),
        [(True, False, ["judge"]), (False, True, ["model"]), (True, True, ["judge", "model_or_judge"])],
    )
    async def test_what_has_drifted_is_told_by_them(
        self,
        deps: SubmissionDependencies,
        worker: Worker,
        causes: list[str],
        *,
        judge_moved: bool,
        model_moved: bool,
    ) -> None:
        """Both figures are 1 now; runs before had 0.8 on what has moved, and the model's moves with its judge's.

        Anchors of one persona do not tell how differently the judge has moved on other texts.
        """
        source = await new_job(deps.engine, iterations=12)
        await finish(worker, source.id)
        schedule = await new_schedule(deps, anchors={"job": source.id, "sample": {"responses": 10}})
        run = await self.made(deps, worker, schedule)
        for n in range(1, 33):
            noise = 0.005 * (n % 3 - 1)
            anchor = 0.8 if judge_moved and n > 2 else 1.0
            value = (0.8 if model_moved and n > 2 else 1.0) - (1.0 - anchor)
            await execute(
                deps.engine,
                "INSERT INTO schedule_runs (id, tenant, schedule_id, due, state, design, value, anchor, anchors, ended_at)"
                " SELECT :id, tenant, schedule_id, due - make_interval(days => :ago), 'measured', design, :value, :anchor,"
                " CAST(:anchors AS jsonb), now() FROM schedule_runs WHERE id = :run",
                id=f"srun_{n}",
                ago=n,
                run=run.id,
                value=value + noise,
                anchor=anchor,
                anchors=json.dumps({"E-low": anchor}),
            )
        await execute(deps.engine, "UPDATE schedule_runs SET due = due - interval '1 hour'")
        run = await self.made(deps, worker, schedule)
        assert [alarm.cause for alarm in run.alarms] == causes
        told = [data["alarm"]["cause"] for _, data in await messages(deps.engine)]
        assert sorted(told) == causes

    @staticmethod
    async def made(deps: SubmissionDependencies, worker: Worker, schedule: Schedule) -> ScheduleRun:
        """A whole run."""
        await due_ago(deps.engine, schedule, timedelta(0))
        await look(deps)
        for _ in range(2):
            run = (await the_runs(deps.engine, schedule))[-1]
            await finish(worker, run.job or run.anchor_job or "")
            await look(deps)
        return (await the_runs(deps.engine, schedule))[-1]
