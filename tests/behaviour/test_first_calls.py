"""A model's first calls, and calls that all fail alike: what a job pays before it stops, and what does not stop it."""

from collections import Counter
from datetime import timedelta

import pytest

from app.services.execution.first_calls import FEWEST_TRIALS, FIRST_CALLS
from tests.api.service import Json
from tests.world import Call, Reply, World

WORDS = "temperature is deprecated for this model"
REFUSED = Reply(WORDS, status=400, code="invalid_request_error")
WRONG_KEY = Reply("no", status=401, code="invalid_api_key")
UNEXPLAINED = Reply("no", status=403)
FLAGGED = Reply("flagged", status=403, code="flagged")
TOO_LONG = Reply("too long", status=400, code="context_length_exceeded")
FILTERED = Reply("filtered", status=400, code="content_filter")


def made(world: World) -> Counter[str]:
    return Counter(call.stage for call in world.provider.calls)


async def resume(world: World, job: Json) -> Json:
    await world.post(f"/v1/jobs/{job['id']}/resume")
    return await world.run()


def after_sixty_calls(world: World, reply: Reply) -> None:
    """The credit ends in the middle."""
    world.provider.reply_by(lambda _: reply if len(world.provider.calls) > 60 else None)


def sent_after_a_refusal(world: World) -> list[Call]:
    """The calls that were not yet in flight when the first refusal came."""
    came = world.provider.calls[60].at + timedelta(seconds=UNEXPLAINED.delay)
    return [call for call in world.provider.calls if call.at > came]


class TestTheFirstCall:
    @pytest.mark.parametrize(
        ("stage", "calls", "status"),
        [
            ("generation", {"generation": 1}, "failed"),
            ("judging", {"generation": 1, "judging": 1}, "paused"),
        ],
    )
    async def test_is_the_only_one_that_a_wrong_key_costs(
        self, world: World, stage: str, calls: dict[str, int], status: str
    ) -> None:
        world.provider.reply_always(WRONG_KEY, to=stage)
        await world.submit(personas=["E-low", "E-high", "A-low", "A-high"], iterations=50)
        assert ((await world.run())["status"], made(world)) == (status, calls)

    async def test_goes_alone_only_for_a_while(self, world: World) -> None:
        world.provider.reply(Reply(delay=100))
        await world.submit(iterations=20)
        await world.advance(seconds=60)
        assert made(world)["judging"] >= 10
        assert (await world.run())["completeness"] == "full"

    async def test_is_made_again_at_once_when_the_job_is_resumed(self, world: World) -> None:
        world.provider.reply_always(WRONG_KEY, to="judging")
        job = await world.submit(iterations=20)
        await world.run()
        before = made(world)["judging"]
        slow = Reply("no", status=401, code="invalid_api_key", delay=0.5)  # in which others would go, too
        world.provider.reply_always(slow, to="judging")
        assert (await resume(world, job))["status"] == "paused"
        assert made(world)["judging"] == before + 1
        world.provider.reply_always("2", to="judging")
        assert (await resume(world, job))["completeness"] == "full"


class TestCallsThatAllFailAlike:
    async def test_of_a_judge_pause_the_job_with_its_words_before_more_texts_are_paid(
        self, world: World
    ) -> None:
        world.provider.reply_always(REFUSED, to="judging")
        job = await world.submit(iterations=100)
        paused = await world.run()
        assert (paused["status"], paused["status_reason"]) == ("paused", "invalid_request_error")
        error = paused["error"]
        assert (error["detail"], error["model"], error["stage"], error["first_calls"]) == (
            *(f"HTTP 400: {WORDS}", "acme/judge", "judging", FIRST_CALLS),
        )
        assert "Change what the provider's message names" in error["remedy"]
        assert made(world)["generation"] <= FIRST_CALLS + 4, (
            "of 100; at most those in flight beside the first"
        )
        assert FIRST_CALLS <= made(world)["judging"] < 2 * FIRST_CALLS
        assert (await resume(world, job))["status"] == "paused", "nothing was mended"
        assert made(world)["generation"] <= 2 * (FIRST_CALLS + 4)

    async def test_of_a_model_under_test_pause_it_though_nothing_was_answered(self, world: World) -> None:
        world.provider.reply_always(REFUSED)
        await world.submit(iterations=100)
        paused = await world.run()
        assert (paused["status"], paused["status_reason"]) == ("paused", "invalid_request_error")
        assert FIRST_CALLS <= made(world)["generation"] < 2 * FIRST_CALLS

    async def test_are_made_again_when_it_is_resumed(self, world: World) -> None:
        world.provider.reply_always(REFUSED, to="judging")
        job = await world.submit(iterations=20)
        await world.run()
        world.provider.reply_always("2", to="judging")
        ended = await resume(world, job)
        assert (ended["status"], ended["completeness"], ended["error"]) == ("completed", "full", None)

    async def test_in_a_small_job_fail_it_with_the_words(self, world: World) -> None:
        world.provider.reply_always(REFUSED, to="judging")
        job = await world.submit()  # 4 verdicts
        ended = await world.run()
        assert (ended["status"], ended["status_reason"]) == ("failed", "invalid_request_error")
        assert (ended["error"]["detail"], ended["error"]["stage"]) == (f"HTTP 400: {WORDS}", "judging")
        world.provider.reply_always("2", to="judging")
        await world.post(f"/v1/jobs/{job['id']}/retry")
        assert (await world.run())["completeness"] == "full"

    async def test_of_one_of_two_judges_stop_the_job_too(self, world: World) -> None:
        world.configure(connection={"models": ["writer", "judge", "harsh"]})
        world.provider.reply_by(lambda call: REFUSED if call.model == "harsh" else None)
        await world.submit(iterations=100, judges=["acme/judge", "acme/harsh"])
        paused = await world.run()
        assert (paused["status"], paused["error"]["model"]) == ("paused", "acme/harsh")


