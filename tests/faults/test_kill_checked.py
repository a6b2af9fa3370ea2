"""A worker dies in the middle of a job that checks its judges, which ends as if it had not."""

from collections import Counter

import pytest

from tests.e2e.stack import Json, Stack, judged_path
from tests.faults.conftest import IN_FLIGHT, JOB, FaultyWorld

GROUPED: Json = JOB | {
    "judges": [
        "simulated/sim-judge-noisy"
    ],  # some of its lines can't be read: those sentences are asked alone
    "judging": {"sentences_per_call": 4, "check": {"share": 0.3, "minimum": 20}, "repair": False},
}
ORDERED: Json = JOB | {
    "judges": ["simulated/sim-judge-noisy"],
    "judging": {"order_check": {"share": 0.2}},
}
MODELS = 3  # two that write, one that judges
COMPARED = ("completeness", "cells", "totals", "judges")
JUDGED = (
    "SELECT concat_ws('/', ordinal, run, item, unit, trait, judge) FROM ("
    " SELECT cell_id, run, item, unit, trait, judge FROM verdicts WHERE group_size > 1"
    " UNION SELECT cell_id, run, item, unit, trait, judge FROM second_verdicts WHERE NOT alone) AS v"
    " JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s"
)
ALONE = (
    "SELECT concat_ws('/', stage, ordinal, run, item, unit, trait, judge) FROM ("
    " SELECT 'judging' AS stage, cell_id, run, item, unit, trait, judge FROM verdicts WHERE group_size = 1"
    " UNION SELECT 'checking', cell_id, run, item, unit, trait, judge FROM second_verdicts WHERE alone) AS v"
    " JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s"
)


def recorded(world: FaultyWorld, job_id: str) -> set[str]:
    """Whatever was asked and is in the database: a group by each of its sentences, one alone by its call."""
    groups = {f"group/{row[0]}" for row in world.database.execute(JUDGED, {"job": job_id})}
    return groups | {row[0] for row in world.database.execute(ALONE, {"job": job_id})}


def asked(stack: Stack, job_id: str) -> Counter[str]:
    return Counter(judged_path(entry["request_id"]) for entry in stack.ledger(job_id))


def in_peace(stack: Stack, body: Json) -> tuple[Json, Counter[str]]:
    """Return the results and the calls of a job during which nothing happens."""
    stack.simulate(latency_ms=0)
    job_id = stack.submit(body)
    assert stack.ended(job_id)["completeness"] == "full"
    calls = asked(stack, job_id)
    assert set(calls.values()) == {1}
    return stack.results(job_id), calls


def killed_after(stack: Stack, body: Json, calls: int) -> str:
    """Return a job of which a worker was killed, and started again, after some calls."""
    stack.simulate(latency_ms=60)
    job_id = stack.submit(body)
    stack.after_calls(calls)
    worker = stack.pid("worker1")
    stack.kill("worker1")
    stack.restarted("worker1", worker)
    return job_id


def sentences(path: str) -> list[str]:
    """What a call is about, as :func:`recorded` names it."""
    stage, *place = path.split("/")
    if "-" not in path or stage != "judging":
        return [path]
    first, last = map(int, place[3].split("-"))
    return ["/".join(("group", *place[:3], str(n), *place[4:])) for n in range(first, last + 1)]


@pytest.mark.parametrize(
    ("body", "check"), [(GROUPED, "judging_check"), (ORDERED, "order_check")], ids=["grouped", "ordered"]
)
def test_job_ends_as_if_nothing_had_happened_and_asks_for_nothing_recorded_again(
    world: FaultyWorld, slow: Stack, body: Json, check: str
) -> None:
    expected, calls = in_peace(slow, body)
    assert check == "order_check" or expected[check]["asked_alone"]["unparsed"] > 0

    job_id = killed_after(slow, body, calls.total() // 2)
    kept, before = recorded(world, job_id), asked(slow, job_id)
    slow.simulate(latency_ms=0)
    job = slow.ended(job_id)
    found, after = slow.results(job_id), asked(slow, job_id)

    assert 0 < before.total() < calls.total()  # it was in mid-job
    assert (job["status"], job["completeness"]) == ("completed", "full")
    for part in (*COMPARED, check):
        assert found[part] == expected[part], part
    again = [path for path in after - before if not kept.isdisjoint(sentences(path))]
    assert again == []
    assert after.keys() == calls.keys()
    assert after.total() - calls.total() <= MODELS * 2 * IN_FLIGHT


REFUSALS: Json = JOB | {"judging": {"refusals": "judge_all"}}
OF_TEXTS = (
    "SELECT concat_ws('/', stage, ordinal, run, item, judge) FROM ("
    " SELECT 'generation' AS stage, cell_id, run, item, NULL AS judge FROM responses"
    " UNION SELECT 'refusal_check', cell_id, run, item, '0' FROM responses WHERE notes ? 'refusal_check') AS t"
    " JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s"
    " UNION SELECT path FROM unread_replies JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s"
)
"""Texts, those that wait for their check included, and checks."""


def test_texts_and_their_refusal_checks_are_asked_for_once(world: FaultyWorld, slow: Stack) -> None:
    expected, calls = in_peace(slow, REFUSALS)
    checks = sum(path.startswith("refusal_check/") for path in calls)
    assert 0 < checks <= sum(path.startswith("generation/") for path in calls)

    job_id = killed_after(slow, REFUSALS, calls.total() // 4)
    kept, before = {row[0] for row in world.database.execute(OF_TEXTS, {"job": job_id})}, asked(slow, job_id)
    slow.simulate(latency_ms=0)
    job = slow.ended(job_id)
    found, after = slow.results(job_id), asked(slow, job_id)

    assert 0 < before.total() < calls.total()  # it was in mid-job
    assert kept <= calls.keys()
    assert any(path.startswith("refusal_check/") for path in kept)
    assert (job["status"], job["completeness"]) == ("completed", "full")
    for part in COMPARED:
        assert found[part] == expected[part], part
    assert kept.isdisjoint(after - before)
    assert after.keys() == calls.keys()
    assert after.total() - calls.total() <= MODELS * 2 * IN_FLIGHT
