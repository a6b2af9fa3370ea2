"""What a job's users get, pinned by its hash: a change of results or exports is seen, and renewed by ``make pins`` if it is meant."""

import json
from hashlib import sha256

import pytest

from tests.e2e.pinned import CONTENTS, GOLDEN, downloads
from tests.e2e.stack import Json, Stack

JUDGES = ["simulated/sim-judge", "simulated-anthropic/sim-judge-harsh"]
NUN = {"id": "nun", "description": "a strict nun", "traits": {"E": "low"}}
SAID = (
    "I rest in silence. I talk to nobody at parties!",
    "I love parties. I talk to everybody there. Silence bores me.",
    "I can't answer that as an AI language model.",
)
TEXTS: Json = {"personas": [NUN], "tasks": ["essay"]}
JOBS: dict[str, Json] = {
    "atomic": {
        "personas": ["E-low"],
        "tasks": ["questionnaire", "essay"],
        "models": ["simulated/sim-drifting", "simulated-anthropic/sim-refusing"],
        "judges": JUDGES,
        "instructions": [0, 3],
        "iterations": 1,
        "control": True,
        "judging": {"order_check": {"share": 0.3}},
    },
    "personagym": {
        "personas": ["gym-05", "gym-13"],
        "tasks": [
            {"task": "expected_action", "questions": 2},
            {"task": "toxicity_control", "questions": 2},
            {"task": "persona_consistency", "questions": 2, "atomic": True, "runs": 2},
        ],
        "models": ["simulated/sim-drifting"],
        "judges": JUDGES,
        "reasoner": "simulated/sim-reasoner",
    },
    "own texts": TEXTS
    | {
        "responses": [
            {"persona": "nun", "task": "essay", "text": text, "run": run, "model": model}
            for model in ("ours", "theirs <b>")
            for run, text in enumerate(SAID)
        ],
        "judges": JUDGES,
    },
    "imported judgements": TEXTS
    | {
        "responses": [
            {
                "persona": "nun",
                "task": "essay",
                "text": text,
                "run": run,
                "units": [text],
                "verdicts": [{"judge": "people", "scores": [1 + run]}],
            }
            for run, text in enumerate(SAID)
        ],
        "judges": [{"imported": "people", "provenance": {"source": "a study", "date": "2026-01"}}],
    },
}


@pytest.mark.parametrize("name", JOBS)
def test_all_that_can_be_downloaded_is_what_it_was(
    stack: Stack, name: str, request: pytest.FixtureRequest
) -> None:
    stack.simulate(seed=31)
    job = stack.ended(stack.submit(JOBS[name]))
    assert (job["status"], job["error"]) == ("completed", None)
    model = stack.results(job["id"])["cells"][0]["model"]
    files = dict(downloads(stack, job["id"], model))
    for file, content in files.items():
        path = CONTENTS / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    found = {file: sha256(content.encode()).hexdigest() for file, content in files.items()}
    pinned: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text("utf-8"))
    if request.config.getoption("--renew-pins"):
        pinned[name] = found
        GOLDEN.write_text(json.dumps(pinned, indent=1) + "\n", "utf-8")
    expected = pinned.get(name, {})
    changed = sorted(file for file in found.keys() | expected if found.get(file) != expected.get(file))
    assert not changed, (
        f"{name}: {len(changed)} of {len(found)} files differ from tests/golden/pinned_results.json: "
        f"{', '.join(changed[:20])}. Their contents are in {CONTENTS / name}; if the change is meant, "
        "run `make pins` and say why in the commit"
    )
