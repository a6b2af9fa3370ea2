"""A whole job over TLS with Debian's Redis, a private authority, and certificates on both sides."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from embedded.supervisor import free_port
from tests.api.service import serving
from tests.e2e.stack import supervised_stack
from tests.observe import eventually
from tests.tls import Authority

REDIS = shutil.which("redis-server")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(REDIS is None, reason="needs redis-server")]

JOB = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "iterations": 4,
}
UNTRUSTED = "its TLS certificate is not trusted; see ASSAY_REDIS_CA_FILE"


@dataclass(frozen=True)
class Secured:
    """A Redis that speaks TLS alone, and asks who we are.

    Attributes:
        url: Where it is.
        ours: The settings that name its authority, and a certificate of ours that it takes.
        directory: Where further certificates may lie.
    """

    url: str
    ours: Mapping[str, str]
    directory: Path


@pytest.fixture
def secured(scratch: Path) -> Iterator[Secured]:
    authority = Authority(scratch)
    (certificate, key), (own, own_key) = authority.sign("redis"), authority.sign("assay")
    port = free_port("127.0.0.1", 0)
    settings = {
        "port": "0",
        "bind": "127.0.0.1",
        "tls-port": str(port),
        "tls-cert-file": str(certificate),
        "tls-key-file": str(key),
        "tls-ca-cert-file": str(authority.file),
        "tls-auth-clients": "yes",
        "save": "",
        "dir": str(scratch),
    }
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    with (scratch / "redis.log").open("wb") as log:
        process = subprocess.Popen([str(REDIS), *options], stdout=log, stderr=log)
    url = f"rediss://localhost:{port}/0"
    ours = {
        "ASSAY_REDIS_CA_FILE": str(authority.file),
        "ASSAY_REDIS_CERT_FILE": str(own),
        "ASSAY_REDIS_KEY_FILE": str(own_key),
    }
    try:
        assert eventually(lambda: answers(url, authority.file, own, own_key), 30), (
            scratch / "redis.log"
        ).read_text()
        yield Secured(url, ours, scratch)
    finally:
        process.terminate()
        process.wait(10)


def answers(url: str, authority: Path, certificate: Path, key: Path) -> bool:
    with redis.Redis.from_url(
        url, ssl_ca_certs=str(authority), ssl_certfile=str(certificate), ssl_keyfile=str(key)
    ) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False


def test_a_whole_job_is_done_and_exact(secured: Secured, database_url: str) -> None:
    directory = secured.directory / "stack"
    with supervised_stack(directory, database_url, secured.url, workers=2, environment=secured.ours) as stack:
        assert stack.api.get("/readyz").json()["parts"]["queue"] == "ok"
        job = stack.submit(JOB)
        ended = stack.ended(job)
        assert (ended["status"], ended["completeness"]) == ("completed", "full")
        assert len(list(stack.responses(job))) == 24
    logs = "".join(file.read_text() for file in (directory / "logs").glob("[aws]*.log"))
    events = [json.loads(line) for line in logs.splitlines() if line.startswith("{")]
    assert [event for event in events if event["level"] in {"error", "critical"}] == []


@pytest.mark.parametrize("wrong", ["authority", "certificate", "no certificate"])
def test_a_wrong_authority_or_certificate_is_told_with_the_part(
    secured: Secured, database_url: str, wrong: str
) -> None:
    other = Authority(secured.directory, "other")
    certificate, key = other.sign("assay")
    theirs = {"ASSAY_REDIS_CERT_FILE": str(certificate), "ASSAY_REDIS_KEY_FILE": str(key)}
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "authority": ({**secured.ours, "ASSAY_REDIS_CA_FILE": str(other.file)}, UNTRUSTED),
        "certificate": ({**secured.ours, **theirs}, "client certificate"),
        "no certificate": (
            {"ASSAY_REDIS_CA_FILE": secured.ours["ASSAY_REDIS_CA_FILE"]},
            "client certificate",
        ),
    }
    environment, told = cases[wrong]
    with serving(secured.directory, database_url, secured.url, **environment) as service:
        ready = service.get("/readyz")
        assert service.log is not None
        lines = [json.loads(line) for line in service.log.read_text().splitlines() if "part can't" in line]
    state = ready.json()["parts"]["queue"]
    assert ready.status_code == 503
    assert ready.json()["parts"]["database"] == "ok"
    assert state.startswith("unreachable: ")
    assert told in state
    assert [(line["part"], line["state"]) for line in lines] == [("queue", state)]
