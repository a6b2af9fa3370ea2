import json
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from app.domain.jobs.budget import (
    NANOS,
    OVERHEAD_TOKENS,
    UNITS,
    Amount,
    Budget,
    Limits,
    limits_of,
    most_input_tokens,
    nanos_of,
)
from app.domain.jobs.contract import BudgetAnswer
from app.domain.jobs.request import BudgetIn


class TestLimits:
    def test_without_limits_everything_is_affordable(self) -> None:
        assert Limits(None, None, None).affordable(Amount(), [Amount(1, 10**9, 10**18)] * 3) == 3

    def test_each_limit_counts_by_itself_and_may_be_reached(self) -> None:
        call = Amount(1, 10, 100)
        assert Limits(3, None, None).affordable(Amount(1), [call] * 5) == 2
        assert Limits(None, 50, None).affordable(Amount(0, 20), [call] * 5) == 3
        assert Limits(None, None, 100).affordable(Amount(), [call] * 5) == 1

    def test_calls_are_paid_for_in_their_order(self) -> None:
        assert Limits(None, 50, None).affordable(Amount(), [Amount(1, 40), Amount(1, 20), Amount(1, 10)]) == 1

    @given(st.lists(st.integers(0, 100)), st.integers(0, 500))
    def test_what_is_affordable_fits_and_one_more_does_not(self, tokens: list[int], limit: int) -> None:
        wanted = [Amount(1, n) for n in tokens]
        count = Limits(None, limit, None).affordable(Amount(), wanted)
        assert sum(tokens[:count]) <= limit
        assert count == len(tokens) or sum(tokens[: count + 1]) > limit


class TestMoney:
    def test_ten_cents_ten_times_are_a_dollar(self) -> None:
        assert 10 * nanos_of(0.1) == limits_of(Budget(usd=1)).nanos == NANOS

    def test_a_fraction_of_a_billionth_is_one(self) -> None:
        assert nanos_of(2.5e-10) == 1
        assert nanos_of(0.0) == 0

    def test_floating_point_noise_is_not_a_billionth(self) -> None:
        assert nanos_of(0.1 + 0.2) == 300_000_000


class TestWorstCase:
    @given(st.text(st.characters(codec="utf-8")))
    def test_a_token_is_at_least_a_byte(self, text: str) -> None:
        body = json.dumps({"content": text}, ensure_ascii=False).encode()
        assert most_input_tokens(len(body)) >= len(text.encode()) + OVERHEAD_TOKENS


def test_every_limit_has_its_unit_and_its_answer() -> None:
    assert [*UNITS] == [*BudgetIn.model_fields]
    assert {*UNITS} == {*BudgetAnswer.model_fields} - {"exceeded_calls"}
    assert [*UNITS] == [field.name for field in fields(Budget)]
    assert {*UNITS.values()} == {field.name for field in fields(Limits)}
