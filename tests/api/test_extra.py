"""A key with a cap, and every field by which a call could cost more than is reserved for it."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import CONFIG, Json, Service, job_body, pointers
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.unit.domain.providers.test_extra import HARMFUL

MODEL = "acme/acme-1"
BUDGET = {"usd": 0.4}
LISTED = """
  openai:
    allow_extra: [service_tier]
"""
"""A connection whose models have the prices of the list, and may be sent a tier."""


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with (
        databases.new("extra", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
    ):
        config = directory / "own.yaml"
        config.write_text(CONFIG + LISTED)
        with guarded(directory, url, valkey.url(), ASSAY_CONFIG=str(config), OPENAI_API_KEY="any") as running:
            yield running


@pytest.fixture(scope="module")
def capped(service: Service) -> Json:
    """A key that may submit, and spend $0.50."""
    return KeyMaker(service.database_url).make(Scope.SUBMIT, usd=0.5)


def gym(**changes: Any) -> Json:
    usual: Json = {"tasks": ["toxicity_control"], "reasoner": MODEL, "instructions": None}
    return job_body(**(usual | changes))


def doors(extra: Json) -> Iterator[tuple[str, Json, str]]:
    """Every way in: path, body, and the place that the refusal names."""
    model: Json = {"model": MODEL, "extra": extra}
    plain: Json = {"models": [MODEL], "judges": [MODEL], "budget": BUDGET}
    for path in ("/v1/jobs", "/v1/jobs/plan"):
        yield path, job_body(**plain | {"models": [model]}), "/models/0"
        yield path, job_body(**plain | {"judges": [MODEL, model | {"label": "2"}]}), "/judges/1"
        yield path, gym(**plain | {"reasoner": model}), "/reasoner"
    yield "/v1/models/check", model | {"call": False}, ""  # with a call, there may be 30 a minute
    yield "/v1/persona-sets", {"generate": {"count": 3, "reasoner": model}}, "/generate/reasoner"


@pytest.mark.parametrize("harm", HARMFUL)
def test_every_door_refuses_it_by_its_name(service: Service, capped: Json, harm: str) -> None:
    (name,) = extra = HARMFUL[harm]
    for path, body, place in doors(extra):
        answer = service.post(path, body, headers=bearer(capped))
        assert answer.status_code == 422, (path, answer.text)
        assert pointers(answer) == [f"{place}/extra/{name}"], path
    assert set(service.rows().values()) == {0}


@pytest.mark.parametrize("harm", ["tools", "a tier"])
def test_nor_is_a_model_called_with_it_to_be_checked(service: Service, capped: Json, harm: str) -> None:
    (name,) = extra = HARMFUL[harm]
    answer = service.post("/v1/models/check", {"model": MODEL, "extra": extra}, headers=bearer(capped))
    assert pointers(answer) == [f"/extra/{name}"]


def test_several_are_each_named(service: Service, capped: Json) -> None:
    extra = {"tools": [{"text": "x" * 1_000_000}], "service_tier": "priority", "top_k": 5}
    body = job_body(models=[{"model": MODEL, "extra": extra}], judges=[MODEL], budget=BUDGET)
    answer = service.post("/v1/jobs", body, headers=bearer(capped))
    assert pointers(answer) == ["/models/0/extra/tools", "/models/0/extra/service_tier"]
    assert "allow_extra" in answer.json()["errors"][0]["message"]


def test_the_same_name_twice_is_no_json_of_ours(service: Service, capped: Json) -> None:
    body = b'{"model": "acme/acme-1", "extra": {"top_k": 5, "top_k": {"tools": []}}}'
    headers = bearer(capped) | {"content-type": "application/json"}
    answer = service.http.post("/v1/models/check", content=body, headers=headers)
    assert answer.status_code in {400, 422}


def test_what_only_says_how_to_sample_is_taken(service: Service, capped: Json) -> None:
    extra = {"top_k": 5, "reasoning_effort": "none", "logit_bias": {"1": -100}}
    body = job_body(models=[{"model": MODEL, "extra": extra}], judges=[MODEL], budget=BUDGET)
    answer = service.post("/v1/jobs/plan", body, headers=bearer(capped))
    assert answer.status_code == 200, answer.text
    (model,) = [one for one in answer.json()["parameters"] if one["role"] == "model"]
    assert model["sent"] == extra


def test_what_the_operator_allows_is_taken_where_no_money_is_to_be_kept(
    service: Service, capped: Json
) -> None:
    """Nobody knows what it then costs: the list's price is that of a call without it."""

    def answer(path: str, extra: Json, **changes: Any) -> tuple[int, str]:
        model = {"model": "openai/gpt-4o", "extra": extra}
        body = job_body(models=[model], judges=["openai/gpt-4o"], **changes)
        found = service.post(path, body, headers=bearer(capped))
        return found.status_code, found.text

    tier: Json = {"service_tier": "priority"}
    status, text = answer("/v1/jobs", tier, budget=BUDGET)
    assert status == 422
    assert "no price is known for openai/gpt-4o" in text
    status, text = answer("/v1/jobs", tier)
    assert status == 403
    assert "spending cap, and no price is known for openai/gpt-4o" in text
    assert answer("/v1/jobs/plan", tier)[0] == 200
    assert answer("/v1/jobs/plan", {}, budget=BUDGET)[0] == 200
