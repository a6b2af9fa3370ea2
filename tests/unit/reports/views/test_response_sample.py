"""Which responses of a job its report shows."""

from dataclasses import replace

from app.domain.judging.judged_response import JudgedResponse
from app.reports.views.cards import Card, make_card
from app.reports.views.in_words import InWords
from app.reports.views.level_bounds import LevelBounds
from app.reports.views.response_sample import SAMPLE, WORST, ResponseSample
from tests.unit.reports.sample import response_of


def card_of(response: JudgedResponse) -> Card:
    return make_card(response, LevelBounds({}), InWords((), ()))


def test_the_response_of_the_worst_sentence_is_shown_first_though_many_are_worse_as_a_whole() -> None:
    nearly = card_of(response_of("Yes. Yes. No.", ("Yes.", 5), ("Yes.", 5), ("No.", 1)))
    bad = card_of(response_of("No.", ("No.", 1)))
    cards = [replace(bad, id=f"bad {n}") for n in range(WORST + SAMPLE + 200)]
    cards += [replace(nearly, id=f"nearly {n}") for n in range(50)]

    def shown(always: str | None) -> list[str]:
        sample = ResponseSample(1, always)
        for card in cards:
            sample.add(card)
        return [card.id for card in sample.by_importance()]

    drawn = shown(None)
    left_out = next(card.id for card in reversed(cards) if card.id not in drawn)
    assert left_out.startswith("nearly")
    first, *others = shown(left_out)
    assert first == left_out
    assert left_out not in others
