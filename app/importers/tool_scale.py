"""The scale of another tool's scores, and the whole numbers of a judge's scale that they become."""

import math
import re
from dataclasses import dataclass

from app.domain.instruments.dimension import Scale

JUDGES = Scale()
"""From 1 to 5, as all rubrics and built-in dimensions have it."""
_FORM = re.compile(r"\s*(-?\d{1,6}(?:\.\d{1,6})?)\s*-\s*(-?\d{1,6}(?:\.\d{1,6})?)\s*")


@dataclass(frozen=True, slots=True)
class ToolScale:
    """From where to where a tool's scores go.

    Attributes:
        lowest: The lowest score.
        highest: The highest; greater than that.
    """

    lowest: float
    highest: float

    @classmethod
    def of(cls, text: str) -> "ToolScale":
        """The scale that a text such as ``0-10`` names.

        Raises:
            ValueError: If it names none.
        """
        found = _FORM.fullmatch(text)
        if found is None or float(found[1]) >= float(found[2]):
            raise ValueError("must be the lowest and the highest score, such as 0-10")
        return cls(float(found[1]), float(found[2]))

    def __str__(self) -> str:
        return f"{self.lowest:g} to {self.highest:g}"

    def onto(self, score: float) -> int:
        """The number of a judge's scale that is nearest, of two the one nearer to the middle, so that both ends are treated alike."""
        steps = ((score - self.lowest) / (self.highest - self.lowest) - 0.5) * JUDGES.width
        return round(JUDGES.minimum + JUDGES.width / 2 + math.copysign(math.ceil(abs(steps) - 0.5), steps))

    def in_words(self) -> str:
        """What becomes what, for example ``the nearest of 0 → 1, 2.5 → 2, …``."""
        step = (self.highest - self.lowest) / JUDGES.width
        pairs = (f"{self.lowest + step * n:g} → {JUDGES.minimum + n}" for n in range(JUDGES.size))
        return f"the nearest of {', '.join(pairs)}; halfway, the one nearer to the middle"
