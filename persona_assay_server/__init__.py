"""The service as an installed distribution: its folders lie in here, and are found by its own processes alone.

Installed from a wheel, `app`, `workers`, `simulator`, `embedded` and `migrations` are in `folders/`, which is on nobody's path: a
program that has a package `app` of its own keeps it. In a checkout they are at the top, where they are found anyway.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

FOLDERS = Path(__file__).with_name("folders")


def find_folders() -> None:
    """Has this process, and those that it starts, find the service's folders before anybody else's."""
    if not FOLDERS.is_dir():
        return
    folders = str(FOLDERS)
    sys.path.insert(0, folders)
    earlier = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{folders}{os.pathsep}{earlier}" if earlier else folders


def command_line() -> "click.Group":
    """The commands of whoever runs the service, with the client's beside them."""
    find_folders()
    from app.cli import app  # noqa: PLC0415 - found from here on

    return app


def main() -> None:
    """Runs the command line."""
    find_folders()
    from app.cli import main as run  # noqa: PLC0415 - found from here on

    run()
