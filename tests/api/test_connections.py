"""`/v1/connections` over HTTP, and a job on one of them."""

import re
from collections.abc import Callable, Iterator
from typing import ClassVar

import httpx2
import psycopg
import pytest

from embedded.valkey import EmbeddedValkey
from tests.api.service import Json, Service, serving
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url

KEY = "sk-proj-q7Zf3Lw9KxTb2YhVn5Rc"
PUBLIC = "https://93.184.215.14/v1"


@pytest.fixture(scope="module")
def running(databases: Databases, template_database: str) -> Iterator[Service]:
    with (
        databases.new("connections", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        serving(
            directory,
            url,
            valkey.url(),
            ASSAY_ENCRYPTION_KEYS="ab" * 32,
            ASSAY_CONFIRM_CALLS_ABOVE="500",
        ) as service,
    ):
        yield service


@pytest.fixture
def api(running: Service) -> Service:
    running.empty("connections")
    return running


def body(**changes: object) -> Json:
    return {"name": "lab", "kind": "openai", "base_url": PUBLIC} | changes


def test_a_connection_is_made_read_listed_changed_and_deleted(api: Service) -> None:
    made = api.http.request("POST", "/v1/connections", json=body(api_key=KEY, models=["m-1"]))
    assert made.status_code == 201
    assert made.headers["Location"] == "/v1/connections/lab"
    assert api.get("/v1/connections/lab").json() == made.json()
    assert api.get("/v1/connections").json() == {"data": [made.json()]}
    changed = api.http.request(
        "PATCH", "/v1/connections/lab", json={"prices": {"m-1": {"input": 1, "output": 2.5}}}
    )
    assert changed.json()["prices"]["m-1"]["output"] == 2.5
    assert changed.json()["key_set"]
    assert not changed.json()["stream"]
    streaming = api.http.request("PATCH", "/v1/connections/lab", json={"stream": True})
    assert streaming.json()["stream"]
    assert api.http.request("DELETE", "/v1/connections/lab").status_code == 204
    assert api.http.request("GET", "/v1/connections/lab").status_code == 404


def test_limits_and_prices_are_shown_as_they_were_given(api: Service) -> None:
    limits = {
        "max_in_flight": 4,
        "models": {"m-1": {"tokens_per_minute": 900.5}, "m-2": {"max_in_flight": None}},
    }
    made = api.http.request(
        "POST", "/v1/connections", json=body(limits=limits, prices={"m-1": {"input": 1, "output": 2.5}})
    )
    assert made.json()["limits"] == limits | {"requests_per_minute": None, "tokens_per_minute": None}
    assert made.json()["prices"]["m-1"] == {
        "input": 1.0,
        "output": 2.5,
        "cached_input": None,
        "batch_share": 0.5,
    }
    assert api.get("/v1/connections").json()["data"] == [made.json()]


def test_no_answer_has_its_key(api: Service) -> None:
    answers = [
        api.http.request("POST", "/v1/connections", json=body(api_key=KEY)),
        api.http.request("POST", "/v1/connections", json=body(api_key=KEY)),
        api.http.request(
            "POST", "/v1/connections", json=body(name="lab2", api_key=KEY, base_url="http://10.0.0.1")
        ),
        api.http.request("POST", "/v1/connections", json=body(name="lab2", api_key=[KEY])),
        api.http.request("POST", "/v1/connections", json=body(name="lab2", api_key=KEY + "\u00e9")),
        api.http.request("POST", "/v1/connections", json=body(name="lab2", api_key=KEY * 50)),
        api.http.request(
            "PATCH", "/v1/connections/lab", json={"base_url": "https://93.184.215.15", "api_key": KEY}
        ),
        api.http.request("GET", "/v1/connections"),
        api.http.request("GET", "/v1/models"),
    ]
    assert [answer.status_code for answer in answers] == [201, 409, 422, 422, 422, 422, 200, 200, 200]
    for answer in answers:
        assert "q7Zf3Lw9" not in answer.text


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"name": "Lab"}, "/name"),
        ({"name": "a@b"}, "/name"),
        ({"kind": "gemini"}, "/kind"),
        ({"base_url": "ftp://example.com"}, "/base_url"),
        ({"base_url": "https://user:word@example.com/v1"}, "/base_url"),
        ({"base_url": "https://example.com/v1?key=1"}, "/base_url"),
        ({"base_url": "https://10.0.0.1/v1"}, "/base_url"),
        ({"base_url": "http://127.0.0.2/v1"}, "/base_url"),
        ({"base_url": "http://localhost.example.com/v1"}, "/base_url"),
        ({"base_url": "http://93.184.215.14/v1"}, "/base_url"),
        ({"api_key": ""}, "/api_key"),
        ({"api_key": "two\nlines"}, "/api_key"),
        ({"limits": {"requests_per_minute": 0}}, "/limits/requests_per_minute"),
        ({"limits": {"per_hour": 1}}, "/limits/per_hour"),
        ({"prices": {"m": {"input": -1, "output": 1}}}, "/prices/m/input"),
        ({"models": []}, "/models"),
        ({"families": {"our-judge": ""}}, "/families/our-judge"),
        ({"families": ["gpt-5"]}, "/families"),
        ({"stream": "yes"}, "/stream"),
        ({"kind": "completions", "batches": True}, "/batches"),
    ],
)
def test_what_is_wrong_is_named(api: Service, wrong: Json, pointer: str) -> None:
    answer = api.http.request("POST", "/v1/connections", json=body(**wrong))
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:11434"])
def test_may_lead_to_this_machine_where_nobody_else_gets_in(api: Service, host: str) -> None:
    url = f"http://{host}/v1"
    made = api.http.request("POST", "/v1/connections", json=body(base_url=url))
    assert (made.status_code, made.json()["base_url"]) == (201, url)
    changed = api.http.request("PATCH", "/v1/connections/lab", json={"base_url": f"http://{host}/v2"})
    assert changed.status_code == 200


