"""Build hook of the client's distribution: makes the client's types, which git does not keep."""

from pathlib import Path
from runpy import run_path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ClientTypes(BuildHookInterface):
    """Makes the types in a checkout; an archive of sources already contains them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Write the types before files are collected."""
        root = Path(self.root).resolve()
        checkout = root.parents[1]
        generator = checkout / "generators" / "client_types.py"
        # Beside an unpacked archive another user's files may lie.
        if root == checkout / "packages" / "client" and generator.is_file():
            run_path(str(generator), run_name="__main__")
