"""What the services need from the outside world, as narrow protocols; the real parts are built once, at the edge."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple, Protocol
from uuid import UUID

from app.domain.providers.failure import SUSPECT_REPLY
from app.domain.providers.model import ChatReply, ChatRequest, Model, ProviderLimits, Usage


class FailureKind(StrEnum):
    """What a failed call means for the work."""

    RETRY = "retry"
    """Try the same call again later: rate limit, overload, time-out, connection lost, garbled reply."""
    ITEM = "item"
    """This item can never succeed: prompt too long, parameter refused."""
    FILTERED = "filtered"
    """Neither can this one: the provider's content filter refused the prompt, before the model saw it."""
    JOB = "job"
    """No further call of the job on this model can succeed: credit exhausted, key refused, model gone."""


class ModelCallError(Exception):
    """A call that gave no answer, in one vocabulary for all providers.

    Attributes:
        kind: What it means for the work.
        code: The provider's exact error code or, where there is none, one of ours such as ``"timeout"``.
        status: HTTP status; ``None`` where no response came.
        retry_after: Seconds that the provider asked to wait; ``None`` if it did not say.
        maybe_paid: Whether the provider may have worked (and charged) all the same, as after a time-out.
        usage: Tokens that the provider reports for the failed call; ``None`` if it reports none.
        limits: The provider's rate limits, where the response has news of them.
        most_attempts: After how many attempts the item has failed, where that is fewer than of other failures.
        unexplained: Whether the provider refused the call for a reason that we do not know to concern only its item.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        code: str,
        status: int | None = None,
        retry_after: float | None = None,
        maybe_paid: bool = False,
        limits: ProviderLimits | None = None,
        most_attempts: int | None = None,
        unexplained: bool = False,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.unexplained = unexplained
        self.kind = kind
        self.code = code
        self.status = status
        self.retry_after = retry_after
        self.maybe_paid = maybe_paid
        self.limits = limits
        self.most_attempts = most_attempts
        self.usage = usage

    def charge(self, usage: Usage | None) -> None:
        """Note the tokens that the provider reports beside the failure."""
        self.usage = self.usage or usage


class SuspectReplyError(ModelCallError):
    """The connection brought more than the call's reply, so the reply may be another call's."""

    def __init__(self) -> None:
        super().__init__(
            "the server sent further bytes after its reply, so the reply may belong to another request",
            kind=FailureKind.RETRY,
            code=SUSPECT_REPLY,
            status=HTTPStatus.OK,
            maybe_paid=True,
            most_attempts=8,
        )


class ProviderProbe(Protocol):
    """Finds out whether a connection's server answers, at no cost."""

    async def probe(self, connection: str, tenant: str) -> None:
        """Sends a call without a model or a message, which no provider charges for and each refuses.

        Raises:
            ModelCallError: What it answered, or why nothing came.
        """
        ...


class ChatModel(ProviderProbe, Protocol):
    """Makes one attempt at one call: no retries, no rate limiting."""

    async def prepare(self, connection: str, tenant: str) -> None:
        """Gets ready to call the models of a connection, so that nothing slow is left between a slot and its call.

        Args:
            connection: Its name in the job.
            tenant: Whose job it is.

        Raises:
            ModelCallError: If this tenant has no such connection.
        """
        ...

    def body_bytes(self, request: ChatRequest) -> int:
        """How long the encoded body of a request is; its connection has been prepared.

        Raises:
            ModelCallError: If it can't be encoded.
        """
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The model's answer.

        Raises:
            ModelCallError: If there was none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes a request the same as another.

    Attributes:
        digest: Of all that its provider sees of it but ids: where it goes, and its body.
        temperature: As it is sent; ``None`` where it is not.
    """

    digest: bytes
    temperature: object


class RequestFingerprints(Protocol):
    """Tells requests that are the same to their provider."""

    async def prepare(self, connection: str, tenant: str) -> None:
        """See :class:`ChatModel`.

        Raises:
            ModelCallError: If this tenant has no such connection.
        """
        ...

    def fingerprint(self, request: ChatRequest) -> Fingerprint:
        """A request's fingerprint; its connection has been prepared."""
        ...


BATCH_LOST = "lost"
"""Stands for the answers to calls of a batch that may be at its provider, where we can't find it."""


