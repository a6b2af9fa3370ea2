"""No key, secret, address, tenant or person of an installation gets into what it exports."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import Json, Service
from tests.api.test_bundles import ZIP, exported
from tests.canaries import RANDOM, found_in, texts_of
from tests.conftest import scratch_directory
from tests.databases import Databases

TENANT = "kestrel-laboratory"
PERSON = "wren.harrier@kestrel.example"
SECRETS = (TENANT, PERSON, "kestrel.example", "wren", "127.0.0.1", "postgresql:", '"tenant"', '"lease_owner"')
FORMATS = ("preferences", "rewards", "dataset", "inspect", "every_eval_ever", "bundle")


class Watched(NamedTuple):
    """An installation with things to keep to itself, and a job there.

    Attributes:
        service: Its API.
        job: The job's id.
        headers: The tenant's key.
        secrets: Random words that it made itself.
    """

    service: Service
    job: str
    headers: dict[str, str]
    secrets: tuple[str, ...]


@pytest.fixture(scope="module")
def watched(
    databases: Databases, template_database: str, stack: Service, finished: Json
) -> Iterator[Watched]:
    with (
        databases.new("canaries", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        guarded(
            directory,
            url,
            valkey.url(),
            ASSAY_ALLOWED_NETWORKS="127.0.0.0/8",
            ASSAY_ENCRYPTION_KEYS="ab" * 32,
        ) as service,
    ):
        key = KeyMaker(url).make(Scope.ADMIN, Scope.SUBMIT, Scope.READ, tenant=TENANT)
        headers = bearer(key)
        secret = _surrounded(service, headers)
        bundle = exported(stack, finished["id"])
        made = service.post("/v1/bundles", content=bundle, headers=ZIP | headers)
        assert made.status_code == 201, made.text
        job = made.json()["job"]["id"]
        _label(service, job, headers)
        yield Watched(service, job, headers, (key["key"], secret))


def _surrounded(service: Service, headers: dict[str, str]) -> str:
    """Makes a connection with a key and a webhook; its secret."""
    connection = {"name": "simulated-too", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"}
    made = service.post("/v1/connections", connection | {"api_key": f"sk-proj-{RANDOM}"}, headers=headers)
    assert made.status_code == 201, made.text
    webhook = {"url": "http://127.0.0.1:9/kestrel.example", "description": PERSON}
    sent = service.post("/v1/webhooks", webhook, headers=headers)
    assert sent.status_code == 201, sent.text
    secret: str = sent.json()["secret"]
    return secret


def _label(service: Service, job: str, headers: dict[str, str]) -> None:
    page = service.get(f"/v1/jobs/{job}/responses?limit=1", headers=headers).json()["data"]
    labels = [{"annotator": PERSON, "response": page[0]["id"], "unit": 0, "score": 2, "dimension": "E"}]
    kept = service.post("/v1/annotations", {"annotations": labels}, headers=headers)
    assert kept.status_code == 200, kept.text


@pytest.mark.parametrize("format_", FORMATS)
def test_an_export_has_nothing_of_who_runs_it(watched: Watched, format_: str) -> None:
    address = f"/v1/jobs/{watched.job}/exports/{format_}"
    answer = watched.service.get(address, headers=watched.headers)
    assert answer.status_code == 200, answer.text
    whole = "\n".join(texts_of(answer.content))
    assert watched.job in whole, "it was looked through"
    assert [word for word in (*SECRETS, *watched.secrets) if word.lower() in whole.lower()] == []
    assert found_in(whole) == []
