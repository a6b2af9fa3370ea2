"""Messages to webhooks, over real HTTP."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from standardwebhooks import Webhook

from app.db.jobs import jobs
from app.db.webhooks import webhooks
from app.domain.jobs.status import JobStatus
from app.domain.webhooks.contract import NewWebhook, WebhookChangeIn, WebhookIn
from app.domain.webhooks.webhook import WebhookEvent
from app.guard.targets import Guard
from app.services.webhooks import deliver
from app.services.webhooks.deliver import delivering
from app.services.webhooks.secrets import reseal_secrets
from app.services.webhooks.webhooks import (
    WebhookDependencies,
    change_webhook,
    create_webhook,
    send_test,
)
from app.vault.secret_cipher import SecretCipher
from app.webhooks.sender import HttpWebhookSender
from tests.addresses import answers
from tests.integration.jobs import TENANT, execute, new_job, scalar
from tests.integration.llm.stub_provider import Answer, StubProvider

LOCAL = Guard(hosts={"127.0.0.1"})
OLD, NEW = bytes(32), bytes(range(32))
RING = SecretCipher([OLD])
ALL = tuple(WebhookEvent)


@pytest.fixture
def deps(engine: AsyncEngine) -> WebhookDependencies:
    return WebhookDependencies(engine, LOCAL, RING)


async def make(deps: WebhookDependencies, url: str, events: Sequence[WebhookEvent] = ALL) -> NewWebhook:
    return await create_webhook(deps, TENANT, WebhookIn(url=url, events=list(events)))


@contextlib.asynccontextmanager
async def delivered_by(
    engine: AsyncEngine, guard: Guard = LOCAL, seconds: float = 5.0, ring: SecretCipher = RING
) -> AsyncIterator[None]:
    sender = HttpWebhookSender(guard, seconds)
    async with delivering(engine, sender, ring):
        yield
    await sender.close()


async def until(engine: AsyncEngine, holds: Callable[[list[Any]], bool], seconds: float = 20.0) -> list[Any]:
    """The messages in the order in which they were written, once that holds of them."""
    async with asyncio.timeout(seconds):
        while True:
            rows = await execute(engine, "SELECT * FROM webhook_deliveries ORDER BY created_at, id")
            if holds(rows):
                return rows
            await asyncio.sleep(0.05)


def ended(rows: list[Any]) -> bool:
    return all(row.state != "waiting" for row in rows)


def attempted(rows: list[Any]) -> bool:
    return all(row.error is not None or row.state == "delivered" for row in rows)


async def move(engine: AsyncEngine, job_id: str, *path: JobStatus) -> None:
    for status in path:
        async with engine.begin() as connection:
            assert await jobs.move(connection, job_id, leave=list(JobStatus), to=status, reason="why")


class TestTurns:
    async def test_tenants_with_fewer_receivers_under_way_come_first(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        hooks = [await make(deps, "http://127.0.0.1:9/") for _ in range(6)]
        theirs = await create_webhook(deps, "other", WebhookIn(url="http://127.0.0.1:9/"))
        for hook in hooks:
            await send_test(engine, TENANT, hook.id)
        await send_test(engine, "other", theirs.id)
        async with engine.begin() as connection:
            due = await webhooks.claim_due(
                connection, going=(), lane=(), slow=(), is_slow=False, limit=4, seconds=60
            )
        assert {each.webhook_id for each in due} == {*(hook.id for hook in hooks[:3]), theirs.id}

    async def test_hanging_receivers_delay_neither_their_tenants_nor_others(
        self, engine: AsyncEngine, deps: WebhookDependencies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deliver, "PLACES", 4)
        monkeypatch.setattr(deliver, "SLOW_PLACES", 2)
        monkeypatch.setattr(deliver, "SLOW_SECONDS", 0.2)
        async with StubProvider(Answer(delay=600.0)) as hanging, StubProvider(Answer(204, b"")) as healthy:

            async def send(tenant: str, url: str, messages: int) -> None:
                hook = await create_webhook(deps, tenant, WebhookIn(url=url))
                for _ in range(messages):
                    await send_test(engine, tenant, hook.id)

            for tenant in 2 * ("first", "second"):
                await send(tenant, hanging.url, 3)
            async with delivered_by(engine, seconds=600.0):
                await until(engine, lambda rows: sum(row.attempts for row in rows) == 4)
                await send("first", healthy.url, 2)
                await send("third", healthy.url, 2)
                await until(engine, lambda rows: sum(row.state == "delivered" for row in rows) == 4)
        assert len(hanging.seen) == 4  # all of them still under way

    async def test_a_slow_receiver_that_answers_quickly_again_leaves_the_slow_lane(
        self, engine: AsyncEngine, deps: WebhookDependencies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deliver, "SLOW_SECONDS", 0.2)
        deliveries = deliver.Deliveries(engine, HttpWebhookSender(LOCAL), RING)
        async with StubProvider(Answer(204, b"", delay=0.5), Answer(204, b"")) as receiver:
            hook = await make(deps, receiver.url)
            running = asyncio.create_task(deliveries.run())
            for slow in ([hook.id], []):
                await send_test(engine, TENANT, hook.id)
                await until(engine, ended)
                assert list(deliveries._slow) == slow
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


class TestOutbox:
    async def test_a_state_that_is_rolled_back_is_told_to_nobody(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        await make(deps, "http://127.0.0.1:9/")
        job = await new_job(engine)
        async with engine.connect() as connection:
            await jobs.move(connection, job.id, leave=list(JobStatus), to=JobStatus.FAILED)
            await connection.rollback()
        assert await scalar(engine, "SELECT count(*) FROM webhook_deliveries") == 0

    async def test_one_that_is_just_being_deleted_holds_no_job_in_its_state(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        made = await make(deps, "http://127.0.0.1:1/x")
        job = await new_job(engine)
        async with engine.begin() as connection:
            await webhooks.delete_webhook(connection, TENANT, made.id)
            moving = asyncio.create_task(move(engine, job.id, JobStatus.PAUSED))
            await asyncio.wait({moving}, timeout=0.2)
        await moving
        assert await scalar(engine, "SELECT status FROM jobs") == "paused"
        assert await scalar(engine, "SELECT count(*) FROM webhook_deliveries") == 0

    async def test_what_waits_for_one_that_is_switched_off_is_given_up(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        off, on = [await make(deps, "http://127.0.0.1:9/") for _ in range(2)]
        job = await new_job(engine)
        await move(engine, job.id, JobStatus.PAUSED)
        await change_webhook(deps, TENANT, off.id, WebhookChangeIn(enabled=False))
        # As if it had come while that was going on.
        await execute(
            engine,
            "UPDATE webhook_deliveries SET state = 'waiting', ended_at = NULL, error = NULL, event = 'job.failed'"
            " WHERE webhook_id = :off",
            off=off.id,
        )
        async with engine.begin() as connection:
            await webhooks.forget_ended(connection, 30)
        found = {row.webhook_id: (row.state, row.error) for row in await until(engine, bool)}
        assert found == {off.id: ("given_up", "switched off"), on.id: ("waiting", None)}


class TestReceivers:
    async def test_a_name_that_stands_for_a_private_address_by_now_is_refused(
        self, engine: AsyncEngine
    ) -> None:
        rebound = Guard(look_up=answers("93.184.215.14", "127.0.0.1"))
        async with StubProvider(Answer(200)) as receiver:
            port = receiver.url.rpartition(":")[2]
            hook = await make(WebhookDependencies(engine, rebound, RING), f"https://example.com:{port}/")
            await send_test(engine, TENANT, hook.id)
            async with delivered_by(engine, rebound):
                (row,) = await until(engine, attempted)
        assert row.error.startswith("refused: the host resolves to addresses that are not allowed")
        assert receiver.connections == 0

    async def test_a_host_that_is_no_longer_allowed_is_refused(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        async with StubProvider(Answer(200)) as receiver:
            hook = await make(deps, receiver.url)
            await send_test(engine, TENANT, hook.id)
            async with delivered_by(engine, Guard()):
                (row,) = await until(engine, attempted)
        assert row.error.startswith("refused: only https")
        assert receiver.connections == 0


class TestSecretsAtRest:
    async def test_a_secret_is_not_in_its_row_and_signs_all_the_same_after_its_key_was_replaced(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        async with StubProvider(Answer(204, b"")) as receiver:
            hook = await make(deps, receiver.url)
            unsealed = await make(WebhookDependencies(engine, LOCAL, SecretCipher(())), receiver.url)
            assert await reseal_secrets(engine, SecretCipher([NEW, OLD])) == 2
            assert await reseal_secrets(engine, SecretCipher([NEW, OLD])) == 0
            assert "whsec_" not in str(await execute(engine, "SELECT secret FROM webhooks"))
            for each in (hook, unsealed):
                await send_test(engine, TENANT, each.id)
            async with delivered_by(engine, ring=SecretCipher([NEW])):
                await until(engine, ended)
        assert len(receiver.seen) == 2
        for seen in receiver.seen:
            signer = hook if hook.id in seen.body.decode() else unsealed
            Webhook(signer.secret).verify(seen.body, dict(seen.headers))

    async def test_one_that_cannot_be_read_is_the_reason_of_a_failed_attempt(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        async with StubProvider(Answer(204, b"")) as receiver:
            hook = await make(deps, receiver.url)
            await send_test(engine, TENANT, hook.id)
            async with delivered_by(engine, ring=SecretCipher([NEW])):
                (row,) = await until(engine, attempted)
        assert row.error.startswith("its secret can't be read")
        assert receiver.connections == 0


class TestDeaths:
    async def test_a_sweeper_killed_between_delivery_and_mark_has_it_delivered_again_under_the_same_id(
        self, engine: AsyncEngine, deps: WebhookDependencies, database_url: str, redis_url: str
    ) -> None:
        async with StubProvider(Answer(delay=600.0), Answer(200)) as receiver:
            hook = await make(deps, receiver.url)
            await send_test(engine, TENANT, hook.id)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "workers.sweeper"),
                env={
                    **os.environ,
                    "DATABASE_URL": database_url,
                    "REDIS_URL": redis_url,
                    "ASSAY_WEBHOOK_HOSTS": "127.0.0.1",
                    "ASSAY_ENCRYPTION_KEYS": OLD.hex(),
                },
            )
            try:
                await until(engine, lambda rows: rows[0].attempts == 1 and len(receiver.seen) == 1, 60.0)
            finally:
                process.send_signal(signal.SIGKILL)
                await process.wait()
            (row,) = await until(engine, bool)
            assert (row.state, row.attempts) == ("waiting", 1)
            assert await scalar(
                engine, "SELECT due_at > now() + interval '50 seconds' FROM webhook_deliveries"
            )
            await execute(engine, "UPDATE webhook_deliveries SET due_at = now()")
            async with delivered_by(engine):
                (row,) = await until(engine, ended)
        assert (row.state, row.attempts) == ("delivered", 2)
        assert [seen.headers["webhook-id"] for seen in receiver.seen] == [row.id, row.id]

    async def test_an_outcome_that_comes_after_another_attempt_began_changes_nothing(
        self, engine: AsyncEngine, deps: WebhookDependencies
    ) -> None:
        hook = await make(deps, "http://127.0.0.1:9/")
        await send_test(engine, TENANT, hook.id)
        claims = []
        for _ in range(2):
            async with engine.begin() as connection:
                claims += await webhooks.claim_due(
                    connection, going=(), lane=(), slow=(), is_slow=False, limit=5, seconds=0.0
                )
        async with engine.begin() as connection:
            await webhooks.note_attempt(
                connection, claims[0], http_status=410, error="answered 410", again_after=None
            )
        (row,) = await until(engine, bool)
        assert (row.state, row.attempts, row.error) == ("waiting", 2, None)
