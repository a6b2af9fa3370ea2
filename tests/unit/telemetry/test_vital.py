"""Vital tasks and log lines that nobody can write."""

import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from app.telemetry.vital import EXIT_CODE

START = """
import asyncio
from app.bootstrap import configure_logging
from app.settings import Settings
from app.telemetry.vital import start_vital, vital_tasks
configure_logging(Settings(log_format="json"))

async def broken():
    raise RuntimeError("bug")

async def short():
    pass

async def long():
    await asyncio.sleep(3600)
"""


def run(script: str, stderr: int | TextIO = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START + script], stderr=stderr, stdout=subprocess.PIPE, text=True, check=False
    )


@pytest.mark.parametrize("work", ["broken", "short"])
def test_the_process_ends_with_a_line_that_names_the_task(work: str) -> None:
    ended = run(f"""
async def main():
    async with vital_tasks(result_writer={work}(), other=long()):
        await asyncio.sleep(3600)

asyncio.run(main())
""")
    assert ended.returncode == EXIT_CODE
    assert '"task": "result writer"' in ended.stderr
    assert ("RuntimeError: bug" in ended.stderr) == (work == "broken")


def test_a_block_that_ends_cancels_its_tasks_and_a_pump_may_return() -> None:
    ended = run("""
async def main():
    pump = start_vital("pump", short(), may_return=True)
    async with vital_tasks(worker=long()):
        await pump

asyncio.run(main())
""")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_pump_that_fails_ends_the_process() -> None:
    ended = run("""
async def main():
    start_vital("pump", broken(), may_return=True)
    await asyncio.sleep(3600)

asyncio.run(main())
""")
    assert ended.returncode == EXIT_CODE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_log_lines_on_a_full_disk_fail_nobody() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = run(
            """
import logging, structlog
structlog.get_logger().error("lost", text="x" * 100_000)
logging.getLogger("library").error("lost")
print("went on")
""",
            full,
        )
    assert ended.stdout == "went on\n"


def test_a_line_that_cannot_be_rendered_is_replaced() -> None:
    ended = run("""
import structlog
class Odd:
    def __repr__(self):
        raise ValueError
structlog.get_logger().error("odd value", value=Odd())
""")
    assert ended.returncode == 0
    assert '"event": "odd value"' in ended.stderr
