"""The script in Redis does what the pure timeline does."""

import json
import random

import pytest
from redis.asyncio import Redis

from app.limits.scripts import LEASE
from app.limits.shared_rates import as_json
from app.limits.timeline import NOTHING, Cost, Intervals, Report, interval, total
from tests.timeline import Timeline

KEYS = ["bucket", "epoch", "sent", "holds"]


def cost(rng: random.Random) -> Cost:
    read, written = rng.choice([0, 10, 150, 4000]), rng.choice([0, 5, 500])
    return Cost(1, read + written, read, written)


def report(rng: random.Random) -> Report:
    """What a process may tell: mostly nothing."""
    found = Report()
    if rng.random() < 0.1:
        found.unleased, found.unleased_age = Cost(7, 700, 600, 100), rng.uniform(0, 1)
    if rng.random() < 0.2:
        found.beyond = Cost(0, 30, 10, 20)
    if rng.random() < 0.3:
        limits = [
            rng.choice([None, 3, 100, 5000]),
            rng.choice([None, 30_000]),
            None,
            rng.choice([None, 8000]),
        ]
        first, second, third, fourth = map(interval, limits)
        found.named, found.named_age = (first, second, third, fourth), rng.uniform(0, 2)
    if rng.random() < 0.15:
        found.rejected, found.limited_age = rng.randint(1, 4), rng.uniform(0, 3)
        found.retry_after = rng.choice([None, None, 0.3, 7.0])
    found.answered = rng.random() < 0.3
    if rng.random() < 0.03:
        found.hold = rng.uniform(1, 30)
    return found


@pytest.mark.parametrize("seed", range(12))
async def test_on_the_same_reports_both_lease_the_same(seed: int, redis_url: str) -> None:
    rng = random.Random(seed)
    now = 1_800_000_000.0 + rng.random()
    timeline = Timeline(epoch=now - rng.choice([0.0, 100.0]))
    operators: Intervals = (
        interval(rng.choice([None, 500])),
        interval(rng.choice([None, 200_000])),
        0.0,
        0.0,
    )
    kinds = set()
    async with Redis.from_url(redis_url) as redis:
        script = redis.register_script(LEASE)
        for _ in range(250):
            now += rng.choice([0.001, 0.05, 0.4, 3.0, 20.0])
            told, calls = report(rng), [cost(rng) for _ in range(rng.choice([0, 1, 1, 5]))]
            largest = Cost(1, 4500, 4000, 500)
            ask = {
                **as_json(told),
                "now": now,
                "epoch": timeline.epoch,
                "calls": len(calls),
                "cost": total(calls),
                "first": calls[0] if calls else NOTHING,
                "largest": largest,
                "operators": operators,
                "bucket": "openai/gpt",
            }
            found = [float(value) for value in await script(keys=KEYS, args=[json.dumps(ask)])]
            lease = timeline.lease(now, told, calls, operators, largest)
            expected = [lease.calls, lease.start, *lease.intervals, float(lease.probe), lease.held]
            assert found == pytest.approx(expected, abs=1e-4, rel=1e-6)
            kinds.add((lease.calls > 0, lease.probe, lease.held > 0, timeline.found is not None))
    assert len(kinds) >= 4, "the sequence met too few of the cases"
