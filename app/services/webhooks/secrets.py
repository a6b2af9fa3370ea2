"""Webhooks' secrets at rest: encrypted and bound to their webhook, if an encryption key is configured."""

import structlog
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.webhooks import webhooks
from app.domain.webhooks.webhook import SECRET_PREFIX
from app.vault.secret_cipher import SealError, SecretCipher

log = structlog.get_logger(__name__)


def sealed(ring: SecretCipher, webhook_id: str, secret: str) -> str:
    """A secret as it is stored: as it is only where there is no key."""
    return ring.seal(SecretStr(secret), _binding(webhook_id)) if ring else secret


def opened(ring: SecretCipher, webhook_id: str, kept: str) -> str:
    """The secret that is stored.

    Raises:
        SealError: If it can't be read.
    """
    if kept.startswith(SECRET_PREFIX):
        return kept
    return ring.open(kept, _binding(webhook_id)).get_secret_value()


async def reseal_secrets(engine: AsyncEngine, ring: SecretCipher) -> int:
    """Encrypts every webhook's secrets with the ring's first key, also those from before there was one.

    Returns:
        How many webhooks' there were to be encrypted anew.
    """
    if not ring:
        return 0
    done = 0
    async with engine.begin() as connection:
        for webhook_id, secret, former in await webhooks.lock_secrets(connection):
            kept = [each for each in (secret, former) if each is not None]
            if all(ring.is_current(each) for each in kept):
                continue
            try:
                anew = [sealed(ring, webhook_id, opened(ring, webhook_id, each)) for each in kept]
            except SealError as error:
                log.warning("secret of a webhook not readable", webhook=webhook_id, reason=str(error))
                continue
            await webhooks.set_secrets(connection, webhook_id, anew[0], anew[1] if former else None)
            done += 1
    return done


def _binding(webhook_id: str) -> str:
    return f"webhook\n{webhook_id}"
