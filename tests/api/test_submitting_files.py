"""`assay submit --responses`: a file of texts is sent in parts, found again, and judged."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow.parquet import write_table

from app.cli import app
from tests.api.service import Json, Service
from tests.observe import PATIENCE, eventually

JOB = "personas: [E-low]\ntasks: [essay]\njudges: [simulated/sim-judge]\n"
ONE: Json = {"persona": "E-low", "task": "essay", "text": "I stay at home. It is quiet."}


def jsonl(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    return file


def submit(api: Service, job_file: Path, texts: Path, *options: str) -> Result:
    arguments = ["submit", str(job_file), "--responses", str(texts), *options]
    return CliRunner().invoke(app, arguments, env={"ASSAY_URL": api.url})


@contextmanager
def relay(url: str, most: int) -> Iterator[str]:
    """Pass connections on to a service, but no more than `most` bytes of what is sent to it; the rest is lost."""
    service, left = urlsplit(url), most

    def pass_on(client: socket.socket) -> None:
        nonlocal left
        with client, socket.create_connection((str(service.hostname), service.port or 0)) as server:
            Thread(target=answer, args=(server, client), daemon=True).start()
            with suppress(OSError):
                while part := client.recv(65_536):
                    server.sendall(part[:left])
                    left = max(0, left - len(part))

    def answer(server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while part := server.recv(65_536):
                client.sendall(part)

    def accept() -> None:
        with suppress(OSError):
            while True:
                Thread(target=pass_on, args=listener.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


class TestSubmit:
    def test_sends_the_texts_and_a_job_that_names_them(
        self, api: Service, job_file: Path, tmp_path: Path
    ) -> None:
        texts = tmp_path / "texts.jsonl"
        texts.write_bytes(jsonl([ONE] * 40))
        done = submit(api, job_file, texts)
        assert done.exit_code == 0, done.stderr
        [upload] = api.get("/v1/uploads").json()["data"]
        assert api.job(done.stdout.strip())["spec"]["responses"] == {"upload": upload["id"]}
        told = done.stderr.splitlines()
        assert (
            told[-2]
            == f"upload {upload['size'] / 1000:.1f} kB of {upload['size'] / 1000:.1f} kB · 40 records"
        )
        assert told[-1] == "80 calls"  # two sentences a text

    def test_a_job_that_was_refused_is_submitted_again_without_sending_its_texts_again(
        self, api: Service, job_file: Path, tmp_path: Path
    ) -> None:
        texts = tmp_path / "texts.jsonl"
        texts.write_bytes(jsonl([ONE, {**ONE, "task": "social_media_post", "item": "1"}]))
        refused = submit(api, job_file, texts)
        assert refused.exit_code == 3
        assert "texts.jsonl, line 2, /task  the job has no task 'social_media_post'" in refused.stderr
        job_file.write_text(JOB.replace("[essay]", "[essay, social_media_post]"))
        again = submit(api, job_file, texts)
        assert again.exit_code == 3, again.stderr
        assert "texts.jsonl, line 2, /item" in again.stderr
        assert len(api.get("/v1/uploads").json()["data"]) == 1

    def test_errors_of_the_file_are_told_by_line_and_nothing_is_kept(
        self, api: Service, job_file: Path, tmp_path: Path
    ) -> None:
        texts = tmp_path / "texts.jsonl"
        texts.write_bytes(jsonl([ONE, {**ONE, "run": "x"}, *[{**ONE, "text": "x" * 1000}] * 8000]))
        refused = submit(api, job_file, texts)
        assert refused.exit_code == 3
        assert refused.stderr.splitlines()[-3:] == [
            f"Error: {texts} has 1 error; nothing was stored",
            "  line 2, /run: must be a whole number",
            "  The last 4.2 MB were not sent.",
        ]
        assert api.get("/v1/uploads").json()["data"] == []

    def test_a_parquet_file_is_read_before_the_job_is_submitted_and_its_errors_are_told_by_row(
        self, api: Service, job_file: Path, tmp_path: Path
    ) -> None:
        texts = tmp_path / "texts.parquet"
        write_table(pa.Table.from_pylist([ONE] * 3), texts)
        done = submit(api, job_file, texts)
        assert done.exit_code == 0, done.stderr
        assert done.stderr.splitlines()[-1] == "6 calls"
        write_table(pa.Table.from_pylist([ONE, {**ONE, "task": "a\0"}]), texts)
        refused = submit(api, job_file, texts)
        assert refused.exit_code == 3
        assert "  row 2, /task: " in refused.stderr
        write_table(pa.Table.from_pylist([ONE, {**ONE, "task": "other"}]), texts)
        refused = submit(api, job_file, texts)
        assert "texts.parquet, row 2, /task  the job has no task 'other'" in refused.stderr

    def test_a_job_with_responses_of_its_own_is_refused_before_anything_is_sent(
        self, api: Service, job_file: Path
    ) -> None:
        job_file.write_text(JOB + "responses: {job: job_x}\n")
        refused = submit(api, job_file, job_file)
        assert (refused.exit_code, refused.stderr) == (
            3,
            "Error: the job has `responses` already; leave them out, or --responses\n",
        )
        assert api.get("/v1/uploads").json()["data"] == []

    def test_what_was_sent_before_an_interrupt_is_not_sent_again(
        self, api: Service, job_file: Path, tmp_path: Path
    ) -> None:
        texts = tmp_path / "texts.jsonl"
        texts.write_bytes(jsonl([{**ONE, "text": f"I am {n}. {'word ' * 20_000}"} for n in range(400)]))
        command = [sys.executable, "-P", "-m", "app.cli", "submit", str(job_file), "--responses", str(texts)]
        with relay(api.url, most=texts.stat().st_size // 2) as url:
            environment = os.environ | {"ASSAY_URL": url}
            first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
            assert eventually(lambda: any(each["received"] for each in api.get("/v1/uploads").json()["data"]))
            first.send_signal(signal.SIGINT)
            _, told = first.communicate(timeout=PATIENCE)
        assert (first.returncode, told.splitlines()[-1]) == (
            130,
            "What has arrived is kept; the same command sends the rest.",
        )
        [begun] = api.get("/v1/uploads").json()["data"]
        assert 0 < begun["received"] < begun["size"]
        done = submit(api, job_file, texts)
        assert done.exit_code == 0, done.stderr
        assert not done.stderr.startswith("upload 0 bytes")
        [upload] = api.get("/v1/uploads").json()["data"]
        assert (upload["id"], upload["records"]) == (begun["id"], 400)
        assert api.count("SELECT count(DISTINCT text) FROM upload_records") == 400
