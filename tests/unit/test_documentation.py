"""What the documents say of the code, compared with the code, and the site that is built from them."""

import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from app.cli import app as assay
from generators.client_types import DOCUMENT

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
READERS_PAGES = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
"""The pages that speak of this release alone."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: a link that leads nowhere, or to a missing heading, is an error."""
    directory = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-c", "docs", "-d", str(directory / "read")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(directory / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return directory / "site"


@pytest.mark.slow
class TestSite:
    def test_has_every_page_and_leads_to_the_first(self, site: Path) -> None:
        pages = [page for page in PAGES if not (site / f"{name_of(page)[:-3]}.html").is_file()]
        assert pages == []
        assert "url=docs/index.html" in (site / "index.html").read_text("utf-8")

    def test_loads_nothing_from_elsewhere(self, site: Path) -> None:
        loads = r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//|<link[^>]+stylesheet[^>]+href=\"(?:https?:)?//|@import url\(\"?http"
        files = [*site.rglob("*.html"), *site.rglob("*.css")]
        assert [file for file in files if re.search(loads, file.read_text("utf-8"))] == []


class TestNamedFiles:
    @pytest.mark.parametrize("page", PAGES, ids=name_of)
    def test_exist(self, page: Path) -> None:
        folders = (
            "app|workers|embedded|simulator|migrations|tests|docs|benchmarks|deploy|generators|persona_assay"
        )
        named = re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text("utf-8"))
        assert [name for name in named if not (ROOT / name).exists()] == []


def commands_in(page: Path) -> Iterator[list[str]]:
    """The words of each command in a page's shell blocks and code spans."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    for line in [line for code in (*blocks, *spans) for line in code.splitlines()]:
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        command: list[str] = []
        try:
            words = list(reader)
        except ValueError:  # a quotation that goes on in the next line: no command of ours has one
            continue
        for word in words:
            if set(word) <= set("();<>|&"):
                yield command
                command = []
            elif word in {"--", "preflight"} or (not command and "=" in word):
                command = []  # what follows is a command of its own
            else:
                command.append(word)
        yield command


def unknown_part(command: click.Command, words: list[str]) -> str | None:
    """The first command or option that does not exist, if any."""
    for index, word in enumerate(words):
        options = {
            name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
        }
        if word.isupper():  # stands for one
            return None
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = command.commands.get(word)
            return word if found is None else unknown_part(found, words[index + 1 :])
        if word.startswith("-") and word.partition("=")[0] not in options | {
            "-h",
            "--help",
            "--version",
            "-",
        }:
            return word
    return None


@pytest.mark.parametrize("page", READERS_PAGES, ids=name_of)
class TestCommands:
    def test_of_assay_exist_with_their_options(self, page: Path) -> None:
        given = [command[1:] for command in commands_in(page) if command[:1] == ["assay"]]
        assert [words for words in given if unknown_part(assay, words)] == []

    def test_of_make_have_a_rule(self, page: Path) -> None:
        rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
        made = [word for command in commands_in(page) if command[:1] == ["make"] for word in command[1:]]
        assert {word for word in made if re.fullmatch("[a-z-]+", word)} <= rules

    def test_of_http_have_a_route(self, page: Path) -> None:
        routes = {
            (method.upper(), re.sub(r"\{\w+\}", "{}", path))
            for path, methods in _documented_paths().items()
            for method in methods
        }
        named = re.findall(r"`(GET|POST|PATCH|PUT|DELETE) (/[^`\s?]*)", page.read_text("utf-8"))
        assert {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in named} <= routes


@cache
def _documented_paths() -> dict[str, dict[str, object]]:
    paths: dict[str, dict[str, object]] = json.loads(DOCUMENT.read_text("utf-8"))["paths"]
    return paths | {"/metrics": {"get": {}}}


class TestProse:
    @pytest.mark.parametrize("page", READERS_PAGES, ids=name_of)
    def test_has_lines_of_at_most_100_characters(self, page: Path) -> None:
        text = page.read_text("utf-8")
        if text.startswith("<!-- Made from the code"):
            return
        prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
        lines = [line for line in prose.splitlines() if not line.startswith(("|", "    ", "!["))]
        assert [line for line in lines if len(line) > 100] == []


class TestReadme:
    def test_is_short(self) -> None:
        assert len((ROOT / "README.md").read_text("utf-8").split()) <= 700


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

    PAGE = ROOT / "tests" / "providers" / "behaviours.md"
    ROWS = re.findall(
        r"^\| [^|]+ \| [^|]+ \| [^|]+ \| `([\w/]+\.py)::([\w:]+)` \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )

    def test_each_of_at_least_sixty_behaviours_has_a_test_that_exists(self) -> None:
        assert len(self.ROWS) >= 60
        assert [(file, test) for file, test in self.ROWS if test not in names_in(file)] == []

    def test_every_row_is_of_that_form(self) -> None:
        lines = self.PAGE.read_text("utf-8").splitlines()
        rows = [line for line in lines if line.startswith("| ") and not line.startswith("| provider |")]
        assert len(rows) == len(self.ROWS)
