"""Schedules: what is due when, what becomes of it, and what is told."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.api.service import Json, job_body
from tests.world import World

JOB = job_body(models=["acme/writer"], judges=["acme/judge"], iterations=1)
HOURLY = "0 * * * *"
NOBODY = "http://127.0.0.1:9/"


async def new_schedule(world: World, cron: str = HOURLY, **changes: Any) -> Json:
    """A schedule, and a webhook that wants to be told of it."""
    events = ["schedule.run_missed", "schedule.run_skipped", "schedule.run_failed"]
    await world.post("/v1/webhooks", {"url": NOBODY, "events": events})
    return await world.post("/v1/schedules", {"cron": cron, "job": JOB, "name": "nightly"} | changes)


def at(world: World, hours: int) -> str:
    """A cron expression for each day, some hours from the world's time."""
    return f"0 {(world.now + timedelta(hours=hours)).hour} * * *"


async def pass_hours(world: World, hours: int = 1) -> None:
    """Let time pass until a full hour has begun."""
    begun = world.now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=hours)
    await world.advance(seconds=(begun - world.now).total_seconds() + 1)


async def finish(world: World) -> None:
    """Let the jobs of runs end and be measured."""
    for _ in range(2):  # anchors have a job of their own
        await world.run()
        await world.advance(seconds=6)


async def runs(world: World, schedule: Json) -> list[Json]:
    """The runs, oldest first."""
    found: list[Json] = (await world.get(f"/v1/schedules/{schedule['id']}/runs"))["data"]
    return found[::-1]


async def states(world: World, schedule: Json) -> list[str]:
    return [run["state"] for run in await runs(world, schedule)]


async def told(world: World) -> list[tuple[str, Json]]:
    """What webhooks are told."""
    found = await world.rows(
        "SELECT payload::json AS message FROM webhook_deliveries ORDER BY created_at, id"
    )
    return [(row["message"]["type"], row["message"]["data"]) for row in found]


class TestDue:
    async def test_a_due_time_becomes_one_job_and_its_figure_outlives_it(self, world: World) -> None:
        schedule = await new_schedule(world)
        await pass_hours(world)
        (run,) = await runs(world, schedule)
        assert (run["state"], run["due"], run["value"]) == ("running", schedule["next_due"], None)
        await finish(world)
        (run,) = await runs(world, schedule)
        assert (run["state"], run["reason"], run["alarms"], run["limits"]) == ("measured", None, [], None)
        assert (run["value"], run["n"], run["left_out"], run["coverage"]) == (1.0, 1, 0, 1.0)
        (job,) = (await world.get("/v1/jobs"))["data"]
        assert (job["id"], job["name"]) == (run["job"], "nightly")
        shown = await world.get(f"/v1/schedules/{schedule['id']}")
        assert shown["last_run"] == run
        next_due = datetime.fromisoformat(schedule["next_due"]) + timedelta(hours=1)
        assert datetime.fromisoformat(shown["next_due"]) == next_due
        await world.http.delete(f"/v1/jobs/{job['id']}")
        assert await runs(world, schedule) == [run]
        assert await told(world) == []

    async def test_a_paused_one_is_not_due_and_misses_nothing(self, world: World) -> None:
        schedule = await new_schedule(world)
        path = f"/v1/schedules/{schedule['id']}"
        paused = await world.patch(path, {"paused": True})
        assert (paused["paused_reason"], paused["next_due"]) == ("by_user", None)
        await pass_hours(world, 3)
        assert (await world.patch(path, {"cron": "0 5 * * *"}))["paused"]
        resumed = await world.patch(path, {"paused": False})
        assert (resumed["next_due"][11:16], resumed["last_run"]) == ("05:00", None)

    async def test_one_that_cannot_be_reckoned_is_put_off_for_an_hour_and_holds_up_no_other(
        self, world: World
    ) -> None:
        """Its time zone is not one of this machine's, until it is known again."""
        broken, sound = await new_schedule(world), await new_schedule(world)
        await world.rows("UPDATE schedules SET time_zone = 'Nowhere' WHERE id = %(id)s", id=broken["id"])
        await pass_hours(world)
        await world.rows("UPDATE schedules SET time_zone = 'UTC'")
        await world.advance(minutes=50)
        assert (await states(world, broken), await states(world, sound)) == ([], ["measured"])
        await world.advance(minutes=11)
        missed, made = await runs(world, broken)
        assert (missed["state"], missed["missed"], missed["reason"]) == (
            *("missed", 1, "an internal error put the schedule off"),
        )
        assert (missed["due"], made["state"]) == (broken["next_due"], "running")
        assert await world.rows("SELECT FROM schedules WHERE put_off_until IS NOT NULL") == []

    async def test_what_was_due_while_the_service_was_down_is_told_and_the_last_one_made_up_for(
        self, world: World
    ) -> None:
        schedule = await new_schedule(world)
        await pass_hours(world, 6)
        missed, made = await runs(world, schedule)
        assert (missed["state"], missed["missed"], made["state"]) == ("missed", 5, "running")
        assert datetime.fromisoformat(made["due"]) <= world.now
        ((event, data),) = await told(world)
        assert (event, data["id"], data["missed"], data["run"]) == (
            *("schedule.run_missed", schedule["id"], 5, missed["id"]),
        )

    async def test_one_that_is_hours_late_is_not_made_up_for(self, world: World) -> None:
        schedule = await new_schedule(world, at(world, 1))
        await pass_hours(world, 8)
        (run,) = await runs(world, schedule)
        assert (run["state"], run["missed"], run["job"]) == ("missed", 1, None)

    async def test_a_run_is_skipped_while_the_previous_one_has_not_ended(self, world: World) -> None:
        schedule = await new_schedule(world)
        await world.stop_worker()
        await pass_hours(world)
        await pass_hours(world)
        skipped = (await runs(world, schedule))[1]
        assert (skipped["state"], skipped["reason"]) == ("skipped", "the previous run has not ended")
        assert [event for event, _ in await told(world)] == ["schedule.run_skipped"]
        await world.start_worker()
        await finish(world)
        await pass_hours(world)
        assert await states(world, schedule) == ["measured", "skipped", "running"]


