"""What would keep a process from starting is said once, in words, before any of them starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.db.migration.migrate import migrate_to
from tests.next_release import THIS

pytestmark = pytest.mark.slow

PEPPER = "a pepper for tests, of more than 32 bytes"


def run(module: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", module, *words],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def variables(database_url: str, redis_url: str) -> dict[str, str]:
    """What a service has that lacks nothing but a key."""
    return {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "ASSAY_KEY_PEPPER": PEPPER}


def test_a_service_without_a_key_is_told_to_make_one_and_passes_when_there_is_one(
    variables: dict[str, str],
) -> None:
    refused = run("app.preflight", **variables)
    assert (refused.returncode, refused.stdout) == (1, "")
    [line] = refused.stderr.splitlines()
    assert line.startswith("The service can't start: without API keys")
    assert "assay keys create" in line
    made = run("app.cli", "keys", "create", "--name", "me", "--scope", "admin", **variables)
    assert made.returncode == 0, made.stderr
    passed = run("app.preflight", **variables)
    assert (passed.returncode, passed.stdout, passed.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"ASSAY_KEY_PEPPER": ""}, "ASSAY_KEY_PEPPER is not set"),
        ({"ASSAY_MAX_IN_FLIGHT": "none"}, "ASSAY_MAX_IN_FLIGHT"),
        ({"REDIS_URL": ""}, "REDIS_URL is not set"),
        ({"ASSAY_CONFIG": "/missing/assay.yaml"}, "ASSAY_CONFIG"),
        ({"ASSAY_ENCRYPTION_KEYS": "short"}, "ASSAY_ENCRYPTION_KEYS: key 1 is not 32 bytes"),
    ],
)
def test_a_setting_that_no_process_would_take_is_named(
    variables: dict[str, str], wrong: dict[str, str], reason: str
) -> None:
    refused = run("app.preflight", **variables | wrong)
    assert refused.returncode == 1
    assert refused.stderr.startswith("The service can't start: ")
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_database_that_is_away_or_behind_is_no_start(
    variables: dict[str, str], database_url: str, next_release: None, tmp_path: Path
) -> None:
    nowhere = f"postgresql://nobody@/x?host={tmp_path}"
    assert (
        "the database can't be reached"
        in run("app.preflight", **variables | {"DATABASE_URL": nowhere}).stderr
    )
    migrate_to(database_url, THIS)
    assert "behind this release: run `assay migrate`" in run("app.preflight", **variables).stderr
