"""Persona dimensions and the scales on which judges score them (atomic paper, section 4.2 and Table 13)."""

import re
from dataclasses import dataclass
from itertools import pairwise

_DEGREES = frozenset(
    ("lowest", "very low", "low", "neutral", "medium", "moderate", "average", "high", "very high", "highest")
)
"""Levels of which one can say "high in …"; others are words of their own."""
OPTION = re.compile(r"(?<!\S)(\d{1,4})\)\s*(.*?)\s*(?=(?<!\S)\d{1,4}\)|$)", re.DOTALL)
"""An option of a dimension: its number and its words."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An integer scoring scale cut into equal, named levels.

    The paper's scale is 1–5 with the levels low [1, 7/3), neutral [7/3, 11/3) and high [11/3, 5].

    Attributes:
        minimum: Lowest score, inclusive.
        maximum: Highest score, inclusive; greater than ``minimum``.
        levels: The levels' names from the lowest to the highest; at least two, all different.
        not_applicable: The option number by which a judge says that the text carries no such trait;
            outside ``[minimum, maximum]``.

    Raises:
        ValueError: If one of these conditions does not hold.
    """

    minimum: int = 1
    maximum: int = 5
    levels: tuple[str, ...] = ("low", "neutral", "high")
    not_applicable: int = 9

    def __post_init__(self) -> None:
        if self.maximum <= self.minimum:
            raise ValueError(f"the scale's maximum ({self.maximum}) must exceed its minimum ({self.minimum})")
        if len(self.levels) < 2 or len(set(self.levels)) != len(self.levels):  # noqa: PLR2004 - two, plainly
            raise ValueError("a scale needs at least two levels with different names")
        if {self.level_index(s, 1) for s in range(self.minimum, self.maximum + 1)} != set(
            range(len(self.levels))
        ):
            raise ValueError(
                f"{self.size} scores can't fill {len(self.levels)} equal levels: some level has no score"
            )
        if self.minimum <= self.not_applicable <= self.maximum:
            raise ValueError(
                f"the not-applicable option ({self.not_applicable}) must lie outside the scale "
                f"[{self.minimum}, {self.maximum}]"
            )

    @property
    def width(self) -> int:
        """The distance from the lowest to the highest score."""
        return self.maximum - self.minimum

    @property
    def size(self) -> int:
        """The number of different scores."""
        return self.width + 1

    def level_index(self, total: int, count: int) -> int:
        """Index of the level in which the mean ``total / count`` falls.

        Integer arithmetic, so that a mean of exactly 7/3 or 11/3 falls in the upper of the two levels whatever
        a floating-point division would have rounded it to.

        Args:
            total: Sum of the scores, each in ``[minimum, maximum]``.
            count: Number of the scores; positive.

        Returns:
            0 for the lowest level up to ``len(levels) - 1``; the highest score belongs to the highest level.
        """
        parts = len(self.levels)
        return min((total - count * self.minimum) * parts // (count * self.width), parts - 1)

    def level_of(self, score: int) -> str:
        """Name of the level of one score."""
        return self.levels[self.level_index(score, 1)]

    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Lower and upper bound of each level, from the lowest level up; only the last upper bound belongs to it."""
        parts = len(self.levels)
        edges = [self.minimum + self.width * part / parts for part in range(parts + 1)]
        return tuple(pairwise(edges))


@dataclass(frozen=True, slots=True)
class Dimension:
    """One axis of a persona, such as extraversion, and how a judge is asked about it.

    Attributes:
        id: Short name used in traits and results, for example ``"E"``.
        name: The word that the scoring prompt uses, for example ``"extroversion"``.
        scale: The scores and levels.
        options: The answer options exactly as the judge reads them.
        questions: Interview questions of the questionnaire task; empty where there are none.
        essay_context: The essay task's scenario; ``None`` where there is none.
        label: What people are shown as its name; empty where that is ``name``. In no prompt.
        level_words: What each level means, such as ``"introverted"``, in the scale's order, empty where nothing is said;
            or none at all. In no prompt.
    """

    id: str
    name: str
    scale: Scale
    options: str
    questions: tuple[str, ...] = ()
    essay_context: str | None = None
    label: str = ""
    level_words: tuple[str, ...] = ()

    @property
    def display_name(self) -> str:
        """What people are shown as its name, for example ``"emotional stability"`` of ``neuroticism``."""
        return self.label or self.name

    def level_in_words(self, level: str) -> str:
        """A level where it is chosen, for example ``"low (neurotic)"``."""
        word = self._word(level)
        return f"{level} ({word})" if word else level

    def trait_in_words(self, level: str) -> str:
        """A persona's trait, for example ``"low in emotional stability (neurotic)"`` or ``"politics: progressive"``.

        What the highest level means is left out: the display name says it.
        """
        if level not in _DEGREES:
            return f"{self.display_name}: {level}"
        word = "" if level == self.scale.levels[-1] else self._word(level)
        return f"{level} in {self.display_name}" + (f" ({word})" if word else "")

    def _word(self, level: str) -> str:
        levels = self.scale.levels
        return self.level_words[levels.index(level)] if self.level_words and level in levels else ""

    @property
    def option_labels(self) -> dict[int, str]:
        """What the options call each answer, such as ``"Very introverted"``; empty where they are not of the form ``1) …``."""
        return {int(number): label.strip(" .") for number, label in OPTION.findall(self.options)}
