"""The document that clients are generated from."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.jobs.request import JobIn
from tests.api.service import Json, Service

OPERATIONS = {
    ("post", "/v1/jobs"),
    ("get", "/v1/jobs"),
    ("post", "/v1/jobs/plan"),
    ("get", "/v1/jobs/{job_id}"),
    ("delete", "/v1/jobs/{job_id}"),
    ("post", "/v1/jobs/{job_id}/cancel"),
    ("post", "/v1/jobs/{job_id}/pause"),
    ("post", "/v1/jobs/{job_id}/resume"),
    ("get", "/v1/jobs/{job_id}/results"),
    ("get", "/v1/jobs/{job_id}/responses"),
    ("get", "/v1/jobs/{job_id}/report"),
    ("get", "/v1/jobs/{job_id}/figures/{name}.{file_format}"),
    ("get", "/v1/jobs/{job_id}/gate"),
    ("post", "/v1/comparisons"),
    ("get", "/v1/baselines"),
    ("get", "/v1/personas"),
    ("get", "/v1/tasks"),
    ("get", "/v1/models"),
    ("get", "/healthz"),
    ("get", "/readyz"),
}


@pytest.fixture(scope="module")
def document(running_api: Service) -> Json:
    response = running_api.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    found: Json = response.json()
    return found


def nodes(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from nodes(member)
    elif isinstance(value, list):
        for member in value:
            yield from nodes(member)


class TestDocument:
    def test_its_version_is_3_1(self, document: Json) -> None:
        assert document["openapi"].startswith("3.1.")

    def test_it_has_every_operation(self, document: Json) -> None:
        found = {(method, path) for path, item in document["paths"].items() for method in item}
        assert found >= OPERATIONS

    def test_every_operation_is_summarised_and_named_once(self, document: Json) -> None:
        operations = [op for item in document["paths"].values() for op in item.values()]
        assert all(op["summary"] and op["description"] and op["tags"] for op in operations)
        assert len({op["operationId"] for op in operations}) == len(operations)

    def test_operations_have_names_for_programs(self, document: Json) -> None:
        names = {op["operationId"] for item in document["paths"].values() for op in item.values()}
        assert {"submitJob", "getJob", "listJobs", "getResults", "compareModels", "checkGate"} <= names
        assert [name for name in names if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", name)] == []

    def test_tags_are_described(self, document: Json) -> None:
        used = {tag for item in document["paths"].values() for op in item.values() for tag in op["tags"]}
        assert {tag["name"] for tag in document["tags"] if tag["description"]} == used

    def test_tuples_have_items_for_older_generators(self, document: Json) -> None:
        tuples = [node for node in nodes(document) if "prefixItems" in node]
        assert tuples
        assert [node for node in tuples if node["items"] != node["prefixItems"][0]] == [
            node for node in tuples if len({str(kind) for kind in node["prefixItems"]}) > 1
        ]

    def test_every_body_has_an_example(self, document: Json) -> None:
        schemas = document["components"]["schemas"]
        lacking = []
        for path, item in document["paths"].items():
            for method, operation in item.items():
                for media, body in operation.get("requestBody", {}).get("content", {}).items():
                    if body["schema"].get("format") == "binary":  # no text can show one
                        continue
                    kinds = body["schema"].get("oneOf", [body["schema"]])
                    wholes = [
                        schemas[kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind for kind in kinds
                    ]
                    if not (body.get("example") or all(whole.get("examples") for whole in wholes)):
                        lacking.append((method, path, media))
        assert lacking == []

    @pytest.mark.parametrize("media", ["application/json", "application/jsonl", "text/csv"])
    def test_the_examples_of_persona_sets_are_kept(
        self, document: Json, running_api: Service, media: str
    ) -> None:
        body = document["paths"]["/v1/persona-sets"]["post"]["requestBody"]["content"][media]
        example = body["example"] if "example" in body else json.dumps(body["schema"]["examples"][0])
        answer = running_api.post("/v1/persona-sets", content=example, headers={"Content-Type": media})
        assert answer.status_code in {201, 202}, answer.text

    def test_a_change_has_no_default_that_a_generated_client_would_send(self, document: Json) -> None:
        schemas = {name: s for name, s in document["components"]["schemas"].items() if "ChangeIn" in name}
        assert {"ApiKeyChangeIn", "ConnectionChangeIn", "WebhookChangeIn", "JobChangeIn"} <= set(schemas)
        fields = [(name, field) for name, s in schemas.items() for field in s["properties"].items()]
        assert [(name, field) for name, (field, of) in fields if "default" in of] == []

    def test_every_reference_leads_somewhere(self, document: Json) -> None:
        references = {node["$ref"] for node in nodes(document) if isinstance(node.get("$ref"), str)}
        schemas = document["components"]["schemas"]
        assert references <= {f"#/components/schemas/{name}" for name in schemas}

    def test_every_schema_of_ours_is_described(self, document: Json) -> None:
        undescribed = [n for n, s in document["components"]["schemas"].items() if not s.get("description")]
        assert set(undescribed) <= {"HTTPValidationError", "ValidationError"}

    def test_problems_are_declared_as_problems(self, document: Json) -> None:
        responses = document["paths"]["/v1/jobs"]["post"]["responses"]
        for status in ("400", "413", "415", "422", "503"):
            schema = {"$ref": "#/components/schemas/Problem"}
            assert responses[status]["content"] == {"application/problem+json": {"schema": schema}}

    def test_a_report_declares_all_its_media_types(self, document: Json) -> None:
        content = document["paths"]["/v1/jobs/{job_id}/report"]["get"]["responses"]["200"]["content"]
        assert {"text/html; charset=utf-8", "text/csv; charset=utf-8", "application/jsonl"} <= set(content)

    def test_the_example_of_a_job_can_be_submitted(self, document: Json, api: Service) -> None:
        (example,) = document["components"]["schemas"]["JobIn"]["examples"]
        assert JobIn.model_validate(example).iterations == 5
        api.submit(example)

    def test_the_pages_that_show_it_exist(self, running_api: Service) -> None:
        page = running_api.get("/docs")
        assert page.headers["content-type"].startswith("text/html")
        assert '"persistAuthorization": false' in page.text
        for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            assert address.startswith("/swagger/")
            assert running_api.get(address).status_code == 200
        (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
        policy = page.headers["content-security-policy"]
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
        assert "frame-ancestors 'none'" in policy
