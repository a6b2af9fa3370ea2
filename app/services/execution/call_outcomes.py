"""Classifies failed calls: whether the provider's server or the call itself is the cause."""

import asyncio
from http import HTTPStatus

from app.domain.providers.failure import is_time_out
from app.domain.providers.model import Model
from app.ports import CallOutcome, ChatModel, FailureKind, ModelCallError, RateLimiter
from app.services.execution.stop_signal import StopSignal

_OVERLOADED_STATUSES = frozenset({502, 503, 520, 521, 522, 523, 525, 526, 529, 530})
"""Overload, and gateways, Cloudflare's included, that get no answer from the model's server."""
_WAITING_STATUSES = frozenset({503, 529})
"""Overload in the server's own words: no prompt causes it."""
_UNSENT_CODE = "connection_failed"
_UNREACHABLE_CODES = frozenset({_UNSENT_CODE, "connection_lost"})

MOST_UNREACHED = 30
"""After so many of a call's failures that were not counted, further ones that its prompt may have caused are."""

AWAY = frozenset({CallOutcome.UNREACHABLE, CallOutcome.OVERLOADED, CallOutcome.TIMED_OUT})
"""How a call can end whose provider's server is away."""


def outcome_of(error: ModelCallError) -> CallOutcome:
    """Classify a failed call. An answered error concerns its model, never the connection; a plain 500 may concern one prompt."""
    status = error.status
    if error.code in _UNREACHABLE_CODES:
        return CallOutcome.UNREACHABLE
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        # Nothing can be waited for where the account has no money left.
        return CallOutcome.RATE_LIMITED if error.kind is FailureKind.RETRY else CallOutcome.REJECTED
    if status in _OVERLOADED_STATUSES:
        return CallOutcome.OVERLOADED
    if is_time_out(error.code, status):
        return CallOutcome.TIMED_OUT
    answered = status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR
    return CallOutcome.REJECTED if answered else CallOutcome.FAILED


class Blame:
    """Tells whether a call failed because its server is away.

    A prompt at which a server breaks the connection each time, or crashes, looks the same. If its failures were an outage's, nothing
    would ever end its job.

    Args:
        chat: Sends an empty request.
        limiter: Knows of outages.
    """

    def __init__(self, chat: ChatModel, limiter: RateLimiter) -> None:
        self._chat = chat
        self._limiter = limiter
        self._probes: dict[str, asyncio.Task[bool]] = {}

    async def is_of_outage(
        self, error: ModelCallError, model: Model, tenant: str, stop: StopSignal, unreached: int
    ) -> bool:
        """Whether a failure is that of the connection, and not of the call that met it.

        Args:
            error: The failure.
            model: Called.
            tenant: Whose call it is.
            stop: Of the call's shard.
            unreached: How many of the call's earlier failures were an outage's.

        Raises:
            StoppedError: If the call's shard is stopped before that is known.
        """
        if error.kind is not FailureKind.RETRY:
            return False
        if error.code == _UNSENT_CODE:
            return True
        outcome = outcome_of(error)
        if outcome is CallOutcome.OVERLOADED:
            away = self._limiter.is_away(model.connection)
            if not (away or self._limiter.is_failing(model.connection, model.name)):
                return False
            return error.status in _WAITING_STATUSES or unreached < MOST_UNREACHED
        if outcome not in AWAY or not self._limiter.is_away(model.connection):
            return False
        # An empty request, which has no prompt, must fail as well.
        return unreached < MOST_UNREACHED and await self._meets_all(model, tenant, stop)

    async def _meets_all(self, model: Model, tenant: str, stop: StopSignal) -> bool:
        """Whether an empty request fails like the call before it; one is sent for all calls that fail at a time."""
        name = model.connection
        probe = self._probes.get(name)
        if probe is None:
            probe = self._probes[name] = asyncio.create_task(self._probe(model, tenant), name="probe")
            probe.add_done_callback(lambda _: self._probes.pop(name))
        with stop.interruptible():
            return await asyncio.shield(probe)

    async def _probe(self, model: Model, tenant: str) -> bool:
        try:
            await self._chat.probe(model.connection, tenant)
        except ModelCallError as error:
            # Where nobody is found any more, the call before was sent: what took it has gone since.
            return error.code != _UNSENT_CODE and outcome_of(error) in AWAY
        # That ends no outage: a server in between answers it by itself while that behind it is away.
        return False
