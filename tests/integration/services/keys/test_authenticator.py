"""Keys looked up while somebody tries one after the other that nobody made."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect
from app.domain.keys.api_key import POSSIBLE, Scope, compose
from app.domain.keys.contract import ApiKeyIn
from app.services.keys.api_keys import KeyDependencies, create_key, end_sessions, revoke_key
from app.services.keys.authenticator import AT_ONCE, KNOWN_SECONDS, ApiKeyAuthenticator, KeyRefusedError
from tests.integration.jobs import TENANT
from tests.observe import eventually

PEPPER = b"a pepper for tests, of more than 32 bytes"
STRANGERS = 2 * AT_ONCE


@pytest.fixture
async def narrow(database_url: str) -> AsyncIterator[AsyncEngine]:
    """What keys are looked up by: few connections, for which others would soon wait in vain."""
    engine = connect(database_url, pool_size=2, max_overflow=0)
    yield engine
    await engine.dispose()


@pytest.fixture
async def keyring(narrow: AsyncEngine) -> AsyncIterator[ApiKeyAuthenticator]:
    ring = ApiKeyAuthenticator(narrow, PEPPER)
    yield ring
    await ring.close()


@pytest.fixture
def keys(engine: AsyncEngine) -> KeyDependencies:
    return KeyDependencies(engine, PEPPER)


async def test_a_real_key_is_answered_while_unknown_ones_come_and_come(
    narrow: AsyncEngine, keyring: ApiKeyAuthenticator, keys: KeyDependencies
) -> None:
    questions: list[str] = []
    event.listen(narrow.sync_engine, "before_cursor_execute", lambda *args: questions.append(args[2]))
    refused, over = 0, False

    async def try_on() -> None:
        nonlocal refused
        while not over:
            try:
                await keyring.holder_of(compose(secrets.randbelow(POSSIBLE)))
            except KeyRefusedError:
                refused += 1

    strangers = [asyncio.create_task(try_on()) for _ in range(STRANGERS)]
    try:
        for n in range(2):
            key = await create_key(keys, TENANT, ApiKeyIn(name=f"made meanwhile {n}", scopes=[Scope.READ]))
            assert (await keyring.holder_of(key.key)).key_id == key.id
            await revoke_key(keys.engine, TENANT, key.id)
            keyring.forget()
            with pytest.raises(KeyRefusedError, match="revoked"):
                await keyring.holder_of(key.key)
    finally:
        over = True
        await asyncio.gather(*strangers)
    assert refused > STRANGERS
    assert refused / len(questions) > AT_ONCE / 5  # one by one they would be as many


async def test_who_shows_a_key_anew_is_told_what_another_process_just_changed(
    keyring: ApiKeyAuthenticator, keys: KeyDependencies
) -> None:
    key = await create_key(keys, TENANT, ApiKeyIn(name="a key", scopes=[Scope.READ]))
    holder = await keyring.holder_of(key.key)
    await end_sessions(keys.engine, TENANT, key.id, holder.sign_outs)
    assert (await keyring.holder_of(key.key, anew=True)).sign_outs == holder.sign_outs + 1


async def test_those_who_ask_at_once_get_each_his_own_answer(
    keyring: ApiKeyAuthenticator, keys: KeyDependencies
) -> None:
    made = [
        await create_key(keys, f"team-{n}", ApiKeyIn(name=f"key {n}", scopes=[Scope.READ])) for n in range(3)
    ]
    holders = await asyncio.gather(*(keyring.holder_of(key.key) for key in [*made, *made]))
    expected = [(key.id, f"team-{n}") for n, key in enumerate(made)]
    assert [(holder.key_id, holder.tenant) for holder in holders] == [*expected, *expected]


@pytest.fixture
def hanging(narrow: AsyncEngine) -> dict[str, int]:
    """How many questions were asked, and which of them, from 1, waits for a lock that a test holds."""
    asked = {"n": 0, "hangs": 0}

    @event.listens_for(narrow.sync_engine, "before_cursor_execute", retval=True)
    def hang(*args: Any) -> tuple[str, Any]:
        statement, parameters = args[2:4]
        asked["n"] += "FROM api_keys" in statement
        held = "FROM api_keys CROSS JOIN (SELECT pg_advisory_xact_lock(1)) AS held"
        hangs = asked["n"] == asked["hangs"]
        return statement.replace("FROM api_keys", held, 1) if hangs else statement, parameters

    return asked


async def test_a_question_that_hangs_holds_up_no_other(
    keyring: ApiKeyAuthenticator, keys: KeyDependencies, hanging: dict[str, int]
) -> None:
    one, other = [
        await create_key(keys, TENANT, ApiKeyIn(name=f"key {n}", scopes=[Scope.READ])) for n in range(2)
    ]
    hanging["hangs"] = 1
    async with keys.engine.begin() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(1)"))
        waiting = asyncio.create_task(keyring.holder_of(one.key))
        assert await asyncio.to_thread(eventually, lambda: hanging["n"] == 1)
        assert (await keyring.holder_of(other.key)).key_id == other.id
        assert not waiting.done()
    assert (await waiting).key_id == one.id


async def test_a_question_that_hangs_lets_no_revoked_key_live_on(
    keyring: ApiKeyAuthenticator, keys: KeyDependencies, hanging: dict[str, int]
) -> None:
    key = await create_key(keys, TENANT, ApiKeyIn(name="a key", scopes=[Scope.READ]))
    await keyring.holder_of(key.key)
    hanging["hangs"] = 2
    await asyncio.sleep(KNOWN_SECONDS)
    async with keys.engine.begin() as connection:
        await connection.execute(text("SELECT pg_advisory_xact_lock(1)"))
        assert (await keyring.holder_of(key.key)).key_id == key.id  # as it was known
        await revoke_key(keys.engine, TENANT, key.id)
        with pytest.raises(KeyRefusedError, match="revoked"):
            await keyring.holder_of(key.key)


async def test_a_database_that_is_away_refuses_nobody_for_good(
    narrow: AsyncEngine, keyring: ApiKeyAuthenticator, keys: KeyDependencies
) -> None:
    key = await create_key(keys, TENANT, ApiKeyIn(name="a key", scopes=[Scope.READ]))
    broken = True

    @event.listens_for(narrow.sync_engine, "before_cursor_execute")
    def fail(*_args: object) -> None:
        if broken:
            raise ConnectionError("away")

    answers = await asyncio.gather(*(keyring.holder_of(key.key) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(error, ConnectionError) for error in answers)
    broken = False
    assert (await keyring.holder_of(key.key)).key_id == key.id
