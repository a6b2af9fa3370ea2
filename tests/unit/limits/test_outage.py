"""When a connection counts as away."""

from app.limits.outage import AWAY, BACK, FAILING_IN_A_ROW, IN_A_ROW, Errors, Outage


def failed(outage: Outage, times: int) -> None:
    for _ in range(times):
        outage.failed("ConnectionRefusedError")


class TestOutage:
    def test_begins_with_several_failures_in_a_row(self) -> None:
        outage = Outage()
        failed(outage, IN_A_ROW - 1)
        assert outage.news == ""
        failed(outage, 1)
        assert (outage.news, outage.reason) == (AWAY, "ConnectionRefusedError")

    def test_does_not_begin_while_calls_reach_the_server_in_between(self) -> None:
        outage = Outage()
        for _ in range(10):
            failed(outage, IN_A_ROW - 1)
            outage.reached()
        assert outage.news == ""

    def test_is_told_once_and_ends_with_a_call_that_reaches_the_server(self) -> None:
        outage = Outage()
        failed(outage, IN_A_ROW)
        outage.told(AWAY, is_on=True)
        failed(outage, IN_A_ROW)
        assert outage.news == ""
        outage.reached()
        assert outage.news == BACK
        outage.told(BACK, is_on=False)
        failed(outage, IN_A_ROW - 1)
        assert outage.news == ""

    def test_keeps_news_that_came_while_other_news_were_told(self) -> None:
        outage = Outage()
        failed(outage, IN_A_ROW)
        outage.reached()
        outage.told(AWAY, is_on=True)
        assert outage.news == BACK


def fail_in(errors: Errors, *calls: int) -> None:
    for call in calls:
        errors.failed_in(f"call{call}", "500")


class TestErrors:
    def test_of_as_many_different_calls_in_a_row_are_the_servers(self) -> None:
        errors = Errors()
        errors.answered()
        fail_in(errors, *range(FAILING_IN_A_ROW - 1))
        assert errors.news == ""
        fail_in(errors, FAILING_IN_A_ROW)
        assert (errors.news, errors.reason) == (AWAY, "all calls end in an error: 500")

    def test_of_few_calls_are_theirs_however_often_they_are_tried(self) -> None:
        errors = Errors()
        errors.answered()
        fail_in(errors, *[*range(FAILING_IN_A_ROW - 1)] * 10)
        assert errors.news == ""

    def test_of_a_model_that_has_never_answered_are_the_first_calls_to_judge(self) -> None:
        errors = Errors()
        fail_in(errors, *range(10 * FAILING_IN_A_ROW))
        errors.reached()  # a refusal is no answer
        fail_in(errors, *range(10 * FAILING_IN_A_ROW))
        assert errors.news == ""

    def test_are_counted_anew_after_each_answer_and_each_outage(self) -> None:
        errors = Errors()
        errors.answered()
        for _ in range(10):
            fail_in(errors, *range(FAILING_IN_A_ROW - 1))
            errors.answered()
        assert errors.news == ""
        fail_in(errors, *range(FAILING_IN_A_ROW))
        errors.told(AWAY, is_on=True)
        errors.told("", is_on=False)  # another process had an answer
        fail_in(errors, *range(FAILING_IN_A_ROW - 1))
        assert errors.news == ""
