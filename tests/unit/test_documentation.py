"""What the documents say of the code, compared with the code."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


class TestLinks:
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
    def test_every_link_and_every_named_file_leads_somewhere(self, page: Path) -> None:
        text = page.read_text("utf-8")
        linked = [target.split("#")[0] for target in re.findall(r"\]\((?!https?://)([^)#][^)]*)\)", text)]
        missing = [target for target in linked if not (page.parent / target).exists()]
        named = re.findall(
            r"`((?:app|workers|embedded|simulator|migrations|tests|docs|benchmarks)/[\w./-]+)`", text
        )
        missing += [name for name in named if not (ROOT / name).exists()]
        assert missing == []


@cache
def names_in(file: str) -> set[str]:
    """The tests of a file in `tests/`, each as `Class::test` or `test`."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in tree.body if isinstance(node, functions)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{member.name}" for member in node.body if isinstance(member, functions)}
    return found


class TestProviders:
    """The table of what providers do."""

    ROWS = re.findall(
        r"^\| [^|]+ \| [^|]+ \| [^|]+ \| `([\w/]+\.py)::([\w:]+)` \|$",
        (ROOT / "docs" / "providers.md").read_text("utf-8"),
        re.MULTILINE,
    )

    def test_each_of_at_least_sixty_behaviours_has_a_test_that_exists(self) -> None:
        assert len(self.ROWS) >= 60
        assert [(file, test) for file, test in self.ROWS if test not in names_in(file)] == []

    def test_every_row_is_of_that_form(self) -> None:
        lines = (ROOT / "docs" / "providers.md").read_text("utf-8").splitlines()
        rows = [line for line in lines if line.startswith("| ") and not line.startswith("| provider |")]
        assert len(rows) == len(self.ROWS)
