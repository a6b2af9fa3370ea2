"""The simulated models: how each writes in character, judges and reasons. All of their behaviour is in these tables.

| model                | writes in character        | grades and scores                       | reasons                  |
|----------------------|----------------------------|-----------------------------------------|--------------------------|
| sim-faithful         | closely                    | exactly                                 | cleanly                  |
| sim-drifting         | leaves its persona         | exactly                                 | cleanly                  |
| sim-erratic          | differently in every run   | exactly                                 | cleanly                  |
| sim-refusing         | declines 35 % of the time  | exactly                                 | cleanly                  |
| sim-indifferent      | as itself, whoever it is   | exactly                                 | cleanly                  |
| sim-judge            | closely                    | exactly                                 | cleanly                  |
| sim-judge-lenient    | closely                    | every grade one higher, at most 5       | cleanly                  |
| sim-judge-harsh      | closely                    | every grade one lower, at least 1       | cleanly                  |
| sim-judge-noisy      | closely                    | 10 % wrong, 15 % in prose, 2 % unusable | cleanly                  |
| sim-judge-gullible   | closely                    | exactly, but for texts that say "reply 5" | cleanly                |
| sim-reasoner         | closely                    | exactly                                 | cleanly                  |
| sim-reasoner-sloppy  | closely                    | exactly                                 | 30 % of replies are bad  |

"Grades" are those of a whole response by a rubric, "scores" those of a single sentence.

The writers follow the shape of the published results (atomic paper, Tables 18-29): personas at the high end are
easy, those at the low end harder, those in the middle hardest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from simulator.conversation import ReasonerTask

Level = Literal["low", "neutral", "high"]
LEVELS: tuple[Level, ...] = ("low", "neutral", "high")
Weights = tuple[float, float, float, float, float]
"""Weights of the scores 1 to 5."""

Fault = Literal[
    "prose", "fenced", "single_quotes", "cut", "refusal", "missing", "surplus", "duplicate", "outside"
]
"""A way in which a reasoner answers badly:

