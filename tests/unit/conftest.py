from collections.abc import Iterator

import pytest

from tests.stub_service import StubService, stub_service


@pytest.fixture
def service() -> Iterator[StubService]:
    """A service that answers what the test tells it to."""
    with stub_service() as stub:
        yield stub
