"""What the way around kept replies costs a job that does not ask for it, per call, over calling directly.

`python -m benchmarks.reuse`
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

from app.domain.providers.model import ChatReply, FinishReason, Model, Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.responses import Responses

CALLS = 200_000
REPETITIONS = 5
MODEL = Model("judge", "acme", "judge")
KEY = CallKey(Stage.JUDGING, 0, 0, 0, 0, 0)
REPLY = ChatReply("4", FinishReason.STOP)


class Caller:
    """Answers at once."""

    async def call(self, *_: object, **__: object) -> ChatReply:
        """The answer."""
        return REPLY


def usable(_reply: ChatReply) -> bool:
    """Never asked."""
    raise AssertionError


async def cpu_ns(ask: Callable[[], Awaitable[ChatReply]]) -> float:
    """CPU nanoseconds of one call."""
    started = time.process_time_ns()
    for _ in range(CALLS):
        await ask()
    return (time.process_time_ns() - started) / CALLS


async def measure() -> dict[str, float]:
    """Medians of interleaved repetitions."""
    caller = Caller()
    work: Any = SimpleNamespace(spares=False, deps=SimpleNamespace(caller=caller), claim=None, stop=None)
    around = cast("Callable[..., Awaitable[ChatReply]]", Responses._ask)  # noqa: SLF001 - what is measured

    def directly() -> Awaitable[ChatReply]:
        return caller.call(MODEL, None, "prompt", key=KEY, claim=None, stop=None)

    def by_the_way_around() -> Awaitable[ChatReply]:
        return around(work, MODEL, None, "prompt", key=KEY, usable=usable)

    ways = {"directly": directly, "ready to use replies again": by_the_way_around}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPETITIONS):
        for name, ask in ways.items():
            found[name].append(await cpu_ns(ask))
    return {f"{name}, ns": round(median(times)) for name, times in found.items()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure()), indent=2))
