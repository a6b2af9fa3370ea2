"""Checks that the secrets of this process are those that the database's contents were made with."""

from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.health import is_away
from app.db.keys import api_keys
from app.db.providers import connections
from app.db.revision import lacks_tables
from app.domain.keys.api_key import pepper_name
from app.vault.secret_cipher import SecretCipher


async def lost_secret(engine: AsyncEngine, pepper: bytes | None, ring: SecretCipher) -> str | None:
    """Return which secret is not the one in use so far, and the remedy; ``None`` if all are, or the database can't say.

    Args:
        engine: Of the tables' owner, for all tenants.
        pepper: The secret that keys are hashed with.
        ring: The keys that stored secrets are encrypted with.
    """
    try:
        return await _lost_secret(engine, pepper, ring)
    except Exception as error:
        if is_away(error) or (isinstance(error, DBAPIError) and lacks_tables(error)):
            return None  # /readyz says what is wrong with the database
        raise


async def _lost_secret(engine: AsyncEngine, pepper: bytes | None, ring: SecretCipher) -> str | None:
    async with engine.connect() as connection:
        if pepper is not None and await api_keys.lacks_pepper(connection, pepper_name(pepper)):
            return (
                "ASSAY_KEY_PEPPER: every API key in the database was created with another pepper and would be refused."
                " Restore that pepper (by default the file key-pepper in the data directory) from a backup, or revoke"
                " all keys with `assay keys revoke` and create new ones"
            )
        names = await connections.encryption_key_names(connection)
    if names and not ring.has_any(names):
        return (
            "ASSAY_ENCRYPTION_KEYS: the keys of connections and the secrets of webhooks in the database were encrypted"
            f" with other keys ({', '.join(sorted(names))}). Restore those (by default the file encryption-keys in the"
            " data directory) from a backup; if they are lost, delete the connections and webhooks and start again"
        )
    return None
