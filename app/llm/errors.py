"""Everything that a provider can answer instead of an answer, in the one vocabulary of ``ModelCallError``.

Decided by exact codes and statuses: wordings of messages change and are shown to people, not compared. There is one
exception, for an empty purse that has no code of its own.
"""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus

import aiohttp
import httpx2
from pydantic import SecretStr

from app.guard.targets import TargetRefusedError
from app.llm.header_values import LONGEST_WAIT_SECONDS, number, seconds_of_duration, seconds_until
from app.llm.limit_headers import read_limits
from app.llm.texts import storable
from app.llm.transports.reply import NotConnectedError, ReplyTooLongError
from app.ports import FailureKind, ModelCallError
from app.telemetry.redaction import traces_of

_MESSAGE_LENGTH = 300
_CODE = re.compile(r"[\w.-]{1,64}")

_KINDS_BY_CODE: Mapping[str, FailureKind] = {
    # OpenAI and those who speak its format: https://platform.openai.com/docs/guides/error-codes
    "rate_limit_exceeded": FailureKind.RETRY,
    "insufficient_quota": FailureKind.JOB,
    "billing_hard_limit_reached": FailureKind.JOB,
    "billing_not_active": FailureKind.JOB,
    "account_deactivated": FailureKind.JOB,
    "invalid_api_key": FailureKind.JOB,
    "model_not_found": FailureKind.JOB,
    "DeploymentNotFound": FailureKind.JOB,
    "unsupported_parameter": FailureKind.JOB,
    "unsupported_value": FailureKind.JOB,
    "unknown_parameter": FailureKind.JOB,
    "context_length_exceeded": FailureKind.ITEM,
    "string_above_max_length": FailureKind.ITEM,
    "content_policy_violation": FailureKind.ITEM,
    "content_filter": FailureKind.ITEM,
    "invalid_prompt": FailureKind.ITEM,
    # Anthropic, error.details.error_code and error.type: https://platform.claude.com/docs/en/api/errors
    "contract_spend_limit_reached": FailureKind.JOB,
    "enforced_spend_limit_reached": FailureKind.JOB,
    "linked_organization_spend_limit_reached": FailureKind.JOB,
    "linked_organization_billing_unavailable": FailureKind.JOB,
    "organization_on_hold": FailureKind.JOB,
    "credit_balance_too_low": FailureKind.JOB,
    "ramp_limit_exceeded": FailureKind.RETRY,
    "authentication_error": FailureKind.JOB,
    "billing_error": FailureKind.JOB,
    "permission_error": FailureKind.JOB,
    "not_found_error": FailureKind.JOB,
    "rate_limit_error": FailureKind.RETRY,
    "overloaded_error": FailureKind.RETRY,
    "api_error": FailureKind.RETRY,
    "timeout_error": FailureKind.RETRY,
}
CREDIT_TOO_LOW = "credit_balance_too_low"
"""Our code for Anthropic's empty purse: HTTP 400 with the code of any bad request, told apart by its words alone."""
_CREDIT_TOO_LOW_WORDS = "Your credit balance is too low"
_UNSENT_BY_AIOHTTP = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_UNSENT = (NotConnectedError, httpx2.ConnectError, httpx2.ConnectTimeout, socket.gaierror)
_ERROR_STATUSES = range(400, 600)
_PROVIDER_TIMED_OUT = frozenset({408, 504, 524})
_KINDS_BY_STATUS: Mapping[int, FailureKind] = {
    400: FailureKind.ITEM,
    408: FailureKind.RETRY,
    409: FailureKind.RETRY,
    413: FailureKind.ITEM,
    422: FailureKind.ITEM,
    425: FailureKind.RETRY,
    429: FailureKind.RETRY,
}


def refused(status: int, body: object, headers: Mapping[str, str], key: SecretStr | None) -> ModelCallError:
    """The failure of a call that the provider answered with an error.

    Args:
        status: HTTP status.
        body: The parsed error object or what encloses it; text where it was no JSON.
        headers: The reply's headers.
        key: The connection's key, kept out of the message.
    """
    fault = body.get("error", body) if isinstance(body, dict) else body
    codes = list(_codes(fault)) if isinstance(fault, dict) else []
    message = fault.get("message") if isinstance(fault, dict) else fault
    if codes == ["invalid_request_error"] and str(message).startswith(_CREDIT_TOO_LOW_WORDS):
        codes = [CREDIT_TOO_LOW]
    kind = next((_KINDS_BY_CODE[code] for code in codes if code in _KINDS_BY_CODE), None) or _kind_by_status(
        status
    )
    return ModelCallError(
        readable(f"HTTP {status}: {message or 'no reason given'}", key),
        kind=kind,
        code=readable(codes[0], key) if codes else f"http_{status}",
        status=status,
        retry_after=retry_after(headers) if kind is FailureKind.RETRY else None,
        maybe_paid=status in _PROVIDER_TIMED_OUT,
        limits=read_limits(headers) if status == HTTPStatus.TOO_MANY_REQUESTS else None,
    )


def refused_in_reply(
    body: Mapping[str, object], headers: Mapping[str, str], key: SecretStr | None
) -> ModelCallError:
    """The failure of a call answered with status 200 and an error inside, as routing services do.

    They put the status of the provider behind them into ``error.code``.
    """
    fault = body["error"]
    code = fault.get("code") if isinstance(fault, dict) else None
    status = code if isinstance(code, int) and code in _ERROR_STATUSES else HTTPStatus.BAD_GATEWAY
    return refused(int(status), body, headers, key)


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
        readable(f"{type(causes[-1]).__name__}: {causes[-1]}", key),
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
    """The failure of a call whose reply is not what the format promises."""
    return ModelCallError(
        reason, kind=FailureKind.RETRY, code="malformed_reply", status=status, maybe_paid=True
    )


def unencodable() -> ModelCallError:
    """The failure of a call that no JSON can express: lone surrogates in a prompt, infinity in a parameter."""
    return ModelCallError(
        "the request is no valid JSON text", kind=FailureKind.ITEM, code="unencodable_request"
    )


def unanswered(code: str, message: str, *, maybe_paid: bool = False) -> ModelCallError:
    """The failure of a call that a batch ended without."""
    return ModelCallError(message, kind=FailureKind.RETRY, code=code, maybe_paid=maybe_paid)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a provider asks to wait, from whichever of its headers says so; ``None`` if none does.

    ``retry-after-ms``, ``retry-after`` (seconds or HTTP date, RFC 9110 section 10.2.3), else the latest reset
    of an exhausted allowance in OpenAI's ``x-ratelimit-*`` or Anthropic's ``anthropic-ratelimit-*`` headers. At most
    an hour: after that it does no harm to ask again, and a nonsensical header must not hold everybody back for ever.
    """
    asked = _asked_to_wait(headers, now or datetime.now(UTC))
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


def _codes(fault: Mapping[str, object]) -> Iterator[str]:
    """An error object's codes, the most exact one first."""
    details = fault.get("details")
    detailed = details.get("error_code") if isinstance(details, dict) else None
    for code in (detailed, fault.get("code"), fault.get("type")):
        if isinstance(code, str) and _CODE.fullmatch(code):
            yield code


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
