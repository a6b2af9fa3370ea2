"""The reference in docs/reference is that of the code."""

import re
from difflib import unified_diff
from itertools import islice

import pytest

from app.settings import Settings, variables
from tests.reference import PAGES, REFERENCES


@pytest.mark.parametrize("name", REFERENCES)
def test_a_file_is_what_the_code_says(name: str) -> None:
    committed, current = (PAGES / name).read_text("utf-8"), REFERENCES[name]()
    if committed != current:
        changes = unified_diff(
            committed.splitlines(), current.splitlines(), "committed", "current", lineterm=""
        )
        shown = "\n".join(islice(changes, 40))
        pytest.fail(
            f"docs/reference/{name} differs from the code; if the change is intended, renew it with "
            f"`make types reference`\n{shown}",
            pytrace=False,
        )


def test_every_setting_has_its_variable_its_default_and_its_meaning() -> None:
    text = (PAGES / "settings.md").read_text("utf-8")
    found = re.findall(r"^\| `(\w+)` \| (\S+) \| (.*) \|$", text, re.MULTILINE)
    rows = {name: (default, meaning) for name, default, meaning in found}
    assert rows.keys() == set(variables().values())
    assert [name for name, (_, meaning) in rows.items() if len(meaning.split()) < 3] == []
    assert {variable: rows[variable][0].strip("`–") for variable in variables().values()} == {
        variable: "" if (default := Settings.model_fields[name].default) is None else str(default)
        for name, variable in variables().items()
    }


def test_links_between_schemas_lead_to_one() -> None:
    text = (PAGES / "api.md").read_text("utf-8")
    schemas = {name.lower() for name in re.findall(r"^### (\w+)$", text, re.MULTILINE)}
    assert len(schemas) > 100
    assert set(re.findall(r"\]\(#(\w+)\)", text)) <= schemas
