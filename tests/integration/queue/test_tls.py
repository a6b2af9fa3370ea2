"""Redis over TLS: every client verifies it, by one definition, and says why it does not trust it."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from app.queue import sender
from app.queue.celery_app import make_celery
from app.queue.sender import CeleryQueue
from app.redis_server import RedisServer, reason, redis_server
from embedded.services import StackConfig, StackUrls, service_commands
from embedded.valkey import EmbeddedValkey
from tests.api.service import serving
from tests.observe import eventually
from tests.tls import Authority, speaking_tls

# The test's own server leaves the socket of a refused handshake to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

UNTRUSTED = "its TLS certificate is not trusted; see ASSAY_REDIS_CA_FILE"


@dataclass(frozen=True)
class Secured:
    """A Redis behind TLS, and who signed what."""

    url: str
    ours: Authority
    other: Authority


@pytest.fixture
def secured(valkey: EmbeddedValkey, scratch: Path) -> Iterator[Secured]:
    ours, other = Authority(scratch), Authority(scratch, "other")
    with speaking_tls(valkey.socket, ours.sign("redis")) as port:
        yield Secured(f"rediss://localhost:{port}/0", ours, other)


@pytest.fixture
def mutual(valkey: EmbeddedValkey, scratch: Path) -> Iterator[Secured]:
    """One that also asks who we are."""
    ours, other = Authority(scratch), Authority(scratch, "other")
    with speaking_tls(valkey.socket, ours.sign("redis"), clients=ours.file) as port:
        yield Secured(f"rediss://localhost:{port}/0", ours, other)


async def limiters_way(server: RedisServer) -> str:
    """What the client of the limiter and of the metrics says."""
    async with server.client(5) as client:
        try:
            await client.execute_command("PING")  # type: ignore[no-untyped-call] # redis-py leaves it untyped
        except (RedisError, OSError) as error:
            return reason(error)
    return "ok"


async def celerys_way(server: RedisServer) -> str:
    """What Celery's connection says."""
    queue = CeleryQueue(make_celery(server))
    await queue.announce_shards([1])
    return "ok" if await queue.length() else "nothing arrived"


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "TIMEOUT_SECONDS", 30)


class TestCertificates:
    async def test_one_of_an_authority_that_nobody_knows_is_refused_by_all(self, secured: Secured) -> None:
        server = redis_server(secured.url)
        assert await limiters_way(server) == UNTRUSTED
        assert await celerys_way(server) == "nothing arrived"

    async def test_one_of_another_authority_is_refused_by_all(self, secured: Secured) -> None:
        server = redis_server(secured.url, ca=secured.other.file)
        assert await limiters_way(server) == UNTRUSTED
        assert await celerys_way(server) == "nothing arrived"

    async def test_one_of_the_authority_that_was_given_is_trusted_by_all(self, secured: Secured) -> None:
        server = redis_server(secured.url, ca=secured.ours.file)
        assert await limiters_way(server) == await celerys_way(server) == "ok"

    async def test_one_of_another_host_is_refused(self, valkey: EmbeddedValkey, scratch: Path) -> None:
        authority = Authority(scratch)
        with speaking_tls(valkey.socket, authority.sign("redis", "elsewhere.example")) as port:
            server = redis_server(f"rediss://localhost:{port}/0", ca=authority.file)
            assert await limiters_way(server) == UNTRUSTED
            assert await celerys_way(server) == "nothing arrived"

    async def test_parameters_in_the_url_hold_for_all(self, secured: Secured) -> None:
        trusting = redis_server(f"{secured.url}?ssl_cert_reqs=none")
        assert await limiters_way(trusting) == await celerys_way(trusting) == "ok"
        named = redis_server(f"{secured.url}?ssl_ca_certs={secured.ours.file}&ssl_cert_reqs=required")
        assert await limiters_way(named) == await celerys_way(named) == "ok"


