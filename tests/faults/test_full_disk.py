"""A disk that fills up and is freed: readiness says so, and the job goes on by itself without a loss."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import scratch_directory
from tests.faults.conftest import ENVIRONMENT, JOB
from tests.faults.service import Service, running_service
from tests.observe import eventually

SIZE = "600m"
SECONDS = 240.0


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A directory whose `data` is a disk of its own."""
    with scratch_directory() as directory:
        disk = directory / "data"
        disk.mkdir(mode=0o711)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0711", "tmpfs", disk], check=False
        )
        if mounted.returncode != 0:
            pytest.skip("needs the right to mount a disk")
        try:
            yield directory
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)


def fill(file: Path) -> None:
    """Leaves no room on the file's disk."""
    size = 1 << 20
    with file.open("wb", buffering=0) as full:
        while size:
            try:
                full.write(b"\0" * size)
            except OSError:
                size //= 2


def is_ready(service: Service) -> bool:
    return service.program._ready()


def trouble(service: Service) -> str:
    """What readiness says about the database."""
    return str(service.api.get("/readyz").json()["parts"].get("database"))


# A quick machine makes some 3,300 calls while a disk is full and empties again: the job has to last longer than all times.
@pytest.mark.parametrize(("times", "iterations"), [(2, 6), pytest.param(10, 50, marks=pytest.mark.long)])
def test_everything_goes_on_after_a_full_disk(small_disk: Path, times: int, iterations: int) -> None:
    with running_service(small_disk, dict(ENVIRONMENT)) as service:
        service.simulate(latency_ms=150.0)
        job_id = service.submit(JOB | {"iterations": iterations})
        filler = small_disk / "data" / "filler"
        for _ in range(times):
            service.after_calls(200)
            fill(filler)
            try:
                assert eventually(lambda: trouble(service) != "ok", SECONDS), "readiness saw nothing"
            finally:
                filler.unlink()
            assert eventually(lambda: is_ready(service), SECONDS)
        job = service.ended(job_id, 2 * SECONDS)
        assert (job["status"], job["completeness"]) == ("completed", "full")
