"""Jobs that checked their judges: what they say of several sentences a call, and of the order of options."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.domain.instruments.dimension import Scale
from app.domain.judging.grouping import Grouping
from app.domain.judging.order_check import Order, OrderCheck
from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.results.grouping_check import CheckedSentence, CheckedSentences
from app.domain.results.order_check import Reading, Readings
from app.domain.results.paired_verdicts import Pair
from app.instruments.grouped_loader import load_grouped


def checked(
    grouping: Grouping, sentences: Iterable[CheckedSentence], asked_alone: Mapping[str, int]
) -> dict[str, Any]:
    """The check of these sentences."""
    check = CheckedSentences()
    for sentence in sentences:
        check.add(sentence)
    return check.check(grouping, asked_alone).model_dump(exclude_unset=True)


def check_of(*pairs: tuple[int, int], judge: str = "a/judge") -> dict[str, Any]:
    """The check of pairs of scores, grouped and alone, each of a response of its own, by a persona of level high."""
    sentences = [
        CheckedSentence(
            judge=judge,
            task="social_media_post",
            scale=Scale(),
            level="high",
            response=(0, run, 0),
            grouped=Verdict(VerdictStatus.SCORED, grouped),
            alone=Verdict(VerdictStatus.SCORED, alone),
        )
        for run, (grouped, alone) in enumerate(pairs)
    ]
    grouping = Grouping(8, 0.05, 30, load_grouped(), seed=0, checked=len(pairs), drawn_from=100)
    return checked(grouping, sentences, {"unparsed": 3})


def order_check_of(
    *pairs: tuple[int, int], judge: str = "a/judge", order: str = "reversed"
) -> dict[str, Any]:
    """The order check of pairs of scores, first and again, each of a response of its own, by a persona of level high."""
    readings = Readings()
    for run, (first, again) in enumerate(pairs):
        verdicts = [Verdict(VerdictStatus.SCORED, score) for score in (first, again)]
        pair = Pair(Scale(), "high", *verdicts)
        readings.add(Reading(judge, Order(order), "E", (0, run, 0), pair))
    return readings.result(OrderCheck(0.05, seed=0)).model_dump(mode="json", exclude_unset=True)
