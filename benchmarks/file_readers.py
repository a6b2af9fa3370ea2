"""Cost of reading imports in a child process: each file is read here and in a child, in turn.

Prints medians and least times in milliseconds, and the processor time of this process for a file that a child reads.
"""

import argparse
import asyncio
import io
import json
import time
from statistics import median

from app.readers.pool import BytesSource, ReaderPool
from app.services.file_readers import prepare
from app.services.jobs.import_reader import ImportChoices, Wanted, read_body
from benchmarks.whole_job import Json, machine

SIZES = (2_000, 16_000, 60_000, 500_000, 5_000_000)
WANTED = Wanted(ImportChoices(name="answers.jsonl"))


def file_of(size: int) -> bytes:
    """Return JSON Lines of about so many bytes."""
    row = {"persona": "a shy person", "response": "I read at home. It was calm. " * 6, "model": "bot-1"}
    count = -(-size // 270)
    return b"".join(json.dumps(row | {"prompt": f"And day {n}?"}).encode() + b"\n" for n in range(count))


async def compare(pool: ReaderPool, data: bytes, times: int) -> Json:
    """Read a file here and in a child, in turn."""
    here, there, parent = [], [], []
    for _ in range(times):
        started = time.perf_counter()
        expected = b"".join(read_body(io.BytesIO(data), WANTED, "here"))
        read, used = time.perf_counter(), time.process_time()
        assert await pool.whole("bench", BytesSource(data), read_body, WANTED, "here") == expected
        there.append(time.perf_counter() - read)
        parent.append(time.process_time() - used)
        here.append(read - started)
    return {
        "bytes": len(data),
        "here_ms": _figures(here),
        "child_ms": _figures(there),
        "parent_cpu_ms": _figures(parent),
    }


def _figures(seconds: list[float]) -> Json:
    return {"median": round(median(seconds) * 1000, 2), "least": round(min(seconds) * 1000, 2)}


async def _measure(seconds: float) -> list[Json]:
    pool = ReaderPool("app.services.file_readers:prepare")
    prepare()
    found = []
    try:
        await compare(pool, file_of(SIZES[0]), 3)
        for size in SIZES:
            times = max(3, round(seconds * 1_000_000 / size))
            found.append(await compare(pool, file_of(size), min(times, 200)))
    finally:
        await pool.close()
    return found


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="about how long each size takes")
    options = parser.parse_args()
    print(json.dumps({"machine": machine(), "files": asyncio.run(_measure(options.seconds))}, indent=2))


if __name__ == "__main__":
    main()
