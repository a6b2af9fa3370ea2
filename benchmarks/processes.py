"""CPU time and memory of the processes of a stack."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil  # type: ignore[import-untyped]  # it comes without types

Tree = list[psutil.Process]


@dataclass
class ProcessMeter:
    """Watches named processes, each with all of its children.

    Attributes:
        pids: The pid of each part, by name.
        peaks: Most memory seen so far of each part, in MiB: proportional set size, so that what Postgres' processes
            share is counted once.
    """

    pids: Mapping[str, int]
    peaks: dict[str, float] = field(default_factory=dict)

    def cpu_seconds(self) -> dict[str, float]:
        """CPU seconds of each part since it started, those of children that have ended included."""
        return {name: sum(_cpu(process) for process in _tree(pid)) for name, pid in self.pids.items()}

    def sample_memory(self) -> None:
        """Raises the peaks to what is used now."""
        for name, pid in self.pids.items():
            used = sum(_memory(process) for process in _tree(pid)) / 2**20
            self.peaks[name] = max(used, self.peaks.get(name, 0.0))


def _tree(pid: int) -> Tree:
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
