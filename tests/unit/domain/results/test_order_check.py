"""What the readings in other orders say of a judge, with the arithmetic."""

from typing import Any

import pytest

from app.domain.instruments.dimension import Scale
from app.domain.judging.order_check import Order, OrderCheck
from app.domain.judging.verdict import NOT_APPLICABLE, UNPARSED, Verdict, VerdictStatus
from app.domain.results.order_check import ORDER_METRICS, Reading, Readings
from app.domain.results.paired_verdicts import Pair


def score(value: int) -> Verdict:
    return Verdict(VerdictStatus.SCORED, value)


def reading(first: Verdict, second: Verdict, run: int = 0, **changes: Any) -> Reading:
    """Of a persona whose level is high: 4 and 5."""
    usual: dict[str, Any] = {"judge": "j", "order": Order.REVERSED, "dimension": "E"}
    return Reading(**(usual | changes), response=(0, run, 0), pair=Pair(Scale(), "high", first, second))


def rows(*readings: Reading) -> list[dict[str, Any]]:
    found = Readings()
    for one in readings:
        found.add(one)
    agreement = found.result(OrderCheck(0.1, 3)).model_dump(exclude_unset=True)["agreement"]
    assert isinstance(agreement, list)
    return agreement


def test_a_hand_computed_example() -> None:
    found = rows(
        reading(score(5), score(3)),
        reading(score(4), score(4)),
        reading(score(2), score(3)),
        reading(score(4), NOT_APPLICABLE),
        reading(score(4), UNPARSED),  # left out
        reading(UNPARSED, score(4)),  # there is nothing to compare
    )[0]
    assert (found["sentences"], found["left_out"], found["responses"]) == (5, 1, 1)
    values = {name: (found[name]["value"], found[name]["n"]) for name in ORDER_METRICS}
    assert values["exact_agreement"] == (pytest.approx(1 / 4), 4)
    assert values["mean_difference"] == (pytest.approx((2 + 0 - 1) / 3), 3)
    assert values["mean_absolute_difference"] == (pytest.approx(1.0), 3)
    assert values["acc_as_asked"] == (pytest.approx(3 / 4), 4)
    assert values["acc_in_order"] == (pytest.approx(1 / 3), 3)
    assert values["acc_difference"][0] == pytest.approx(3 / 4 - 1 / 3)


def test_each_judge_order_and_dimension_has_a_row_after_that_of_all_dimensions() -> None:
    found = rows(
        reading(score(4), score(4), order=Order.SHUFFLED),
        reading(score(4), score(4), order=Order.REPEATED),
        reading(score(4), score(5), dimension="A", order=Order.REPEATED),
        reading(score(4), score(4), judge="i"),
    )
    assert [(row["judge"], row["order"], row["dimension"], row["sentences"]) for row in found] == [
        ("i", "reversed", None, 1),
        ("i", "reversed", "E", 1),
        ("j", "repeated", None, 2),
        ("j", "repeated", "A", 1),
        ("j", "repeated", "E", 1),
        ("j", "shuffled", None, 1),
        ("j", "shuffled", "E", 1),
    ]


def test_intervals_are_over_responses() -> None:
    """Ten sentences of one response say no more than one where they are all alike."""
    once = [reading(score(4 + run % 2), score(4), run) for run in range(30)]
    tenfold = [one for one in once for _ in range(10)]
    (one, *_), (many, *_) = rows(*once), rows(*tenfold)
    assert many["mean_difference"]["ci95"] == pytest.approx(one["mean_difference"]["ci95"])
    assert (one["mean_difference"]["n"], many["mean_difference"]["n"]) == (30, 300)


def test_nothing_judged_again_has_no_rows() -> None:
    assert rows(reading(UNPARSED, score(4))) == []
