"""What tests look at from outside a process."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 600.0
"""Seconds after which a test gives up. On a busy machine everything takes minutes; no result depends on it."""


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait until something holds; return whether it does within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.01)
    return holds()


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they did, and so on; of one that just ends, none."""
    try:
        children = [
            int(child)
            for file in Path(f"/proc/{pid}/task").glob("*/children")
            for child in file.read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return children + [below for child in children for below in descendants(child)]
