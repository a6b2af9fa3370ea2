"""Model servers written by others, as processes: LiteLLM's proxy and llama.cpp with a small real model."""

import os
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml

from embedded.supervisor import free_port
from tests.observe import eventually

PROJECT = Path(__file__).parents[2]
ENVIRONMENTS = PROJECT / "build" / "providers"
SERVE_SMOLLM2 = Path(__file__).with_name("serve_smollm2.py")

MASTER_KEY = "sk-master-0123456789"
START_SECONDS = 150.0
"""LiteLLM imports for half a minute on a busy machine."""


class Server:
    """A server that can be killed and started again at the same port.

    Args:
        environment: The directory in `build/providers` that it is installed in.
        command: Its program in there and its arguments; `{port}` stands for its port.
        health: A path that answers 200 once it serves.
        directory: Where its log goes, and where it runs.
    """

    def __init__(self, environment: str, command: list[str], health: str, directory: Path) -> None:
        programs = ENVIRONMENTS / environment / "bin"
        if not (ENVIRONMENTS / environment / "ready").exists():
            pytest.fail(f"{environment} is not installed: make test-providers installs it")
        self.port = free_port("127.0.0.1", 0)
        self.log = directory / f"{environment}.log"
        self._command = [str(programs / command[0]), *(part.format(port=self.port) for part in command[1:])]
        self._health = health
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def launch(self) -> None:
        """Starts it without waiting for it."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=self._directory, env=os.environ | _QUIET
            )

    def wait(self) -> None:
        """Waits until it serves."""
        assert eventually(self._serves, START_SECONDS), self.log.read_text()[-2_000:]

    def start(self) -> None:
        """Starts it and waits until it serves."""
        self.launch()
        self.wait()

    def kill(self) -> None:
        """SIGKILL; its port refuses connections from now on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()[-2_000:]
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", self._health)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


_QUIET = {"LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "127.0.0.1"}
"""LiteLLM asks no other host for anything."""


def litellm(directory: Path, simulator: str) -> Server:
    """LiteLLM's proxy with a master key, mock replies, mock errors, and a simulator as the provider behind it."""
    behind = {
        "sim-faithful": ("openai/sim-faithful", f"{simulator}/v1"),
        "sim-judge": ("openai/sim-judge", f"{simulator}/v1"),
        "sim-reasoner": ("openai/sim-reasoner", f"{simulator}/v1"),
        "claude": ("anthropic/sim-faithful", simulator),
        "claude-judge": ("anthropic/sim-judge", simulator),
        "limited-judge": ("openai/judge", f"{simulator}/p/azure-30k-tpm/openai/v1"),
        "filtered": ("openai/filtered-deployment", f"{simulator}/p/azure-450k-tpm/openai/v1"),
    }
    models = [
        {"model_name": name, "litellm_params": {"model": model, "api_base": base, "api_key": "any"}}
        for name, (model, base) in behind.items()
    ]
    models.append(
        {"model_name": "wrong-key", "litellm_params": {**models[0]["litellm_params"], "api_key": "wrong"}}  # type: ignore[dict-item]  # a mapping
    )
    mocks = {
        "mock-judge": "4",
        "mock-429": "litellm.RateLimitError",
        "mock-500": "litellm.InternalServerError",
    }
    models += [
        {
            "model_name": name,
            "litellm_params": {"model": "openai/mock", "api_key": "any", "mock_response": reply},
        }
        for name, reply in mocks.items()
    ]
    settings = {
        "model_list": models,
        "general_settings": {"master_key": MASTER_KEY},
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        # Its own pause after an upstream's 429; the service has one.
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }
    (directory / "litellm.yaml").write_text(yaml.safe_dump(settings))
    command = ["litellm", "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", "{port}"]
    return Server("litellm", command, "/health/liveliness", directory)


def llama_cpp(directory: Path) -> Server:
    """llama.cpp with SmolLM2-135M-Instruct."""
    return Server("llama-cpp", ["python", str(SERVE_SMOLLM2), "{port}"], "/health", directory)
