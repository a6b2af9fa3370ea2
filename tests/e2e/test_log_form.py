"""Every line that every process logs is one JSON object, whoever wrote it: ours, the server's, Celery's, the driver's."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from app.db.migration.migrate import upgrade
from embedded.postgres import EmbeddedPostgres
from embedded.valkey import EmbeddedValkey
from tests.databases import libpq_url
from tests.e2e.stack import running_stack
from tests.observe import PATIENCE

pytestmark = pytest.mark.slow

PARTS = ("api", "worker1", "sweeper")


def test_lines_are_json_objects_while_everything_goes_wrong(scratch: Path) -> None:
    with (
        EmbeddedPostgres(scratch / "postgres", durable=False) as postgres,
        EmbeddedValkey(scratch / "valkey") as valkey,
    ):
        upgrade(postgres.url())
        with running_stack(scratch / "stack", database_url=postgres.url(), redis_url=valkey.url()) as stack:
            for part in PARTS:  # nothing is missing at a start that has to be told
                assert "part can't be used" not in (scratch / "stack" / "logs" / f"{part}.log").read_text()
            job = stack.submit(
                {
                    "personas": ["E-low"],
                    "tasks": ["essay"],
                    "models": ["simulated/sim-faithful"],
                    "judges": ["simulated/sim-judge"],
                    "iterations": 4,
                }
            )
            stack.after_calls(10)
            valkey.process.stop()
            with psycopg.connect(libpq_url(postgres.url()), user="postgres", autocommit=True) as superuser:
                superuser.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND application_name LIKE 'assay%'"
                )
            stack.api.get("/readyz")
            valkey.restart()
            assert stack.ended(job)["status"] == "completed"
        logs = {part: (scratch / "stack" / "logs" / f"{part}.log").read_text() for part in PARTS}
    for part, log in logs.items():
        others = [line for line in log.splitlines() if not is_event(line)]
        assert others == [], part
    events = [json.loads(line) for log in logs.values() for line in log.splitlines()]
    loggers = Counter(event.get("logger", "ours").partition(".")[0] for event in events)
    assert {"uvicorn", "celery", "ours"} <= set(loggers), loggers  # else this has shown nothing of theirs


def is_event(line: str) -> bool:
    """Whether a line is an object with a time, a level and an event."""
    try:
        return {"timestamp", "level", "event"} <= set(json.loads(line))
    except ValueError:
        return False


def test_an_error_that_ends_a_process_and_a_warning_are_lines_too() -> None:
    program = (
        "import threading, warnings\n"
        "from app.bootstrap import configure_logging\n"
        "from app.settings import Settings\n"
        "configure_logging(Settings(log_format='json'))\n"
        "warnings.warn('of a library')\n"
        "thread = threading.Thread(target=lambda: 1 / 0)\n"
        "thread.start(); thread.join()\n"
        "import psycopg; raise psycopg.errors.DiskFull('a row: a shy person')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert [event["event"] for event in events][1:] == ["uncaught error", "uncaught error"]
    assert "of a library" in events[0]["event"]
    assert "ZeroDivisionError" in events[1]["exception"]
    assert "DiskFull" in events[2]["exception"]
    assert "shy" not in done.stderr
