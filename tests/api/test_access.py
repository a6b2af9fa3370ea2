"""Every route with every wrong key: made from what the application serves, so that a new route fails here until it is decided."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from app.api.http.access import is_public, need_of
from app.api.http.strict_json import LARGE_BYTES
from app.db.tables import Base
from app.domain.keys.api_key import POSSIBLE, Scope, compose
from tests.api.keys import KeyMaker, bearer, guarded_alone
from tests.api.service import APP, SERVED, Json, Service, job_body
from tests.databases import Databases

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OURS = "what only our tenant may read"
"""Stands in everything that our tenant keeps."""

READ_BY_POST = {"/v1/jobs/plan", "/v1/comparisons", "/v1/bridges"}
"""What spends and keeps nothing, although it takes a body."""
PUBLIC = {
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/swagger/{name}",
    "/static/{version}/{name}",
    "/sign-in",
    "/shared/{token}",
    "/shared/{token}/{file}",
}
OF_THE_OPERATOR = {"/metrics"}
ALL_TABLES = tuple(Base.metadata.tables)
STREAMS = {"/live/jobs", "/live/jobs/{job_id}", "/v1/jobs/{job_id}/events"}
"""They end with the job, or never."""

BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", "/v1/schedules/{schedule_id}"): {"paused": True},
    ("PATCH", "/v1/jobs/{job_id}"): {"budget": {"calls": 7}},
    ("PATCH", "/v1/webhooks/{webhook_id}"): {"description": "mine now"},
    ("PATCH", "/v1/api-keys/{key_id}"): {"name": "mine now"},
    ("POST", "/v1/api-keys/{key_id}/rotate"): {},
    ("PATCH", "/v1/connections/{connection_name}"): {"description": "mine now"},
    ("PATCH", "/v1/baselines/{name}"): {"name": "models"},
}
TUS = {"Tus-Resumable": "1.0.0"}
QUERIES = {"/v1/jobs/{job_id}/distances": "?persona=E-low&task=essay"}
FORMS: dict[str, str] = {
    "/jobs/{job_id}/budget": "usd=1",
    "/jobs/archive": "archived=true",
    "/jobs/{job_id}/archive": "archived=true",
    "/jobs/{job_id}/details": "name=mine+now",
    "/jobs/{job_id}/share": "days=1",
    "/jobs/{job_id}/baselines": "name=models",
    "/jobs/{job_id}/responses/{response_id}/flag": "annotator=me",
    "/jobs/{job_id}/labels": "kind=sentences&dimension=E&size=1&seed=1",
    "/label/{round_id}": "annotator=me&at=1&answer=3",
}


@dataclass(frozen=True, slots=True)
class Route:
    """A path, a method, and the scope that it takes."""

    method: str
    path: str
    scope: Scope
    operator: bool


@dataclass(frozen=True, slots=True)
class World:
    """A service, our tenant's things in it, and keys of all kinds.

    Attributes:
        service: The service.
        names: Ids of our tenant's things, by the name of a path's parameter.
        keys: Keys by what they are.
    """

    service: Service
    names: dict[str, str]
    keys: dict[str, Json]

    def ask(self, route: Route, headers: dict[str, str], method: str | None = None) -> httpx2.Response:
        """Asks for our tenant's thing; of a stream that never ends, for its beginning."""
        names = self.names
        if route.path.startswith("/v1/question-sets/"):
            names = names | {"set_id": names["question_set"]}
        if route.path.startswith("/v1/rubric-sets/"):
            names = names | {"set_id": names["rubric_set"]}
        path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: names[found[1]], route.path)
        path += QUERIES.get(route.path, "")
        options: Json = {"headers": dict(headers)}
        if route.path.startswith("/v1/uploads"):
            options["headers"] |= TUS
        if route.method == "PATCH" and route.path.startswith("/v1/uploads"):
            options["headers"] |= {"Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"}
        if route.path in FORMS:
            options["content"] = FORMS[route.path]
            options["headers"]["Content-Type"] = "application/x-www-form-urlencoded"
        elif route.method not in {"GET", "DELETE"}:
            options["json"] = BODIES.get((route.method, route.path), {})
            if route.path == "/v1/baselines/{name}" and route.method == "PUT":
                options["json"] = {"job": names["job_id"]}
        with self.service.http.stream(method or route.method, path, **options) as response:
            if route.path in STREAMS and response.is_success:
                response._content = next(response.iter_raw())
            else:
                response.read()
        return response


def all_routes() -> Iterator[tuple[str, str, Any]]:
    """Method, path and function of all that the application serves."""
    for route in SERVED:
        for method in sorted(route.methods or ()):
            assert route.path is not None
            yield method, route.path, route.endpoint


def guarded_routes() -> list[Route]:
    found = []
    for method, path, endpoint in all_routes():
        need = need_of(endpoint)
        if need is not None and method != "HEAD":
            found.append(Route(method, path, need.scope, need.operator))
    return found


