"""When a connection counts as away."""

from app.limits.outage import AWAY, BACK, IN_A_ROW, Outage


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
