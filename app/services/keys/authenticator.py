"""Authenticates requests: checks the API key that was sent against the stored ones."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.health import is_away
from app.db.keys import api_keys
from app.db.keys.api_keys import USED_SECONDS, FoundKey, KeptKey
from app.domain.keys.api_key import MalformedKeyError, Scope, is_key_of, is_over, prefix_of
from app.services.keys.api_keys import NoPepperError

log = structlog.get_logger(__name__)

T = TypeVar("T")

KNOWN_SECONDS = 1.0
"""For so long what is known of a key is not asked for again. So a key ends at most a second after it was revoked."""
AT_ONCE = 500
"""Most keys that the database is asked for in one question: some milliseconds' work for it."""
TIMEOUT_SECONDS = 1.0
"""How long a database that was asked before is waited for. One that is away lets nobody revoke a key, so what was known holds."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who showed a key.

    Attributes:
        key_id: The key's id.
        tenant: Whose it is.
        scopes: What it may do.
        prefix: Of the key that was shown.
        expires_at: When that one ends; ``None`` for never.
        requests_per_minute: How often it may ask; ``None`` for no limit.
        has_cap: Whether there is a cap on what its jobs spend.
        sign_outs: How often the sessions of those who signed in with it were ended.
    """

    key_id: str
    tenant: str
    scopes: frozenset[Scope]
    prefix: str
    expires_at: datetime | None
    requests_per_minute: int | None
    has_cap: bool
    sign_outs: int


class KeyRefusedError(Exception):
    """A key that was shown is not taken; the message says why, without any part of it."""


class ApiKeyAuthenticator:
    """One a process; of one event loop."""

    def __init__(self, engine: AsyncEngine, pepper: bytes | None) -> None:
        self._engine = engine
        self._pepper = pepper
        self._exist = _Known(self._ask_whether_any_exist)
        self._finder = _Finder(self._ask_for)
        self._found: dict[str, _Known[FoundKey | None]] = {}
        self._used: dict[str, float] = {}
        self._notes: set[asyncio.Task[None]] = set()

    async def any_exist(self) -> bool:
        """Whether a key was ever made, revoked ones included: from then on nobody does without."""
        return self._exist.value is True or await self._exist.get()

    async def holder_of(self, key: str, *, anew: bool = False) -> Holder:
        """Who shows a key.

        Args:
            key: What was shown.
            anew: Whether to ask, and not to rely on what is known: another process may have ended its sessions just now.

        Raises:
            KeyRefusedError: If it is none, or lives no more.
            NoPepperError: If no key can be checked.
        """
        try:
            prefix = prefix_of(key)
        except MalformedKeyError as error:
            raise KeyRefusedError(str(error)) from error
        if self._pepper is None:
            raise NoPepperError
        if anew and prefix in self._found:
            self._found[prefix].forget()
        found = await self._find(prefix)
        if found is None or not is_key_of(key, found.digest, self._pepper):
            raise KeyRefusedError("unknown API key")
        return self._living(prefix, found)

    async def holder_by(self, prefix: str) -> Holder:
        """The holder of a session's key.

        Raises:
            KeyRefusedError: If it lives no more.
        """
        found = await self._find(prefix)
        if found is None:
            raise KeyRefusedError("unknown API key")
        return self._living(prefix, found)

    def forget(self) -> None:
        """Asks anew for all: keys were made or changed just now."""
        self._found.clear()
        self._exist.forget()

    async def close(self) -> None:
        """Waits for what is still being noted, and ends questions that hang."""
        await asyncio.gather(*self._notes, self._finder.close(), return_exceptions=True)

    def _living(self, prefix: str, found: FoundKey) -> Holder:
        row = found.row
        if row.revoked_at is not None:
            raise KeyRefusedError("the key was revoked")
        if is_over(found.expires_at, clock.now()):
            raise KeyRefusedError("the key has expired")
        self._note_use(row)
        return Holder(
            key_id=row.id,
            tenant=row.tenant,
            scopes=frozenset(Scope(scope) for scope in row.scopes),
            prefix=prefix,
            expires_at=found.expires_at,
            requests_per_minute=row.requests_per_minute,
            has_cap=row.nanos_limit is not None,
            sign_outs=row.sign_outs,
        )

    async def _find(self, prefix: str) -> FoundKey | None:
        known = self._found.get(prefix)
        if known is None:
            known = _Known(lambda: self._finder.find(prefix))
        found = await known.get()
        if found is None:
            self._found.pop(prefix, None)  # guesses fill no memory
        else:
            self._found[prefix] = known
        return found

    async def _ask_whether_any_exist(self) -> bool:
        async with self._engine.connect() as connection:
            return await api_keys.any_exist(connection)

    async def _ask_for(self, prefixes: Collection[str]) -> Mapping[str, FoundKey]:
        async with self._engine.connect() as connection:
            return await api_keys.find_by_prefixes(connection, prefixes)

    def _note_use(self, row: KeptKey) -> None:
        """Has it noted that a key is used, at most once a minute; no request waits for it."""
        now = clock.monotonic()
        if now - self._used.get(row.id, float("-inf")) < USED_SECONDS:
            return
        self._used[row.id] = now
        note = asyncio.create_task(self._write_use(row.id))
        self._notes.add(note)
        note.add_done_callback(self._notes.discard)

    async def _write_use(self, key_id: str) -> None:
        try:
            async with self._engine.begin() as connection:
                await api_keys.note_use(connection, key_id)
        except Exception as error:
            if not is_away(error):
                log.exception("use of a key not noted", key=key_id)


