"""What processes say that can't start: the reason, and no place in our code."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from app.domain.keys.api_key import Scope
from embedded.services import StackConfig, StackUrls, migration_command, service_commands
from tests.api.keys import KeyMaker

pytestmark = pytest.mark.slow

NOWHERE = StackUrls("127.0.0.1", 0, "postgresql://nobody@127.0.0.1:9/x", "redis://127.0.0.1:9", 0)
CONFIG = StackConfig(host="127.0.0.1", port=0, data_dir=Path(), workers=1)
COMMANDS = {spec.name: spec.argv for spec in service_commands(CONFIG, NOWHERE)} | {
    "migrations": migration_command(CONFIG)
}
SECRET = "not-a-key-but-a-secret"


@pytest.mark.parametrize(
    ("process", "variables", "reason"),
    [
        ("api", {"ASSAY_MAX_STREAMS": "0"}, "ASSAY_MAX_STREAMS: must be greater than or equal to 1"),
        ("api", {"ASSAY_CONFIG": "/missing/assay.yaml"}, "ASSAY_CONFIG: /missing/assay.yaml: No such file"),
        ("worker1", {"REDIS_URL": SECRET}, "REDIS_URL: must be a URL that begins with redis://"),
        (
            "api",
            {"ASSAY_KEY_PEPPER": "short"},
            "has 5 characters but 32 are needed. Make one with `openssl rand",
        ),
        ("worker1", {"ASSAY_ENCRYPTION_KEYS": SECRET}, "ASSAY_ENCRYPTION_KEYS: key 1 is not 32 bytes"),
        ("sweeper", {"DATABASE_URL": ""}, "DATABASE_URL is not set"),
        ("migrations", {}, "the database can't be used: connection failed"),
    ],
)
def test_a_process_that_cannot_start_says_why_and_ends(
    process: str, variables: dict[str, str], reason: str
) -> None:
    environment = os.environ | NOWHERE.environment() | variables
    done = subprocess.run(
        COMMANDS[process], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode in {1, 3}
    assert reason in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert SECRET not in done.stderr + done.stdout


def test_an_api_whose_pepper_was_lost_says_how_to_restore_it(database_url: str, redis_url: str) -> None:
    key = KeyMaker(database_url).make(Scope.READ)
    urls = replace(NOWHERE, database=database_url, redis=redis_url)
    environment = (
        os.environ | urls.environment() | {"ASSAY_KEY_PEPPER": "another pepper than that of the key"}
    )

    def start() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            COMMANDS["api"], env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    done = start()
    assert done.returncode in {1, 3}
    assert "was created with another pepper" in done.stderr
    assert "from a backup" in done.stderr
    assert "Traceback" not in done.stderr
    assert key["key"] not in done.stderr
