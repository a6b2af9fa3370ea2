"""Turns itself into a command that dies with the process that asked for it.

Run as a script, `python -I -S launch.py PARENT DEATH_SIGNAL NICENESS IDENTITY DIRECTORY COMMAND…`, in front of every child:

* PARENT: the pid of the process whose end ends the command; DEATH_SIGNAL: the number of the signal that does so.
* NICENESS: how far the command lets others go before it, beyond this process.
* IDENTITY: `self`; `namespace:UID:GID`, a user namespace in which the caller's account looks like UID and GID; or
  `user:UID:GID`, another account for good.
* DIRECTORY: where the command runs; it must be reachable for that identity.

A script and not a `preexec_fn`, because that runs Python between fork and exec, which may deadlock in a process with threads.
Linux only for the first two: elsewhere a command outlives a supervisor that is killed with SIGKILL.
"""

import ctypes
import os
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000


def become(identity: str) -> None:
    """Takes on an identity.

    Raises:
        OSError: the kernel refuses it.
    """
    kind, *ids = identity.split(":")
    if kind == "namespace":
        _enter_user_namespace(*map(int, ids))
    elif kind == "user":
        uid, gid = map(int, ids)
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def die_with(parent: int, death_signal: int) -> None:
    """Has the kernel send `death_signal` to this process when the thread that forked it ends."""
    if sys.platform == "linux":
        _call("prctl", PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel knew of our wish
        sys.exit(f"the parent process {parent} is gone")


def _enter_user_namespace(uid: int, gid: int) -> None:
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")  # without this the kernel refuses the map of groups
    Path("/proc/self/uid_map").write_text(f"{uid} {outer_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {outer_gid} 1")


def _call(function: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, function):
        raise OSError(f"this system has no {function}")
    if getattr(library, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def main() -> None:
    """Runs the command in the place of this process."""
    parent, death_signal, niceness, identity, directory, *command = sys.argv[1:]
    try:
        os.nice(int(niceness))
        become(identity)
        os.chdir(directory)
        die_with(int(parent), int(death_signal))  # last: a change of identity takes the wish back
        os.execv(command[0], command)  # noqa: S606 - to run the given command is the purpose
    except OSError as error:
        sys.exit(f"cannot run {command[0]} as {identity} in {directory}: {error}")


if __name__ == "__main__":
    main()
