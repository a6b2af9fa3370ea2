"""A worker is killed in each moment in which a batch changes hands; the provider is asked for nothing twice."""

from collections.abc import Iterator

import pytest

from tests.conftest import scratch_directory
from tests.e2e.test_batches import POLLED_OFTEN, asked, body, measured
from tests.faults.service import Service, running_service
from tests.observe import eventually

MOMENTS = (
    ("file", "before"),
    ("file", "within"),
    ("upload", "before"),
    ("upload", "after"),
    ("begin", "before"),
    ("begin", "within"),
    ("create", "before"),
    ("submit", "before"),
    ("submit", "within"),
    ("collect", "before"),
    ("collect", "within"),
    ("collected", "within"),
    ("exchange", "before"),
    ("exchange", "within"),
)
WITH_FILES = (("uploaded", "before"), ("uploaded", "within"), ("delete", "before"), ("delete", "after"))
"""Moments that there are only where the calls are uploaded as a file."""

CRASH_SECONDS = 120.0
DELETION_SECONDS = 180.0


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with (
        scratch_directory() as directory,
        running_service(directory, POLLED_OFTEN | {"ASSAY_LEASE_SECONDS": "2"}) as running,
    ):
        running.simulate(batch_ms=300)
        yield running


@pytest.mark.long
@pytest.mark.timeout(1800)  # a death takes some ten seconds to be noticed
class TestKilled:
    @pytest.mark.parametrize("connection", ["simulated", "simulated-anthropic"])
    def test_at_any_moment_of_a_batch_costs_nothing_twice(self, service: Service, connection: str) -> None:
        direct = service.submit(body(connection, "direct"))
        service.ended(direct, 300)
        for point, moment in MOMENTS + (WITH_FILES if connection == "simulated" else ()):
            service.settled().arm(point, moment, 1)
            batched = service.submit(body(connection, "batch"))
            assert service.crashed(CRASH_SECONDS), f"nobody died {moment} {point}"
            assert service.ended(batched, 300)["status"] == "completed"
            assert measured(service.results(batched)) == measured(service.results(direct))
            assert asked(service, batched).keys() == asked(service, direct).keys(), (point, moment)
            assert set(asked(service, batched).values()) == {1}, (point, moment)
        assert eventually(lambda: not service.uploads(), DELETION_SECONDS)
