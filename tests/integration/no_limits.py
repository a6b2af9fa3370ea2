"""A limiter that limits nothing, and what else gets in no call's way."""

from app.domain.model import ProviderLimits


class NoLimits:
    """What tests take for a ``RateLimiter``, or for a ``ChatModel`` before its call, that are not about either."""

    async def prepare(self, connection: str, tenant: str) -> None:
        """It is ready."""

    def bounds(self, connection: str, model: str) -> bool:
        """It is always asked, so that tests can have it wait."""
        return True

    async def enter(self, connection: str, model: str) -> None:
        """There is room."""

    def leave(self, connection: str, model: str) -> None:
        """There is room."""

    def lets_all_pass(self, connection: str, model: str) -> bool:
        """It is always asked, so that tests can have it wait."""
        return False

    async def acquire(self, connection: str, model: str, tokens: int) -> None:
        """There is no limit."""

    def spent(self, connection: str, model: str, tokens: int) -> None:
        """There is no limit."""

    def learn(self, connection: str, model: str, limits: ProviderLimits) -> None:
        """There is nobody to tell."""

    def hold(self, connection: str, model: str, seconds: float) -> None:
        """There is nobody to hold back."""

    async def pause(self, connection: str, model: str, seconds: float) -> None:
        """There is nobody to hold back."""
