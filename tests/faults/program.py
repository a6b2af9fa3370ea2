"""`assay up` in all but name, for tests: `python -m tests.faults.program DATA_DIR PORT`.

The simulator runs elsewhere, so that its ledger outlives a supervisor that is killed; the workers can be made to die at named points,
and the second one's clock is an hour ahead.
"""

import sys
from dataclasses import replace
from pathlib import Path

from embedded.services import ServiceSpec, StackConfig, StackUrls, service_commands
from embedded.supervisor import Supervisor

PROJECT = Path(__file__).parents[2]
CLOCK = PROJECT / "tests" / "faults" / "clock"
CRASH_FILE = "crash"
SLOTS = 4  # fewer than the 16 shards that a job may announce at a time, so that messages wait in the queue
WORKERS = 2
FAST_WORKER, AHEAD_SECONDS = "worker2", "3600"


def services(config: StackConfig, urls: StackUrls) -> list[ServiceSpec]:
    return [
        _crashing(spec, config) if spec.name.startswith("worker") else spec
        for spec in service_commands(config, urls)
    ]


def _crashing(spec: ServiceSpec, config: StackConfig) -> ServiceSpec:
    argv = tuple(
        "tests.faults.crashing_worker:app" if word == "workers.celery_app:app" else word for word in spec.argv
    )
    path = f"{PROJECT}:{CLOCK}"
    variables = {"PYTHONPATH": path, "CRASH_FILE": str(config.data_dir / CRASH_FILE)}
    if spec.name == FAST_WORKER:
        variables["CLOCK_OFFSET"] = AHEAD_SECONDS
    return replace(spec, argv=argv, env=spec.env | variables)


def main() -> None:
    data_dir, port = sys.argv[1:]
    config = StackConfig(
        host="127.0.0.1",
        port=int(port),
        data_dir=Path(data_dir),
        workers=WORKERS,
        slots=SLOTS,
        simulator=False,
    )
    Supervisor(config, services=services).run(lambda url: print(url, flush=True))  # noqa: T201


if __name__ == "__main__":
    main()
