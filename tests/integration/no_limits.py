"""A limiter that limits nothing, and what else gets in no call's way."""

from app.domain.providers.model import Usage
from app.ports import Observation, Slot


class NoLimits:
    """What tests take for a ``RateLimiter``, or for a ``ChatModel`` before its call, that are not about either."""

    async def prepare(self, connection: str, tenant: str) -> None:
        """It is ready."""

    async def probe(self, connection: str, tenant: str) -> None:
        """Its server answers."""

    async def admit(self, connection: str, model: str, expected: Usage, tenant: str | None = None) -> Slot:
        """There is no limit."""
        return self

    def release(self) -> None:
        """There is nothing to give back."""

    def observe(self, connection: str, model: str, observation: Observation) -> None:
        """There is nobody to tell."""

    def is_away(self, connection: str) -> bool:
        """No server is away."""
        return False

    def is_failing(self, connection: str, model: str) -> bool:
        """No model fails."""
        return False

    def is_full(self, connection: str, model: str) -> bool:
        """There are slots for all."""
        return False

    async def close(self) -> None:
        """Nobody waits."""
