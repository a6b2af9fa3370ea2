"""The order of a judge's options: some sentences are judged again with the options in other orders, and once more as they were.

A judge may prefer what stands first, or a number, to what it says (Zheng et al., Large Language Models Are Not Robust Multiple
Choice Selectors, 2024). The third reading, in the same words, tells that from the judge's own noise. None counts in any metric.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from app.domain.instruments.dimension import OPTION, Dimension
from app.domain.judging.verdict import Verdict

_DRAW_BYTES = 6


class Order(StrEnum):
    """The order of the options when a sentence is judged again."""

    REPEATED = "repeated"
    """As they did."""
    REVERSED = "reversed"
    """From the highest score to the lowest, each with its number."""
    SHUFFLED = "shuffled"
    """With the numbers in their places, but each before another option's words."""


ORDERS = tuple(Order)


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """Which sentences of a job are judged again.

    Attributes:
        share: Their share, above 0 and at most 1.
        seed: The job's.
    """

    share: float
    seed: int

    def draws(self, cell: int, run: int, item: int, unit: int) -> bool:
        """Whether a sentence is judged again: the same wherever and whenever it is asked."""
        drawn = int.from_bytes(_digest(self.seed, cell, run, item, unit)[:_DRAW_BYTES])
        return drawn < self.share * 2.0 ** (8 * _DRAW_BYTES)

    def drawn(self, cell: int, run: int, item: int, sentences: int) -> int:
        """How many of a response's sentences are."""
        return sum(self.draws(cell, run, item, unit) for unit in range(sentences))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a judge is asked in one of the orders.

    Attributes:
        dimension: With its options in the order.
        scores: The score that each number stands for, where it is another.
    """

    dimension: Dimension
    scores: Mapping[int, int] = field(default_factory=dict)

    def meant(self, verdict: Verdict) -> Verdict:
        """What a verdict by these numbers says by the dimension's own."""
        return verdict if verdict.score is None else replace(verdict, score=self._score(verdict.score))

    def _score(self, number: int) -> int:
        return self.scores.get(number, number)


def asked(dimension: Dimension, order: Order, *place: int) -> Asked:
    """The options of a dimension in an order.

    Args:
        dimension: One whose options :func:`can_be_reordered`.
        order: The order.
        place: The job's seed, and what names the sentence: what a shuffled order is drawn by.
    """
    if order is Order.REPEATED:
        return Asked(dimension)
    found = _scored(dimension)
    if order is Order.REVERSED:
        words = [option[0].rstrip() for option in reversed(found)]
        return Asked(replace(dimension, options=_rewritten(dimension.options, found, words)))
    numbers = [int(option[1]) for option in found]
    drawn = sorted(numbers, key=lambda number: _digest(*place, number))
    if drawn == numbers:
        drawn = [*numbers[1:], numbers[0]]
    by_score = {int(option[1]): option[2] for option in found}
    words = [f"{number}) {by_score[score]}" for number, score in zip(numbers, drawn, strict=True)]
    options = _rewritten(dimension.options, found, words)
    return Asked(replace(dimension, options=options), dict(zip(numbers, drawn, strict=True)))


def can_be_reordered(dimension: Dimension) -> bool:
    """Whether each score has one option of the form ``1) …``."""
    scale = dimension.scale
    return sorted(int(option[1]) for option in _scored(dimension)) == list(
        range(scale.minimum, scale.maximum + 1)
    )


def number_of(judge: int, order: Order, judges: int) -> int:
    """The number that a judge's reading in an order has in the place of the judge's own: one beyond all of those."""
    return judge + judges * (1 + ORDERS.index(order))


def order_of(number: int, judges: int) -> Order:
    """The order of a reading with such a number; the judge's own is the remainder by ``judges``."""
    return ORDERS[number // judges - 1]


def _scored(dimension: Dimension) -> list[re.Match[str]]:
    """The options that are scores; the others, such as "None of the above", stay where they stand."""
    scale = dimension.scale
    return [
        option
        for option in OPTION.finditer(dimension.options)
        if scale.minimum <= int(option[1]) <= scale.maximum
    ]


def _rewritten(options: str, places: list[re.Match[str]], words: list[str]) -> str:
    """The options with other words in these places, and everything between them as it is."""
    parts, end = [], 0
    for place, said in zip(places, words, strict=True):
        parts += [options[end : place.start()], said]
        end = place.end(2)
    return "".join([*parts, options[end:]])


def _digest(*key: int) -> bytes:
    return hashlib.blake2b("/".join(map(str, key)).encode()).digest()
