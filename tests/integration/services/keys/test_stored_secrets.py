"""Secrets that don't fit the database are named with a remedy."""

import os

import psycopg
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.keys.api_key import Scope
from app.services.keys.stored_secrets import lost_secret
from app.vault.secret_cipher import SecretCipher
from tests.api.keys import PEPPER, KeyMaker
from tests.databases import libpq_url

OTHER = b"another pepper, of more than 32 bytes"
NONE = SecretCipher([])


async def test_an_empty_database_takes_any_secrets(engine: AsyncEngine) -> None:
    assert await lost_secret(engine, OTHER, NONE) is None


async def test_keys_need_the_pepper_that_they_were_created_with(
    engine: AsyncEngine, database_url: str
) -> None:
    keys = KeyMaker(database_url)
    key = keys.make(Scope.READ)
    assert await lost_secret(engine, PEPPER.encode(), NONE) is None
    lost = await lost_secret(engine, OTHER, NONE)
    assert lost is not None
    assert lost.startswith("ASSAY_KEY_PEPPER: every API key in the database was created with another pepper")
    keys.revoke(key)
    assert await lost_secret(engine, OTHER, NONE) is None


async def test_stored_secrets_need_one_of_the_keys_that_they_were_encrypted_with(
    engine: AsyncEngine, database_url: str
) -> None:
    first, second = os.urandom(32), os.urandom(32)
    sealed = SecretCipher([first]).seal(SecretStr("whsec"), "webhook")
    with psycopg.connect(libpq_url(database_url)) as connection:
        connection.execute(
            "INSERT INTO webhooks (id, tenant, url, events, secret) VALUES ('wh', 'default', 'https://x', '{}', %s)",
            (sealed,),
        )
    assert await lost_secret(engine, None, SecretCipher([second, first])) is None
    for ring in (SecretCipher([second]), NONE):
        lost = await lost_secret(engine, None, ring)
        assert lost is not None
        assert "ASSAY_ENCRYPTION_KEYS: " in lost
