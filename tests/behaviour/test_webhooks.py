"""Messages to webhooks: what is told and when, how it is signed, and receivers that fail."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from app.domain.webhooks.webhook import LONGEST_JITTER, MOST_ATTEMPTS, RETRY_SECONDS
from tests.api.service import Json
from tests.integration.llm.stub_provider import Answer, Seen, StubProvider
from tests.world import World

TAKEN = Answer(204, b"")
NOBODY = "http://127.0.0.1:9/"


async def new_hook(world: World, url: str, events: Sequence[str] = ("job.completed", "job.paused")) -> Json:
    return await world.post("/v1/webhooks", {"url": url, "events": list(events)})


async def send(world: World, hook: Json, messages: int = 1) -> None:
    for _ in range(messages):
        await world.post(f"/v1/webhooks/{hook['id']}/test")


async def deliveries(world: World, hook: Json) -> list[Json]:
    """The messages, oldest first."""
    found: list[Json] = (await world.get(f"/v1/webhooks/{hook['id']}/deliveries"))["data"]
    return found[::-1]


def is_signed(seen: Seen, secret: str) -> bool:
    """Whether a message carries this secret's signature. The library's own check reads the machine's clock."""
    at = datetime.fromtimestamp(int(seen.headers["webhook-timestamp"]), UTC)
    signature = Webhook(secret).sign(seen.headers["webhook-id"], at, seen.body.decode())
    return signature in seen.headers["webhook-signature"].split()


class TestJobs:
    async def test_a_job_that_pauses_and_ends_is_told_of_once_each_and_signed(self, world: World) -> None:
        async with StubProvider(TAKEN) as receiver:
            hook = await new_hook(world, f"{receiver.url}/hook?key=1")
            job = await world.submit(budget={"calls": 3}, name="a job")
            paused = await world.run()
            await world.patch(f"/v1/jobs/{job['id']}", {"budget": {"calls": 6}})
            await world.post(f"/v1/jobs/{job['id']}/resume")
            ended = await world.run()
            await world.advance(seconds=5)
        assert [seen.json()["type"] for seen in receiver.seen] == ["job.paused", "job.completed"]
        assert all(is_signed(seen, hook["secret"]) for seen in receiver.seen)
        assert receiver.seen[0].line == "POST /hook?key=1 HTTP/1.1"
        names = ("id", "object", "name", "status", "status_reason", "completeness", "error", "metadata")
        for seen, shown in zip(receiver.seen, (paused, ended), strict=True):
            links = {"links": {"self": f"/v1/jobs/{job['id']}"}}
            assert seen.json()["data"] == {name: shown[name] for name in names} | links

    async def test_only_who_wants_an_event_and_is_on_is_told(self, world: World) -> None:
        hooks = [
            await new_hook(world, NOBODY, events)
            for events in (["job.completed"], ["job.failed"], ["job.completed"])
        ]
        await world.patch(f"/v1/webhooks/{hooks[2]['id']}", {"enabled": False})
        await world.submit()
        await world.run()
        assert [len(await deliveries(world, hook)) for hook in hooks] == [1, 0, 0]

    async def test_what_waits_for_one_that_is_switched_off_is_given_up(self, world: World) -> None:
        hook = await new_hook(world, NOBODY)
        await send(world, hook)
        await world.advance(seconds=2)
        await world.patch(f"/v1/webhooks/{hook['id']}", {"enabled": False})
        (message,) = await deliveries(world, hook)
        assert (message["state"], message["error"]) == ("given_up", "switched off")


class TestSecrets:
    async def test_for_a_day_both_sign_then_the_new_one_alone(self, world: World) -> None:
        async with StubProvider(TAKEN) as receiver:
            hook = await new_hook(world, receiver.url)
            new = await world.post(f"/v1/webhooks/{hook['id']}/rotate-secret")
            for hours in (23, 2):
                await world.advance(hours=hours)
                await send(world, hook)
            await world.advance(hours=1)
        signed = [[is_signed(seen, made["secret"]) for made in (hook, new)] for seen in receiver.seen]
        assert signed == [[True, True], [False, True]]
        assert await world.rows("SELECT former_secret FROM webhooks") == [{"former_secret": None}]


class TestReceivers:
    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (Answer(500), "answered 500"),
            (Answer(302, b"", {"location": "/elsewhere"}), "answered 302"),
            (Answer(delay=60.0), "no answer within 15 s"),
            (Answer(reset=True), "the connection broke off"),
        ],
        ids=["fails", "redirects", "is slow", "resets"],
    )
    async def test_one_that_does_not_take_a_message_gets_it_again_later(
        self, world: World, answer: Answer, error: str
    ) -> None:
        async with StubProvider(answer, TAKEN) as receiver:
            hook = await new_hook(world, receiver.url)
            await send(world, hook)
            states = []
            for seconds in (1, 15, RETRY_SECONDS[0] * (1 + LONGEST_JITTER)):
                await world.advance(seconds=seconds)
                (message,) = await deliveries(world, hook)
                states.append((message["state"], message["attempts"], message["error"]))
        assert ("waiting", 1, error) in states
        assert states[-1] == ("delivered", 2, None)
        first, second = receiver.seen
        assert first.headers["webhook-id"] == second.headers["webhook-id"] == message["id"]
        assert first.body == second.body

    async def test_one_that_is_down_is_given_up_after_ten_attempts_in_three_days(self, world: World) -> None:
        hook = await new_hook(world, NOBODY)
        await send(world, hook)
        await world.advance(seconds=1)
        for seconds in RETRY_SECONDS:
            (message,) = await deliveries(world, hook)
            assert message["state"] == "waiting"
            await world.advance(seconds=seconds * (1 + LONGEST_JITTER))
        (message,) = await deliveries(world, hook)
        assert (message["state"], message["attempts"], message["error"]) == (
            *("given_up", MOST_ATTEMPTS, "can't connect"),
        )

    async def test_one_that_says_it_is_gone_is_told_nothing_any_more(self, world: World) -> None:
        async with StubProvider(Answer(410)) as receiver:
            hook = await new_hook(world, receiver.url)
            await send(world, hook, messages=3)
            await world.advance(minutes=1)
        assert [message["state"] for message in await deliveries(world, hook)] == ["given_up"] * 3
        assert len(receiver.seen) == 1
        assert (await world.get(f"/v1/webhooks/{hook['id']}"))["disabled_reason"] == "gone"

    async def test_a_slow_one_holds_up_no_other_and_gets_one_message_at_a_time(self, world: World) -> None:
        async with StubProvider(Answer(delay=60.0)) as slow, StubProvider(TAKEN) as quick:
            for receiver, messages in ((slow, 8), (quick, 3)):
                await send(world, await new_hook(world, receiver.url), messages)
            await world.advance(seconds=5)
        assert (len(slow.seen), len(quick.seen)) == (1, 3)

    async def test_ten_tests_a_minute_are_sent_at_most(self, world: World) -> None:
        hook = await new_hook(world, NOBODY)
        await send(world, hook, messages=10)
        await world.advance(seconds=50)
        refused = await world.http.post(f"/v1/webhooks/{hook['id']}/test")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_often")
        await world.advance(seconds=float(refused.headers["retry-after"]))
        await send(world, hook)
