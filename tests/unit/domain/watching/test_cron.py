from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest

from app.domain.watching.cron import check_cron, check_zone, due_times, next_due, runs_a_year

BERLIN = ZoneInfo("Europe/Berlin")


def dues(expression: str, zone: str, after: str, count: int) -> list[str]:
    found = islice(due_times(expression, zone, datetime.fromisoformat(after)), count)
    return [due.strftime("%m-%dT%H:%MZ") for due in found]


class TestDueTimes:
    def test_a_local_time_that_the_clock_leaves_out_is_due_when_it_has_moved_on(self) -> None:
        """On 29 March 2026 Berlin's clock goes from 2:00 to 3:00, which is 1:00 UTC."""
        found = dues("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00+01:00", 3)
        assert found == ["03-28T01:30Z", "03-29T01:00Z", "03-30T00:30Z"]

    def test_a_local_time_that_comes_twice_is_due_once(self) -> None:
        """On 25 October 2026 it is 2:30 at 0:30 UTC and again at 1:30 UTC."""
        found = dues("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00+02:00", 2)
        assert found == ["10-25T00:30Z", "10-26T01:30Z"]

    def test_from_between_the_two_it_is_not_due_again(self) -> None:
        assert dues("30 2 * * *", "Europe/Berlin", "2026-10-25T00:45+00:00", 1) == ["10-26T01:30Z"]

    def test_what_is_due_every_hour_is_due_in_both_hours(self) -> None:
        found = dues("30 * * * *", "Europe/Berlin", "2026-10-25T00:00+00:00", 3)
        assert found == ["10-25T00:30Z", "10-25T01:30Z", "10-25T02:30Z"]

    def test_in_another_hemisphere_and_by_half_an_hour(self) -> None:
        """Lord Howe's clock goes back from 2:00 to 1:30 on 5 April 2026, and forward from 2:00 to 2:30 on 4 October."""
        back = dues("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00+00:00", 2)
        assert back == ["04-04T14:45Z", "04-05T15:15Z"]
        forward = dues("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00+00:00", 2)
        assert forward == ["10-03T15:30Z", "10-04T15:15Z"]

    def test_the_day_of_a_leap_year_is_found(self) -> None:
        due = next_due("0 0 29 2 *", "UTC", datetime(2026, 1, 1, tzinfo=UTC))
        assert due == datetime(2028, 2, 29, tzinfo=UTC)


CLOCKS = [
    ("Europe/Berlin", "2026-03-28T12:00"),
    ("Europe/Berlin", "2026-10-24T12:00"),
    ("America/Santiago", "2026-04-04T12:00"),
    ("America/Santiago", "2026-09-05T12:00"),  # at midnight, which is left out
    ("Africa/Cairo", "2026-04-23T12:00"),
    ("Africa/Casablanca", "2026-02-14T12:00"),
    ("Australia/Lord_Howe", "2026-04-04T00:00"),  # by half an hour
    ("Australia/Lord_Howe", "2026-10-03T00:00"),
]


@cache
def every_minute(zone: str, start: datetime) -> list[tuple[datetime, datetime]]:
    """Each minute of two days in UTC, and what the clock of a zone shows then."""
    minutes = [start + timedelta(minutes=n) for n in range(2 * 24 * 60 + 1)]
    return [(minute, minute.astimezone(ZoneInfo(zone)).replace(tzinfo=None)) for minute in minutes]


