"""Adds responses and links to the OpenAPI document."""

import json
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from starlette.routing import BaseRoute

from app.api.http.access import need_of
from app.api.http.problems import Problem

Responses = dict[int | str, dict[str, Any]]

_SCHEMAS = "#/components/schemas/"
# By reference: a model would be built anew for each of a route's dozen problems, a sixth of the API's start.
_PROBLEM: dict[str, Any] = {
    "content": {"application/problem+json": {"schema": {"$ref": f"{_SCHEMAS}{Problem.__name__}"}}}
}
UNREAD: Responses = dict.fromkeys((414, 431), _PROBLEM)
"""What any request is answered whose head is too long."""
PROBLEMS: Responses = UNREAD | dict.fromkeys((400, 401, 403, 408, 413, 415, 421, 422, 429, 503), _PROBLEM)
NOT_FOUND: Responses = {404: _PROBLEM}
CONFLICT: Responses = {409: _PROBLEM}
TOO_OFTEN: Responses = {429: _PROBLEM}


KEY_SCHEME = "key"
TAGS = (
    {"name": "jobs", "description": "Evaluations: submit, follow, control and read them."},
    {"name": "decisions", "description": "Comparisons of models, and gates on results."},
    {"name": "question sets", "description": "Questions of your own, for PersonaGym's tasks."},
    {"name": "persona sets", "description": "Personas of your own."},
    {"name": "rubric sets", "description": "Rubrics, prompts and tasks of your own."},
    {"name": "uploads", "description": "Large files of existing responses, sent in parts."},
    {
        "name": "annotations",
        "description": "Human labels, labelling rounds, and values calibrated by them.",
    },
    {"name": "schedules", "description": "Jobs run again and again, and drift of their values."},
    {"name": "webhooks", "description": "Messages about jobs and schedules."},
    {"name": "keys", "description": "API keys."},
    {"name": "connections", "description": "Connections to model providers."},
    {"name": "catalog", "description": "What jobs can use, and published results."},
    {"name": "health", "description": "For operators of the service."},
)
"""What operations are listed under."""


class DescribedApp(FastAPI):
    """An application whose document also says which scope of a key each operation takes, and where its things are."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            openapi_url=None, **options
        )  # FastAPI's own route encodes the document for each request
        self._lock = Lock()
        self._documents: dict[str, bytes] = {}

    def document(self, root: str) -> bytes:
        """Return the document as JSON for clients that reach the service below a path; call it on a thread."""
        with self._lock:
            if root not in self._documents:
                document = self.openapi()
                servers = [{"url": root}] if root else []
                document = document | {"servers": [*servers, *document["servers"]]}
                self._documents[root] = json.dumps(
                    document, ensure_ascii=False, separators=(",", ":")
                ).encode()
            return self._documents[root]

    def openapi(self) -> dict[str, Any]:
        """The document; made once."""
        if self.openapi_schema is None:
            _describe_problems(super().openapi()["components"]["schemas"])
            _say_needs(super().openapi(), self.routes)
            _say_links(super().openapi()["paths"])
            _say_members(super().openapi())
        document: dict[str, Any] = super().openapi()
        return document


def _describe_problems(schemas: dict[str, Any]) -> None:
    problem = Problem.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}", mode="serialization")
    schemas.update({**problem.pop("$defs", {}), Problem.__name__: problem})


def _say_needs(document: dict[str, Any], routes: Sequence[BaseRoute]) -> None:
    scheme = {"type": "http", "scheme": "bearer", "description": "An API key; see `/v1/api-keys`."}
    document["components"]["securitySchemes"] = {KEY_SCHEME: scheme}
    for route in iter_route_contexts(routes):
        need = None if route.endpoint is None else need_of(route.endpoint)
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if need is not None and operation is not None:
                operation["security"] = [{KEY_SCHEME: []}]
                operation["x-scope"] = need.scope.value
                operation["description"] += f"\n\nRequires a key with the scope `{need.scope.value}`."


def _say_links(paths: dict[str, Any]) -> None:
    """Links what makes a thing with all that can be asked of it by its id."""
    for path, operations in paths.items():
        made = operations.get("post", {}).get("responses", {})
        for answer in (made[status] for status in ("201", "202") if status in made):
            is_job = answer["content"]["application/json"]["schema"]["$ref"].endswith("/JobDetail")
            answer["links"] = dict(_links_below("/v1/jobs" if is_job else path, paths))


def _links_below(path: str, paths: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for below, operations in paths.items():
        name = below.removeprefix(f"{path}/{{").partition("}")[0]
        if below.startswith(f"{path}/{{"):
            for operation in operations.values():
                id_, field = operation["operationId"], "name" if name.endswith("_name") else "id"
                yield id_, {"operationId": id_, "parameters": {name: f"$response.body#/{field}"}}


def _say_members(node: Any) -> None:
    """Gives each tuple `items` too: generators of clients before JSON Schema 2020-12 read no `prefixItems`."""
    if isinstance(node, list):
        for member in node:
            _say_members(member)
    elif isinstance(node, dict):
        if "prefixItems" in node:
            kinds = [
                kind
                for number, kind in enumerate(node["prefixItems"])
                if kind not in node["prefixItems"][:number]
            ]
            node["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        for member in node.values():
            _say_members(member)


def described_body(model: type[BaseModel], examples: Mapping[str, str]) -> dict[str, Any]:
    """What to add to a route that reads its body itself.

    Args:
        model: What the body is as JSON.
        examples: A text of each further media type that it may have.
    """
    schema = model.model_json_schema()
    known = schema.pop("$defs", {})

    def whole(node: Any) -> Any:
        if isinstance(node, list):
            return [whole(member) for member in node]
        if not isinstance(node, dict):
            return node
        rest = {name: whole(member) for name, member in node.items() if name != "$ref"}
        return whole(known[node["$ref"].rpartition("/")[2]]) | rest if "$ref" in node else rest

    texts = {kind: {"schema": {"type": "string"}, "example": text} for kind, text in examples.items()}
    content = {"application/json": {"schema": whole(schema)}} | texts
    return {"requestBody": {"required": True, "content": content}}


def answers_with(model: type[BaseModel], status: int = 200) -> Responses:
    """A route's answer when all goes well."""
    return {status: {"model": model}}