ROUTES = guarded_routes()
NAMES = [f"{route.method} {route.path}" for route in ROUTES]
each_route = pytest.mark.parametrize("route", ROUTES, ids=NAMES)


@pytest.fixture(scope="module")
def world(databases: Databases, template_database: str) -> Iterator[World]:
    with guarded_alone(databases, template_database, "access", ASSAY_WEBHOOK_HOSTS="127.0.0.1:9") as service:
        keys = all_keys(service)
        service.http.event_hooks = {"response": []}  # streams are not read to their end
        yield World(service, our_things(service, keys), keys)


def all_keys(service: Service) -> dict[str, Json]:
    maker = KeyMaker(service.database_url)
    made = {scope.value: maker.make(scope) for scope in Scope}
    made |= {"other": maker.make(Scope.ADMIN, tenant="other"), "revoked": maker.make(Scope.ADMIN)}
    made |= {"expired": maker.make(Scope.ADMIN), "rotated away": maker.make(Scope.ADMIN)}
    made |= {"spare": maker.make(Scope.READ)}
    maker.revoke(made["revoked"])
    service.execute("UPDATE api_keys SET expires_at = now() WHERE id = %s", made["expired"]["id"])
    admin = bearer(made["admin"])
    rotated = f"/v1/api-keys/{made['rotated away']['id']}/rotate"
    assert service.post(rotated, {"overlap_seconds": 0}, headers=admin).status_code == 200
    return made | {"unknown": {"key": compose(POSSIBLE - 1)}, "mistyped": {"key": compose(0)[:-1] + "z"}}


def our_things(service: Service, keys: dict[str, Json]) -> dict[str, str]:
    """One of each thing that has an id, and what else stands in paths."""
    headers = bearer(keys["admin"])
    job = service.submit(job_body(name=OURS), headers=headers)
    hook = {"url": "http://127.0.0.1:9/", "description": OURS}
    webhook = service.post("/v1/webhooks", hook, headers=headers)
    questions = {OURS: {"expected_action": ["What now?"]}}
    question_set = service.post("/v1/question-sets", {"questions": questions}, headers=headers)
    rubrics = {"tasks": {"toxicity_control": {"description": OURS}}}
    rubric_set = service.post("/v1/rubric-sets", rubrics, headers=headers)
    personas = [{"description": OURS}]
    persona_set = service.post("/v1/persona-sets", {"personas": personas}, headers=headers)
    connection = {
        "name": "ours",
        "kind": "openai",
        "base_url": "https://93.184.215.14/v1",
        "description": OURS,
    }
    kept = service.post("/v1/connections", connection, headers=headers)
    for made in (webhook, question_set, rubric_set, persona_set, kept):
        assert made.status_code in {200, 201}, made.text
    link = service.post(f"/v1/jobs/{job['id']}/share-links", {"description": OURS}, headers=headers)
    assert link.status_code == 201, link.text
    round_id = "lab_" + "0" * 26
    service.execute(
        "INSERT INTO labelling_rounds (id, tenant, job_id, kind, dimension, size, seed, things, strata)"
        " VALUES (%s, 'default', %s, 'sentences', 'E', 1, 0, '[]', '[]')",
        round_id,
        job["id"],
    )
    flag_id = "flag_" + "0" * 26
    service.execute(
        "INSERT INTO flags (id, tenant, job_id, annotator, cell, run, item, not_applicable, note)"
        " VALUES (%s, 'default', %s, 'me', 0, 0, 0, false, %s)",
        flag_id,
        job["id"],
        OURS,
    )
    service.execute(
        "INSERT INTO named_baselines (tenant, name, job_id, model) VALUES ('default', 'models', %s, %s)",
        job["id"],
        OURS,
    )
    schedule = {"name": OURS, "cron": "0 0 1 1 *", "time_zone": "UTC", "clone": job["id"]}
    scheduled = service.post("/v1/schedules", schedule, headers=headers)
    assert scheduled.status_code == 201, scheduled.text
    service.execute(
        "INSERT INTO schedule_runs (id, tenant, schedule_id, due, state, value, ended_at)"
        " VALUES ('srun_1', 'default', %s, now(), 'measured', 0.5, now())",
        scheduled.json()["id"],
    )
    named = f"filename {base64.b64encode(OURS.encode()).decode()}"
    begun = {**TUS, "Upload-Length": "100", "Upload-Metadata": named}
    upload = service.post("/v1/uploads", None, headers=headers | begun)
    assert upload.status_code == 201, upload.text
    return {
        "job_id": job["id"],
        "response_id": f"resp_{job['id'].removeprefix('job_')}-0-0-0",
        "link_id": link.json()["id"],
        "flag_id": flag_id,
        "upload_id": upload.json()["id"],
        "schedule_id": scheduled.json()["id"],
        "format": "preferences",
        "webhook_id": webhook.json()["id"],
        "round_id": round_id,
        "key_id": keys["spare"]["id"],
        "connection_name": "ours",
        "deed": "cancel",
        "action": "test",
        "name": "models",
        "file_format": "svg",
        "schedule_action": "pause",
        "question_set": question_set.json()["id"],
        "rubric_set": rubric_set.json()["id"],
        "set_id": persona_set.json()["id"],
    }


