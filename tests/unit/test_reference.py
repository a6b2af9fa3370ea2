"""The reference is that of the code, and the files that git does not keep are up to date."""

import json
import re
from collections.abc import Callable
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import pytest

from app.settings import Settings, variables
from generators.client_types import DOCUMENT, PATH, source
from generators.reference import DIRECTORY, PAGES
from tests.reference import FILES


def _types() -> str:
    return source(json.loads(DOCUMENT.read_text("utf-8")))


@pytest.mark.parametrize(
    ("path", "made", "command"),
    [
        *((DIRECTORY / name, made, "reference") for name, made in FILES.items()),
        *((DIRECTORY / name, made, "setup") for name, made in PAGES.items()),
        (PATH, _types, "setup"),
    ],
    ids=[*FILES, *PAGES, PATH.name],
)
def test_a_file_is_up_to_date(path: Path, made: Callable[[], str], command: str) -> None:
    found, current = path.read_text("utf-8"), made()
    if found != current:
        changes = unified_diff(found.splitlines(), current.splitlines(), "found", "current", lineterm="")
        shown = "\n".join(islice(changes, 40))
        pytest.fail(
            f"{path} is out of date; if that is intended, run `make {command}`\n{shown}", pytrace=False
        )


def test_every_setting_has_its_variable_its_default_and_its_meaning() -> None:
    text = (DIRECTORY / "settings.md").read_text("utf-8")
    found = re.findall(r"^\| `(\w+)` \| (\S+) \| (.*) \|$", text, re.MULTILINE)
    rows = {name: (default, meaning) for name, default, meaning in found}
    assert rows.keys() == set(variables().values())
    assert [name for name, (_, meaning) in rows.items() if len(meaning.split()) < 3] == []
    assert {variable: rows[variable][0].strip("`–") for variable in variables().values()} == {
        variable: "" if (default := Settings.model_fields[name].default) is None else str(default)
        for name, variable in variables().items()
    }


def test_links_between_schemas_lead_to_one() -> None:
    text = (DIRECTORY / "api.md").read_text("utf-8")
    schemas = {name.lower() for name in re.findall(r"^### (\w+)$", text, re.MULTILINE)}
    assert len(schemas) > 100
    assert set(re.findall(r"\]\(#(\w+)\)", text)) <= schemas
