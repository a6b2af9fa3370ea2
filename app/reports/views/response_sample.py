"""The sample of responses that a page shows: bounded and deterministic, whatever the order of the stream."""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest

from app.reports.views.cards import Card

WORST = 400
"""Responses with the lowest fidelity that are kept."""
SAMPLE = 400
"""Responses of the even sample over all cells; each cell gets at least one."""
QUOTES = 3
"""Sentences quoted for each model, each from another persona."""


@dataclass(order=True, slots=True)
class _Ranked:
    """A card in a heap whose smallest is dropped first."""

    rank: tuple[float | str, ...]
    card: Card = field(compare=False)


class ResponseSample:
    """Collects the worst responses and an even sample of all.

    Args:
        cells: How many the sample is drawn from.
        always: The id of a response that is kept in any case, before all others.
    """

    def __init__(self, cells: int, always: str | None = None) -> None:
        self.seen = 0
        self.always = always
        self._first: list[Card] = []
        self._share = -(-SAMPLE // max(1, cells))
        self._worst: list[_Ranked] = []
        self._samples: dict[tuple[str, str, str], list[_Ranked]] = defaultdict(list)
        self._quotes: dict[str, dict[str, Card]] = defaultdict(dict)

    def add(self, card: Card) -> None:
        """Takes a response into account."""
        self.seen += 1
        if card.id == self.always:
            self._first = [card]
        lottery = blake2b(card.id.encode(), digest_size=8).hexdigest()
        _keep(self._samples[card.model, card.persona, card.task], self._share, _Ranked((lottery,), card))
        fidelity, deviation = card.badness
        if fidelity < 1.0:
            _keep(self._worst, WORST, _Ranked((-fidelity, deviation, lottery), card))
        if card.out_of_character:
            quoted = self._quotes[card.model]
            quoted[card.persona] = max(card, quoted.get(card.persona, card), key=_quote_key)

    def by_importance(self) -> list[Card]:
        """The chosen responses, each once: the worst, from the worst on, in turn with the sample, in fixed order."""
        worst = sorted(self._worst, reverse=True)
        sample = sorted(ranked for heap in self._samples.values() for ranked in heap)
        in_turn = (
            ranked.card for pair in zip_longest(worst, sample) for ranked in pair if ranked is not None
        )
        return list({card.id: card for card in (*self._first, *in_turn)}.values())

    def quotes(self, model: str) -> list[Card]:
        """A model's responses with the sentences farthest out of character, each of another persona."""
        ranked = sorted(self._quotes[model].values(), key=_quote_key, reverse=True)
        return ranked[:QUOTES]


def _quote_key(card: Card) -> tuple[tuple[float, ...], str]:
    return card.quote_rank, card.id


def _keep(heap: list[_Ranked], size: int, ranked: _Ranked) -> None:
    if len(heap) < size:
        heapq.heappush(heap, ranked)
    else:
        heapq.heappushpop(heap, ranked)
