"""Delivers the outbox's messages: each at least once, in order per receiver unless one has to wait.

Slow receivers have a lane of their own, so that their attempts delay no other receiver's messages.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from http import HTTPStatus

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.engine import single_statements
from app.db.health import is_away
from app.db.reasons import reason
from app.db.webhooks import webhooks
from app.db.webhooks.webhooks import DueDelivery
from app.domain.webhooks.webhook import retry_delay, sign
from app.ports import WebhookError, WebhookSender
from app.services.errors import internal_cause
from app.services.webhooks.secrets import opened
from app.telemetry.metrics import count_webhook_attempt
from app.telemetry.vital import vital_tasks
from app.vault.secret_cipher import SealError, SecretCipher

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
"""How soon a message is on its way."""
CLAIM_SECONDS = 60.0
"""How long a message is one process'; several times as long as an attempt may take."""
PLACES = 64
"""Most attempts under way in the main lane."""
SLOW_PLACES = 16
"""Most attempts to slow receivers under way, not counting those that began in the main lane."""
SLOW_SECONDS = 1.0
"""Duration from which an attempt leaves its place in the main lane, and its receiver is slow until it answers sooner."""
SLOW_FOR_SECONDS = 3600.0
"""How long a receiver without attempts counts as slow."""
FORGET_SECONDS = 3600.0
KEPT_DAYS = 30
"""How long it can be seen what became of a message."""


@contextlib.asynccontextmanager
async def delivering(engine: AsyncEngine, sender: WebhookSender, ring: SecretCipher) -> AsyncIterator[None]:
    """Within, messages are delivered. What is on its way at the end is delivered again, by whoever comes next."""
    async with vital_tasks(webhooks=Deliveries(engine, sender, ring).run(), old_messages=_forgetting(engine)):
        yield


class Deliveries:
    """What one process delivers; several at once do no harm."""

    def __init__(self, engine: AsyncEngine, sender: WebhookSender, ring: SecretCipher) -> None:
        self._engine = engine
        self._sender = sender
        self._ring = ring
        self._going: dict[str, asyncio.Task[None]] = {}
        self._slow: dict[str, float] = {}
        """Receivers in the slow lane, with the time until which they stay there."""

    async def run(self) -> None:
        """Delivers until it is cancelled."""
        try:
            while True:
                try:
                    await self._start_due()
                except Exception as error:  # noqa: BLE001 - nothing may end the deliveries of a process
                    _log_failed_look(error)
                await self._pause()
        finally:
            for task in self._going.values():
                task.cancel()
            await asyncio.gather(*self._going.values(), return_exceptions=True)

    async def _pause(self) -> None:
        """Waits for the next look, or for the end of an attempt."""
        if not self._going:
            await asyncio.sleep(LOOK_SECONDS)
            return
        going = self._going.values()
        await asyncio.wait(going, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        self._going = {receiver: task for receiver, task in self._going.items() if not task.done()}

    async def _start_due(self) -> None:
        now = asyncio.get_running_loop().time()
        self._slow = {
            receiver: until
            for receiver, until in self._slow.items()
            if until > now or receiver in self._going
        }
        for is_slow in (False, True) if self._slow else (False,):
            lane = [receiver for receiver in self._going if (receiver in self._slow) is is_slow]
            free = (SLOW_PLACES if is_slow else PLACES) - len(lane)
            if free <= 0:
                continue
            async with single_statements(self._engine) as connection:
                found = await webhooks.claim_due(
                    connection,
                    going=list(self._going),
                    lane=lane,
                    slow=list(self._slow),
                    is_slow=is_slow,
                    limit=free,
                    seconds=CLAIM_SECONDS,
                )
            for due in found:
                self._going[due.webhook_id] = asyncio.create_task(self._deliver(due))

    async def _deliver(self, due: DueDelivery) -> None:
        """One attempt. If its outcome can't be written, the message is due again when the claim has run out."""
        loop = asyncio.get_running_loop()
        leaving = loop.call_later(SLOW_SECONDS, self._make_slow, due.webhook_id)
        try:
            try:
                status, error = await self._attempted(due)
            finally:
                leaving.cancel()
            if loop.time() < leaving.when():
                self._slow.pop(due.webhook_id, None)
            async with self._engine.begin() as connection:
                delay = retry_delay(due.attempt, random.random())  # noqa: S311 - jitter
                if status == HTTPStatus.GONE:
                    delay = None
                await webhooks.note_attempt(
                    connection, due, http_status=status, error=error, again_after=delay
                )
                if status == HTTPStatus.GONE:
                    await webhooks.disable_gone(connection, due.webhook_id)
        except Exception as failure:  # noqa: BLE001 - see above
            log.warning("attempt not recorded", message=due.id, error=type(failure).__name__)
            return
        count_webhook_attempt("delivered" if error is None else "given_up" if delay is None else "retry")
        if error is not None:
            log.warning("message not delivered", message=due.id, attempt=due.attempt, error=error)

    def _make_slow(self, webhook_id: str) -> None:
        self._slow[webhook_id] = asyncio.get_running_loop().time() + SLOW_FOR_SECONDS

    async def _attempted(self, due: DueDelivery) -> tuple[int | None, str | None]:
        """As :meth:`_attempt`; an error that nobody foresaw is an attempt as well, so that attempts come to an end."""
        try:
            return await self._attempt(due)
        except Exception as error:
            log.exception("attempt broke off", message=due.id)
            return None, f"an internal error: {internal_cause(error)}"

    async def _attempt(self, due: DueDelivery) -> tuple[int | None, str | None]:
        """The status of the answer, and why the message does not count as delivered."""
        timestamp = int(clock.now().timestamp())
        try:
            secrets = [opened(self._ring, due.webhook_id, kept) for kept in due.secrets]
        except SealError as error:
            return None, f"its secret can't be read: {error}"
        headers = {
            "content-type": "application/json",
            "user-agent": "persona-assay",
            "webhook-id": due.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(secrets, due.id, timestamp, due.payload),
        }
        try:
            status = await self._sender.send(due.url, headers, due.payload)
        except WebhookError as error:
            return None, str(error)
        taken = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
        return status, None if taken else f"answered {status}"


def _log_failed_look(error: Exception) -> None:
    if is_away(error):
        log.warning("looking for messages failed; trying again", reason=reason(error))
    else:
        log.error("looking for messages failed; trying again", exc_info=error)


async def _forgetting(engine: AsyncEngine) -> None:
    while True:
        try:
            async with engine.begin() as connection:
                await webhooks.forget_ended(connection, KEPT_DAYS)
        except Exception as error:  # noqa: BLE001 - as above
            _log_failed_look(error)
        await asyncio.sleep(FORGET_SECONDS)
