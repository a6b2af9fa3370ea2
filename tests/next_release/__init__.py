"""The release after this one, for tests of upgrades: the same code with one revision more."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy, copytree

import pytest

from app.db.revision import revisions

THIS, NEXT = "0001", "0002"

_ROOT = Path(__file__).parents[2]
_REVISION = Path(__file__).with_name("second_revision.py")


@contextmanager
def next_release(directory: Path) -> Iterator[None]:
    """Inside the block this process, and those that it starts, have the next release's migrations.

    Args:
        directory: A new one, for its packages.
    """
    copytree(_ROOT / "migrations", directory / "migrations")
    copy(_REVISION, directory / "migrations" / "versions")
    for package in ("app", "workers", "simulator", "embedded"):
        (directory / package).symlink_to(_ROOT / package)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(directory)
        patch.setenv("PYTHONPATH", str(directory))
        patch.setenv("PYTHONSAFEPATH", "1")  # the working directory has this release's migrations
        _forget_migrations()
        try:
            yield
        finally:
            _forget_migrations()


def _forget_migrations() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "migrations"]:
        del sys.modules[name]
    revisions.cache_clear()