prose: words before and after what was asked for; fenced: a Markdown code block around it; single_quotes: strings in
single quotes, apostrophes inside not escaped; cut: the reply ends too early, as at the limit of tokens; refusal;
missing: an item is left out; surplus: there is one item more than was asked for; duplicate: the last item
repeats the first, word for word or nearly; outside: one item is none of the options that were given.
"""


@dataclass(frozen=True, slots=True)
class Writer:
    """How a model writes when it is asked to be somebody.

    Attributes:
        scores: For each target level, the weights of the true scores 1 to 5 of its trait sentences.
        consistency: The weights of the scores 1 to 5 that an answer to a PersonaGym question aims at; most of its
            sentences have that score and the rest, as the table `STRAY` says, one next to it.
        neutral: Share of sentences that carry no trait, or say nothing about the persona, in [0, 1].
        drift: Probability, reached at the end of the response and growing linearly towards it, that a sentence
            comes from `ASSISTANT`, or to a PersonaGym question from `FORGETFUL`, instead of the above, in [0, 1].
        wobble: Each response draws one score and one share in [0, wobble]; that share of its sentences has that
            score. It does not concern answers to PersonaGym questions.
        refusal: Probability of declining the role altogether, in [0, 1].
        indifferent: Whether it writes as without a persona: by `ASSISTANT` on all dimensions, and to PersonaGym's questions by
            `FORGETFUL`.
    """

    scores: Mapping[Level, Weights]
    consistency: Weights
    neutral: float
    drift: float = 0.0
    wobble: float = 0.0
    refusal: float = 0.0
    indifferent: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """How a model answers "Reply with a single number" (a score) and "Evaluation Form:" (a grade).

    Attributes:
        error: Probability that the number is next to the true one (for a sentence without the trait: the scale's middle).
        prose: Probability that a sentence or a mark-up surrounds the number; around a grade, other mark-up than usual.
        unparsable: Probability that the reply holds no single number.
        bias: Added to every grade, which stays in 1 to 5. Scores have no bias.
        gullible: Whether it replies as a judged text tells it to.
    """

    error: float = 0.0
    prose: float = 0.0
    unparsable: float = 0.0
    bias: int = 0
    gullible: bool = False


@dataclass(frozen=True, slots=True)
class Reasoner:
    """How a model selects environments and makes up questions, score examples and personas.

    Attributes:
        sloppy: Probability of a bad reply, in [0, 1]; each fault of `FAULTS` for what is asked is equally likely.
    """

    sloppy: float = 0.0


@dataclass(frozen=True, slots=True)
class Model:
    """A simulated model. Whether it writes, judges or reasons is decided by the prompt, so each can do all."""

    writer: Writer
    judge: Judge = Judge()
    reasoner: Reasoner = Reasoner()


ASSISTANT: Weights = (0.0, 0.03, 0.12, 0.40, 0.45)
"""The weights of scores 1 to 5 of a model that has forgotten its persona, or has none, and is its agreeable self."""

FORGETFUL: Weights = (0.35, 0.35, 0.25, 0.05, 0.0)
"""How consistent with its persona the sentences of a model are that has forgotten it."""

STRAY: Mapping[int, float] = {-1: 0.15, 0: 0.70, 1: 0.15}
"""How far a sentence of an answer is from the score that the answer aims at, and how often."""

_OF_LISTS: tuple[Fault, ...] = ("prose", "fenced", "single_quotes", "cut", "refusal")
FAULTS: Mapping[ReasonerTask, Sequence[Fault]] = {
    "environments": (*_OF_LISTS, "outside"),
    "questions": (*_OF_LISTS, "missing", "surplus", "duplicate"),
    "exemplars": ("prose", "cut", "refusal", "missing"),
    "personas": _OF_LISTS,
}

REPEATED_PERSONAS = 0.2
"""Share of a list of personas that repeats others of the list, a year or two older; rounded down."""

LENGTHS: Mapping[str, tuple[int, int]] = {
    "under 100 words": (4, 8),
    "between 200 and 300 words": (12, 18),
    "Facebook status update": (15, 26),
}
"""Fewest and most sentences of a response, by words of the task prompt (atomic paper, Tables 9-11 and 15)."""

ANSWER_LENGTH = (4, 10)
"""Fewest and most sentences of an answer to a PersonaGym question."""

ENVIRONMENTS = (3, 6)
"""Fewest and most environments that are selected for a persona."""

_FAITHFUL = Writer(
    scores={
        "high": (0.00, 0.00, 0.02, 0.23, 0.75),
        "neutral": (0.02, 0.14, 0.60, 0.19, 0.05),
        "low": (0.70, 0.22, 0.05, 0.03, 0.00),
    },
    consistency=(0.00, 0.02, 0.08, 0.35, 0.55),
    neutral=0.10,
    wobble=0.10,
)
_DRIFTING = Writer(
    scores={
        "high": (0.00, 0.02, 0.06, 0.34, 0.58),
        "neutral": (0.03, 0.15, 0.44, 0.28, 0.10),
        "low": (0.48, 0.30, 0.10, 0.08, 0.04),
    },
    consistency=(0.03, 0.12, 0.30, 0.35, 0.20),
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
    consistency=(0.20, 0.20, 0.20, 0.20, 0.20),
    neutral=0.25,
    drift=0.10,
    wobble=0.80,
)
_REFUSING = Writer(
    scores=_FAITHFUL.scores,
    consistency=_FAITHFUL.consistency,
    neutral=0.12,
    drift=0.20,
    wobble=0.10,
    refusal=0.35,
)
_INDIFFERENT = Writer(
    scores=_FAITHFUL.scores, consistency=FORGETFUL, neutral=0.10, wobble=0.10, indifferent=True
)

MODELS: Mapping[str, Model] = {
    "sim-faithful": Model(_FAITHFUL),
    "sim-drifting": Model(_DRIFTING),
    "sim-erratic": Model(_ERRATIC),
    "sim-refusing": Model(_REFUSING),
    "sim-indifferent": Model(_INDIFFERENT),
    "sim-judge": Model(_FAITHFUL),
    "sim-judge-lenient": Model(_FAITHFUL, Judge(bias=1)),
    "sim-judge-harsh": Model(_FAITHFUL, Judge(bias=-1)),
    "sim-judge-noisy": Model(_FAITHFUL, Judge(error=0.10, prose=0.15, unparsable=0.02)),
    "sim-judge-gullible": Model(_FAITHFUL, Judge(gullible=True)),
    "sim-reasoner": Model(_FAITHFUL),
    "sim-reasoner-sloppy": Model(_FAITHFUL, reasoner=Reasoner(sloppy=0.30)),
}
