import io
import json
import sys
from collections.abc import Iterator

import psycopg
import pytest
import structlog

from app.bootstrap import configure_logging
from app.settings import Settings


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is logged, as JSON, one object a line."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logging(Settings(log_format="json"))
    yield written
    structlog.reset_defaults()


class TestLogs:
    def test_carry_the_job_and_the_shard_that_they_are_about(self, lines: io.StringIO) -> None:
        with structlog.contextvars.bound_contextvars(job="job_1", shard=7):
            structlog.get_logger().warning("verdict failed", code="timeout")
        event = json.loads(lines.getvalue())
        assert (event["job"], event["shard"], event["level"], event["code"]) == (
            "job_1",
            7,
            "warning",
            "timeout",
        )

    def test_show_where_an_error_came_from_and_what_it_says(self, lines: io.StringIO) -> None:
        def fail() -> None:
            raise RuntimeError("the rows are not all there") from KeyError("cell")

        try:
            fail()
        except RuntimeError:
            structlog.get_logger().exception("shard failed")
        shown = json.loads(lines.getvalue())["exception"]
        assert "the rows are not all there" in shown
        assert "KeyError" in shown
        assert "test_bootstrap.py" in shown

    def test_never_quote_a_database_which_quotes_rows(self, lines: io.StringIO) -> None:
        quoted = "COPY new_responses, line 1: I am a " + "shy"[:3] + " person"
        try:
            try:
                raise psycopg.errors.UntranslatableCharacter(quoted)
            except psycopg.Error as error:
                raise RuntimeError("a batch was refused") from error
        except RuntimeError:
            structlog.get_logger().exception("shard failed")
        shown = json.loads(lines.getvalue())["exception"]
        assert "shy" not in shown
        assert "UntranslatableCharacter" in shown
        assert "a batch was refused" in shown

    def test_are_for_people_if_asked_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        configure_logging(Settings(log_format="text"))
        structlog.get_logger().warning("job stopped", code="invalid_api_key")
        structlog.reset_defaults()
        line = capsys.readouterr().err
        assert "invalid_api_key" in line
        assert not line.startswith("{")
