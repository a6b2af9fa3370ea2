"""The stack that the tests of whole jobs share."""

from collections.abc import Iterator

import pytest

from tests.e2e.stack import Stack


@pytest.fixture(scope="module")
def stack(common_stack: Stack) -> Iterator[Stack]:
    """A running service; what a module's tests set in its simulator ends with the module."""
    with common_stack.simulator_restored():
        yield common_stack
