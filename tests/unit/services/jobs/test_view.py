from app.db.jobs.progress import UsageRow
from app.domain.providers.usage import Cost
from app.services.jobs.view import cost_of, usage_of


def row(usd: float | None, *, unpriced: int = 0) -> UsageRow:
    return UsageRow("judging", "acme/a", 10, 0, 100, 10, 0, usd, unpriced)


class TestCost:
    def test_an_unknown_price_is_no_price_of_zero(self) -> None:
        assert cost_of([row(None, unpriced=10)]) == Cost(usd=None, unpriced_calls=10)

    def test_what_is_known_is_added_up_and_the_rest_counted(self) -> None:
        assert cost_of([row(0.5), row(None, unpriced=10), row(0.25, unpriced=1)]) == Cost(
            usd=0.75, unpriced_calls=11
        )

    def test_no_call_costs_nothing(self) -> None:
        assert cost_of([]) == Cost(usd=0, unpriced_calls=0)

    def test_usage_says_so_for_each_model(self) -> None:
        (model,) = usage_of([row(None, unpriced=10)]).by_model
        assert (model.usd, model.unpriced_calls) == (None, 10)
