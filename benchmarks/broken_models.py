"""Ten healthy jobs on one connection, alone and beside jobs of two models that answer nothing but errors."""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import httpx2
import yaml

from benchmarks.whole_job import Json, machine
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

HEALTHY = tuple(f"healthy-{number}" for number in range(10))
BROKEN: Mapping[str, int] = {"broken-502": 502, "broken-529": 529}
"""Statuses of all calls after the first ten."""
ANSWERED = 10
LATENCY_SECONDS = 1.0
IN_FLIGHT = 4
JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["questionnaire"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1, 2],
    "iterations": 4,
}
"""80 texts, which take 20 s at four calls of a second each."""
ENDED = {"completed", "failed", "cancelled", "paused"}
POLL_SECONDS = 0.2


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.calls: Counter[str] = Counter()
        self._lock = Lock()

    def status_of(self, model: str) -> int:
        with self._lock:
            self.calls[model] += 1
            return 200 if self.calls[model] <= ANSWERED else BROKEN.get(model, 200)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.status_of(asked.get("model", ""))
        message = {"role": "assistant", "content": "I like to be among people."}
        body: Json = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        if status == 200:
            time.sleep(LATENCY_SECONDS)
        else:
            body = {"error": {"message": "the model has crashed"}}
        sent = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name
        """Write no log."""


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=5, help="alternating runs, each alone and beside the broken models"
    )
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    options = parser.parse_args()
    load = [round(each, 2) for each in os.getloadavg()]
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory, _Server() as server:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        Thread(target=server.serve_forever, daemon=True).start()
        shared = {
            "kind": "openai",
            "base_url": f"http://127.0.0.1:{server.server_port}/v1",
            "api_key_env": "SHARED_KEY",
            "limits": {"max_in_flight": IN_FLIGHT},
        }
        file = Path(directory) / "assay.yaml"
        file.write_text(yaml.safe_dump({"connections": {"shared": shared}}))
        os.environ |= {"ASSAY_CONFIG": str(file), "SHARED_KEY": "any"}
        config = StackConfig(
            host="127.0.0.1", port=0, data_dir=Path(directory) / "stack", workers=options.workers
        )
        with Supervisor(config) as running, httpx2.Client(base_url=running.urls.api, timeout=60) as api:
            _seconds(api, HEALTHY[:1])  # warms up
            runs = [_run(api, server) for _ in range(options.runs)]
        server.shutdown()
    delays = [statistics.median(run["delays"][name] for run in runs) for name in HEALTHY]
    report = {"worst_median_delay": round(max(delays), 3), "load_average_before": load}
    print(json.dumps(report | {"machine": machine(), "runs": runs}, indent=2))


def _run(api: httpx2.Client, server: _Server) -> Json:
    """Measure the healthy jobs alone, and then beside the broken models."""
    alone = _seconds(api, HEALTHY)
    server.calls.clear()
    broken = {model: _submit(api, model) for model in BROKEN}
    beside = _seconds(api, HEALTHY)
    states = {}
    for model, job_id in broken.items():
        job = api.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        states[model] = {"status": job["status"], "calls": server.calls[model]}
        api.post(f"/v1/jobs/{job_id}/cancel").raise_for_status()
    return {
        "seconds_alone": alone,
        "seconds_beside": beside,
        "delays": {name: round(beside[name] / alone[name] - 1, 3) for name in HEALTHY},
        "broken": states,
    }


def _seconds(api: httpx2.Client, models: tuple[str, ...]) -> dict[str, float]:
    """Run a job of each model at the same time; return the seconds until each has ended."""
    began = time.perf_counter()
    waiting = {model: _submit(api, model) for model in models}
    seconds = {}
    while waiting:
        for model, job_id in list(waiting.items()):
            status = api.get(f"/v1/jobs/{job_id}").raise_for_status().json()["status"]
            if status in ENDED:
                if status != "completed":
                    raise RuntimeError(f"the job of {model} ended as {status}")
                seconds[model] = round(time.perf_counter() - began, 2)
                del waiting[model]
        time.sleep(POLL_SECONDS)
    return seconds


def _submit(api: httpx2.Client, model: str) -> str:
    answer = api.post("/v1/jobs", json=JOB | {"models": [f"shared/{model}"]})
    return str(answer.raise_for_status().json()["id"])


if __name__ == "__main__":
    main()