def test_one_of_base_models_never_gets_batches(api: Service) -> None:
    made = api.http.request("POST", "/v1/connections", json=body(kind="completions"))
    assert (made.status_code, made.json()["kind"]) == (201, "completions")
    answer = api.http.request("PATCH", "/v1/connections/lab", json={"batches": True})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/batches")
    assert api.http.request("PATCH", "/v1/connections/lab", json={"batches": False}).status_code == 200


def test_what_the_families_of_its_deployments_refuse_is_not_sent(api: Service) -> None:
    def not_sent() -> set[str]:
        check = {"model": "lab/our-judge", "call": False}
        found = api.http.request("POST", "/v1/models/check", json=check)
        return {dropped["parameter"] for dropped in found.json()["parameters"]["not_sent"]}

    api.http.request("POST", "/v1/connections", json=body())
    assert not_sent() == set()
    families = {"our-judge": "o4-mini"}
    changed = api.http.request("PATCH", "/v1/connections/lab", json={"families": families})
    assert changed.json()["families"] == families
    assert not_sent() == {"temperature"}
    moved = api.http.request("PATCH", "/v1/connections/lab", json={"base_url": PUBLIC + "/other"})
    assert moved.json()["families"] == families


def test_jobs_name_its_models_and_keep_its_version(api: Service) -> None:
    made = api.http.request(
        "POST", "/v1/connections", json=body(models=["m-1"], prices={"m-1": {"input": 1, "output": 1}})
    ).json()
    job = {
        "personas": ["E-low"],
        "tasks": ["essay"],
        "models": ["lab/m-1"],
        "judges": ["lab/m-1"],
        "instructions": [1],
        "iterations": 1,
    }
    plan = api.http.request("POST", "/v1/jobs/plan", json=job).json()
    assert plan["cost"]["unpriced_models"] == []
    assert plan["stages"][0]["price_source"] == "operator"
    submitted = api.http.request("POST", "/v1/jobs", json=job).json()
    with psycopg.connect(libpq_url(api.database_url)) as connection:
        kept = connection.execute(
            "SELECT spec->'models'->0->>'connection' FROM jobs WHERE id = %s", (submitted["id"],)
        ).fetchone()
    assert kept == (f"lab@{made['version']}",)
    for model in ("lab/m-2", f"lab@{made['version']}/m-1"):
        refused = api.http.request("POST", "/v1/jobs", json=job | {"models": [model]})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"].startswith("/models/0")
    assert "lab" in [connection["id"] for connection in api.get("/v1/models").json()["data"]]


