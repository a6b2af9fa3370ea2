"""Whole jobs on models that refuse: what stops them, what does not, and what people read of it."""

from tests.api.service import Json
from tests.world import Call, Reply, World

DEPRECATED = "`temperature` is deprecated for this model."
REFUSED = Reply(DEPRECATED, status=400, code="invalid_request_error")
NO_SYSTEM = Reply("System role not supported", status=400, code="invalid_request_error")
FILTERED = Reply("The response was filtered.", status=400, code="content_policy_violation")
UPSTREAM = Reply(
    "I st", finish_reason="error", error={"code": 502, "message": "Upstream error from Sim", "metadata": {}}
)


def is_tenth(call: Call) -> bool:
    """Whether it is the text of each tenth run."""
    return call.stage == "generation" and int(call.place.split("/")[1]) % 10 == 9


async def page_of(world: World, path: str) -> str:
    return (await world.http.get(path, headers={"accept": "text/html"})).text


class TestJudge:
    async def test_that_refuses_the_temperature_is_shown_with_its_words(self, world: World) -> None:
        world.provider.reply_always(REFUSED, to="judging")
        job = await world.submit(iterations=60)
        paused = await world.run()
        assert (paused["status"], paused["error"]["detail"]) == ("paused", f"HTTP 400: {DEPRECATED}")
        (failure,) = paused["failures"]
        assert (failure["model"], failure["detail"]) == ("acme/judge", f"HTTP 400: {DEPRECATED}")
        assert failure["calls"] == paused["usage"]["failed_calls"] >= 10
        page = await page_of(world, f"/jobs/{job['id']}")
        assert DEPRECATED in page
        assert "Failed calls" in page
        await world.post(f"/v1/jobs/{job['id']}/cancel")
        await world.run()
        results = await world.get(f"/v1/jobs/{job['id']}/results")
        assert results["failures"][0]["detail"] == f"HTTP 400: {DEPRECATED}"
        assert "Provider message" in await page_of(world, f"/v1/jobs/{job['id']}/report?format=html")

    async def test_of_a_small_job_fails_it_with_the_words(self, world: World) -> None:
        world.provider.reply_always(REFUSED, to="judging")
        text = {"persona": "E-low", "task": "essay", "model": "bot", "text": "I read. I rest."}
        body: Json = {"models": None, "instructions": None, "iterations": None}
        job = await world.submit(responses=[text], **body)
        ended = await world.run()
        assert (ended["status"], ended["error"]["detail"]) == ("failed", f"HTTP 400: {DEPRECATED}")
        (response,) = (await world.get(f"/v1/jobs/{job['id']}/responses"))["data"]
        found = [(one["raw"], one["error"]) for unit in response["units"] for one in unit["verdicts"]]
        assert found == [(None, f"invalid_request_error: HTTP 400: {DEPRECATED}")] * 2


class TestPrompts:
    async def test_with_a_system_message_that_is_refused_stop_the_job_with_the_remedy(
        self, world: World
    ) -> None:
        def refuse(call: Call) -> Reply | None:
            has_system = call.body["messages"][0]["role"] == "system"
            return NO_SYSTEM if has_system and is_tenth(call) else None

        world.provider.reply_by(refuse)
        await world.submit(iterations=100)
        paused = await world.run()
        assert (paused["status"], paused["status_reason"]) == ("paused", "system_message_not_supported")
        assert paused["error"]["detail"] == "HTTP 400: System role not supported"
        assert '"system": "in_user_turn"' in paused["error"]["remedy"]
        (failure,) = paused["failures"]
        assert failure["calls"] < 20
        await world.submit(iterations=20, models=[{"model": "acme/writer", "system": "in_user_turn"}])
        assert (await world.run())["completeness"] == "full"

    async def test_of_which_some_are_filtered_do_not_stop_a_job(self, world: World) -> None:
        world.provider.reply_by(lambda call: FILTERED if is_tenth(call) else None)
        await world.submit(iterations=30)
        job = await world.run()
        assert (job["status"], job["error"]) == ("completed", None)
        assert {failure["code"] for failure in job["failures"]} == {"content_policy_violation"}
        assert all("content filter" in failure["remedy"] for failure in job["failures"])


async def test_an_error_in_a_choice_is_tried_again_and_shown_with_its_words(world: World) -> None:
    world.provider.reply(UPSTREAM)
    await world.submit()
    job = await world.run()
    assert (job["status"], job["completeness"]) == ("completed", "full")
    (failure,) = job["failures"]
    assert (failure["code"], failure["http_status"]) == ("http_502", 502)
    assert failure["detail"] == "HTTP 502: Upstream error from Sim"
