"""Limits concurrent streams per tenant."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from app.api.http.problems import RETRY_SECONDS, ProblemError
from app.domain.keys.contract import LimitInUse


class Streams:
    """Counts what this process streams to each tenant.

    Args:
        most: How many streams one tenant may have open.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def in_use(self, tenant: str) -> LimitInUse:
        """Return the limit and the number of a tenant's open streams."""
        return LimitInUse(limit=self._most, used=self._open[tenant])

    @contextmanager
    def place(self, tenant: str) -> Iterator[None]:
        """A place for one stream.

        Raises:
            ProblemError: 429, if the tenant has as many as it may.
        """
        if self._open[tenant] >= self._most:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_streams",
                f"{self._most} exports and event streams are open already",
                headers={"Retry-After": RETRY_SECONDS},
            )
        self._open[tenant] += 1
        try:
            yield
        finally:
            self._open[tenant] -= 1
            if not self._open[tenant]:
                del self._open[tenant]
