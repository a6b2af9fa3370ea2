"""A figure and its files: SVG whose text stays text and whose colours a style sheet decides, and PNG."""

import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from xml.etree import ElementTree as ET

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from app.reports.figures.palette import DARK, LIGHT, ROLES, Palette
from app.web.visible import visible

LABEL, TITLE = 40, 110
"""Characters of a name in a figure, and of a line above or below it; longer ones lose their middle."""
PNG_DPI = 200
_ABOVE, _BELOW, _TITLE_SIZE = 0.4, 0.34, 11
"""Inches that a title and a note take, and the title's size in points."""
_TITLE_CHARACTER = 0.09
"""Inches of a title's character, about."""

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
_NO_METADATA = {"Date": None, "Creator": None}
_DIGITS = re.compile(r"-?\d+\.\d+")
_drawing = threading.Lock()
"""matplotlib's settings and fonts are the process's: one figure at a time."""

# What its own font lacks a PNG shows as a box; an SVG is shown with the reader's fonts.
warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure that can be drawn.

    Attributes:
        name: What it is called in addresses; unique in a page.
        title: What it shows, in a few words.
        description: What it says, for those who do not see it. Untrusted text, like everything in a figure.
        draw: Draws it in the colours given.
    """

    name: str
    title: str
    description: str
    draw: Callable[[Palette], Figure]


def svg(plot: Plot, theme: str | None = None, note: str = "") -> str:
    """A figure as a file of its own, with its title.

    Args:
        plot: The figure.
        theme: ``"light"``, ``"dark"``, or ``None`` for whichever the reader prefers.
        note: What stands below it.
    """
    file = io.StringIO()
    with _settings():
        figure, box = _captioned(plot, DARK if theme == "dark" else LIGHT, note)
        FigureCanvasSVG(figure)
        figure.savefig(file, format="svg", bbox_inches=box, metadata=_NO_METADATA)
    root = _tidy(file.getvalue(), plot.name, DARK if theme == "dark" else LIGHT)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    labels = {"title": plot.title, "desc": plot.description}
    for place, (tag, words) in enumerate(labels.items()):
        element = ET.Element(tag, {"id": f"{plot.name}-{tag}"})
        element.text = visible(words)
        root.insert(place, element)
    root.set("aria-labelledby", " ".join(f"{plot.name}-{tag}" for tag in labels))
    if theme is None:
        style = ET.Element("style")
        style.text = _dark_rules()
        root.insert(len(labels), style)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode")


def inline_svg(plot: Plot) -> str:
    """A figure as a part of a page, whose style sheet gives the classes of :mod:`~app.reports.figures.palette` their colours."""
    file = io.StringIO()
    with _settings():
        figure = plot.draw(LIGHT)
        FigureCanvasSVG(figure)
        figure.savefig(file, format="svg", metadata=_NO_METADATA)
    root = _tidy(file.getvalue(), plot.name, LIGHT)
    del root.attrib["width"], root.attrib["height"]
    root.set("class", "plot")
    root.set("aria-label", visible(f"{plot.title}. {plot.description}"))
    return ET.tostring(root, encoding="unicode")


def png(plot: Plot, theme: str | None = None, note: str = "") -> bytes:
    """A figure as a picture, with its title.

    Args:
        plot: The figure.
        theme: ``"dark"``, or light.
        note: What stands below it.
    """
    file = io.BytesIO()
    # A file of PNG has room for Latin-1 only.
    title = visible(plot.title).encode("latin-1", "replace").decode("latin-1")
    with _settings():
        figure, box = _captioned(plot, DARK if theme == "dark" else LIGHT, note)
        FigureCanvasAgg(figure)
        metadata = {"Title": title, "Software": "Persona Assay"}
        figure.savefig(file, format="png", bbox_inches=box, metadata=metadata)
    return file.getvalue()


def as_file(plot: Plot, file_format: str, theme: str | None = None, note: str = "") -> bytes:
    """A figure's bytes; ``file_format`` is ``"svg"`` or ``"png"``, for the rest see :func:`svg`."""
    return png(plot, theme, note) if file_format == "png" else svg(plot, theme, note).encode()


