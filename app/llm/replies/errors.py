"""Turns every reply that is not an answer into a ``ModelCallError``. What codes and words mean is data: ``meanings.yaml``."""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus

import aiohttp
import httpx2
from pydantic import SecretStr

from app import clock
from app.domain.providers.failure import (
    NO_CREDIT_CODES,
    NO_MODEL,
    NO_SYSTEM_MESSAGE,
    STREAM_ONLY,
)
from app.domain.providers.model import ProviderLimits
from app.guard.targets import TargetRefusedError
from app.llm.replies.error_bodies import Fault, enveloped, read_fault, retry_seconds
from app.llm.replies.header_values import (
    LATEST_END_SECONDS,
    LONGEST_WAIT_SECONDS,
    number,
    seconds_of_duration,
    seconds_until,
)
from app.llm.replies.limit_headers import read_limits
from app.llm.replies.meanings import Meaning, meaning
from app.llm.replies.texts import storable
from app.llm.replies.transport_reply import NotConnectedError, ReplyTooLongError, words_of
from app.llm.replies.usage import billed_usage
from app.ports import FailureKind, ModelCallError
from app.telemetry.redaction import traces_of

_MESSAGE_LENGTH = 300
MALFORMED_REPLY = "malformed_reply"
"""Our code for a good status with something else than an answer."""

NO_CREDIT = "insufficient_quota"
"""OpenAI's code for a used-up account; also ours for providers whose own code does not say it."""
CREDIT_TOO_LOW = "credit_balance_too_low"
"""Our code for Anthropic's used-up account, which has the code of any bad request."""
_CREDIT_TOO_LOW_WORDS = "Your credit balance is too low"
REQUEST_TOO_LARGE = "request_too_large"
"""Anthropic's code for a request that no waiting makes possible; also ours where a rate limit is smaller than the request."""
_LIMIT_AND_REQUESTED = re.compile(r"\bLimit:? ([\d,]+)\b.*?\bRequested:? ([\d,]+)\b", re.DOTALL)
_UNSENT_BY_AIOHTTP = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_UNSENT = (NotConnectedError, httpx2.ConnectError, httpx2.ConnectTimeout, socket.gaierror)
_ERROR_STATUSES = frozenset(str(status) for status in range(400, 600))
_UNTOUCHED = frozenset({"batch_expired", "batch_canceled", "batch_cancelled"})
"""Codes of calls that a batch ended without; providers charge only for completed ones:
https://platform.openai.com/docs/guides/batch, https://platform.claude.com/docs/en/build-with-claude/batch-processing."""
_FREE_STATUSES = frozenset({401, 403, 429})
"""Refusals before the model is at work. After any other error the call may be charged, as Azure does with filtered prompts:
https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter."""
STATUSES_OF_PASSING = {"overloaded_error": 529, "rate_limit_error": 429, "timeout_error": 504}
"""Passing errors by type: https://docs.anthropic.com/en/api/errors"""
_KINDS_BY_STATUS: Mapping[int, FailureKind] = {
    400: FailureKind.ITEM,
    403: FailureKind.ITEM,  # one moderated prompt, or a key without the right: then the first calls all fail
    408: FailureKind.RETRY,
    409: FailureKind.RETRY,
    413: FailureKind.ITEM,
    422: FailureKind.ITEM,
    424: FailureKind.RETRY,  # TGI: the generation failed
    425: FailureKind.RETRY,
    429: FailureKind.RETRY,
    499: FailureKind.RETRY,  # nginx: a proxy on the way gave up
}


def refused(status: int, body: object, headers: Mapping[str, str], key: SecretStr | None) -> ModelCallError:
    """The failure of a call that the provider answered with an error.

    Args:
        status: HTTP status.
        body: The parsed error object or what encloses it; text where it was no JSON.
        headers: The reply's headers.
        key: The connection's key, kept out of the message.
    """
    fault = read_fault(body)
    kind, code = _meaning(status, fault)
    item_known = code == REQUEST_TOO_LARGE or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    wait = retry_after(headers)
    if wait is None and (asked := retry_seconds(fault)) is not None:
        wait = min(asked, LONGEST_WAIT_SECONDS)
    return ModelCallError(
        readable(f"HTTP {status}: {fault.words or 'no reason given'}", key),
        kind=kind,
        code=readable(code, key),
        status=status,
        retry_after=wait if kind is FailureKind.RETRY else None,
        maybe_paid=status not in _FREE_STATUSES,
        usage=billed_usage([body]),
        unexplained=kind is FailureKind.ITEM and not item_known and _rule_of(status, fault) is None,
        limits=_limits_of_429(headers) if status == HTTPStatus.TOO_MANY_REQUESTS else None,
    )


