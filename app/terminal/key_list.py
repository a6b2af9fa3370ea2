"""API keys as they are shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from persona_assay.terminal.consoles import printable
from persona_assay.terminal.fitted import Fitted

Json = Mapping[str, Any]


def keys_view(keys: Sequence[Json]) -> RenderableType:
    """API keys, of which none can be used by who sees this."""
    table = Table(box=SIMPLE_HEAD)
    for name in ("key", "name", "begins", "scopes", "status", "last used"):
        table.add_column(name, overflow="fold")
    for key in keys:
        used = key["last_used_at"]
        table.add_row(
            key["id"],
            printable(key["name"]),
            key["prefix"],
            ", ".join(key["scopes"]),
            key["status"],
            "never" if used is None else used[:16].replace("T", " "),
        )
    return Fitted(table, heads=2)