def canvas(width: float, height: float, palette: Palette) -> Figure:
    """An empty figure.

    Args:
        width: In inches, of 72 units of an SVG each.
        height: In inches.
        palette: The colours.
    """
    return Figure(figsize=(width, height), dpi=PNG_DPI, facecolor=palette["page"])


def label(name: str, longest: int = LABEL) -> str:
    """A name as it stands in a figure: one line, visible even if it is blank, not too long."""
    line = visible(" ".join(name.split())) or "␣"
    half = longest // 2
    return line if len(line) <= longest else f"{line[:half]}…{line[-half + 1 :]}"


@contextmanager
def _settings() -> Iterator[None]:
    """Ours, in place of the process's, while a figure is drawn."""
    ours = rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "persona-assay",  # the same figure gives the same bytes
            "text.parse_math": False,  # names of models and personas are no formulas
            "font.family": "DejaVu Sans",  # comes with matplotlib: the same PNG everywhere
            "font.size": 9,
        }
    )
    with _drawing, ours:
        yield


def _captioned(plot: Plot, palette: Palette, note: str) -> tuple[Figure, Bbox]:
    """The figure with its title above and the note below, and how much of the plane, in inches, goes into a file.

    That is reckoned here: matplotlib would draw everything twice to find it out.
    """
    figure = plot.draw(palette)
    width, height = figure.get_size_inches()
    title = label(plot.title, TITLE)
    left = 0.1 / width
    figure.text(left, 1 + 0.14 / height, title, color=palette["ink"], fontsize=_TITLE_SIZE)
    if note:
        figure.text(left, -0.2 / height, label(note, TITLE), color=palette["quiet"], fontsize=7.5)
    right = max(width, 0.2 + _TITLE_CHARACTER * len(title))
    return figure, Bbox.from_extents(0, -_BELOW if note else -0.1, right, height + _ABOVE)


def _tidy(source: str, name: str, palette: Palette) -> ET.Element:
    """What matplotlib wrote, as an SVG that a page may contain: no style attribute, no foreign name, no id that another figure has."""
    root = ET.fromstring(source)  # noqa: S314 - matplotlib's own output
    roles = {palette[role]: role for role in ROLES}
    for unwanted in root.findall(f"{_NAMESPACE}metadata"):
        root.remove(unwanted)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_NAMESPACE)
        if element.tag != "text" and not (element.text or "").strip():
            element.text = None
        element.tail = None
        _plain_style(element)
        _classes(element, roles)
        _own_names(element, name)
    for place in list(root.iter("defs")):
        for style in place.findall("style"):
            place.remove(style)
    for key, value in {"role": "img", "font-family": _FONTS, "stroke-linejoin": "round"}.items():
        root.set(key, value)
    return root


def _plain_style(element: ET.Element) -> None:
    """Declarations as attributes: a strict policy forbids the one, and the other gives way to style sheets."""
    for declaration in element.attrib.pop("style", "").split(";"):
        key, _, value = declaration.partition(":")
        if key.strip() and key.strip() != "font-family":
            element.set(key.strip(), value.strip())


def _classes(element: ET.Element, roles: Mapping[str, str]) -> None:
    found = [
        f"{short}-{roles[colour]}"
        for key, short in (("fill", "f"), ("stroke", "s"))
        if (colour := element.get(key, "")) in roles
    ]
    if found:
        element.set("class", " ".join(found))


def _own_names(element: ET.Element, name: str) -> None:
    if element.tag not in {"clipPath", "pattern", "path"}:
        element.attrib.pop("id", None)
    target = element.attrib.pop(_XLINK, None)
    if target is not None:
        element.set("href", target)
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key == "href" or value.startswith("url(#"):
            element.set(key, value.replace("#", f"#{name}-", 1))
        elif key in {"d", "x", "y", "transform"}:
            element.set(key, _DIGITS.sub(_rounded, " ".join(value.split())))


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


@cache
def _dark_rules() -> str:
    rules = "".join(
        f".f-{role}{{fill:{DARK[role]}}}.s-{role}{{stroke:{DARK[role]}}}"
        for role in ROLES
        if DARK[role] != LIGHT[role]
    )
    return f"@media (prefers-color-scheme:dark){{{rules}}}"