class BatchTooLargeError(Exception):
    """A provider does not take so many calls at a time.

    Attributes:
        for_now: Whether it may take them when others have been answered.
    """

    def __init__(self, message: str, *, for_now: bool) -> None:
        super().__init__(message)
        self.for_now = for_now


class BatchRefusedError(ModelCallError):
    """A provider has looked at a batch and turned it down as a whole; nothing in it was called."""


class AnswersIncompleteError(ModelCallError):
    """Fewer answers of a batch came than its provider counts."""


class UploadedBatch(NamedTuple):
    """A batch's calls, ready to be submitted.

    Attributes:
        file_id: Of the file with them at the provider; ``None`` where the calls go with the submission.
        submit: Submits the batch under a name of ours, and returns its id at the provider.
    """

    file_id: str | None
    submit: Callable[[str], Awaitable[str]]


class BatchModel(Protocol):
    """The batch endpoints of all connections. What it raises is a :class:`ModelCallError` unless stated otherwise."""

    async def prepare(self, connection: str, tenant: str) -> None:
        """Gets ready to use a connection for a tenant's job."""
        ...

    def encode(self, request: ChatRequest) -> str:
        """A call in its connection's wire format, as JSON text."""
        ...

    def decode(self, connection: str, answer: str) -> ChatReply:
        """The reply in what came for one call; what a failed call raises if there is none."""
        ...

    async def upload(
        self, connection: str, file_name: str, calls: AsyncIterator[tuple[str, str]]
    ) -> UploadedBatch:
        """Sends, or only keeps, a batch's calls: custom ids and what :meth:`encode` made.

        Args:
            connection: Where.
            file_name: What the file with them is called at the provider, if it has files.
            calls: The calls.

        Raises:
            BatchTooLargeError: If there are too many; so does what is returned.
        """
        ...

    async def delete_file(
        self, connection: str, file_name: str, file_id: str | None, since: datetime
    ) -> bool:
        """Deletes the file of an upload, whether that was interrupted or not.

        Args:
            connection: Where.
            file_name: What it is called.
            file_id: Its id at the provider, if that is known.
            since: When it was made, at the earliest.

        Returns:
            Whether nothing is left of it; ``False`` where none of that name is to be found, or not yet.
        """
        ...

    async def find(
        self, connection: str, name: str, calls: int, since: datetime, known: Collection[str]
    ) -> str | None:
        """The id of a batch that may have been submitted under a name without our learning of it.

        Args:
            connection: Where.
            name: The name. Where the provider keeps none, a batch counts as ours that has as many calls.
            calls: How many it has.
            since: When it was submitted, at the earliest.
            known: Ids of other batches.
        """
        ...

    async def has_ended(self, connection: str, provider_id: str) -> bool:
        """Whether all that will be answered in a batch is there.

        Raises:
            BatchRefusedError: If it was turned down as a whole.
            BatchTooLargeError: If that was for its size.
        """
        ...

    async def cancel(self, connection: str, provider_id: str) -> None:
        """Has the provider answer no more calls of a batch than it is at. It ends some time later."""
        ...

    def answers(self, connection: str, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
        """Custom ids and answers of a batch that has ended, in any order.

        Raises:
            AnswersIncompleteError: After the last one, if there were fewer than the provider counts.
        """
        ...


class LimiterUnavailableError(Exception):
    """The shared rate limiter cannot be reached; no call may go out."""


class ProviderUnreachableError(Exception):
    """A connection's server has been away for longer than the operator lets jobs wait; the message says what calls ended with.

    Attributes:
        seconds: For how long it has been away.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class CallOutcome(StrEnum):
    """How a call ended, as far as it says something of what its provider can take."""

    ANSWERED = "answered"
    RATE_LIMITED = "rate_limited"
    """Status 429."""
    OVERLOADED = "overloaded"
    """Status 503 or 529, or a gateway (502) that gets no answer from the model's server."""
    TIMED_OUT = "timed_out"
    """No answer before our deadline, or before that of a server in between."""
    UNREACHABLE = "unreachable"
    """The connection was refused or broke, or its host has no address."""
    REJECTED = "rejected"
    """Any other answer: the server can be reached, and no more is known of what the provider can take."""
    FAILED = "failed"
    """Status 500, or an error before anything was sent: nothing is known of the server."""


class Observation(NamedTuple):
    """What the end of a call tells of its provider.

    Attributes:
        outcome: How it ended.
        latency_seconds: From sending it to its end.
        usage: Tokens that it took; ``None`` if unknown.
        beyond: Input and output tokens that count against limits and were not expected, below 0 where it were fewer; ``None``
            if unknown.
        limits: The provider's rate limits, where the response has news of them.
        retry_after: Seconds that the provider asked to wait; ``None`` if it did not say.
        reason: What went wrong, in words; empty for an answer.
        call: Which call, the same in all attempts at it; empty where it was none of an item.
    """

    outcome: CallOutcome
    latency_seconds: float
    usage: Usage | None = None
    beyond: tuple[int, int] | None = None
    limits: ProviderLimits | None = None
    retry_after: float | None = None
    reason: str = ""
    call: str = ""


class Slot(Protocol):
    """A place among the calls in flight of all workers."""

    def release(self) -> None:
        """Gives it back: the call is over, or was not sent. To be called once."""
        ...


class RateLimiter(Protocol):
    """One truth for all workers about how fast, and how many at once, a connection and model may be called."""

    async def admit(self, connection: str, model: str, expected: Usage, tenant: str | None = None) -> Slot:
        """Waits until one call may be sent: for a place among the calls in flight, the end of a pause, and the rates.

        It must be sent at once, and the slot released when it is over.

        Args:
            connection: Its connection.
            model: Its model.
            expected: Tokens that it will take, about.
            tenant: Whose it is, where tenants share the model: none of them may have all places in flight.

        Raises:
            LimiterUnavailableError: If the limiter cannot be reached. Never lets a call pass instead.
            ProviderUnreachableError: If the connection's server has been away for too long.
        """
        ...

    def is_away(self, connection: str) -> bool:
        """Whether the connection's server is known to be away: a call that fails now does not fail by its own fault."""
        ...

    def is_failing(self, connection: str, model: str) -> bool:
        """Return whether all calls of the model are known to end in errors of its server."""
        ...

    def is_full(self, connection: str, model: str) -> bool:
        """Return whether the process has all of its slots of the model in use, so that further calls wait for one to end."""
        ...

    def observe(self, connection: str, model: str, observation: Observation) -> None:
        """Takes in what the end of a call tells of its provider; other processes learn of it in the background."""
        ...

    async def close(self) -> None:
        """Ends all waiting, which fails with :class:`LimiterUnavailableError`."""
        ...


BY_PROVIDER = "provider"
"""Source of a cost that the provider reports."""


class Price(NamedTuple):
    """Cost of one call in US dollars.

    Attributes:
        usd: The cost; ``None`` where no price is known for the model.
        source: Where the price comes from: ``"operator"``, ``"provider"`` (its own report), the price library's name and version, or ``None``.
    """

    usd: float | None
    source: str | None


class PriceBook(Protocol):
    """Knows what models cost."""

    def price(self, model: Model, usage: Usage, *, batched: bool = False) -> Price:
        """The cost of ``usage`` on a model as it is sampled, in a call of its own or in a batch."""
        ...


class Queue(Protocol):
    """Wakes workers. Losing a message loses no work, so an unreachable queue is no error: the sweeper tries again."""

    async def announce_shards(self, shard_ids: Sequence[int]) -> None:
        """Tells the workers that these shards can be claimed."""
        ...

    async def announce_finalize(self, job_id: str) -> None:
        """Tells a worker that a job can be finalized."""
        ...

    async def announce_batches(self, batch_ids: Sequence[int]) -> None:
        """Tells the workers that these batches are to be looked after."""
        ...

    async def announce_files(self, file_ids: Sequence[UUID]) -> None:
        """Tells the workers that these files of batches are to be deleted at their providers."""
        ...

    async def length(self) -> int | None:
        """Return the number of messages about shards that wait for a worker; ``None`` if the queue can't be reached."""
        ...


class MetricsOfProcesses(Protocol):
    """Where the processes of an installation show their metrics."""

    async def snapshots(self) -> dict[str, str]:
        """The latest metrics by process, encoded.

        Raises:
            OSError: If they can't be reached.
        """
        ...


class WebhookError(Exception):
    """A receiver gave no answer; the message says why, and names no more of the receiver than what kind of error it was."""


class WebhookSender(Protocol):
    """Sends messages to webhooks."""

    async def send(self, url: str, headers: Mapping[str, str], body: str) -> int:
        """Posts a message, once, and returns the HTTP status of the answer.

        Raises:
            WebhookError: If there was none, or nothing may be sent there.
        """
        ...
