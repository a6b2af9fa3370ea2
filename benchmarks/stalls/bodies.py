"""The API, sent bodies of 8 MB: jobs of existing texts, question and persona sets, annotations, and bodies that are wrong in every part."""

import asyncio
import json
from typing import Any

from benchmarks.stalls.service import served
from benchmarks.stalls.watch import longest_stall

MOST_BYTES = 8 * 1024 * 1024

Json = dict[str, Any]


async def measure() -> dict[str, float]:
    """The longest stall of the API by what it was sent."""
    found = {}
    async with served() as service:
        found["API: nothing"] = await longest_stall(lambda: asyncio.sleep(0.5))
        for name, (path, body) in _bodies().items():
            status = 0

            async def send(path: str = path, body: bytes = body) -> None:
                nonlocal status
                headers = {"content-type": "application/json"}
                status = (await service.client.post(path, content=body, headers=headers)).status_code

            stall = await longest_stall(send)
            found[f"API: {name}, {len(body):,} bytes, {status}"] = stall
    return found


def _bodies() -> dict[str, tuple[str, bytes]]:
    """By what they are, where each goes and what it says."""
    text = "I keep to myself at parties. Crowds wear me out. "
    few, one = {"persona": "E-low", "task": "essay"}, {"personas": ["E-low"], "tasks": ["essay"]}
    people = ["E-low", "E-high", "A-low", "A-high"]
    jobs = {
        "a job of existing texts, many": one
        | {
            "personas": people,
            "responses": [few | {"persona": people[n % 4], "text": text} for n in range(80_000)],
        },
        "a job of existing texts, long": one | {"responses": _many(few | {"text": text * 3000})},
        "a job of existing texts, each wrong": one | {"responses": _many({"text": 1, "persona": " "})},
        "a job of existing texts, each of unknown fields": one | {"responses": _many({"a": 1, "b": 1})},
        "a job of existing texts, of numbers": one | {"responses": _many(1)},
        "a job of unknown fields": {f"x{n}": n for n in range(MOST_BYTES // 17)},
        "a job with questions": one | {"questions": _questions()},
        "a job with wrong questions": one
        | {"questions": {f"p{n}": {"expected_action": [1] * 1000} for n in range(2000)}},
        "a job with long lists in `extra`": one
        | {"models": [{"model": "simulated/sim-faithful", "extra": {"x": _many(1)}}]},
        "a job with many models": one | {"models": _many("simulated/sim-faithful")},
        "a job with wrong models": one | {"models": _many(1)},
        "a job with wrong traits": one
        | {"personas": [{"id": "a", "description": "b", "traits": {f"x{n}": 1 for n in range(49)}}] * 1000},
        "a job with wrong dimensions": one
        | {"dimensions": [{"id": "a", "questions": [1] * 200, "levels": [1] * 11}] * 50},
        "a job with wrong environments": one | {"environments": {f"p{n}": [1] * 500 for n in range(9000)}},
        "a small body of numbers": one | {"responses": [1] * 15_000},
        "a job with personas": {"tasks": ["essay"], "personas": [_persona(n) for n in range(1000)]},
        "a job with a long name": one | {"name": "a" * MOST_BYTES},
        "a job with `metadata`": one | {"metadata": {f"x{n}": "" for n in range(MOST_BYTES // 17)}},
    }
    plans = {
        f"{name}, planned": ("/v1/jobs/plan", _fit(body)) for name, body in jobs.items() if "existing" in name
    }
    others = {
        "question set": ("/v1/question-sets", _fit({"questions": _questions()})),
        "persona set": ("/v1/persona-sets", _fit({"personas": [text * 4 + str(n) for n in range(10_000)]})),
        "persona set of bad ones": ("/v1/persona-sets", _fit({"personas": _many({"x": 1})})),
        "annotations of unknown responses": ("/v1/annotations", _fit({"annotations": _annotations()})),
        "wrong annotations": ("/v1/annotations", _fit({"annotations": _many({"x": 1})})),
        "comparison of unknown fields": ("/v1/comparisons", _fit(jobs["a job of unknown fields"])),
        "nested lists": ("/v1/jobs", b"[" * 60 + b"[]," * (MOST_BYTES // 3 - 100) + b"[]" + b"]" * 60),
        "lists too deep": ("/v1/jobs", b"[" * MOST_BYTES),
        "an open string": ("/v1/jobs", b'"' + b"a" * (MOST_BYTES - 1)),
        "escapes": ("/v1/jobs", b'{"name":"' + b"\\ud83d\\ude00" * (MOST_BYTES // 12 - 10) + b'"}'),
        "a long number": ("/v1/jobs", b"[" + b"1" * 4000 + b",1" * (MOST_BYTES // 2 - 3000) + b"]"),
        "long numbers": ("/v1/jobs", b"[" + (b"1" * 4299 + b",") * (MOST_BYTES // 4300 - 1) + b"1]"),
    }
    return {name: ("/v1/jobs", _fit(body)) for name, body in jobs.items()} | plans | others


def _fit(body: Json) -> bytes:
    """A body, its longest list cut so that it is taken."""
    sent = json.dumps(body, separators=(",", ":")).encode()
    while len(sent) > MOST_BYTES:
        name = max(body, key=lambda each: len(json.dumps(body[each])))
        keep = 0.99 * (MOST_BYTES / len(sent))
        value = body[name]
        if name == "models" and isinstance(value[0], dict):
            value[0]["extra"]["x"] = value[0]["extra"]["x"][: int(len(value[0]["extra"]["x"]) * keep)]
        elif isinstance(value, dict):
            body = body | {name: dict(list(value.items())[: int(len(value) * keep)])}
        else:
            body = body | {name: value[: int(len(value) * keep)]}
        sent = json.dumps(body, separators=(",", ":")).encode()
    return sent


def _many(value: Any) -> list[Any]:
    return [value] * min(199_000, MOST_BYTES // len(json.dumps(value)))


def _persona(n: int) -> Json:
    return {
        "id": f"p{n}",
        "description": f"persona {n} " + "who likes quiet evenings " * 300,
        "traits": {"E": "low"},
    }


def _questions() -> Json:
    asked = [f"A storm comes up on the range. What do you do? ({n})" for n in range(200)]
    return {f"persona {n}": {"expected_action": asked} for n in range(700)}


def _annotations() -> list[Json]:
    one = {
        "annotator": "anna",
        "response": "resp_01kxyz0abcdefghjkmnpqrstvw-0-3-0",
        "dimension": "E",
        "score": 4,
    }
    return [one | {"unit": n % 1000} for n in range(10_000)]
