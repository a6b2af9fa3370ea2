"""Who may do what: every request shows a key, or comes to a service without keys by the loopback address.

Routes say with :func:`needs` which scope they take; one that says nothing takes ``admin``. What needs no key stands in :data:`PUBLIC`.
"""

import math
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.types import ASGIApp, Receive, Scope, Send

from app import clock
from app.api.http import sessions
from app.api.http.answers import COUNTED_BYTES, Reader, count_answer
from app.api.http.limits import Sender
from app.api.http.pace import ChangePace
from app.api.http.pages import SIGNED_IN, wants_page
from app.api.http.problems import BrokenOffError, ProblemError, answer_to
from app.api.http.same_origin import SAFE
from app.db.health import is_away
from app.domain.jobs.share_links import SHARED
from app.domain.keys.api_key import Scope as KeyScope
from app.domain.keys.api_key import allows
from app.domain.providers.addresses import is_loopback
from app.limits.request_rates import RequestRates
from app.services.errors import NotFoundError
from app.services.jobs.share_links import ShareLinkFinder
from app.services.keys.api_keys import NoPepperError, no_keys_yet
from app.services.keys.authenticator import KNOWN_SECONDS, ApiKeyAuthenticator, Holder, KeyRefusedError
from app.services.keys.refused_keys import RefusedKeys

DEFAULT_TENANT = "default"
"""The operator's own; also everybody's, while there are no keys."""

SIGN_IN = "/sign-in"
PUBLIC = frozenset({"/healthz", "/readyz", "/openapi.json", "/docs", SIGN_IN})
"""What anybody may ask for: it holds nobody's data."""
PUBLIC_FOLDERS = ("/static/", "/swagger/", SHARED)
"""Of shared jobs, whoever has a link's token asks: that takes the place of a key."""

METRICS = "/metrics"
UNPACED = ("/v1/keys", "/keys", "/sign-out")
"""Beginnings of the paths of changes that never wait for a tenant's other changes."""

FORWARDED = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"})
"""What proxies add to requests that they pass on."""

PIECE_BYTES, PUBLIC_PIECE_BYTES = 256 * 1024, 32 * 1024
"""A part of an answer is sent in pieces: the next one waits until the reader has taken most of the last one. Public files are not
counted, so their pieces are shorter."""
RECHECK_BYTES = 4 * 1024 * 1024
"""After so many bytes a key or share link is checked again, and after :data:`KNOWN_SECONDS`."""

_SCHEME = "Bearer"
_REALM = f'{_SCHEME} realm="persona-assay"'

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Need:
    """What a route takes.

    Attributes:
        scope: The scope of a key.
        operator: Whether the key has to be one of the operator's own tenant: what the route shows is of all tenants.
    """

    scope: KeyScope
    operator: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose request it is.

    Attributes:
        tenant: Whose data it sees.
        holder: Who showed a key; ``None`` while there are none.
        in_session: Whether this was by signing in with a browser.
    """

    tenant: str
    holder: Holder | None = None
    in_session: bool = False

    @property
    def sender(self) -> Sender:
        """Whose body it is that the request brings."""
        return Sender(self.tenant, self.key_id or "")

    @property
    def key_id(self) -> str | None:
        """The key that was shown."""
        return None if self.holder is None else self.holder.key_id

    @property
    def manages(self) -> bool:
        """Whether keys, webhooks and connections may be managed."""
        return self.holder is None or allows(self.holder.scopes, KeyScope.ADMIN)

    @property
    def capped_key(self) -> str | None:
        """The key, if there is a cap on what its jobs spend together."""
        return self.holder.key_id if self.holder is not None and self.holder.has_cap else None


_NEEDS: dict[Callable[..., Any], Need] = {}


def needs(scope: KeyScope, *, operator: bool = False) -> Callable[[Endpoint], Endpoint]:
    """Declares what a route takes; stands under the route's own decorator."""

    def declare(endpoint: Endpoint) -> Endpoint:
        _NEEDS[endpoint] = Need(scope, operator)
        return endpoint

    return declare


def need_of(endpoint: Callable[..., Any]) -> Need | None:
    """What a route of this function declared."""
    return _NEEDS.get(endpoint)


def is_public(path: str) -> bool:
    """Whether anybody may ask for it."""
    return path in PUBLIC or path.startswith(PUBLIC_FOLDERS)


def caller_of(request: Request) -> Caller:
    """Whose request it is; only of what is not public."""
    caller: Caller = request.state.caller
    return caller


