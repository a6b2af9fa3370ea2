"""The examples of docs/examples as they stand, before a real API: TLS, cookies, and streams that outlive the API."""

import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from app.api.uploads.routes import PIECE_BYTES
from app.domain.keys.api_key import Scope
from embedded.supervisor import free_port
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import job_body
from tests.observe import PATIENCE, eventually
from tests.tls import Authority

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NAME = "assay.example.org"
SEARCHED = "/usr/sbin:/usr/bin:/usr/local/bin"


def nginx(directory: Path, site: str) -> list[str]:
    """nginx with its own defaults and one site."""
    (directory / "site.conf").write_text(site)
    main = directory / "nginx.conf"
    main.write_text(
        f"daemon off; master_process off; pid {directory}/nginx.pid; error_log {directory}/nginx.log;\n"
        f"events {{}}\nhttp {{ access_log off; client_body_temp_path {directory}; proxy_temp_path {directory};"
        f" fastcgi_temp_path {directory}; uwsgi_temp_path {directory}; scgi_temp_path {directory};"
        f" include {directory}/site.conf; }}\n"
    )
    return ["nginx", "-e", str(directory / "nginx.log"), "-c", str(main)]


def caddy(directory: Path, site: str) -> list[str]:
    """Caddy without its administration and without port 80."""
    file = directory / "Caddyfile"
    file.write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]


@contextmanager
def proxied(kind: str, directory: Path, api_port: int) -> Iterator[httpx2.Client]:
    """A client of a proxy; of the example only ports, the name and the certificate's files are others."""
    port = free_port("127.0.0.1", 0)
    authority = Authority(directory)
    certificate, key = authority.sign("proxy")
    example, command = {"nginx": ("nginx.conf", nginx), "caddy": ("Caddyfile", caddy)}[kind]
    site = (EXAMPLES / example).read_text().replace("127.0.0.1:8321", f"127.0.0.1:{api_port}")
    site = site.replace("listen 443", f"listen 127.0.0.1:{port}")
    site = site.replace(f"{NAME} {{", f"https://localhost:{port} {{").replace(NAME, "localhost")
    for place in ("/etc/nginx/assay", "/etc/caddy/assay"):
        site = site.replace(f"{place}.pem", str(certificate)).replace(f"{place}.key", str(key))
    with (directory / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            command(directory, site),
            stdout=log,
            stderr=log,
            env={"HOME": str(directory), "PATH": SEARCHED},
        )
    context = ssl.create_default_context(cafile=str(authority.file))
    try:
        with httpx2.Client(
            base_url=f"https://localhost:{port}", verify=context, trust_env=False, timeout=PATIENCE
        ) as client:
            assert eventually(lambda: is_up(client), 20), (directory / "proxy.log").read_text()
            yield client
    finally:
        process.terminate()
        process.wait(10)


def is_up(client: httpx2.Client) -> bool:
    try:
        client.get("/healthz")
    except httpx2.TransportError:
        return False
    return True


def first_event(response: httpx2.Response) -> dict[str, str]:
    """The fields of the next event that has an id."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "id" in fields:
            return fields
        else:
            fields = {}
    raise AssertionError("the stream ended without an event")


@pytest.mark.parametrize("kind", ["nginx", "caddy"])
def test_the_example_serves_over_tls_and_a_stream_goes_on_after_the_apis_restart(
    kind: str, scratch: Path, database_url: str, redis_url: str
) -> None:
    if shutil.which(kind, path=SEARCHED) is None:
        pytest.skip(f"needs {kind}")
    port = free_port("127.0.0.1", 0)
    key = KeyMaker(database_url).make(Scope.SUBMIT)
    with proxied(kind, scratch, port) as client:
        assert client.get("/healthz").status_code == 502
        with guarded(scratch, database_url, redis_url, port=port):
            job = client.post("/v1/jobs", json=job_body(), headers=bearer(key)).json()["id"]
            signed_in = client.post(
                "/sign-in", data={"key": key["key"]}, headers={"Origin": str(client.base_url).rstrip("/")}
            )
            assert signed_in.status_code == 303, signed_in.text
            cookie = signed_in.headers["set-cookie"]
            assert cookie.startswith("__Host-assay_session")
            assert "Secure" in cookie
            path = f"/v1/jobs/{job}/events"
            with client.stream("GET", path, headers=bearer(key)) as response:
                told = first_event(response)  # though the job stands still: nothing is kept back
            assert f'"id":"{job}"' in told["data"]
        assert client.get(path, headers=bearer(key)).status_code == 502
        with guarded(scratch, database_url, redis_url, port=port):
            again = bearer(key) | {"Last-Event-ID": told["id"]}
            with client.stream("GET", path, headers=again) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                client.post(f"/v1/jobs/{job}/cancel", headers=bearer(key))
                news = first_event(response)
            assert news["id"] != told["id"]  # what was told is not repeated
            assert '"status":"queued"' not in news["data"]


@pytest.mark.parametrize("kind", ["nginx", "caddy"])
def test_a_part_longer_than_a_body_goes_through_the_example_and_is_kept_as_far_as_it_came(
    kind: str, scratch: Path, database_url: str, redis_url: str
) -> None:
    """One part of 20 MB that breaks off in its middle, and one of the rest."""
    if shutil.which(kind, path=SEARCHED) is None:
        pytest.skip(f"needs {kind}")
    record = {"persona": "E-low", "task": "essay", "text": "I stay at home and read " * 4000}
    content = b"".join(json.dumps(record | {"run": run}).encode() + b"\n" for run in range(210))
    port, most = free_port("127.0.0.1", 0), len(content) // 2

    with proxied(kind, scratch, port) as client, guarded(scratch, database_url, redis_url, port=port):
        key = bearer(KeyMaker(database_url).make(Scope.SUBMIT))
        begun = client.post("/v1/uploads", headers=key | {"Upload-Length": str(len(content))})
        assert begun.status_code == 201, begun.text
        path = begun.headers["location"]

        def received() -> int:
            found = client.get(path, headers=key)
            assert found.status_code == 200, found.text
            return int(found.json()["received"])

        def broken() -> Iterator[bytes]:
            yield content[:most]
            assert eventually(lambda: received() > most - PIECE_BYTES)
            time.sleep(1)  # what the proxy has not passed on when the cable is pulled is lost with it
            raise RuntimeError("the cable was pulled")

        part = key | {"Content-Type": "application/offset+octet-stream"}
        sent = {"Upload-Offset": "0", "Content-Length": str(len(content))}
        with pytest.raises(RuntimeError, match="cable"):
            client.patch(path, content=broken(), headers=part | sent)
        assert eventually(lambda: received() == most)
        rest = client.patch(path, content=content[most:], headers=part | {"Upload-Offset": str(most)})
        assert rest.status_code == 204, rest.text
        assert client.get(path, headers=key).json()["records"] == 210
