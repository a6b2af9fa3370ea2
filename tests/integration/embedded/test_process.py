import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.process import ManagedProcess, StackError
from tests.observe import alive, eventually

pytestmark = pytest.mark.slow

PYTHON = sys.executable
IGNORES_SIGTERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


class TestManagedProcess:
    def test_an_early_end_is_reported_with_its_status_and_its_last_words(self, tmp_path: Path) -> None:
        command = [PYTHON, "-c", "import sys; sys.exit('no such model')"]
        process = ManagedProcess("judge", command, log=tmp_path / "log", is_ready=lambda: False)
        with pytest.raises(StackError, match=r"judge ended with status 1\.\nno such model"):
            process.start(timeout=10)
        assert process.pid is None

    def test_a_child_that_is_not_ready_in_time_is_stopped(self, tmp_path: Path) -> None:
        process = ManagedProcess(
            "sleeper", ["/bin/sleep", "60"], log=tmp_path / "log", is_ready=lambda: False
        )
        with pytest.raises(StackError, match=r"sleeper was not ready within 0\.1 s"):
            process.start(timeout=0.1)
        assert not process.running

    def test_a_child_that_does_not_listen_is_killed_after_its_grace(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        process = ManagedProcess("deaf", [PYTHON, "-c", IGNORES_SIGTERM], log=log, grace=0.2)
        process.spawn()
        assert eventually(lambda: process.log_tail() == "up")
        process.stop()
        assert process.exit_status == -signal.SIGKILL

    def test_only_what_the_last_start_logged_is_quoted(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text("an older run's complaint\n")
        process = ManagedProcess("echo", ["/bin/echo", "hello"], log=log)
        process.spawn()
        assert eventually(lambda: not process.running)
        assert process.log_tail() == "hello"
        assert log.read_text() == "an older run's complaint\nhello\n"

    def test_a_child_lets_others_go_before_it(self, tmp_path: Path) -> None:
        command = [PYTHON, "-c", "import os; print(os.nice(0))"]
        process = ManagedProcess("polite", command, log=tmp_path / "log", niceness=3)
        process.spawn()
        assert eventually(lambda: not process.running)
        assert process.log_tail() == str(min(os.nice(0) + 3, 19))

    def test_a_command_that_does_not_exist_is_named(self, tmp_path: Path) -> None:
        process = ManagedProcess("ghost", ["/no/such/program"], log=tmp_path / "log", is_ready=lambda: False)
        with pytest.raises(StackError, match="cannot run /no/such/program"):
            process.start(timeout=10)

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
    def test_a_child_dies_with_a_parent_that_is_killed(self, tmp_path: Path) -> None:
        pid_file = tmp_path / "pid"
        script = (
            "import time; from pathlib import Path; from embedded.process import ManagedProcess\n"
            f"child = ManagedProcess('child', ['/bin/sleep', '60'], log=Path({str(tmp_path / 'log')!r}))\n"
            "child.spawn()\n"
            f"Path({str(pid_file)!r}).write_text(str(child.pid))\n"
            "time.sleep(60)\n"
        )
        with subprocess.Popen([PYTHON, "-c", script]) as parent:
            assert eventually(lambda: pid_file.exists() and pid_file.read_text() != "")
            child = int(pid_file.read_text())
            assert eventually(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n")
            os.kill(parent.pid, signal.SIGKILL)
        assert eventually(lambda: not alive(child))
