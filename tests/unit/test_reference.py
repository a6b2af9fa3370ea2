"""The reference in docs/reference is that of the code."""

import re

import pytest

from app.settings import Settings, variables
from tests.reference import PAGES, REFERENCES


@pytest.mark.parametrize("page", REFERENCES)
def test_a_page_is_what_the_code_says(page: str) -> None:
    committed = (PAGES / f"{page}.md").read_text("utf-8")
    assert committed == REFERENCES[page](), "run `make reference`"


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