async def check_scope(request: Request) -> None:
    """Checks that the caller's key has the route's scope; every route has this dependency.

    Raises:
        ProblemError: 403, if it is for something else.
    """
    if is_public(request.url.path):
        return
    caller = caller_of(request)
    if caller.holder is None:
        return
    need = need_of(request.scope["endpoint"]) or Need(KeyScope.ADMIN)
    if not allows(caller.holder.scopes, need.scope):
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "insufficient_scope",
            f"this requires a key with the scope {need.scope}",
            headers={
                "WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="{need.scope}"',
            },
        )
    if need.operator and caller.tenant != DEFAULT_TENANT:
        detail = f"this concerns all tenants: use a key of the tenant {DEFAULT_TENANT}"
        raise ProblemError(HTTPStatus.FORBIDDEN, "operator_only", detail)


class AuthMiddleware:
    """Finds out whose request it is before anything of its body is read, and refuses what has no key.

    Requests by share links are let in: their routes look up the link.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        path = scope.get("path", "")
        by_link = path.startswith(SHARED)
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if is_public(path) and not by_link:
            await self._app(scope, receive, partial(_send_public, send))
            return
        request = Request(scope)
        if by_link:
            check = partial(_check_link, request, path.removeprefix(SHARED).partition("/")[0])
        else:
            try:
                caller = await _caller(request)
                await _keep_rate(request, caller)
                await _keep_pace(request, caller)
            except (ProblemError, DBAPIError, PoolTimeoutError) as error:
                await (await _refusal(request, error))(scope, receive, send)
                return
            request.state.caller = caller
            request.state.reader = Reader(caller.tenant)
            SIGNED_IN.set(caller.in_session)
            check = partial(_check_caller, request, caller)
        with ExitStack() as held:
            request.state.held = held
            answer = _CheckedSend(request, check, send)
            try:
                await self._app(scope, receive, answer.send)
            except _RefusedError as error:
                if answer.begun:
                    raise
                await (await _refusal(request, error.refusal))(scope, receive, send)


class _RefusedError(BrokenOffError):
    """An answer may not be sent, or not any further.

    Attributes:
        refusal: The error to answer with if nothing was sent yet.
    """

    def __init__(self, refusal: ProblemError) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


class _CheckedSend:
    """Sends an answer in small pieces: within the reader's share of bytes, and as long as its key or share link is valid.

    An answer that has not begun is refused instead, unless the request changed something: a caller who ends the own key receives
    the answer, and one who replaces it the new key.

    Attributes:
        begun: Whether anything of the answer was sent.
    """

    def __init__(self, request: Request, check: Callable[[], Awaitable[None]], send: Send) -> None:
        self.begun = False
        self._request = request
        self._check = check
        self._send = send
        self._checked = clock.monotonic()
        self._sent = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Sends a part.

        Raises:
            _RefusedError: If it may not be sent.
        """
        if message["type"] == "http.response.start":
            self._hold(message)
        for piece in _pieces(message, PIECE_BYTES):
            if clock.monotonic() - self._checked >= KNOWN_SECONDS or self._sent >= RECHECK_BYTES:
                await self._recheck()
            self.begun = True
            await self._send(piece)
            self._sent += len(piece.get("body", b""))

    def _hold(self, start: MutableMapping[str, Any]) -> None:
        """Counts an answer of known length until it was sent."""
        size = next((int(value) for name, value in start.get("headers", ()) if name == b"content-length"), 0)
        reader: Reader | None = getattr(self._request.state, "reader", None)
        if size <= COUNTED_BYTES or reader is None:
            return
        try:
            count_answer(self._request, reader, size)
        except ProblemError as error:
            if self._request.method in SAFE:
                raise _RefusedError(error) from error

    async def _recheck(self) -> None:
        if self.begun or self._request.method in SAFE:
            try:
                await self._check()
            except Exception as error:
                # While the database is away, nothing ends.
                if not is_away(error):
                    raise
        self._checked, self._sent = clock.monotonic(), 0


def _pieces(message: MutableMapping[str, Any], size: int) -> Iterator[MutableMapping[str, Any]]:
    """Divide a part of an answer."""
    body, more = message.get("body", b""), message.get("more_body", False)
    if len(body) <= size:
        yield message
        return
    for stop in range(size, len(body) + size, size):
        yield {**message, "body": body[stop - size : stop], "more_body": more or stop < len(body)}


async def _send_public(send: Send, message: MutableMapping[str, Any]) -> None:
    for piece in _pieces(message, PUBLIC_PIECE_BYTES):
        await send(piece)


async def _check_caller(request: Request, caller: Caller) -> None:
    """Asks once more whose key it is.

    Raises:
        _RefusedError: If the caller is no longer authorized.
    """
    keyring: ApiKeyAuthenticator = request.app.state.services.keyring
    try:
        ended = caller.holder is None and await keyring.any_exist()
        if caller.holder is not None:
            now = await keyring.holder_by(caller.holder.prefix)
            ended = caller.in_session and now.sign_outs != caller.holder.sign_outs
    except KeyRefusedError:
        ended = True
    if ended:
        raise _RefusedError(_unauthenticated("the key, or its session, has ended", "invalid_token"))


