"""The stack that the tests of whole jobs share."""

from collections.abc import Iterator

import pytest

from tests.conftest import scratch_directory
from tests.e2e.stack import Stack
from tests.integration.simulator.conftest import RunningSimulator


@pytest.fixture(scope="module")
def stack(common_stack: Stack) -> Iterator[Stack]:
    """A running service; what a module's tests set in its simulator ends with the module."""
    with common_stack.simulator_restored():
        yield common_stack


@pytest.fixture(scope="module")
def simulator() -> Iterator[RunningSimulator]:
    """A simulator of the module's own, for services that the module starts."""
    with scratch_directory() as directory:
        running = RunningSimulator(directory)
        yield running
        running.stop()
