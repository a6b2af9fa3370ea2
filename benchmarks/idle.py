"""What the service costs while it has nothing to do, and how long it takes to be there.

Starts the whole stack twice in the same directory (the first start makes the database), and then only watches it.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it comes without types

from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import Json, machine
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

SETTLE_SECONDS = 60.0
"""Half a minute after they are ready workers import what they have not needed yet."""


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it is watched")
    parser.add_argument("--starts", type=int, default=3, help="warm starts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(host="127.0.0.1", port=0, data_dir=Path(directory), workers=options.workers)
        figures: Json = {"load_average_before": [round(load, 2) for load in os.getloadavg()]}
        figures["first_start"] = _start(config)
        figures["warm_starts"] = [_start(config) for _ in range(options.starts)]
        figures |= _idle(config, options.seconds)
    print(json.dumps({"machine": machine(), **figures}, indent=2))


def _start(config: StackConfig) -> Json:
    """One start and stop: until ``/readyz`` answers 200, and what CPU time it took."""
    supervisor = Supervisor(config)
    started, cpu = time.perf_counter(), _children_cpu()
    with supervisor:
        ready = time.perf_counter() - started
        meter = ProcessMeter(supervisor.pids())
        used = meter.cpu_seconds()
    return {
        "seconds": round(ready, 2),
        "cpu_seconds": {name: round(seconds, 2) for name, seconds in used.items()},
        "stopped_after": round(time.perf_counter() - started - ready, 2),
        "cpu_with_stop": round(_children_cpu() - cpu, 2),
    }


def _children_cpu() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _idle(config: StackConfig, seconds: float) -> Json:
    """The share of a core that each part takes, and how often a second it wakes up."""
    with Supervisor(config) as supervisor:
        time.sleep(SETTLE_SECONDS)
        pids = supervisor.pids() | {"supervisor": os.getpid()}
        meter = ProcessMeter({name: pid for name, pid in pids.items() if name != "supervisor"})
        before, wakes, own = meter.cpu_seconds(), _wakes(pids), time.process_time()
        time.sleep(seconds)
        own = time.process_time() - own  # without what looking at all processes takes
        used = {name: cpu - before[name] for name, cpu in meter.cpu_seconds().items()}
        used["supervisor"] = own
        woken = {name: (count - wakes[name]) / seconds for name, count in _wakes(pids).items()}
    share = {name: round(100 * cpu / seconds, 3) for name, cpu in used.items()}
    simulated = share.get("simulator", 0.0)
    return {
        "percent_of_a_core": share,
        "percent_of_all_but_the_simulator": round(sum(share.values()) - simulated, 2),
        "wake_ups_a_second": {name: round(count, 1) for name, count in woken.items()},
    }


def _wakes(pids: dict[str, int]) -> dict[str, int]:
    return {name: _switches(psutil.Process(pid)) for name, pid in pids.items()}


def _switches(process: psutil.Process) -> int:
    family = [process, *process.children(recursive=True)] if process.pid != os.getpid() else [process]
    return sum(_of_threads(each) for each in family)


def _of_threads(process: psutil.Process) -> int:
    """Voluntary context switches of all threads of a process."""
    found = 0
    for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                found += int(line.split()[1])
    return found


if __name__ == "__main__":
    main()
