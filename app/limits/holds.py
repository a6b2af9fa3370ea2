"""Until when nobody may call a model, as the rate limiter's processes note it in Redis for people."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app import clock

HOLDS_KEY = "assay:limit:holds"
"""A hash: by ``connection/model`` the end in seconds of Unix time and, after a space, the reason."""


class Hold(NamedTuple):
    """A model that nobody may call for a while.

    Attributes:
        until: Its end.
        reason: Why, for people; empty where that is not known.
    """

    until: datetime
    reason: str


async def read_holds(redis: Redis, models: Sequence[str]) -> Mapping[str, Hold]:
    """The holds of these models that have not ended; none where Redis is away.

    Args:
        redis: Where they are.
        models: Each as ``connection/model``.
    """
    if not models:
        return {}
    try:
        noted = await redis.hmget(HOLDS_KEY, list(models))
    except (RedisError, OSError):
        return {}
    now = clock.now()
    holds = {model: _hold(text) for model, text in zip(models, noted, strict=True) if text is not None}
    return {model: hold for model, hold in holds.items() if hold.until > now}


def _hold(noted: bytes | str) -> Hold:
    text = noted.decode() if isinstance(noted, bytes) else noted
    until, _, reason = text.partition(" ")
    return Hold(datetime.fromtimestamp(float(until), UTC), reason)