class TestChangesOfTheClock:
    @pytest.mark.parametrize(("zone", "start"), CLOCKS)
    @pytest.mark.parametrize("hours", [(0,), (1,), (2,), (3,), (0, 2, 12), (1, 2, 3)])
    @pytest.mark.parametrize("minutes", [(0,), (30,), (15, 45)])
    def test_each_time_on_the_clock_is_due_once_when_it_is_first_shown_or_passed_over(
        self, zone: str, start: str, hours: tuple[int, ...], minutes: tuple[int, ...]
    ) -> None:
        begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
        clock = every_minute(zone, begin)
        latest, wanted = clock[0][1], []
        for minute, shown in clock[1:]:
            passed = [
                latest + timedelta(minutes=n + 1) for n in range((shown - latest) // timedelta(minutes=1))
            ]
            if any(each.hour in hours and each.minute in minutes for each in passed):
                wanted.append(minute)
            latest = max(latest, shown)
        expression = f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *"
        found = takewhile(lambda due: due <= clock[-1][0], due_times(expression, zone, begin))
        assert list(found) == wanted

    @pytest.mark.parametrize(("zone", "start"), CLOCKS)
    @pytest.mark.parametrize("expression", ["0 * * * *", "*/15 * * * *", "15,45 * * * *"])
    def test_every_hour_means_each_time_that_the_clock_shows_it(
        self, zone: str, start: str, expression: str
    ) -> None:
        begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
        clock = every_minute(zone, begin)
        shows = {"0": {0}, "*/15": {0, 15, 30, 45}, "15,45": {15, 45}}[expression.partition(" ")[0]]
        found = takewhile(lambda due: due <= clock[-1][0], due_times(expression, zone, begin))
        assert list(found) == [minute for minute, shown in clock[1:] if shown.minute in shows]


class TestCheck:
    @pytest.mark.parametrize(
        ("expression", "said"),
        [
            ("0 0 30 2 *", "no such day"),
            ("0 0 31 2,4,6 *", "no such day"),
            ("60 * * * *", "minute is wrong"),
            ("0 24 * * *", "hour is wrong"),
            ("0 0 * 13 *", "month is wrong"),
            ("0 0 * * 8", "no such day"),
            ("0 0 * *", "five fields"),
            ("0 0 0 * * *", "five fields"),
            ("@daily", "five fields"),
            ("", "five fields"),
            ("x 0 * * *", "minute is wrong"),
            ("*/0 * * * *", "minute is wrong"),
            ("5-1 * * * *", "minute is wrong"),
            ("* * * * *", "every 15 minutes"),
            ("*/10 * * * *", "every 15 minutes"),
            ("*/7 * * * *", "every 15 minutes"),
            ("*/28 * * * *", "every 15 minutes"),  # 56 and, 4 minutes later, 0
            ("0,5 2 1 1 *", "every 15 minutes"),
            ("59,0 0,23 * * *", "every 15 minutes"),
            ("٣ 0 * * *", "minute is wrong"),
        ],
    )
    def test_what_is_no_schedule_is_refused_with_the_reason(self, expression: str, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            check_cron(expression)

    @pytest.mark.parametrize(
        "expression",
        [
            "*/15 * * * *",
            "30 2 * * *",
            "0 9 * * MON-FRI",
            "0 0 1 */3 *",
            "0 0 L * *",
            "0 */7 * * *",
            "0 0 29 2 *",
        ],
    )
    def test_others_are_taken(self, expression: str) -> None:
        assert check_cron(f"  {expression} ".replace(" ", "  ")) == expression

    def test_what_is_due_every_28_years_is_taken_however_far_that_reaches(self) -> None:
        """A February has five Mondays in 2044, 2072, … to the year 10,000."""
        assert check_cron("0 0 * 2 MON#5") == "0 0 * 2 MON#5"
        due = next_due("0 0 * 2 MON#5", "UTC", datetime(2026, 1, 1, tzinfo=UTC))
        assert due == datetime(2044, 2, 29, tzinfo=UTC)

    def test_a_zone_that_there_is_not_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(ValueError, match="Europe/Berlin"):
            check_zone("Europe/Berln")
        for name in ("../etc/passwd", "", "CET+1", "localtime", "Europe"):
            with pytest.raises(ValueError, match="unknown time zone"):
                check_zone(name)
        assert check_zone("UTC") == "UTC"

    def test_runs_a_year_are_those_of_the_expression(self) -> None:
        assert runs_a_year("30 2 * * *") == pytest.approx(365.25, rel=0.01)
        assert runs_a_year("0 * * * *") == pytest.approx(8766, rel=0.01)
        assert runs_a_year("0 0 1 1 *") == pytest.approx(1, rel=0.05)
