"""Colours for values in [0, 1], from dark blue to yellow."""

from rich.color import Color
from rich.style import Style

ANCHORS = ((0, 34, 78), (53, 69, 108), (102, 105, 112), (148, 142, 119), (200, 184, 102), (254, 232, 56))
"""Cividis at 0, 0.2 … 1 (Nuñez, Anderton & Renslow 2018, doi:10.1371/journal.pone.0199239): its lightness grows
evenly, and it is safe for the common forms of colour blindness."""

WHITE, BLACK = Color.from_rgb(255, 255, 255), Color.from_rgb(0, 0, 0)
DARK_BELOW = 128.0


def heat(value: float) -> Style:
    """The style of a value; values outside [0, 1] look like the nearer end."""
    position = min(max(value, 0.0), 1.0) * (len(ANCHORS) - 1)
    lower = min(int(position), len(ANCHORS) - 2)
    share = position - lower
    red, green, blue = (
        (1 - share) * a + share * b for a, b in zip(ANCHORS[lower], ANCHORS[lower + 1], strict=True)
    )
    is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < DARK_BELOW
    return Style(color=WHITE if is_dark else BLACK, bgcolor=Color.from_rgb(red, green, blue))
