"""The colours of figures: the report's own, light and dark, as its style sheet has them."""

import re
from collections.abc import Mapping

from app.web.templates import SHARED, source

Palette = Mapping[str, str]
"""A colour, such as ``"#1d1b18"``, for each role."""

HEAT = tuple(f"h{step}" for step in range(10))
"""From the worst to the best."""
ROLES = (
    *("page", "ink", "quiet", "line", "accent", "below", "below-line", "above", "above-line", "on-strong"),
    *HEAT,
)
"""What colours stand for. An SVG's elements have the classes ``f-ROLE`` and ``s-ROLE`` (fill, stroke), so that the reader's
theme can choose between the palettes; no two roles of a palette have the same colour."""

_VARIABLE = re.compile(r"--([\w-]+):\s*(#[0-9a-f]+);")


def _palettes() -> tuple[Palette, Palette]:
    light, _, rest = source(SHARED, "tokens.css").partition("@media screen and (prefers-color-scheme: dark)")
    found = dict(_VARIABLE.findall(light))
    dark = found | dict(_VARIABLE.findall(rest))
    return {role: found[role] for role in ROLES}, {role: dark[role] for role in ROLES}


LIGHT, DARK = _palettes()
