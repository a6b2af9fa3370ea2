"""Warnings about models whose long texts are missing because calls timed out."""

from datetime import UTC, datetime

from app.domain.providers.failure import remedy
from app.domain.providers.model import Model, ModelParameters
from app.domain.providers.usage import FailedCalls, ModelUsage
from app.domain.results.warnings import headline, time_out_warnings


def failed(
    model: str, code: str, calls: int, *, stage: str = "generation", status: int | None = None
) -> FailedCalls:
    return FailedCalls(
        stage=stage,
        model=model,
        code=code,
        http_status=status,
        detail=None,
        remedy=remedy(code, status, model),
        calls=calls,
        last_at=datetime(2026, 11, 27, tzinfo=UTC),
    )


def test_a_model_that_timed_out_while_it_wrote_is_named_with_its_count_and_the_remedy() -> None:
    models = [
        Model(label=name, connection="lab", name=name, parameters=ModelParameters())
        for name in ("slow", "slow", "fast")
    ]
    usage = [
        ModelUsage(
            stage="generation",
            model=f"lab/{name}",
            calls=30,
            failed_calls=15,
            input_tokens=0,
            output_tokens=0,
            cached_input_tokens=0,
            usd=0,
            unpriced_calls=0,
        )
        for name in ("slow", "fast")
    ]
    calls = [
        failed("lab/slow", "timeout", 10),
        failed("lab/slow", "http_504", 2, status=504),
        failed("lab/slow", "http_500", 3, status=500),
        failed("lab/fast", "http_429", 15, status=429),
        failed("lab/judge", "timeout", 4, stage="judging"),
    ]
    (warning,) = time_out_warnings(models, usage, calls)
    assert warning.message.startswith(
        "12 of 30 generation calls to lab/slow timed out. Texts that take longer are missing. Lower the model's `max_tokens`"
    )
    assert (warning.code, warning.value, warning.n) == ("time_outs", 0.4, 30)
    assert headline([warning], 2) is None