async def _check_link(request: Request, token: str) -> None:
    """Looks up a share link once more.

    Raises:
        _RefusedError: If the link has expired or was revoked.
    """
    finder: ShareLinkFinder = request.app.state.services.share_links
    try:
        await finder.find(token)
    except NotFoundError as error:
        raise _RefusedError(ProblemError(HTTPStatus.NOT_FOUND, "not_found", str(error))) from error


async def _refusal(request: Request, error: Exception) -> Response:
    """The answer to who is not let in: a person is asked to sign in, and then comes to what he wanted to see."""
    unknown = isinstance(error, ProblemError) and error.status_code == HTTPStatus.UNAUTHORIZED
    if unknown and request.method == "GET" and wants_page(request):
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': wanted})}", HTTPStatus.SEE_OTHER)
    return await answer_to(request, error)


async def _caller(request: Request) -> Caller:
    keyring: ApiKeyAuthenticator = request.app.state.services.keyring
    if not await keyring.any_exist():
        return _without_keys(request)
    shown = request.headers.get("authorization")
    session = None if shown is not None else sessions.shown_in(request)
    try:
        if shown is not None:
            holder = await keyring.holder_of(_bearer(shown))
        elif session is not None:
            holder = await _in_session(keyring, sessions.read(request, session))
        else:
            raise _unauthenticated("send an API key: Authorization: Bearer KEY", None)
    except KeyRefusedError as error:
        note_refused(request, error)
        raise _unauthenticated(str(error), "invalid_token") from error
    except NoPepperError as error:
        raise no_pepper(error) from error
    return Caller(holder.tenant, holder, in_session=session is not None)


def note_refused(request: Request, error: KeyRefusedError) -> None:
    """Report a refused key or session to the operator."""
    refused: RefusedKeys = request.app.state.services.refused_keys
    refused.note(str(error), None if request.client is None else request.client.host)


async def _in_session(keyring: ApiKeyAuthenticator, session: sessions.Session) -> Holder:
    """Who signed in.

    Raises:
        KeyRefusedError: If the key has expired or was revoked, or its sessions were ended since.
    """
    holder = await keyring.holder_by(session.prefix)
    if holder.sign_outs != session.sign_outs:
        raise sessions.session_over()
    return holder


async def _keep_rate(request: Request, caller: Caller) -> None:
    """Enforces the rate limit of the caller's key."""
    if caller.holder is None or caller.holder.requests_per_minute is None:
        return
    rates: RequestRates = request.app.state.services.request_rates
    seconds = await rates.wait_for(caller.holder.key_id, caller.holder.requests_per_minute)
    if seconds:
        detail = f"the key's rate limit is {caller.holder.requests_per_minute:,} requests per minute"
        headers = {"Retry-After": str(math.ceil(seconds))}
        raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "rate_limited", detail, headers=headers)


async def _keep_pace(request: Request, caller: Caller) -> None:
    """Delay a change if the tenant makes too many while other tenants are active.

    Keys can always be revoked. Keys that may only read are refused later, and take no turn of others.
    """
    pace: ChangePace = request.app.state.services.change_pace
    path = request.url.path
    if path != METRICS:
        pace.note_request(caller.tenant)
    may_change = caller.holder is None or allows(caller.holder.scopes, KeyScope.SUBMIT)
    if request.method not in SAFE and may_change and not path.startswith(UNPACED):
        await pace.wait(caller.tenant)


def _without_keys(request: Request) -> Caller:
    """Everybody on this machine, as long as there are no keys.

    The address is the one at which the request arrived, not the one that the server listens on: that is known whoever starts it.
    What a proxy on this machine passes on arrives there too, from wherever it comes.
    """
    server = request.scope.get("server")
    if server is None or not is_loopback(server[0]) or not FORWARDED.isdisjoint(request.headers.keys()):
        raise ProblemError(
            HTTPStatus.FORBIDDEN, "no_keys_yet", no_keys_yet("answers on a loopback address only")
        )
    return Caller(DEFAULT_TENANT)


def no_pepper(error: NoPepperError) -> ProblemError:
    """The problem that keys can neither be made nor checked."""
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "no_pepper", str(error))


def _bearer(header: str) -> str:
    scheme, _, key = header.partition(" ")
    if scheme.lower() != _SCHEME.lower():
        raise KeyRefusedError("send the API key as Authorization: Bearer KEY")
    return key.strip()


def _unauthenticated(detail: str, error: str | None) -> ProblemError:
    described = "" if error is None else f', error="{error}", error_description="{detail}"'
    headers = {"WWW-Authenticate": _REALM + described}
    return ProblemError(HTTPStatus.UNAUTHORIZED, "unauthenticated", detail, headers=headers)
