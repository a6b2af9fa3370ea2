"""The probe of a heartbeat is a process, which has the machine's clock, as the file has."""

import os
import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize(("seconds_ago", "alive"), [(0, True), (20, True), (40, False)])
def test_the_probe_of_the_compose_file_tells_young_from_old(
    tmp_path: Path, seconds_ago: int, *, alive: bool
) -> None:
    file = tmp_path / "heartbeat"
    file.touch()
    then = file.stat().st_mtime - seconds_ago
    os.utime(file, (then, then))
    probe = f"test -n \"$(find {file} -newermt '-30 seconds')\""
    assert (subprocess.run(["/bin/sh", "-c", probe], check=False).returncode == 0) is alive
