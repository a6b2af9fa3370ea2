"""A complete bundle, exported from a real job."""

import tempfile
from pathlib import Path

import httpx2

from embedded.services import StackConfig
from embedded.supervisor import Supervisor

JOB = {
    "personas": ["E-low", {"id": "nun", "description": "a homely nun", "traits": {"A": "high"}}],
    "tasks": ["essay", {"task": "expected_action", "questions": 1, "atomic": True}],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge-lenient", "simulated/sim-judge-harsh"],
    "reasoner": "simulated/sim-reasoner",
    "instructions": [1],
    "iterations": 1,
}


def export_bundle(url: str) -> bytes:
    """Run a small job of both kinds of tasks and return its bundle."""
    with httpx2.Client(base_url=url, timeout=60, trust_env=False) as api:
        job = api.post("/v1/jobs", json=JOB).raise_for_status().json()["id"]
        with api.stream("GET", f"/v1/jobs/{job}/events") as events:
            for line in events.iter_lines():
                if line.startswith("data:") and '"finished_at":null' not in line:
                    break
        return api.get(f"/v1/jobs/{job}/exports/bundle").raise_for_status().content


def complete_bundle() -> bytes:
    """Start a service for one job and return the job's bundle."""
    with tempfile.TemporaryDirectory(prefix="assay-fuzz-") as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(host="127.0.0.1", port=0, data_dir=Path(directory), workers=1)
        with Supervisor(config) as supervisor:
            return export_bundle(supervisor.urls.api)
