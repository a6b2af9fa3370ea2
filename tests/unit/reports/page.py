"""The HTML report as a test reads it."""

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from html.parser import HTMLParser
from types import MappingProxyType
from typing import Any

from app.domain.judging.judged_response import JudgedResponse
from app.domain.results.baselines import Baselines
from app.domain.results.contract import Results
from app.domain.results.model_groups import Attributes
from app.reports import html
from app.reports.material import Material, Published, sample_of
from tests.unit.reports.sample import results_of, stream

VOID = {"meta", "link", "br", "input"}


class Page(HTMLParser):
    """A parsed page; fails on elements that do not nest."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    @property
    def text(self) -> str:
        """What a reader sees, white space collapsed."""
        seen = "".join(text for tag, text in self.texts if tag not in {"style", "script"})
        return re.sub(r"\s+", " ", seen)

    def content(self, tag: str) -> str:
        return "".join(text for inside, text in self.texts if inside == tag)

    def figures(self) -> list[str]:
        """What each figure says to those who do not see it."""
        return [attrs["aria-label"] or "" for tag, attrs in self.elements if tag == "svg"]

    def cards(self) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.elements if tag == "details" and attrs.get("class") == "card"]

    def sentences(self) -> list[dict[str, str | None]]:
        found = [attrs for tag, attrs in self.elements if tag == "bdi"]
        return [attrs for attrs in found if (attrs.get("class") or "").startswith("s ")]


async def html_report(
    results: dict[str, Any],
    responses: AsyncIterator[JudgedResponse],
    distances: Sequence[dict[str, Any]] = (),
    published: Baselines | None = None,
    attributes: Attributes = MappingProxyType({}),
    **rest: Any,
) -> str:
    """A page, with further parts of its material."""
    text = json.dumps(results)
    found = Results.read(text)
    beside = Published.beside(found, published, (), attributes)
    material = Material(text, await sample_of(found, responses), beside, distances, **rest)
    return html.html_report(material).decode()


async def page_of(
    responses: Iterable[JudgedResponse],
    results: dict[str, Any] | None = None,
    distances: Sequence[dict[str, Any]] = (),
    published: Baselines | None = None,
    service: str = "",
    beside: Mapping[str, Sequence[str]] | None = None,
) -> Page:
    responses = list(responses)
    document = results or results_of(responses)
    return Page(
        await html_report(
            document, stream(responses), distances, published, service=service, beside=beside or {}
        )
    )


def shape(page: Page) -> list[tuple[str, list[str]]]:
    """What a page is made of, whatever its texts are; ``lang`` only says which script they are in."""
    return sorted((tag, sorted(set(attrs) - {"lang"})) for tag, attrs in page.elements)