class TestFailures:
    async def test_a_job_that_is_refused_is_told_and_the_next_run_takes_place(self, world: World) -> None:
        """A connection of the job has vanished, for an hour."""
        schedule = await new_schedule(world)
        change = "UPDATE schedules SET job = replace(job::text, %(name)s, %(other)s)::jsonb"
        await world.rows(change, name="acme/writer", other="gone/writer")
        await pass_hours(world)
        (run,) = await runs(world, schedule)
        assert run["state"] == "failed"
        assert "unknown connection 'gone'" in run["reason"]
        ((event, data),) = await told(world)
        assert (event, data["reason"]) == ("schedule.run_failed", run["reason"])
        await world.rows(change, name="gone/writer", other="acme/writer")
        await pass_hours(world)
        await finish(world)
        assert await states(world, schedule) == ["failed", "measured"]

    @pytest.mark.parametrize("end", ["cancelled", "deleted"])
    async def test_a_job_that_is_cancelled_or_deleted_has_no_figure(self, world: World, end: str) -> None:
        schedule = await new_schedule(world)
        await world.stop_worker()
        await pass_hours(world)
        (run,) = await runs(world, schedule)
        if end == "deleted":
            await world.rows("DELETE FROM jobs")
        else:
            await world.post(f"/v1/jobs/{run['job']}/cancel")
        await world.start_worker()
        await finish(world)
        (run,) = await runs(world, schedule)
        assert run["state"] == "failed"
        assert end in run["reason"]

    async def test_one_that_cannot_be_read_for_half_a_day_is_given_up_so_that_others_take_place(
        self, world: World
    ) -> None:
        """What it watches is not known to this release."""
        schedule = await new_schedule(world, at(world, 1))
        await world.rows("UPDATE schedules SET figure = 'of another release'")
        await pass_hours(world)
        await finish(world)
        assert await states(world, schedule) == ["running"]
        await pass_hours(world, 13)
        (run,) = await runs(world, schedule)
        assert (run["state"], run["reason"]) == (
            *("failed", "an internal error: an unexpected error occurred"),
        )
        await pass_hours(world, 11)
        assert await states(world, schedule) == ["failed", "running"]

    async def test_a_run_and_then_all_runs_use_up_what_they_may_spend(self, world: World) -> None:
        """Of jobs of $0.108 each one may spend 0.06, all may 0.08; a call costs 0.0012."""
        prices = {name: {"input": 10.0, "output": 20.0} for name in ("writer", "judge")}
        world.configure(connection={"prices": prices})
        job = JOB | {
            "models": [{"model": "acme/writer", "max_tokens": 50}],
            "judges": [{"model": "acme/judge", "max_tokens": 20}],
            "iterations": 30,
        }
        schedule = await new_schedule(world, job=job, budget={"run_usd": 0.06, "total_usd": 0.08})
        for _ in range(2):
            await pass_hours(world)
            await finish(world)
        first, second = await runs(world, schedule)
        assert (first["state"], second["state"]) == ("failed", "failed")
        assert first["reason"] == "the run's budget is used up; the job is paused"
        assert second["reason"] == "the schedule's budget is used up; the job is paused"
        limits = [
            (await world.get(f"/v1/jobs/{run['job']}"))["budget"]["usd"]["limit"] for run in (first, second)
        ]
        assert limits == [0.06, pytest.approx(0.08 - first["usd"])]
        shown = await world.get(f"/v1/schedules/{schedule['id']}")
        assert (shown["paused_reason"], shown["next_due"]) == ("budget_used_up", None)
        spent = first["usd"] + second["usd"]
        assert shown["budget"]["spent_usd"] == pytest.approx(spent)
        assert 0.02 < first["usd"] <= 0.06 < spent <= 0.08
        heard = [
            (data["run"], data["reason"])
            for event, data in await told(world)
            if event == "schedule.run_failed"
        ]
        assert heard == [(run["id"], run["reason"]) for run in (first, second)]
        page = (await world.http.get(f"/schedules/{schedule['id']}", headers={"accept": "text/html"})).text
        assert "budget used up" in page
        assert "the schedule&#39;s budget is used up" in page


