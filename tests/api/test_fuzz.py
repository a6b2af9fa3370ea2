"""Whatever a client sends, the answer is a plan or a problem."""

import json
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.api.service import Json, Service

VALID: Json = {
    "name": "fuzz",
    "personas": [
        "E-low",
        {"id": "blunt", "description": "a blunt critic", "traits": {"A": "low", "p": "left"}},
    ],
    "tasks": ["social_media_post"],
    "models": [
        "acme/acme-1",
        {
            "model": "simulated/x",
            "temperature": 1.0,
            "stop": ["\n\n"],
            "extra": {"reasoning": {"max_tokens": 9}},
        },
    ],
    "judges": ["acme/acme-judge"],
    "dimensions": [
        {
            "id": "p",
            "name": "politics",
            "options": "1, 2 or 9",
            "levels": ["left", "right"],
            "scale": {"maximum": 4},
        }
    ],
    "instructions": [1, "Be {persona}."],
    "iterations": 2,
    "seed": 0,
    "metadata": {"a": "b"},
}
IMPORTED: Json = {
    "personas": ["E-low", {"id": "cow", "description": "a cowboy", "traits": {"A": "low", "E": "high"}}],
    "tasks": ["essay", "social_media_post", "expected_action"],
    "judges": [{"imported": "old", "provenance": {"source": "s", "date": "2024-06", "note": "n"}}],
    "responses": [
        {
            "persona": "E-low",
            "task": "essay",
            "verdicts": [{"judge": "old", "scores": [5, None, 9, "refused"]}],
        },
        {
            "persona": "cow",
            "task": "social_media_post",
            "text": "Calm. Bye.",
            "units": ["Calm.", "Bye."],
            "verdicts": [{"judge": "old", "dimension": "E", "scores": [1, 2]}],
        },
        {
            "persona": "cow",
            "task": "expected_action",
            "question": "Why?",
            "text": "I ride.",
            "grades": {"old": 4},
        },
    ],
}
JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec=None), max_size=12),
        st.sampled_from(
            ["", "E-low", "big-five", "essay", "acme/acme-1", "{persona}", "\0", "\ud800", "9" * 400]
        ),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every member, however deep."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [found for key, member in members for found in [(*path, key), *places(member, (*path, key))]]


@st.composite
def mutated(draw: st.DrawFn, valid: Json = VALID) -> Json:
    """A valid body in which up to three members were replaced, removed, renamed or repeated."""
    body: Json = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(places(body) or [("name",)]))
        parent: Any = body
        for key in path:
            parent = parent[key]
        deed = draw(st.sampled_from(["replace", "replace", "remove", "add", "repeat"]))
        if deed == "replace":
            parent[last] = draw(JUNK)
        elif deed == "remove" and (isinstance(parent, list) or last in parent):
            del parent[last]
        elif isinstance(parent, list):
            parent.append(parent[last] if deed == "repeat" else draw(JUNK))
        else:
            parent[draw(st.text(max_size=8))] = draw(JUNK)
    return body


class TestPlan:
    @settings(
        max_examples=300,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(body=mutated())
    def test_no_body_makes_it_fail(self, running_api: Service, body: Json) -> None:
        # The client holds every problem to its form.
        response = running_api.send("/v1/jobs/plan", json.dumps(body).encode())
        assert response.status_code in {200, 400, 422}

    @settings(
        max_examples=100,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(body=st.binary(max_size=200))
    def test_no_bytes_make_it_fail(self, running_api: Service, body: bytes) -> None:
        assert running_api.send("/v1/jobs", body).status_code in {400, 422}

    @settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(body=mutated())
    def test_what_can_be_planned_can_be_submitted(self, running_api: Service, body: Json) -> None:
        sent = json.dumps(body).encode()
        accepted = running_api.send("/v1/jobs/plan", sent).status_code == 200
        assert (running_api.send("/v1/jobs", sent).status_code == 202) is accepted

    @settings(
        max_examples=120,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(body=mutated(IMPORTED))
    def test_so_it_is_with_imported_verdicts(self, running_api: Service, body: Json) -> None:
        sent = json.dumps(body).encode()
        planned, submitted = (running_api.send(path, sent) for path in ("/v1/jobs/plan", "/v1/jobs"))
        assert (submitted.status_code == 202) is (planned.status_code == 200)
        assert planned.status_code in {200, 400, 422}
