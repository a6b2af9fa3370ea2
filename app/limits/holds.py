"""Until when nobody may call a model, as the rate limiter's processes note it in Redis for people."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError

HOLDS_KEY = "assay:limit:holds"
"""A hash: by ``connection/model`` the end in seconds of Unix time and, after a space, the reason."""
GIVES_UP = "gives up "
"""Before ``connection/model``: when jobs pause that wait for it. A field of its own, for processes of former releases."""


class Hold(NamedTuple):
    """A model that nobody may call for a while.

    Attributes:
        until: Its end.
        reason: Why, for people; empty where that is not known.
        gives_up_at: When jobs pause if no call is answered by then; ``None`` where they wait for the end.
    """

    until: datetime
    reason: str
    gives_up_at: datetime | None = None


async def read_holds(redis: Redis, models: Sequence[str]) -> Mapping[str, Hold]:
    """The holds of these models that have not ended; none where Redis is away.

    Args:
        redis: Where they are.
        models: Each as ``connection/model``.
    """
    if not models:
        return {}
    try:
        noted = await redis.hmget(HOLDS_KEY, [*models, *(GIVES_UP + model for model in models)])
    except (RedisError, OSError):
        return {}
    now = datetime.now(UTC)
    found = zip(models, noted[: len(models)], noted[len(models) :], strict=True)
    holds = {model: _hold(text, gives_up) for model, text, gives_up in found if text is not None}
    return {model: hold for model, hold in holds.items() if hold.until > now}


def _hold(noted: bytes | str, gives_up: bytes | str | None) -> Hold:
    text = noted.decode() if isinstance(noted, bytes) else noted
    until, _, reason = text.partition(" ")
    return Hold(_time(until), reason, None if gives_up is None else _time(gives_up))


def _time(seconds: bytes | str) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)