class TestDecisions:
    def test_every_route_says_what_it_takes_or_is_public(self) -> None:
        undecided = {
            f"{method} {path}"
            for method, path, endpoint in all_routes()
            if (need_of(endpoint) is None) != is_public(path)
        }
        assert undecided == set()

    def test_what_is_public_is_this_and_no_more(self) -> None:
        assert {path for _, path, _ in all_routes() if is_public(path)} == PUBLIC

    def test_who_may_only_read_changes_nothing(self) -> None:
        changing = {
            f"{route.method} {route.path}"
            for route in ROUTES
            if route.scope is Scope.READ
            and route.method not in {"GET", "OPTIONS"}
            and route.path not in READ_BY_POST
        }
        assert changing == {"POST /sign-out"}

    def test_what_is_of_all_tenants_is_the_operator_s(self) -> None:
        assert {route.path for route in ROUTES if route.operator} == OF_THE_OPERATOR

    def test_the_document_says_the_same(self) -> None:
        document = APP.openapi()
        described = {
            (method.upper(), path): (operation.get("security"), operation.get("x-scope"))
            for path, item in document["paths"].items()
            for method, operation in item.items()
        }
        scopes = {(route.method, route.path): route.scope.value for route in ROUTES}
        assert described == {
            operation: ([{"key": []}], scopes[operation]) if operation in scopes else (None, None)
            for operation in described
        }
        assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


class TestRefused:
    @each_route
    def test_without_a_key_whatever_the_method(self, world: World, route: Route) -> None:
        for method in METHODS:
            response = world.ask(route, {}, method)
            assert response.status_code == 401, method
            assert response.headers["www-authenticate"] == 'Bearer realm="persona-assay"'
            assert OURS not in response.text

    @each_route
    def test_with_a_key_that_is_none_or_no_more(self, world: World, route: Route) -> None:
        for kind in ("mistyped", "unknown", "revoked", "expired", "rotated away"):
            response = world.ask(route, bearer(world.keys[kind]))
            assert response.status_code == 401, kind
            assert 'error="invalid_token"' in response.headers["www-authenticate"]
            assert OURS not in response.text
            assert world.keys[kind]["key"] not in response.text

    @each_route
    def test_with_a_header_or_a_session_that_is_none(self, world: World, route: Route) -> None:
        forged = {"Cookie": f"assay_session={world.keys['admin']['prefix']}.99999999999.{'0' * 64}"}
        garbage = {"Cookie": "assay_session=%c3.a.b"}
        for headers in ({"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"}, forged, garbage):
            assert world.ask(route, headers).status_code == 401, headers

    @each_route
    def test_with_a_key_for_less(self, world: World, route: Route) -> None:
        for scope in list(Scope)[: list(Scope).index(route.scope)]:
            response = world.ask(route, bearer(world.keys[scope]))
            assert response.status_code == 403, scope
            assert f'scope="{route.scope}"' in response.headers["www-authenticate"]
            assert OURS not in response.text

    def test_with_a_key_for_less_before_a_long_body_is_looked_at(self, world: World) -> None:
        """Long ones are checked before the framework asks what the key is for."""
        headers = bearer(world.keys["read"])
        for path in ("/v1/jobs", "/v1/webhooks", "/v1/api-keys"):
            response = world.service.post(path, {"wrong": "x" * LARGE_BYTES}, headers=headers)
            assert response.status_code == 403, path


class TestOtherTenants:
    @each_route
    def test_see_nothing_of_ours(self, world: World, route: Route) -> None:
        kept = world.service.rows(ALL_TABLES)
        response = world.ask(route, bearer(world.keys["other"]))
        body = response.text
        assert [name for name in (OURS, *ids(world)) if name in body and name not in str(response.url)] == []
        if route.operator:
            assert response.status_code == 403
        elif "{" in route.path:
            assert response.status_code == 404, body
            assert world.service.rows(ALL_TABLES) == kept


def ids(world: World) -> list[str]:
    return [name for key, name in world.names.items() if key.endswith(("_id", "_set"))]


class TestLetIn:
    @each_route
    def test_with_a_key_for_it(self, world: World, route: Route) -> None:
        """Last, for it changes what there is."""
        response = world.ask(route, bearer(world.keys[route.scope]))
        assert response.status_code not in {401, 403}, response.text
        assert response.status_code < 500