class _Finder:
    """Finds keys by their prefixes: one question at a time, for all who came while the one before was under way.

    So a flood of keys that nobody made takes one connection, and who shows a real one waits for little more than two questions.
    """

    def __init__(self, ask: Callable[[Collection[str]], Awaitable[Mapping[str, FoundKey]]]) -> None:
        self._ask = ask
        self._wanted: dict[str, asyncio.Future[FoundKey | None]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._questions: set[asyncio.Task[None]] = set()

    async def find(self, prefix: str) -> FoundKey | None:
        """The key of a prefix, as it is now or a little later."""
        answer = self._wanted.get(prefix)
        if answer is None:
            answer = self._wanted[prefix] = asyncio.get_running_loop().create_future()
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_for_all())
        return await asyncio.shield(answer)  # others may wait for it too

    async def close(self) -> None:
        """Ends the questions that are not answered soon."""
        if self._questions:
            await asyncio.wait(self._questions, timeout=TIMEOUT_SECONDS)
        for question in self._questions:
            question.cancel()
        await asyncio.gather(*self._questions, return_exceptions=True)

    async def _ask_for_all(self) -> None:
        try:
            while self._wanted:
                prefixes = list(islice(self._wanted, AT_ONCE))
                asked = {prefix: self._wanted.pop(prefix) for prefix in prefixes}
                question = asyncio.create_task(self._answer(asked))
                self._questions.add(question)
                question.add_done_callback(self._questions.discard)
                await asyncio.wait({question}, timeout=TIMEOUT_SECONDS)  # one that hangs holds up no other
        finally:
            self._asking = None

    async def _answer(self, asked: Mapping[str, asyncio.Future[FoundKey | None]]) -> None:
        try:
            found = await self._ask(asked)
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            for answer in asked.values():
                answer.set_exception(error)
        else:
            for prefix, answer in asked.items():
                answer.set_result(found.get(prefix))


class _Known(Generic[T]):
    """An answer of the database that holds for :data:`KNOWN_SECONDS`, and while the database is away."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self.value: T | None = None
        self._ask = ask
        self._asked = float("-inf")
        self._has_value = False
        self._asking: asyncio.Task[T] | None = None

    def forget(self) -> None:
        self._asked = float("-inf")
        self._asking = None  # what is being asked may be answered as it was before

    async def get(self) -> T:
        """The answer, asked for at most once a second and by one at a time."""
        if self._has_value and clock.monotonic() - self._asked < KNOWN_SECONDS:
            return self._known()
        if self._asking is None:
            self._asking = asyncio.create_task(self._refresh())
            self._asking.add_done_callback(self._done)
        asking = self._asking
        await asyncio.wait({asking}, timeout=TIMEOUT_SECONDS if self._has_value else None)
        if asking.done():
            error = asking.exception()
            if error is not None and not (self._has_value and is_away(error)):
                raise error
        elif self._asking is asking:
            self._asking = None  # it hangs, and the next who comes may be answered
        return self._known()

    async def _refresh(self) -> T:
        begun = clock.monotonic()
        value = await self._ask()
        if begun > self._asked:  # else who asked later was answered before
            self.value, self._has_value, self._asked = value, True, begun
        return value

    def _done(self, asked: asyncio.Task[T]) -> None:
        if self._asking is asked:
            self._asking = None
        if not asked.cancelled():
            asked.exception()  # seen: it is not reported as never retrieved

    def _known(self) -> T:
        return self.value  # type: ignore[return-value] # it has one