class TestARunOfRefusals:
    async def test_after_answers_pauses_the_job_and_is_asked_again_when_it_is_resumed(
        self, world: World
    ) -> None:
        after_sixty_calls(world, UNEXPLAINED)
        job = await world.submit(iterations=100)
        paused = await world.run()
        assert (paused["status"], paused["status_reason"]) == ("paused", "http_403")
        assert paused["error"]["detail"] == "HTTP 403: no"
        assert sum(call.stage == "generation" for call in sent_after_a_refusal(world)) <= 2 * FIRST_CALLS
        world.provider.reply_by(lambda _: None)
        assert (await resume(world, job))["completeness"] == "full"

    async def test_counts_the_calls_to_all_models_of_a_connection_together(self, world: World) -> None:
        world.configure(connection={"models": ["writer", "other", "judge"]})
        after_sixty_calls(world, UNEXPLAINED)
        await world.submit(iterations=100, models=["acme/writer", "acme/other"])
        assert (await world.run())["status"] == "paused"
        refused = Counter((call.model, call.stage) for call in world.provider.calls[60:])
        assert len(refused) > 1
        assert len(sent_after_a_refusal(world)) <= 2 * FIRST_CALLS

    async def test_sends_one_call_at_a_time_before_the_job_stops(self, world: World) -> None:
        after_sixty_calls(world, Reply("no", status=403, delay=1))
        await world.submit(iterations=100)
        assert (await world.run())["status"] == "paused"
        *_, before = world.provider.calls[:-FEWEST_TRIALS]
        for call in world.provider.calls[-FEWEST_TRIALS:]:
            assert call.at - before.at >= timedelta(seconds=1)
            before = call


class TestSingleFailures:
    @pytest.mark.parametrize("refusal", [REFUSED, FLAGGED], ids=["refused", "flagged"])
    async def test_never_stop_a_job(self, world: World, refusal: Reply) -> None:
        world.provider.reply_by(
            lambda call: refusal if (call.stage, call.place) == ("generation", "0/3/0") else None
        )
        await world.submit(iterations=20)
        ended = await world.run()
        assert (ended["status"], ended["completeness"], ended["error"]) == ("completed", "partial", None)

    async def test_however_many_do_not_stop_one_that_has_got_answers(self, world: World) -> None:
        world.provider.reply("2", to="judging")
        world.provider.reply_always(TOO_LONG, to="judging")
        await world.submit(iterations=20)
        assert (await world.run())["status"] == "completed"

    async def test_by_a_filter_say_nothing_of_the_model(self, world: World) -> None:
        world.provider.reply(FILTERED, times=15)
        await world.submit(iterations=20)
        assert (await world.run())["status"] == "completed"

    async def test_are_shown_by_stage_model_code_and_words(self, world: World) -> None:
        places = {"0/3/0/1/0/0", "0/4/0/0/0/0"}
        world.provider.reply_by(
            lambda call: REFUSED if call.stage == "judging" and call.place in places else None
        )
        await world.submit(iterations=20)
        (found,) = (await world.run())["failures"]
        assert (found["stage"], found["model"], found["code"], found["http_status"], found["calls"]) == (
            *("judging", "acme/judge", "invalid_request_error", 400, 2),
        )
        assert found["detail"] == f"HTTP 400: {WORDS}"
        assert "Change what the provider's message names" in found["remedy"]
        errors = await world.rows("SELECT error, count(*) FROM verdicts GROUP BY error ORDER BY 2")
        assert [tuple(row.values()) for row in errors] == [
            (f"invalid_request_error: HTTP 400: {WORDS}", 2),
            (None, 38),
        ]


async def test_few_texts_are_written_until_the_judge_has_answered_once(world: World) -> None:
    world.provider.reply_always(Reply("2", delay=60), to="judging")
    await world.submit(iterations=100)
    await world.advance(seconds=40)
    assert made(world)["generation"] == FIRST_CALLS
    world.provider.reply_always("2", to="judging")
    assert (await world.run())["completeness"] == "full"
    world.provider.reply_always(Reply("2", delay=60), to="judging")
    await world.submit(iterations=100)
    await world.advance(seconds=40)
    assert made(world)["generation"] == 200
