"""Which of a job's responses a page shows: bounded, the same every time, whatever the order of the stream."""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from hashlib import blake2b

from app.reports.cards import Card

WORST = 400
"""Responses with the lowest ACC_atom that are kept."""
SAMPLE = 400
"""Responses of the even sample over all cells; each cell gets at least one."""
QUOTES = 3
"""Sentences quoted for each model, each from another persona."""


@dataclass(order=True, slots=True)
class _Ranked:
    """A card in a heap whose smallest is dropped first."""

    rank: tuple[float | str, ...]
    card: Card = field(compare=False)


class Selection:
    """Collects the worst responses and an even sample of all."""

    def __init__(self, cells: int) -> None:
        self.seen = 0
        self._share = -(-SAMPLE // max(1, cells))
        self._worst: list[_Ranked] = []
        self._samples: dict[tuple[str, str, str], list[_Ranked]] = defaultdict(list)
        self._quotes: dict[str, dict[str, Card]] = defaultdict(dict)

    def add(self, card: Card) -> None:
        """Takes a response into account."""
        self.seen += 1
        lottery = blake2b(card.id.encode(), digest_size=8).hexdigest()
        _keep(self._samples[card.model, card.persona, card.task], self._share, _Ranked((lottery,), card))
        if card.out_of_character:
            fidelity, deviation = card.badness
            _keep(self._worst, WORST, _Ranked((-fidelity, deviation, lottery), card))
            quoted = self._quotes[card.model]
            if card.persona not in quoted or card.quote_rank > quoted[card.persona].quote_rank:
                quoted[card.persona] = card

    def by_importance(self) -> list[Card]:
        """The chosen responses, each once: the worst first, then the sample in random but fixed order."""
        worst = sorted(self._worst, reverse=True)
        sample = sorted(ranked for heap in self._samples.values() for ranked in heap)
        return list({ranked.card.id: ranked.card for ranked in worst + sample}.values())

    def quotes(self, model: str) -> list[Card]:
        """A model's responses with the sentences farthest out of character, each of another persona."""
        ranked = sorted(self._quotes[model].values(), key=lambda card: card.quote_rank, reverse=True)
        return ranked[:QUOTES]


def _keep(heap: list[_Ranked], size: int, ranked: _Ranked) -> None:
    if len(heap) < size:
        heapq.heappush(heap, ranked)
    else:
        heapq.heappushpop(heap, ranked)