class TestAnchors:
    async def test_each_run_judges_the_same_texts_again_before_its_own_job(self, world: World) -> None:
        world.provider.reply(*(f"I like party {n}." for n in range(12)))
        await world.submit(iterations=12)
        source = await world.run()
        schedule = await new_schedule(
            world, anchors={"job": source["id"], "sample": {"responses": 10, "seed": 3}}
        )
        for _ in range(2):
            await pass_hours(world)
            assert (await runs(world, schedule))[-1]["job"] is None
            await finish(world)
        first, second = await runs(world, schedule)
        assert (first["state"], first["anchor_value"], second["anchor_value"]) == ("measured", 1.0, 1.0)
        judged = [
            [each["text"] for each in (await world.get(f"/v1/jobs/{run['anchor_job']}/responses"))["data"]]
            for run in (first, second)
        ]
        assert len(set(judged[0])) == 10
        assert judged[0] == judged[1]
        kept = await world.rows("SELECT anchors FROM schedule_runs")
        assert kept == [{"anchors": {"E-low": 1.0}}] * 2  # drift is explained by persona

    async def test_are_judged_as_the_job_but_for_refusals_which_are_known(self, world: World) -> None:
        await world.submit(iterations=12)
        source = await world.run()
        judging = {"refusals": "judge_all", "sentences_per_call": 2}
        anchors = {"job": source["id"], "sample": {"responses": 10}}
        schedule = await new_schedule(world, job=JOB | {"judging": judging}, anchors=anchors)
        await pass_hours(world)
        (run,) = await runs(world, schedule)
        job = await world.get(f"/v1/jobs/{run['anchor_job']}")
        assert job["spec"]["judging"] == {"sentences_per_call": 2}

    async def test_without_their_source_a_run_fails_and_says_so(self, world: World) -> None:
        await world.submit(iterations=12)
        source = await world.run()
        schedule = await new_schedule(world, anchors={"job": source["id"], "sample": {"responses": 10}})
        await world.rows("DELETE FROM jobs")
        await pass_hours(world)
        (run,) = await runs(world, schedule)
        assert run["state"] == "failed"
        assert run["reason"].startswith("the anchors: ")