class TestMutual:
    async def test_without_a_certificate_of_ours_we_are_refused(self, mutual: Secured) -> None:
        server = redis_server(mutual.url, ca=mutual.ours.file)
        assert "client certificate" in await limiters_way(server)
        assert await celerys_way(server) == "nothing arrived"

    async def test_with_one_we_are_let_in(self, mutual: Secured) -> None:
        cert, key = mutual.ours.sign("assay")
        server = redis_server(mutual.url, ca=mutual.ours.file, cert=cert, key=key)
        assert await limiters_way(server) == await celerys_way(server) == "ok"

    async def test_one_of_another_authority_is_refused(self, mutual: Secured) -> None:
        cert, key = mutual.other.sign("assay")
        server = redis_server(mutual.url, ca=mutual.ours.file, cert=cert, key=key)
        assert "client certificate" in await limiters_way(server)


class TestFiles:
    def test_what_is_missing_or_no_certificate_is_named(self, secured: Secured, scratch: Path) -> None:
        key = secured.ours.sign("assay")[1]
        with pytest.raises(ValueError, match=r"ASSAY_REDIS_CA_FILE: .*nowhere.pem: No such file"):
            redis_server(secured.url, ca=scratch / "nowhere.pem")
        with pytest.raises(ValueError, match=r"ASSAY_REDIS_CA_FILE: .*key is not a certificate"):
            redis_server(secured.url, ca=key)
        with pytest.raises(ValueError, match="ASSAY_REDIS_KEY_FILE needs ASSAY_REDIS_CERT_FILE"):
            redis_server(secured.url, key=key)

    def test_without_tls_they_are_refused(self, secured: Secured) -> None:
        with pytest.raises(ValueError, match="begins with rediss://"):
            redis_server("redis://localhost:6379/0", ca=secured.ours.file)


@pytest.mark.slow
class TestProcesses:
    def test_the_api_says_which_part_it_cannot_reach_and_why(
        self, secured: Secured, scratch: Path, database_url: str
    ) -> None:
        with serving(
            scratch, database_url, secured.url, ASSAY_REDIS_CA_FILE=str(secured.other.file)
        ) as service:
            ready = service.get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
            assert ready.json()["parts"]["queue"] == f"unreachable: {UNTRUSTED}"
            assert ready.json()["parts"]["database"] == "ok"
            assert service.log is not None
            told = [json.loads(line) for line in service.log.read_text().splitlines() if "part can't" in line]
        assert [(line["part"], line["state"]) for line in told] == [("queue", f"unreachable: {UNTRUSTED}")]
        with serving(
            scratch, database_url, secured.url, ASSAY_REDIS_CA_FILE=str(secured.ours.file)
        ) as service:
            assert service.get("/readyz").json()["parts"]["queue"] == "ok"

    def test_a_worker_says_it_too_and_works_with_the_right_certificate(
        self, secured: Secured, scratch: Path, database_url: str
    ) -> None:
        with worker(scratch, database_url, secured.url, secured.other.file) as said:
            assert eventually(lambda: any(line.get("state") == UNTRUSTED for line in said()), 60)
        with worker(scratch, database_url, secured.url, secured.ours.file) as said:
            assert eventually(lambda: registered(secured), 60)
            assert [line for line in said() if line.get("part") == "redis"] == []


def registered(secured: Secured) -> bool:
    """Whether a worker shows its metrics."""
    import redis

    url = f"{secured.url}?ssl_ca_certs={secured.ours.file}"
    with redis.Redis.from_url(url) as client:
        return any(name.startswith(b"worker@") for name in client.hgetall("assay:metrics"))


@contextlib.contextmanager
def worker(
    directory: Path, database_url: str, redis_url: str, ca: Path
) -> Iterator[Callable[[], list[dict[str, str]]]]:
    """A worker; gives what it has logged."""
    config = StackConfig(host="127.0.0.1", port=0, data_dir=directory, workers=1, slots=1)
    urls = StackUrls("127.0.0.1", 0, database_url, redis_url, 9)
    [spec] = [each for each in service_commands(config, urls) if each.name == "worker1"]
    log = directory / "worker.log"
    environment = os.environ | urls.environment() | spec.env | {"ASSAY_REDIS_CA_FILE": str(ca)}
    with log.open("wb") as output:
        process = subprocess.Popen(spec.argv, env=environment, stdout=output, stderr=output)
    try:
        yield lambda: [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    finally:
        process.kill()
        process.wait(10)
