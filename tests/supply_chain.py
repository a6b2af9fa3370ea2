"""What the locks say: every package with its hashes and by whom it is wanted. `make sbom` writes it down as CycloneDX."""

import json
import re
import sys
import tomllib
import uuid
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from persona_assay.version import VERSION

ROOT = Path(__file__).parents[1]
SERVICE, WHOLE = "requirements-service.lock", "requirements.lock"
OURS = "persona-assay-server"
CLIENT = "persona-assay"

_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9][a-z0-9.-]*)(?:\[[a-z0-9,-]+\])?==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\\n]+?))? \\\n(?P<rest>(?:    .*\n?)+)",
    re.MULTILINE,
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
_VIA = re.compile(r"^    #(?: via)? +(?!via$)([a-z0-9][a-z0-9._-]*)(?: \(pyproject\.toml\))?$", re.MULTILINE)


@dataclass(frozen=True)
class Locked:
    """One entry of a lock.

    Attributes:
        name: The package's name, normalised.
        version: The only version.
        marker: Where it is installed; ``None`` for everywhere.
        hashes: SHA-256 of the files that may be installed, in hexadecimal.
        wanted_by: Names of the packages that need it; ours among them.
    """

    name: str
    version: str
    marker: str | None
    hashes: tuple[str, ...]
    wanted_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(lock: str) -> list[Locked]:
    """The entries of a lock, in its order."""
    found = _ENTRY.finditer((ROOT / lock).read_text("utf-8"))
    return [
        Locked(
            entry["name"],
            entry["version"],
            entry["marker"],
            tuple(_HASH.findall(entry["rest"])),
            tuple(_VIA.findall(entry["rest"])),
        )
        for entry in found
    ]


def bill_of_materials(lock: str = SERVICE) -> dict[str, Any]:
    """CycloneDX 1.6 of a lock: the same lock gives the same document."""
    entries = locked(lock)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    ours = f"pkg:pypi/{OURS}@{VERSION}"
    digest = sha256((ROOT / lock).read_bytes()).hexdigest()
    needs: dict[str, list[str]] = {OURS: [], **{entry.name: [] for entry in entries}}
    for entry in entries:
        for name in entry.wanted_by:
            # What only the client or the embedded databases need of what is locked counts as ours.
            needs.get(name, needs[OURS]).append(entry.purl)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{ours}#{digest}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": OURS,
                "version": VERSION,
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": ours,
            },
        },
        "components": [_component(entry) for entry in entries],
        "dependencies": [
            {"ref": ours, "dependsOn": sorted(needs[OURS])},
            *({"ref": entry.purl, "dependsOn": sorted(set(needs[entry.name]))} for entry in entries),
        ],
    }


def _component(entry: Locked) -> dict[str, Any]:
    marker = (
        {} if entry.marker is None else {"properties": [{"name": "python:marker", "value": entry.marker}]}
    )
    return {
        "type": "library",
        "bom-ref": entry.purl,
        "name": entry.name,
        "version": entry.version,
        "purl": entry.purl,
        # Of the files that may be installed, one for each platform.
        "hashes": [{"alg": "SHA-256", "content": content} for content in entry.hashes],
        **marker,
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=2)
    sys.stdout.write("\n")
