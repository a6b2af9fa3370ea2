"""How long an event loop stands still while one tenant's largest inputs are worked on: ``python -m benchmarks.stalls``."""

import argparse
import json
import os
import sys
from collections.abc import Awaitable, Callable

import uvloop

from app.bootstrap import keep_what_is_imported, let_threads_give_way
from benchmarks.stalls import bodies, reading, replies, texts

PARTS: dict[str, Callable[[], Awaitable[dict[str, float]]]] = {
    "texts": texts.measure,
    "replies": replies.measure,
    "bodies": bodies.measure,
    "reading": reading.measure,
}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", nargs="*", choices=PARTS, default=list(PARTS), help="what is worked on")
    found = uvloop.run(_measured(parser.parse_args().of))
    load = [round(each, 1) for each in os.getloadavg()]
    print(
        json.dumps(
            {"longest_stall_ms": found, "worst_ms": max(found.values()), "load_average": load}, indent=2
        )
    )


async def _measured(parts: list[str]) -> dict[str, float]:
    let_threads_give_way()
    keep_what_is_imported()
    found: dict[str, float] = {}
    for part in parts:
        some = await PARTS[part]()
        print(json.dumps(some, indent=2), file=sys.stderr, flush=True)
        found |= some
    return found


if __name__ == "__main__":
    main()
