"""`/readyz` with a real worker: it names a worker that is not warm yet, stops or falls silent."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from embedded.services import StackConfig, StackUrls, service_commands
from tests.api.service import Service, serving
from tests.observe import eventually

pytestmark = pytest.mark.slow

START_SECONDS = 120.0


def workers(service: Service) -> tuple[int, str]:
    """The status, and what is said of the workers."""
    ready = service.get("/readyz")
    return ready.status_code, ready.json()["parts"]["workers"]


def test_it_is_ready_from_when_a_worker_is_warm_until_it_is_told_to_stop(
    database_url: str, redis_url: str, scratch: Path
) -> None:
    config = StackConfig(host="127.0.0.1", port=0, data_dir=scratch, workers=1, slots=1)
    urls = StackUrls("127.0.0.1", 0, database_url, redis_url, 9)
    [spec] = [each for each in service_commands(config, urls) if each.name == "worker1"]
    with serving(scratch, database_url, redis_url) as service, (scratch / "worker.log").open("wb") as log:
        assert workers(service) == (200, "none is ready")
        process = subprocess.Popen(
            spec.argv, env=os.environ | urls.environment() | spec.env, stdout=log, stderr=log
        )
        try:
            assert eventually(lambda: workers(service) == (200, "ok"), START_SECONDS)
            libraries = Path(f"/proc/{process.pid}/maps").read_text()
            assert "scipy/special" in libraries  # a job's first call imports nothing large
            process.send_signal(signal.SIGSTOP)
            name = f"worker {process.pid}"
            assert eventually(lambda: name in service.get("/readyz").json()["parts"], 60)
            assert service.get("/readyz").json()["status"] == "degraded"
            process.send_signal(signal.SIGCONT)
            assert eventually(lambda: name not in service.get("/readyz").json()["parts"], 60)
            process.terminate()
            assert eventually(lambda: workers(service) == (200, "none is ready"))
        finally:
            process.kill()
            process.wait(10)
