"""Requests made from the OpenAPI document, valid and not, also one after another; every answer is held to the document."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.keys.api_key import Scope
from tests.api.keys import KeyMaker, bearer, guarded_alone
from tests.api.service import Service
from tests.databases import Databases
from tests.faults.program import PROJECT
from tests.faults.trial import report, seeded

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).with_name("schemathesis.toml")
LEFT_OUT = (
    "GET /v1/api-keys",  # by it the requests would find, and end, the key that they are made with
    "GET /v1/jobs/{job_id}/events",  # as long as the job, which nobody works on here
    "PATCH /v1/uploads/{upload_id}",  # bytes, which it can't make: test_tus sends broken ones
    "POST /v1/bundles",  # likewise: test_bundles
)
PATIENCE = "600"
"""Seconds that an answer may take here: what is late is another test's concern."""

FINDINGS = PROJECT / "build" / "schemathesis.txt"
WIDTH = 400
"""Characters of a line there: some requests are megabytes."""


@pytest.fixture
def guarded_api(databases: Databases, template_database: str) -> Iterator[Service]:
    with guarded_alone(
        databases, template_database, "schemathesis", ASSAY_MAX_PLANNED_CALLS="200000"
    ) as service:
        yield service


def cases(api: Service, directory: Path, *options: str) -> int:
    """How many requests were made; that they found anything fails the test with what they found."""
    header = bearer(KeyMaker(api.database_url).make(Scope.ADMIN))["Authorization"]
    program = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run"]
    fixed = ["--no-color", "--no-shrink"]  # all checks are on, but for what the configuration says
    patient = ["--request-timeout", PATIENCE, "--max-response-time", PATIENCE]
    left_out = [word for name in LEFT_OUT for word in ("--exclude-name", name)]
    FINDINGS.unlink(missing_ok=True)
    document = directory / "openapi.json"
    document.write_bytes(api.get("/openapi.json").content)
    run = subprocess.run(
        [
            *(*program, *fixed, *patient, *left_out, *options),
            *("-H", f"Authorization: {header}", "--url", api.url, str(document)),
        ],
        cwd=directory,  # what it remembers stays there
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, _found(run.stdout) + run.stderr[-2000:]
    made = re.search(r"([\d,]+) generated", run.stdout)
    assert made, run.stdout
    return int(made[1].replace(",", ""))


def _found(printed: str) -> str:
    """What was found, each by its operation and its kind; all of it, with the requests that show it, goes to :data:`FINDINGS`."""
    lines = [
        line if len(line) <= WIDTH else f"{line[:WIDTH]} … ({len(line):,})" for line in printed.splitlines()
    ]
    FINDINGS.parent.mkdir(exist_ok=True)
    FINDINGS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    named = [line.strip("_ ") for line in lines if re.match(r"_{2,} \S.* _{2,}$|- \S", line)]
    return "\n".join([f"see {FINDINGS}:", *named]) + "\n"


class TestDocument:
    @pytest.mark.timeout(1200)
    def test_some_hundred_requests_find_nothing(self, guarded_api: Service, tmp_path: Path) -> None:
        options = ["--phases", "fuzzing,stateful", "-n", "5", "--generation-deterministic"]
        assert cases(guarded_api, tmp_path, *options) > 200

    @pytest.mark.long
    @pytest.mark.timeout(5400)
    def test_ten_thousand_requests_find_nothing(self, guarded_api: Service, tmp_path: Path) -> None:
        seed, _ = seeded(1)
        options = ["-n", "150", "--continue-on-failure", "--seed", str(seed), "--generation-database", "none"]
        made = cases(guarded_api, tmp_path, *options)
        assert made >= 10_000
        report("schemathesis", seed=seed, n=made, of=made)
