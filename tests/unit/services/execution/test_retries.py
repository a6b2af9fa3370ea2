import pytest

from app.ports import FailureKind, ModelCallError
from app.services.execution.retries import MOST_ATTEMPTS, Attempts, Next, is_rate_limited, longest_wait


def an_error(
    kind: FailureKind = FailureKind.RETRY, status: int | None = None, most_attempts: int | None = None
) -> ModelCallError:
    return ModelCallError("no", kind=kind, code="any", status=status, most_attempts=most_attempts)


class TestAttempts:
    @pytest.mark.parametrize(
        ("kind", "follows"),
        [
            (FailureKind.JOB, Next.STOP_JOB),
            (FailureKind.ITEM, Next.FAIL_ITEM),
            (FailureKind.FILTERED, Next.FAIL_ITEM),
            (FailureKind.RETRY, Next.TRY_AGAIN),
        ],
    )
    def test_the_kind_of_the_first_failure_decides(self, kind: FailureKind, follows: Next) -> None:
        assert Attempts(12, made=1).after(an_error(kind)) is follows

    def test_a_job_that_must_stop_does_so_also_with_the_last_attempt(self) -> None:
        assert Attempts(1, made=1).after(an_error(FailureKind.JOB)) is Next.STOP_JOB

    def test_as_many_fail_as_are_allowed(self) -> None:
        assert [Attempts(3, made=made).after(an_error()) for made in (1, 2, 3)] == [
            Next.TRY_AGAIN,
            Next.TRY_AGAIN,
            Next.FAIL_ITEM,
        ]

    @pytest.mark.parametrize(("allowed", "made"), [(12, 2), (1, 1)])
    def test_a_failure_may_allow_fewer_but_not_more(self, allowed: int, made: int) -> None:
        error = an_error(most_attempts=2)
        assert Attempts(allowed, made=made).after(error) is Next.FAIL_ITEM
        if made > 1:
            assert Attempts(allowed, made=made - 1).after(error) is Next.TRY_AGAIN

    def test_rate_limits_don_t_count_but_come_to_an_end(self) -> None:
        last = MOST_ATTEMPTS
        assert Attempts(2, made=last - 1, rate_limited=last - 1).after(an_error(status=429)) is Next.TRY_AGAIN
        assert Attempts(2, made=last, rate_limited=last).after(an_error(status=429)) is Next.FAIL_ITEM

    def test_those_of_an_outage_never_count(self) -> None:
        made = 10 * MOST_ATTEMPTS
        assert Attempts(2, made=made, unreached=made).after(an_error(status=503)) is Next.TRY_AGAIN
        assert Attempts(2, made=made, unreached=made - 2).after(an_error(status=500)) is Next.FAIL_ITEM

    def test_status_429_is_a_rate_limit_and_an_overload_is_none(self) -> None:
        assert is_rate_limited(an_error(status=429))
        assert not is_rate_limited(an_error(status=503))


class TestLongestWait:
    def test_doubles_up_to_its_bound(self) -> None:
        assert [longest_wait(0.5, 60.0, failures) for failures in (0, 1, 2, 6, 7, 5000)] == [
            0.5,
            1.0,
            2.0,
            32.0,
            60.0,
            60.0,
        ]
