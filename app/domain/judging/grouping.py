"""Several sentences in one judge call: which go together, how a judge is asked, and what is judged alone as well.

It is not the papers' way, which asks about one sentence at a time. So a sample of the responses is judged that way too, and
the results say how far the two agree (:mod:`app.domain.results.grouping_check`).
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import AtomicTask, Item
from app.domain.instruments.template import fill

T = TypeVar("T")

MOST_SENTENCES = 50
"""Of one call; judges lose count in much longer lists."""

REPLY_TOKENS = 8
"""Tokens that a line of a judge's reply may take, at most: what a judge's own limit must leave room for."""

CHECK_SHARE, CHECK_MINIMUM = 0.05, 30
"""The sample, unless a job says otherwise: so great a share of its responses, and never fewer."""

PERSONA_CRITERION = "persona"
"""What is asked of the sentences of PersonaGym's answers; the other criteria go by their task's id."""

_DRAW_BYTES = 6


@dataclass(frozen=True, slots=True)
class GroupedWords:
    """How a judge is asked about several sentences.

    Attributes:
        version: The instrument's version, for example ``"v1"``.
        content_hash: SHA-256 over its content, in hexadecimal.
        prompt: The prompt; ``{options}``, ``{criterion}``, ``{sentences}`` and ``{count}`` are filled in, in this order,
            so that prompts differ as late as possible.
        criteria: What is asked of the sentences, by task id.
    """

    version: str
    content_hash: str
    prompt: str
    criteria: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grouping:
    """How a job's sentences are grouped.

    Attributes:
        sentences: Most sentences of one call, at least 2.
        check_share: Share of the responses that are judged sentence by sentence as well, at most 1.
        check_minimum: At least so many of them, where there are so many; at least 1.
        words: How judges are asked.
        seed: The job's.
        checked: Responses drawn to be judged sentence by sentence as well.
        drawn_from: The responses among which they were drawn.
        drawn_below: Those whose draw lies below it.
    """

    sentences: int
    check_share: float
    check_minimum: int
    words: GroupedWords
    seed: int
    checked: int = 0
    drawn_from: int = 0
    drawn_below: int = 0

    def checks(self, cell: int, run: int, item: int, sentences: int) -> bool:
        """Whether the sentences of a response are judged one by one as well; a single sentence is so anyway."""
        return sentences > 1 and _draw(self.seed, cell, run, item) < self.drawn_below

    def drawn(self, responses: Iterable[tuple[int, int, int]]) -> "Grouping":
        """This grouping with its sample drawn.

        Args:
            responses: (cell, run, item) of all that will be there, as far as is known.
        """
        draws = np.fromiter((_draw(self.seed, *response) for response in responses), dtype=np.int64)
        if not len(draws):
            return self
        count = min(len(draws), max(self.check_minimum, math.ceil(self.check_share * len(draws))))
        below = int(np.partition(draws, count - 1)[count - 1]) + 1
        return replace(self, checked=count, drawn_from=len(draws), drawn_below=below)


def _draw(seed: int, cell: int, run: int, item: int) -> int:
    """A response's number in the draw: the same wherever and whenever it is looked at."""
    drawn = hashlib.blake2b(f"{seed}/{cell}/{run}/{item}".encode(), digest_size=_DRAW_BYTES)
    return int.from_bytes(drawn.digest())


def groups_of(units: Sequence[T], sentences: int) -> list[Sequence[T]]:
    """Consecutive units in as few groups of at most ``sentences`` as there can be, all of nearly the same size."""
    count = math.ceil(len(units) / sentences)
    ends = [len(units) * n // max(1, count) for n in range(count + 1)]
    return [units[start:end] for start, end in pairwise(ends)]


def calls_for(sentences: float, grouping: Grouping | None) -> float:
    """Calls that it takes to have so many sentences of a response judged; of a mean number of them, an estimate."""
    return sentences if grouping is None else math.ceil(sentences / grouping.sentences)


def grouped_scoring_prompt(
    words: GroupedWords, task: AtomicTask, dimension: Dimension, item: Item, units: Sequence[Unit]
) -> str:
    """Asks a judge to score sentences of a response to an atomic task on one dimension.

    Args:
        words: The templates.
        task: The task that the response belongs to.
        dimension: What is scored.
        item: The item that the response answers.
        units: The sentences.
    """
    about = {"dimension": dimension.name, "question": item.text}
    return _grouped(words, fill(words.criteria[task.id], about), dimension, units)


def grouped_sentence_prompt(
    words: GroupedWords, dimension: Dimension, *, persona: str, question: str, units: Sequence[Unit]
) -> str:
    """Asks a judge how consistent sentences of an answer to a PersonaGym question are with the persona.

    Args:
        words: The templates.
        dimension: Persona consistency, with its options.
        persona: The persona's description.
        question: The question that the response answers.
        units: The sentences.
    """
    about = {"persona": persona.strip(), "question": question}
    return _grouped(words, fill(words.criteria[PERSONA_CRITERION], about), dimension, units)


def _grouped(words: GroupedWords, criterion: str, dimension: Dimension, units: Sequence[Unit]) -> str:
    sentences = "\n".join(f"<S{n}>{unit.text}</S{n}>" for n, unit in enumerate(units, 1))
    return fill(
        words.prompt,
        {
            "options": dimension.options,
            "criterion": criterion,
            "sentences": sentences,
            "count": str(len(units)),
        },
    )