def _limits_of_429(headers: Mapping[str, str]) -> ProviderLimits | None:
    """The limits that the headers name; one of a day that is used up ends when the provider asks to be called again."""
    limits = read_limits(headers)
    asked = _asked_to_wait(headers, clock.now())
    if limits is None or limits.hold_reason is None or asked is None:
        return limits
    return replace(limits, hold_ends_seconds=min(asked, LATEST_END_SECONDS))


_OUR_CODES = {
    Meaning.NO_SYSTEM_MESSAGE: NO_SYSTEM_MESSAGE,
    Meaning.STREAM_ONLY: STREAM_ONLY,
    Meaning.NO_MODEL: NO_MODEL,
}


def _meaning(status: int, fault: Fault) -> tuple[FailureKind, str]:
    """Return the kind and the code of an error.

    A request larger than a rate limit is answered by OpenAI like one that comes too early. The two numbers in the message
    show that it can never be granted.
    """
    code = fault.codes[0] if fault.codes else f"http_{status}"
    if _is_flagged(fault.fields):
        return FailureKind.FILTERED, code
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:  # Groq's has the code of a rate limit
        return FailureKind.ITEM, REQUEST_TOO_LARGE if fault.codes else code
    if status == HTTPStatus.TOO_MANY_REQUESTS and _exceeds_limit(fault.words):
        return FailureKind.ITEM, REQUEST_TOO_LARGE
    found = _rule_of(status, fault)
    if found is Meaning.NO_CREDIT:
        return found.kind, code if status == HTTPStatus.PAYMENT_REQUIRED else _credit_code(fault)
    if found is None:
        return _kind_by_status(status), code
    return found.kind, _OUR_CODES.get(found, code)


def _rule_of(status: int, fault: Fault) -> Meaning | None:
    return meaning(status, (*fault.codes, *fault.unshown), fault.words)


def _credit_code(fault: Fault) -> str:
    if fault.words.startswith(_CREDIT_TOO_LOW_WORDS):
        return CREDIT_TOO_LOW
    return next((code for code in fault.codes if code in NO_CREDIT_CODES), NO_CREDIT)


def _exceeds_limit(words: str) -> bool:
    numbers = _LIMIT_AND_REQUESTED.search(words)
    if numbers is None:
        return False
    limit, requested = (int(number.replace(",", "") or 0) for number in numbers.groups())
    return requested > limit


def fault_of(body: Mapping[str, object]) -> object:
    """Return the error in a reply with status 200; ``None`` if it has none.

    Routers have ``error``; Tencent has it within ``Response``; MiniMax, SiliconFlow, Alibaba and Baidu have codes and
    words at the top, Cloudflare ``success``.
    """
    if inner := enveloped(body):
        return inner
    base = body.get("base_resp")
    coded = any(body.get(name) for name in ("code", "error_code", "error_msg"))
    failed = isinstance(base, dict) and bool(base.get("status_code"))
    unsuccessful = body.get("success") is False or body.get("status") == "error"
    return body if coded or failed or unsuccessful else None


def refused_in_reply(
    fault: object, headers: Mapping[str, str], key: SecretStr | None, *, started: bool = False
) -> ModelCallError:
    """Return the failure of a call answered with status 200 and an error inside, as routing services do.

    They put the status of the provider behind them into ``error.code``, as a number or as text. Anthropic's has the type
    that stands for a status.

    Args:
        fault: What the reply, or a choice in it, has as its ``error``.
        headers: The reply's headers.
        key: The connection's key, kept out of the message.
        started: Whether the model was at work, so that the call may be charged whatever the error is.
    """
    code, kind = (fault.get("code"), fault.get("type")) if isinstance(fault, dict) else (None, None)
    status = int(str(code)) if str(code) in _ERROR_STATUSES else STATUSES_OF_PASSING.get(str(kind))
    failure = refused(status or HTTPStatus.BAD_GATEWAY, {"error": fault}, headers, key)
    failure.maybe_paid = failure.maybe_paid or started
    return failure


def broken_off(code: str = "broken_off") -> ModelCallError:
    """The failure of a call whose provider gave up in the middle of the answer; a router's does not say why."""
    return ModelCallError(
        "the provider broke off the answer",
        kind=FailureKind.RETRY,
        code=code,
        status=HTTPStatus.OK,
        maybe_paid=True,
    )


def timed_out(seconds: float) -> ModelCallError:
    """The failure of a call that was given up at its deadline."""
    return ModelCallError(
        f"no answer within {seconds:g} s", kind=FailureKind.RETRY, code="timeout", maybe_paid=True
    )


