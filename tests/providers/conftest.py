"""A running service that is connected to servers that others wrote."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Stack, connected_stack
from tests.integration.simulator.conftest import RunningSimulator
from tests.providers.servers import MASTER_KEY, Server, litellm, llama_cpp

KEYS = {"MASTER_KEY": MASTER_KEY, "WRONG_KEY": "sk-no-such-key"}
Serve = Callable[[Path], Server]


@contextmanager
def serving(serve: Serve) -> Iterator[tuple[Server, Path]]:
    """Launches a server in a directory of its own and kills it at the end."""
    with scratch_directory() as directory:
        server = serve(directory)
        server.launch()
        try:
            yield server, directory
        finally:
            server.kill()


@pytest.fixture(scope="session")
def simulator() -> Iterator[RunningSimulator]:
    """The provider behind LiteLLM's proxy."""
    with scratch_directory() as directory:
        running = RunningSimulator(directory)
        yield running
        running.stop()


@pytest.fixture(scope="session")
def proxy(simulator: RunningSimulator) -> Iterator[tuple[Server, Path]]:
    with serving(lambda directory: litellm(directory, simulator.url)) as found:
        found[0].wait()
        yield found


@pytest.fixture(scope="session")
def through_proxy(
    proxy: tuple[Server, Path], databases: Databases, template_database: str
) -> Iterator[Stack]:
    """A service whose providers are LiteLLM's proxy, in both formats and with a wrong key."""
    server, directory = proxy
    connections: dict[str, object] = {
        "litellm": {"kind": "openai", "base_url": f"{server.url}/v1", "api_key_env": "MASTER_KEY"},
        "litellm-claude": {"kind": "anthropic", "base_url": server.url, "api_key_env": "MASTER_KEY"},
        "litellm-wrong-key": {"kind": "openai", "base_url": f"{server.url}/v1", "api_key_env": "WRONG_KEY"},
    }
    with connected_stack(connections, directory, databases, template_database, **KEYS) as stack:
        yield stack


@pytest.fixture(scope="session")
def smollm2() -> Iterator[Server]:
    """llama.cpp's server, which loads its model while the service starts."""
    with serving(llama_cpp) as (server, _):
        yield server


@pytest.fixture(scope="session")
def with_smollm2(smollm2: Server, databases: Databases, template_database: str) -> Iterator[Stack]:
    """A service whose provider is llama.cpp's server, without a key."""
    connections: dict[str, object] = {"llama": {"kind": "openai", "base_url": f"{smollm2.url}/v1"}}
    with (
        scratch_directory() as directory,
        connected_stack(connections, directory, databases, template_database) as stack,
    ):
        smollm2.wait()
        yield stack
