"""A server that a test may kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.valkey import EmbeddedValkey


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    """A server that a test may kill."""
    with EmbeddedValkey(tmp_path / "valkey") as server:
        yield server
