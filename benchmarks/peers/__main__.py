"""What a judged call costs by who makes it: this service, and what users would pick.

`make bench-peers`, or `python -m benchmarks.peers`. Everybody has the same prompts judged by the same server (another
process, on this machine), with as many calls in flight, and keeps the answers. What is told is marginal: the CPU time
(user and system, of all processes of a tool, its databases included) of a large run less that of a small one, by call,
so that nobody's start counts. The tools take turns; the figures are medians over the repetitions. A run in which the
server was not asked each prompt once, byte for byte, does not count.
"""

import argparse
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from benchmarks import stub_server
from benchmarks.peers import contest
from benchmarks.peers.contest import OURS, Contestant
from benchmarks.peers.tools import LmEval, Program, Tool, celery_with_orm, service
from benchmarks.whole_job import machine


def main() -> None:
    """Runs the comparison; the table goes to standard error, the JSON to standard output."""
    options = _parser().parse_args()
    with stub_server.running("counted", options.latency_ms) as url:
        contestants = [c for c in _contestants(url, options) if c.name in (options.only or [c.name])]
        before = os.getloadavg()
        contest.take_turns(contestants, url, options.repetitions)
    tools = contest.figures(contestants)
    report = {
        "machine": machine(),
        "load_average_before": [round(load, 2) for load in before],
        "load_average_after": [round(load, 2) for load in os.getloadavg()],
        "in_flight": options.in_flight,
        "latency_ms": options.latency_ms,
        "repetitions": options.repetitions,
        "tools": tools,
    }
    contest.print_table(tools)
    text = json.dumps(report, indent=2)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in-flight", type=int, default=256, help="calls at once")
    parser.add_argument("--latency-ms", type=float, default=200.0, help="the server's time for one call")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the numbers of calls")
    parser.add_argument("--only", nargs="*", help="names of the tools to measure")
    parser.add_argument("--data-dir", type=Path, help="where the databases lie while it runs")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    return parser


def _contestants(url: str, options: argparse.Namespace) -> list[Contestant]:
    """The dearer a tool's call, the fewer it makes: its start must be little beside them, and the run end.

    As many as may be in flight at least, four times as many in the large run: all are measured at their full width.
    """
    in_flight, directory = options.in_flight, options.data_dir

    def sizes(small: int, large: int) -> tuple[int, int]:
        return max(in_flight, round(small * options.scale)), max(4 * in_flight, round(large * options.scale))

    def program(name: str, *arguments: str, ours: bool = False) -> Callable[[], AbstractContextManager[Tool]]:
        return lambda: nullcontext(Program(name, url, in_flight, arguments=arguments, ours=ours))

    script = "with_openai.py"
    return [
        Contestant(OURS, sizes(2000, 8000), None, lambda: service(url, in_flight, directory)),
        Contestant("bare aiohttp, uvloop", sizes(1000, 5000), None, program("with_aiohttp.py", ours=True)),
        Contestant("asyncio script", sizes(200, 1000), 15, program(script, ours=True)),
        Contestant("asyncio script, aiohttp", sizes(200, 1400), None, program(script, "aiohttp", ours=True)),
        Contestant("Inspect AI", sizes(60, 300), 50, program("with_inspect.py")),
        Contestant("DeepEval", sizes(150, 600), 20, program("with_deepeval.py")),
        Contestant("lm-evaluation-harness", sizes(500, 2500), 6, lambda: nullcontext(LmEval(url, in_flight))),
        Contestant(
            "Celery task a call, ORM",
            sizes(150, 750),
            25,
            lambda: celery_with_orm(url, in_flight, directory),
        ),
    ]


if __name__ == "__main__":
    main()
