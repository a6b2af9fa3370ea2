"""An imported job is retried by this installation's rules: nothing in a bundle decides what is sent, and its budget stays."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.api.service import Json, Service, pointers
from tests.api.test_bundles import Files, exported, files_of, imported, packed
from tests.e2e.stack import Stack

JUDGE = "simulated/sim-judge"
BODY: Json = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": [{"model": JUDGE, "stop": ["§"], "max_tokens": 50}],
    "instructions": [1],
    "iterations": 1,
    "budget": {"calls": 100, "usd": 1.0},
}
Change = Callable[[Files], Files]


@pytest.fixture(scope="module")
def bundle(stack: Service) -> bytes:
    job = stack.wait(stack.submit(BODY)["id"], "completed", "failed")
    assert job["status"] == "completed"
    return exported(stack, job["id"])


def judge(*, told: Json | None = None, **fields: Any) -> Change:
    """Changes the judge in the specification, and in the manifest as the results of such a job would tell it."""

    def changed(files: Files) -> Files:
        spec, results = (json.loads(files[name]) for name in ("specification.json", "results.json"))
        of_spec, of_manifest = spec["judges"][0], results["manifest"]["judges"][0]
        for name, value in fields.items():
            of_spec[name] = of_spec[name] | value if isinstance(of_spec[name], dict) else value
        for name, value in (told or {}).items():
            of_manifest[name] = of_manifest[name] | value if isinstance(of_manifest[name], dict) else value
        if told and "simulated" in told:
            results["judges"][0]["simulated"] = told["simulated"]
        if told and "sent" in told:
            of_manifest["sent"] = {
                name: value for name, value in of_manifest["sent"].items() if value is not None
            }
        return files | {
            "specification.json": json.dumps(spec).encode(),
            "results.json": json.dumps(results).encode(),
        }

    return changed


def words(old: bytes, new: bytes) -> Change:
    return lambda files: {name: content.replace(old, new) for name, content in files.items()}


TOOLS: Json = {"tools": [{"type": "web_search"}]}
TIER: Json = {"service_tier": "priority"}
EDITED: dict[str, tuple[str, Change]] = {
    "a model that is not offered": ("model_not_allowed", words(b"sim-judge", b"sim-jvdge")),
    "a connection that does not exist": (
        "unknown_connection",
        lambda files: words(b'"connection":"simulated"', b'"connection":"own@12"')(
            words(b"simulated/", b"own@12/")(files)
        ),
    ),
    "tools": (
        "extra_not_allowed",
        judge(
            takes={"allowed_extra": ["tools"]},
            parameters={"extra": TOOLS},
            told={"parameters": {"extra": TOOLS}, "sent": TOOLS},
        ),
    ),
    "a dearer tier": (
        "extra_not_allowed",
        judge(
            takes={"allowed_extra": ["service_tier", "api_base"]},
            parameters={"extra": TIER},
            told={"parameters": {"extra": TIER}, "sent": TIER},
        ),
    ),
    "several answers a call": (
        "parameters_changed",
        judge(takes={"names": {"temperature": "n"}}, told={"sent": {"temperature": None, "n": 0.0}}),
    ),
    "no bound": (
        "parameters_changed",
        judge(takes={"names": {"max_tokens": "foo"}}, told={"sent": {"max_tokens": None, "foo": 50}}),
    ),
    "another model by a parameter's name": (
        "parameters_changed",
        judge(takes={"names": {"stop": "model"}}, told={"sent": {"stop": None, "model": ["§"]}}),
    ),
    "a parameter that is refused here": (
        "parameters_changed",
        judge(
            takes={"refuses": ["max_tokens"]},
            told={
                "sent": {"max_tokens": None},
                "not_sent": [{"parameter": "max_tokens", "value": 50, "reason": "its wire format has none"}],
            },
        ),
    ),
    "more values": (
        "parameters_changed",
        judge(takes={"needs": {"best_of": 20}}, told={"sent": {"best_of": 20}}),
    ),
    "an unbounded model": ("parameters_changed", judge(takes={"bounds": False})),
    "another wire format": ("parameters_changed", judge(takes={"format": "anthropic"})),
    "fields beside the parameters": ("parameters_changed", judge(constraint={"n": 20})),
    "a real model": ("parameters_changed", judge(simulated=False, told={"simulated": False})),
}


def failed_copy(stack: Service, bundle: bytes) -> str:
    """An imported job whose verdicts have failed, so that a retry would ask its judge."""
    answer = imported(stack, bundle)
    assert answer.status_code == 201, answer.text
    job_id: str = answer.json()["job"]["id"]
    stack.execute(
        "UPDATE verdicts SET status = 'failed', score = NULL WHERE cell_id IN (SELECT id FROM cells WHERE job_id = %s)",
        job_id,
    )
    return job_id


def retried(stack: Service, job_id: str) -> httpx2.Response:
    return stack.post(f"/v1/jobs/{job_id}/retry", {})


@pytest.mark.parametrize("kind", EDITED)
def test_an_edited_bundle_does_not_say_what_is_sent(
    stack: Service, common_stack: Stack, bundle: bytes, kind: str
) -> None:
    code, change = EDITED[kind]
    job_id = failed_copy(stack, packed(change(files_of(bundle))))
    answer = retried(stack, job_id)
    assert (answer.status_code, answer.json()["code"]) == (409, code), answer.text
    assert stack.job(job_id)["status"] == "completed"
    assert common_stack.ledger(job_id) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_tokens", -5), ("max_tokens", 10**9), ("temperature", 3.0), ("top_p", -1.0), ("seed", -1)],
)
def test_a_parameter_beyond_its_bounds_is_named(
    stack: Service, bundle: bytes, name: str, value: float
) -> None:
    answer = imported(stack, packed(judge(parameters={name: value})(files_of(bundle))))
    assert (answer.status_code, pointers(answer)) == (
        422,
        [f"/specification.json/judges/0/parameters/{name}"],
    )


def test_an_unchanged_one_is_retried_within_its_budget(
    stack: Service, common_stack: Stack, bundle: bytes
) -> None:
    job_id = failed_copy(stack, bundle)
    before = stack.job(job_id)["budget"]
    assert before["calls"]["limit"] == 100
    assert before["calls"]["spent"] == stack.job(job_id)["usage"]["calls"]
    assert stack.http.patch(
        f"/v1/jobs/{job_id}", json={"budget": {"calls": before["calls"]["spent"] + 2}}
    ).is_success
    assert retried(stack, job_id).status_code == 200
    job = stack.wait(job_id, "paused")
    assert job["status_reason"] == "budget_exhausted"
    assert len(common_stack.ledger(job_id)) == 2
    assert stack.http.patch(f"/v1/jobs/{job_id}", json={"budget": {"calls": 1000}}).is_success
    assert stack.post(f"/v1/jobs/{job_id}/resume", {}).status_code == 200
    assert stack.wait(job_id, "completed", "failed")["completeness"] == "full"


def test_a_budget_that_was_changed_last_comes_along(stack: Service, api: Service, bundle: bytes) -> None:
    job_id = imported(stack, bundle).json()["job"]["id"]
    assert stack.http.patch(f"/v1/jobs/{job_id}", json={"budget": {"calls": 77, "tokens": 10**9}}).is_success
    copy = imported(api, exported(stack, job_id)).json()["job"]["id"]
    budget = api.job(copy)["budget"]
    assert (budget["calls"]["limit"], budget["tokens"]["limit"], budget["usd"]["limit"]) == (77, 10**9, 1.0)
    assert budget["tokens"]["spent"] > 0


def test_limits_that_a_bundle_lacks_can_be_set(api: Service, bundle: bytes) -> None:
    files = files_of(bundle)
    job = json.loads(files["job.json"])
    del job["budget"], job["request"]["budget"]
    answer = imported(api, packed(files | {"job.json": json.dumps(job).encode()}))
    copy = answer.json()["job"]["id"]
    assert api.job(copy)["budget"] is None
    changed = api.http.patch(f"/v1/jobs/{copy}", json={"budget": {"usd": 2.5}})
    assert changed.status_code == 200, changed.text
    assert changed.json()["budget"]["usd"]["limit"] == 2.5
