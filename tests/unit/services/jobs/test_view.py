from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.db.execution.failures import FailureRow
from app.db.jobs.progress import UsageRow
from app.domain.jobs.status import JobStatus
from app.domain.providers.usage import Cost
from app.services.jobs.view import cost_of, failures_of, retrying_of, usage_of


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


def in_vain(calls: int) -> UsageRow:
    return UsageRow("judging", "acme/a", calls, calls, 0, 0, 0, 0.0, 0)


def failing(code: str, status: int | None, *, stage: str = "judging") -> FailureRow:
    return FailureRow(stage, "acme/a", code, status, "gone", 7, datetime(2026, 11, 22, tzinfo=UTC))


def test_the_remedy_of_what_a_filter_refused_blames_no_parameter() -> None:
    refused = failing("invalid_request_error", 400)
    (told, filtered) = failures_of([refused, replace(refused, filtered=True)])
    assert "rejects a parameter" in told.remedy
    assert "content filter" in filtered.remedy
    assert "parameter" not in filtered.remedy


class TestRetrying:
    def test_is_a_model_whose_calls_have_all_failed_so_far(self) -> None:
        rows = [failing("connection_failed", None), failing("timeout", None)]
        (found,) = retrying_of(JobStatus.RUNNING, [in_vain(17)], rows)
        assert (found.stage, found.model, found.attempts, found.cause) == ("judging", "acme/a", 17, "gone")
        assert "server is running" in found.remedy

    @pytest.mark.parametrize(
        ("status", "usage", "failure"),
        [
            (JobStatus.PAUSED, in_vain(3), failing("timeout", None)),
            (
                JobStatus.RUNNING,
                UsageRow("judging", "acme/a", 4, 3, 0, 0, 0, 0.0, 0),
                failing("timeout", None),
            ),
            (JobStatus.RUNNING, in_vain(3), failing("no", 400)),
            (
                JobStatus.RUNNING,
                in_vain(3),
                failing("timeout", None, stage="generation"),
            ),
        ],
        ids=["of a job at work", "unanswered", "that may pass", "of that stage"],
    )
    def test_is_only_what_is(self, status: JobStatus, usage: UsageRow, failure: FailureRow) -> None:
        assert retrying_of(status, [usage], [failure]) == []
