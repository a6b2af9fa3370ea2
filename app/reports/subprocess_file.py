"""Makes a file in a process of its own, so that neither what it computes nor what it leaves for the garbage collector holds up this one.

``python -m app.reports.subprocess_file`` is that process: it reads a function with its argument, and writes what the function makes.
"""

import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class ApartError(RuntimeError):
    """The process ended without a file; the message is what it said last."""


def made_apart(make: Callable[[T], bytes], material: T) -> bytes:
    """What a function makes of something, after a second that the process takes to start; to be called on a thread.

    Args:
        make: A function of a module.
        material: Its argument. Of texts and of instances of our own classes: a large list of lists would be one long step to pack.

    Raises:
        ApartError: If the function does, or the process is killed.
    """
    command = [sys.executable, "-P", "-m", __name__]
    packed = pickle.dumps((make, material))
    done = subprocess.run(command, input=packed, capture_output=True, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise ApartError(f"exit status {done.returncode}: {said.rpartition(chr(10))[2]}")
    return done.stdout


def main() -> None:
    """Makes one file."""
    make, material = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent packed it
    sys.stdout.buffer.write(make(material))


if __name__ == "__main__":
    main()
