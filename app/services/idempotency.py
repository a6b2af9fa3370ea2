"""Idempotent requests: a client's ``Idempotency-Key`` and the body that it came with."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs import idempotency
from app.domain.content_hash import hash_of
from app.services.errors import IdempotencyConflictError


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A client's key for a request.

    Attributes:
        key: The key.
        body_hash: A hash of the body, whatever the order of its fields.
    """

    key: str
    body_hash: str

    @classmethod
    def of(cls, key: str | None, body: object) -> "ClientKey | None":
        """The key for a body, if the client gave one."""
        return None if key is None else cls(key, hash_of(body))

    async def made_before(self, connection: AsyncConnection, tenant: str) -> str | None:
        """The id of what the same request made within the last day, if it did.

        Raises:
            IdempotencyConflictError: If the key came with another body.
        """
        held = await idempotency.find_key(connection, tenant, self.key)
        return None if held is None else self.made_by(held)

    def made_by(self, held: tuple[str, str]) -> str:
        """The id of what an earlier request with the key made.

        Args:
            held: That id, and the hash of that request's body.

        Raises:
            IdempotencyConflictError: If it was another body.
        """
        made, body_hash = held
        if body_hash != self.body_hash:
            raise IdempotencyConflictError
        return made