class TestLargeJobs:
    """Above ``ASSAY_CONFIRM_CALLS_ABOVE`` calls, of which somebody is charged for some."""

    LARGE: ClassVar[Json] = {
        "personas": ["E-low"],
        "tasks": ["essay"],
        "models": ["lab/m-1", "simulated/sim-faithful"],
        "judges": ["lab/m-1"],
        "iterations": 10,
    }

    @pytest.fixture
    def posted(self, api: Service) -> Callable[[Json], httpx2.Response]:
        api.empty("jobs")
        prices = {"m-1": {"input": 1, "output": 1}}
        api.http.request("POST", "/v1/connections", json=body(models=["m-1"], prices=prices))
        key = {"Idempotency-Key": "large"}
        return lambda job: api.http.request("POST", "/v1/jobs", json=job, headers=key)

    def test_are_taken_once_their_calls_are_confirmed(
        self, api: Service, posted: Callable[[Json], httpx2.Response]
    ) -> None:
        plan = api.http.request("POST", "/v1/jobs/plan", json=self.LARGE).json()
        most = plan["calls"] + plan["most_repair_calls"]
        assert plan["confirm_calls"] == most > plan["calls"] > 500
        refused = posted(self.LARGE)
        (error,) = refused.json()["errors"]
        assert (refused.status_code, error["pointer"]) == (422, "/confirm_calls")
        price = sum(stage["usd"] for stage in plan["stages"])
        assert error["message"] == (
            f"the job may need up to {most:,} calls, more than the 500 that need no confirmation"
            f" (about {plan['calls']:,} for about ${price:,.2f} are expected, the others only for unreadable"
            f" replies or unsure refusals); set confirm_calls to {most} or more"
        )
        (error,) = posted(self.LARGE | {"confirm_calls": plan["calls"]}).json()["errors"]
        assert f"more than the {plan['calls']:,} that confirm_calls accepts" in error["message"]
        assert error["message"].endswith(f"set confirm_calls to {most} or more")
        assert posted(self.LARGE | {"confirm_calls": most - 1}).status_code == 422
        assert api.get("/v1/jobs").json()["data"] == []
        assert posted(self.LARGE | {"confirm_calls": most}).status_code == 202

    def test_need_no_word_where_nobody_is_charged(
        self, api: Service, posted: Callable[[Json], httpx2.Response]
    ) -> None:
        free = self.LARGE | {
            "models": ["simulated/sim-faithful"],
            "judges": ["simulated/sim-judge"],
            "iterations": 20,
        }
        plan = api.http.request("POST", "/v1/jobs/plan", json=free).json()
        assert plan["calls"] > 500
        assert plan["confirm_calls"] is None
        assert posted(free | {"confirm_calls": 5}).json()["errors"][0]["pointer"] == "/confirm_calls"
        assert posted(free).status_code == 202

    def test_are_confirmed_in_the_browser_by_who_has_seen_their_plan(
        self, api: Service, posted: Callable[[Json], httpx2.Response]
    ) -> None:
        form = {"persona": "E-low", "task": "essay", "model_model_0": "lab/m-1", "judge_model_0": "lab/m-1"}
        form |= {"instruction": "1", "iterations": "100"}
        headers = {"Sec-Fetch-Site": "same-origin"}
        page = api.http.request("POST", "/new", data=form | {"action": "plan"}, headers=headers).text
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', page))
        assert hidden.keys() == {"planned", "key", "confirm_calls"}
        form |= {"action": "submit"}
        unseen = api.http.request("POST", "/new", data=form, headers=headers)
        assert (unseen.status_code, api.get("/v1/jobs").json()["data"]) == (200, [])
        assert api.http.request("POST", "/new", data=form | hidden, headers=headers).status_code == 303
        (job,) = api.get("/v1/jobs").json()["data"]
        assert job["spec"]["iterations"] == 100
