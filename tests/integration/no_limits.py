"""A limiter that limits nothing."""

from app.domain.model import ProviderLimits


class NoLimits:
    """What tests take for a ``RateLimiter`` that are not about limits."""

    async def enter(self, connection: str, model: str) -> None:
        """There is room."""

    def leave(self, connection: str, model: str) -> None:
        """There is room."""

    async def acquire(self, connection: str, model: str, tokens: int) -> None:
        """There is no limit."""

    def spent(self, connection: str, model: str, tokens: int) -> None:
        """There is no limit."""

    def learn(self, connection: str, model: str, limits: ProviderLimits) -> None:
        """There is nobody to tell."""

    async def pause(self, connection: str, model: str, seconds: float) -> None:
        """There is nobody to hold back."""