def not_connected(error: BaseException, key: SecretStr | None) -> ModelCallError:
    """The failure of a call whose connection could not be made, or broke."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ReplyTooLongError):
            return malformed(str(cause), None)
        if isinstance(cause, TargetRefusedError):
            return address_refused(str(cause))
    unsent = _is_unsent(causes)
    return ModelCallError(
        readable(words_of(causes[-1]), key),
        kind=FailureKind.RETRY,
        code="connection_failed" if unsent else "connection_lost",
        maybe_paid=not unsent,
    )


def _is_unsent(causes: Sequence[BaseException]) -> bool:
    """Whether nothing was sent. The SDKs' aiohttp transport has a lost connection as one that was not made; what aiohttp said decides."""
    of_aiohttp = [cause for cause in causes if isinstance(cause, aiohttp.ClientError)]
    if of_aiohttp:
        return any(isinstance(cause, _UNSENT_BY_AIOHTTP) for cause in of_aiohttp)
    return any(isinstance(cause, _UNSENT) for cause in causes)


def address_refused(reason: str) -> ModelCallError:
    """The failure of a call that the guard did not let out."""
    return ModelCallError(f"its connection's address: {reason}", kind=FailureKind.JOB, code="address_refused")


def malformed(reason: str, status: int | None = 200) -> ModelCallError:
    """The failure of a call whose reply is not what the format promises: sent again once, as it may be paid each time."""
    return ModelCallError(
        reason, kind=FailureKind.RETRY, code=MALFORMED_REPLY, status=status, maybe_paid=True, most_attempts=2
    )


def unencodable() -> ModelCallError:
    """The failure of a call that no JSON can express: lone surrogates in a prompt, infinity in a parameter."""
    return ModelCallError(
        "the request is no valid JSON text", kind=FailureKind.ITEM, code="unencodable_request"
    )


def unanswered(fault: object, key: SecretStr | None) -> ModelCallError:
    """Return the failure of a call that a batch ended without a reply to.

    Args:
        fault: The error in its line of the batch; text or nothing is possible.
        key: The connection's key, kept out of the message.
    """
    if isinstance(fault, dict) and str(fault.get("code")) in _ERROR_STATUSES:
        return refused_in_reply(fault, {}, key)
    read = read_fault({"error": fault} if fault else {})
    found = _rule_of(0, read)
    code = read.codes[0] if read.codes else "batch_unanswered"
    return ModelCallError(
        readable(read.words or "the batch ended without it", key),
        kind=FailureKind.RETRY if found is None else found.kind,
        code=readable(_credit_code(read) if found is Meaning.NO_CREDIT else code, key),
        maybe_paid=code not in _UNTOUCHED,
    )


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a provider asks to wait, from whichever of its headers says so; ``None`` if none does.

    ``retry-after-ms``, ``retry-after`` (seconds or HTTP date, RFC 9110 section 10.2.3), else the latest reset
    of an exhausted allowance in OpenAI's ``x-ratelimit-*`` or Anthropic's ``anthropic-ratelimit-*`` headers. At most
    an hour: after that it does no harm to ask again, and a nonsensical header must not hold everybody back for ever.
    """
    asked = _asked_to_wait(headers, now or clock.now())
    return None if asked is None else min(asked, LONGEST_WAIT_SECONDS)


def _asked_to_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    milliseconds = number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    if asked is not None:
        seconds = number(asked)
        return seconds if seconds is not None else seconds_until(asked, now)
    return max((wait for wait in _resets(headers, now) if wait is not None), default=None)


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float | None]:
    for what in ("requests", "tokens"):
        if headers.get(f"x-ratelimit-remaining-{what}") == "0":
            yield seconds_of_duration(headers.get(f"x-ratelimit-reset-{what}", ""))
    for what in ("requests", "tokens", "input-tokens", "output-tokens"):
        if headers.get(f"anthropic-ratelimit-{what}-remaining") == "0":
            yield seconds_until(headers.get(f"anthropic-ratelimit-{what}-reset", ""), now)


def _is_flagged(fault: Mapping[str, object]) -> bool:
    """Return whether an error names the reasons of a moderation, as OpenRouter's 403 does.

    https://openrouter.ai/docs/api/reference/errors-and-debugging
    """
    metadata = fault.get("metadata")
    return isinstance(metadata, dict) and ("flagged_input" in metadata or "reasons" in metadata)


def _kind_by_status(status: int) -> FailureKind:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return FailureKind.RETRY
    # What is left (a redirect, a missing path, a refused key) says that the connection, not the item, is wrong.
    return _KINDS_BY_STATUS.get(status, FailureKind.JOB)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def readable(message: str, key: SecretStr | None) -> str:
    """A provider's words for people: in one line, not too many, and without the key."""
    shown = traces_of(key.get_secret_value()).removed(message) if key else message
    return storable(" ".join(shown.split())[:_MESSAGE_LENGTH])
