"""The simulated models: how each writes in character and how each judges. All of their behaviour is in these tables.

The writers follow the shape of the published results (atomic paper, Tables 18-29): personas at the high end are
easy, those at the low end harder, those in the middle hardest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["low", "neutral", "high"]
LEVELS: tuple[Level, ...] = ("low", "neutral", "high")


@dataclass(frozen=True, slots=True)
class Writer:
    """How a model writes when it is asked to be somebody.

    Attributes:
        scores: For each target level, the weights of the true scores 1 to 5 of its trait sentences.
        neutral: Share of sentences that carry no trait, in [0, 1].
        drift: Probability, reached at the end of the response and growing linearly towards it, that a sentence
            comes from `ASSISTANT` instead of the target's scores, in [0, 1].
        wobble: Each response draws one score and one share in [0, wobble]; that share of its sentences has that score.
        refusal: Probability of declining the role altogether, in [0, 1].
    """

    scores: Mapping[Level, tuple[float, float, float, float, float]]
    neutral: float
    drift: float = 0.0
    wobble: float = 0.0
    refusal: float = 0.0


@dataclass(frozen=True, slots=True)
class Judge:
    """How a model answers "Reply with a single number".

    Attributes:
        error: Probability that the number is next to the true one (for a sentence without the trait: the scale's middle).
        prose: Probability that a sentence or a mark-up surrounds the number.
        unparsable: Probability that the reply holds no single number.
    """

    error: float = 0.0
    prose: float = 0.0
    unparsable: float = 0.0


@dataclass(frozen=True, slots=True)
class Model:
    """A simulated model. Whether it writes or judges is decided by the prompt, so each can do both."""

    writer: Writer
    judge: Judge


ASSISTANT = (0.0, 0.03, 0.12, 0.40, 0.45)
"""The weights of scores 1 to 5 of a model that has forgotten its persona and is its agreeable self."""

LENGTHS: Mapping[str, tuple[int, int]] = {
    "under 100 words": (4, 8),
    "between 200 and 300 words": (12, 18),
    "Facebook status update": (15, 26),
}
"""Fewest and most sentences of a response, by words of the task prompt (atomic paper, Tables 9-11 and 15)."""

OTHER_LENGTH = (5, 10)

_FAITHFUL = Writer(
    scores={
        "high": (0.00, 0.00, 0.02, 0.23, 0.75),
        "neutral": (0.02, 0.14, 0.60, 0.19, 0.05),
        "low": (0.70, 0.22, 0.05, 0.03, 0.00),
    },
    neutral=0.10,
    wobble=0.10,
)
_DRIFTING = Writer(
    scores={
        "high": (0.00, 0.02, 0.06, 0.34, 0.58),
        "neutral": (0.03, 0.15, 0.44, 0.28, 0.10),
        "low": (0.48, 0.30, 0.10, 0.08, 0.04),
    },
    neutral=0.14,
    drift=0.70,
    wobble=0.15,
)
_ERRATIC = Writer(
    scores={
        "high": (0.04, 0.08, 0.16, 0.34, 0.38),
        "neutral": (0.14, 0.20, 0.20, 0.24, 0.22),
        "low": (0.28, 0.25, 0.19, 0.16, 0.12),
    },
    neutral=0.25,
    drift=0.10,
    wobble=0.80,
)
_REFUSING = Writer(scores=_FAITHFUL.scores, neutral=0.12, drift=0.20, wobble=0.10, refusal=0.35)

MODELS: Mapping[str, Model] = {
    "sim-faithful": Model(_FAITHFUL, Judge()),
    "sim-drifting": Model(_DRIFTING, Judge()),
    "sim-erratic": Model(_ERRATIC, Judge()),
    "sim-refusing": Model(_REFUSING, Judge()),
    "sim-judge": Model(_FAITHFUL, Judge()),
    "sim-judge-noisy": Model(_FAITHFUL, Judge(error=0.10, prose=0.15, unparsable=0.02)),
}
