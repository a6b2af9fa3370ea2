"""What a limited key may do to other keys: it can't give more money, time or requests than it has."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.keys import api_keys
from app.db.keys.api_keys import KeyRow
from app.domain.errors import FieldError
from app.domain.jobs.budget import NANOS
from app.services.errors import BeyondOwnLimitsError


async def limits_of_maker(connection: AsyncConnection, tenant: str, maker: str | None) -> KeyRow | None:
    """The key by which keys are managed, locked until the transaction ends; ``None`` where nothing limits that.

    Args:
        connection: Where, in a transaction.
        tenant: Whose it is.
        maker: Its id; ``None`` for the operator on the service's machine, and while there are no keys.
    """
    return None if maker is None else await api_keys.get_key(connection, tenant, maker, lock=True)


def check_new(
    maker: KeyRow | None, *, expires_at: datetime | None, requests_per_minute: int | None, nanos: int | None
) -> None:
    """Refuses a key with fewer limits than the one that makes it.

    Raises:
        BeyondOwnLimitsError: With each limit that is beyond the maker's.
    """
    if maker is not None:
        found = [
            *_later(maker, expires_at),
            *_more_often(maker, requests_per_minute),
            *_more_money(maker, nanos),
        ]
        if found:
            raise BeyondOwnLimitsError(found)


def check_change(
    maker: KeyRow | None,
    key: KeyRow,
    *,
    requests_per_minute: int | None,
    changes_requests: bool,
    nanos: int | None,
) -> None:
    """Refuses a change by which a key, its own included, has fewer limits than the one that changes it.

    Raises:
        BeyondOwnLimitsError: With each limit that is beyond the maker's.
    """
    if maker is None:
        return
    found = list(_more_often(maker, requests_per_minute)) if changes_requests else []
    if nanos is not None and maker.nanos_limit is not None and nanos > (key.nanos_limit or 0):
        found.append(
            FieldError("/spending", "a key with a spending cap may only lower caps, including its own")
        )
    if found:
        raise BeyondOwnLimitsError(found)


def check_rotation(maker: KeyRow | None, key: KeyRow) -> None:
    """Refuses to show a key of more rights than the one that rotates it; each may rotate itself.

    Raises:
        BeyondOwnLimitsError: With each limit that the other key lacks.
    """
    if maker is None or maker.id == key.id:
        return
    found = [*_later(maker, key.expires_at), *_more_often(maker, key.requests_per_minute)]
    if maker.nanos_limit is not None:
        found.append(FieldError("/spending", "a key with a spending cap may only rotate itself"))
    if found:
        raise BeyondOwnLimitsError(found)


def _later(maker: KeyRow, expires_at: datetime | None) -> Iterator[FieldError]:
    if maker.expires_at is not None and (expires_at is None or expires_at > maker.expires_at):
        yield FieldError(
            "/expires_at", f"must not be later than {maker.expires_at.isoformat()}, when your own key expires"
        )


def _more_often(maker: KeyRow, requests_per_minute: int | None) -> Iterator[FieldError]:
    most = maker.requests_per_minute
    if most is not None and (requests_per_minute is None or requests_per_minute > most):
        yield FieldError("/requests_per_minute", f"must be at most {most:,}, your own key's limit")


def _more_money(maker: KeyRow, nanos: int | None) -> Iterator[FieldError]:
    if maker.nanos_limit is None:
        return
    left = max(0, maker.nanos_limit - maker.nanos_taken)
    if nanos is None or nanos > left:
        yield FieldError(
            "/spending", f"must be at most ${left / NANOS:,.2f}, what remains of your own key's cap"
        )
