"""The files of this package, and templates with what all pages have in common: how they write figures and untrusted text."""

from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.domain.jobs.status import TERMINAL
from app.domain.metrics.registry import BY_NAME
from app.web.visible import direction, language, visible

SHARED = "shared"
"""The folder of what the report and the console have in common."""
SHARED_STYLES = ("tokens.css", "base.css", "responses.css")
"""Colours and typefaces; text, tables and controls; responses with their sentences marked."""


@cache
def source(folder: str, name: str) -> str:
    """The text of a file of this package."""
    return files(__package__).joinpath(folder, name).read_text("utf-8")


def style_sheet(folder: str, name: str) -> str:
    """A style sheet behind those that all pages share."""
    return "\n".join([*(source(SHARED, shared) for shared in SHARED_STYLES), source(folder, name)])


def page_script(folder: str, name: str) -> str:
    """A script behind what all pages share: times in the reader's zone."""
    return source(SHARED, "times.js") + source(folder, name)


def make_environment(folder: str) -> Environment:
    """The templates of a folder, which can use the shared ones by their names."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(__package__, each) for each in (folder, SHARED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
        auto_reload=False,
    )
    environment.filters |= {"fixed": _fixed, "percent": _percent, "grouped": _grouped, "points": _points}
    environment.globals |= {"metric_definitions": BY_NAME, "TERMINAL": TERMINAL}
    environment.filters |= {"moment": _moment, "dollars": _dollars, "direction": direction, "lang": _lang}
    return environment


def _lang(text: str) -> Markup:
    """A text's language as an attribute, where it is known by its letters."""
    found = language(text)
    return Markup(f' lang="{found}"' if found else "")  # noqa: S704 - one of three tags


def _visible(value: Any) -> Any:
    """Text with a picture in place of every control character."""
    return visible(value) if type(value) is str else value


def _fixed(value: float, digits: int = 2) -> str:
    return f"{value:z.{digits}f}".replace("-", "−")  # z: no minus before what rounds to 0


def _dollars(usd: float | None) -> str:
    return "unknown" if usd is None else f"${usd:.4f}"


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}\u202f%"


def _points(difference: float) -> str:
    count = round(100 * difference)
    return f"{count} percentage point{'' if count == 1 else 's'}"


def _moment(moment: datetime | str) -> str:
    """A moment, or one as RFC 3339 has it, to the second."""
    return str(moment)[:19].replace("T", " ")


def _grouped(count: int) -> str:
    return f"{count:,}"
