"""That the benchmarks run. What they measure is no test's business."""

import json
import subprocess
import sys


class TestTransports:
    def test_compares_every_client_that_is_installed(self) -> None:
        tiny = ["--calls", "20", "--in-flight", "4", "--repetitions", "1", "--latency-ms", "1"]
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.transports", *tiny, "--scenarios", "tls", "closing"],
            capture_output=True,
            text=True,
            check=True,
        )
        report = json.loads(run.stdout)
        for scenario in ("tls", "closing"):
            assert report["cpu_us_per_call"][scenario].keys() >= {"sdk", "lean", "aiohttp"}
            assert report["ratio_to_aiohttp"][scenario]["aiohttp"] == 1
