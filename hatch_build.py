"""What the server's distribution needs: the client of the same version, and what `pyproject.toml` lists for this hook."""

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class WithClient(MetadataHookInterface):
    """Adds the client; its version stands in `persona_assay/version.py` alone."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the dependencies."""
        metadata["dependencies"] = [f"persona-assay=={metadata['version']}", *self.config["dependencies"]]
