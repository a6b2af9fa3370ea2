"""One child process: started, watched until it is ready, and stopped for certain."""

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

LAUNCHER = Path(__file__).with_name("launch.py")
POLL_SECONDS = 0.01
FORCED_STOP_SECONDS = 6.0  # a postmaster that is told to quit kills what does not follow within five
TAIL_BYTES = 2000


class StackError(Exception):
    """A part of the stack cannot run; the message says which, why, and what its log said last."""


@dataclass(frozen=True)
class RunAs:
    """The account of a child: our own, our own in disguise (a user namespace), or another one."""

    kind: Literal["self", "namespace", "user"]
    uid: int
    gid: int

    @classmethod
    def ourselves(cls) -> Self:
        """The account of this process."""
        return cls("self", os.geteuid(), os.getegid())

    @classmethod
    def nobody(cls, kind: Literal["namespace", "user"]) -> Self:
        """The unprivileged account `nobody`: only in appearance (`namespace`), or for good (`user`)."""
        account = pwd.getpwnam("nobody")
        return cls(kind, account.pw_uid, account.pw_gid)

    @property
    def owner(self) -> tuple[int, int]:
        """Uid and gid, as this process sees them, that files need to belong to the child."""
        return (self.uid, self.gid) if self.kind == "user" else (os.geteuid(), os.getegid())

    def __str__(self) -> str:
        return "self" if self.kind == "self" else f"{self.kind}:{self.uid}:{self.gid}"


def launch_command(
    argv: Sequence[str],
    *,
    run_as: RunAs,
    directory: Path,
    death_signal: signal.Signals = signal.SIGKILL,
    niceness: int = 0,
) -> list[str]:
    """The command that runs `argv` so that it gets `death_signal` when the calling thread's process dies."""
    prefix = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(int(death_signal))]
    return [*prefix, str(niceness), str(run_as), str(directory), *argv]


class ManagedProcess:
    """A child in a process group of its own, whose output goes to a file, and which dies with its parent.

    The kernel ties the child to the *thread* that starts it: start it from one that lives as long as the child shall.

    Args:
        name: what messages call it.
        argv: the command; its first word is a path.
        log: the file that its output is appended to.
        env: what is added to this process' environment.
        directory: where it runs.
        run_as: its account; this process' own by default.
        is_ready: answers whether the running child can be used; by default it is, at once.
        stop_signal: asks it to end in good order.
        death_signal: ends it by force, after `grace` or when the parent dies.
        grace: seconds between the two.
        niceness: how far it lets others go before it, 0 to 19, from its first instruction on.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        directory: Path = Path(),
        run_as: RunAs | None = None,
        is_ready: Callable[[], bool] = lambda: True,
        stop_signal: signal.Signals = signal.SIGTERM,
        death_signal: signal.Signals = signal.SIGKILL,
        grace: float = 10.0,
        niceness: int = 0,
    ) -> None:
        self.name = name
        self._argv = list(argv)
        self._log = log
        self._env = dict(env or {})
        self._directory = directory
        self._run_as = run_as or RunAs.ourselves()
        self._is_ready = is_ready
        self._stop_signal = stop_signal
        self._death_signal = death_signal
        self._grace = grace
        self._niceness = niceness
        self._child: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._stop_deadline: float | None = None

    @property
    def running(self) -> bool:
        """Whether the child is alive."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int | None:
        """The child's pid while it is alive."""
        return self._child.pid if self._child is not None and self.running else None

    @property
    def exit_status(self) -> int | None:
        """What the last child ended with (a signal's number as a negative one); None while it runs or before."""
        return None if self._child is None else self._child.poll()

    def spawn(self) -> None:
        """Starts the child without waiting until it is ready."""
        if self.running:
            raise StackError(f"{self.name} is already running")
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._stop_deadline = None
        command = launch_command(
            self._argv,
            run_as=self._run_as,
            directory=self._directory,
            death_signal=self._death_signal,
            niceness=self._niceness,
        )
        with self._log.open("ab") as output:
            self._log_start = output.tell()
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._env},
                process_group=0,  # a Ctrl-C in the terminal is the supervisor's to handle, in its order
            )

    def wait_ready(self, timeout: float) -> None:
        """Waits until the child can be used.

        Raises:
            StackError: it ended, or was not ready within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not (self.running and self._is_ready()):
            if not self.running:
                raise StackError(self.failure())
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} was not ready within {timeout:g} s.\n{self.log_tail()}")
            time.sleep(POLL_SECONDS)

    def start(self, timeout: float) -> None:
        """Starts the child and waits until it can be used; a child that cannot is stopped.

        Raises:
            StackError: as `wait_ready`.
        """
        self.spawn()
        try:
            self.wait_ready(timeout)
        except BaseException:
            self.stop()
            raise

    def request_stop(self) -> None:
        """Asks the child to end and returns at once; `stop` then waits for it."""
        if self._child is not None and self.running and self._stop_deadline is None:
            self._stop_deadline = time.monotonic() + self._grace
            self._child.send_signal(self._stop_signal)

    def stop(self) -> None:
        """Ends the child: by request, and by force once its grace is over. Harmless if it is not running."""
        if self._child is None:
            return
        self.request_stop()
        if self._ends_by(self._stop_deadline or time.monotonic()):
            return
        self._child.send_signal(self._death_signal)
        if not self._ends_by(time.monotonic() + FORCED_STOP_SECONDS):
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()

    def failure(self) -> str:
        """One message on how the child ended, with what it logged last."""
        return f"{self.name} ended with status {self.exit_status}.\n{self.log_tail()}"

    def log_tail(self) -> str:
        """The end of what the child has logged since it was started last."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_start, size - TAIL_BYTES))
            return file.read().decode(errors="replace").strip()

    def _ends_by(self, deadline: float) -> bool:
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(max(0.0, deadline - time.monotonic()))
        return not self.running
