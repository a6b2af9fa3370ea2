"""What clients get wrong: always a 4xx that names the field, and never a row."""

from typing import Any

import pytest

from tests.api.service import Json, Service, job_body, pointers

pytestmark = pytest.mark.usefixtures("nothing_created")

POLITICS: Json = {
    "id": "politics",
    "name": "conservatism",
    "options": "1) progressive 2) rather progressive 3) neither 4) rather conservative 5) conservative 9) none",
}
TEXT: Json = {"persona": "E-low", "task": "essay", "text": "I stay at home."}


def persona(**changes: Any) -> Json:
    return {"id": "blunt", "description": "a blunt critic", "traits": {"A": "low"}} | changes


def of_own(**changes: Any) -> Json:
    """A job with one dimension of its own."""
    return job_body(
        dimensions=[POLITICS | changes],
        personas=[persona(traits={"politics": "low"})],
        tasks=["social_media_post"],
    )


def with_texts(*texts: Json, **changes: Any) -> Json:
    return job_body(models=None, instructions=None, iterations=None, responses=list(texts)) | changes


WRONG: dict[str, tuple[Json, str]] = {
    # names that mean nothing
    "unknown persona": (job_body(personas=["E-low", "X-low"]), "/personas/1"),
    "unknown task": (job_body(tasks=["essay", "sonnet"]), "/tasks/1"),
    "unknown connection": (job_body(models=["nobody/gpt"]), "/models/0"),
    "unknown simulated model": (job_body(models=["simulated/nobody"]), "/models/0"),
    "persona with a built-in id": (
        job_body(personas=[{"id": "E-low", "description": "somebody else", "traits": {"E": "low"}}]),
        "/personas/0/id",
    ),
    "connection without batches": (job_body(models=["acme/acme-1"], execution="batch"), "/execution"),
    "batches with replies that are used again": (
        job_body(execution="batch", reuse={"judging": "in_job"}),
        "/execution",
    ),
    "unknown execution": (job_body(execution="tomorrow"), "/execution"),
    "unknown model": (job_body(models=["acme/acme-1", "acme/acme-9"]), "/models/1"),
    "unknown judge": (job_body(judges=[{"model": "acme/acme-9"}]), "/judges/0"),
    "model without connection": (job_body(models=["gpt-4o"]), "/models/0"),
    "connection without model": (job_body(models=["simulated/"]), "/models/0"),
    "unknown instruction": (job_body(instructions=[1, 7]), "/instructions/1"),
    "negative instruction": (job_body(instructions=[-1]), "/instructions/0"),
    "instruction without persona": (job_body(instructions=["Be brief."]), "/instructions/0"),
    "unknown trait": (job_body(personas=[persona(traits={"Z": "low"})]), "/personas/0/traits/Z"),
    "unknown level": (job_body(personas=[persona(traits={"A": "lo"})]), "/personas/0/traits/A"),
    "pointer in need of escape": (
        job_body(personas=[persona(traits={"a/b~c": "low"})]),
        "/personas/0/traits/a~1b~0c",
    ),
    "persona without traits": (job_body(personas=[persona(traits={})]), "/personas/0"),
    # missing and empty
    "no personas": (job_body(personas=None), "/personas"),
    "empty personas": (job_body(personas=[]), "/personas"),
    "empty tasks": (job_body(tasks=[]), "/tasks"),
    "empty models": (job_body(models=[]), "/models"),
    "no models and no responses": (job_body(models=None), "/models"),
    "empty judges": (job_body(judges=[]), "/judges"),
    "empty instructions": (job_body(instructions=[]), "/instructions"),
    "empty responses": (with_texts(), "/responses"),
    "persona without description": (job_body(personas=[{"id": "blunt"}]), "/personas/0/description"),
    "blank description": (job_body(personas=[persona(description=" \n ")]), "/personas/0/description"),
    "model object without model": (job_body(models=[{"temperature": 1}]), "/models/0/model"),
    # twice
    "persona twice": (job_body(personas=["E-low", "E-low"]), "/personas/1"),
    "persona in a set and by name": (job_body(personas=["big-five", "E-low"]), "/personas/1"),
    "inline persona with another's id": (job_body(personas=["E-low", persona(id="E-low")]), "/personas/1"),
    "task twice": (job_body(tasks=["essay", "essay"]), "/tasks/1"),
    "model twice": (job_body(models=["acme/acme-1", {"model": "acme/acme-1"}]), "/models/1"),
    "label twice": (
        job_body(models=[{"model": "acme/acme-1", "label": "x"}, {"model": "simulated/y", "label": "x"}]),
        "/models/1",
    ),
    "judge twice": (job_body(judges=["acme/acme-1", "acme/acme-1"]), "/judges/1"),
    "instruction twice": (job_body(instructions=[2, 2]), "/instructions/1"),
    "dimension twice": (
        of_own() | {"dimensions": [POLITICS, POLITICS]},
        "/dimensions/1/id",
    ),
    "built-in dimension": (of_own() | {"dimensions": [POLITICS, POLITICS | {"id": "E"}]}, "/dimensions/1/id"),
    # wrong types
    "text for a number": (job_body(iterations="5"), "/iterations"),
    "true for a number": (job_body(iterations=True), "/iterations"),
    "fraction for a count": (job_body(iterations=2.5), "/iterations"),
    "number for a text": (job_body(name=5), "/name"),
    "null for a list": (job_body() | {"personas": None}, "/personas"),
    "object for a list": (job_body(tasks={"essay": True}), "/tasks"),
    "list for an object": (job_body(metadata=[]), "/metadata"),
    "text for a list": (job_body(tasks="essay"), "/tasks"),
    "number for a persona": (job_body(personas=[5]), "/personas/0"),
    "list for a persona": (job_body(personas=[["E-low"]]), "/personas/0"),
    "null for a model": (job_body(models=[None]), "/models/0"),
    "number for a label value": (job_body(metadata={"commit": 5}), "/metadata/commit"),
    "true for an instruction": (job_body(instructions=[True]), "/instructions/0"),
    "object for instructions": (job_body(instructions={"1": 1}), "/instructions"),
    "text for a temperature": (
        job_body(models=[{"model": "acme/acme-1", "temperature": "1"}]),
        "/models/0/temperature",
    ),
    "level that is no text": (job_body(personas=[persona(traits={"A": 1})]), "/personas/0/traits/A"),
    # out of range
    "no iterations": (job_body(iterations=0), "/iterations"),
    "a thousand million iterations": (job_body(iterations=10**9), "/iterations"),
    "more runs than there are numbers": (
        job_body(iterations=1000, instructions=[f"{{persona}} {n}" for n in range(33)]),
        "/iterations",
    ),
    "no sentence a call": (job_body(judging={"sentences_per_call": 0}), "/judging/sentences_per_call"),
    "a thousand sentences a call": (
        job_body(judging={"sentences_per_call": 1000}),
        "/judging/sentences_per_call",
    ),
    "no share of sentences": (
        job_body(judging={"order_check": {"share": 0}}),
        "/judging/order_check/share",
    ),
    "more than all sentences": (
        job_body(judging={"order_check": {"share": 1.5}}),
        "/judging/order_check/share",
    ),
    "an order check without a share": (
        job_body(judging={"order_check": {}}),
        "/judging/order_check/share",
    ),
    "orders of options of several sentences": (
        job_body(judging={"sentences_per_call": 4, "order_check": {"share": 0.1}}),
        "/judging",
    ),
    "half a sentence a call": (job_body(judging={"sentences_per_call": 2.5}), "/judging/sentences_per_call"),
    "a check of nothing": (
        job_body(judging={"sentences_per_call": 5, "check": {"share": 0}}),
        "/judging/check/share",
    ),
    "a check of no response": (
        job_body(judging={"sentences_per_call": 5, "check": {"minimum": 0}}),
        "/judging/check/minimum",
    ),
    "a check without a check": (
        job_body(judging={"sentences_per_call": 5, "check": False}),
        "/judging/check",
    ),
    "a check of sentences judged one by one": (job_body(judging={"check": {"share": 0.5}}), "/judging"),
    "a judge that may not write so many lines": (
        job_body(
            judging={"sentences_per_call": 20}, judges=[{"model": "simulated/sim-judge", "max_tokens": 10}]
        ),
        "/judges/0/max_tokens",
    ),
    "several sentences a call where none is judged": (
        job_body(
            judging={"sentences_per_call": 5},
            tasks=["expected_action"],
            instructions=None,
            iterations=None,
            reasoner="simulated/sim-reasoner",
        ),
        "/judging/sentences_per_call",
    ),
    "negative seed": (job_body(seed=-1), "/seed"),
    "seed beyond 63 bits": (job_body(seed=2**63), "/seed"),
    "temperature of 3": (
        job_body(models=[{"model": "acme/acme-1", "temperature": 3}]),
        "/models/0/temperature",
    ),
    "top_p of 0": (job_body(models=[{"model": "acme/acme-1", "top_p": 0}]), "/models/0/top_p"),
    "no tokens": (job_body(models=[{"model": "acme/acme-1", "max_tokens": 0}]), "/models/0/max_tokens"),
    "two thousand personas": (job_body(personas=[f"p{n}" for n in range(2000)]), "/personas"),
    "sixty models": (job_body(models=[f"simulated/m{n}" for n in range(60)]), "/models"),
    "long name": (job_body(name="x" * 301), "/name"),
    "name of two lines": (job_body(name="a\nb"), "/name"),
    "huge description": (job_body(personas=[persona(description="x" * 20_001)]), "/personas/0/description"),
    "long label": (job_body(metadata={"x" * 65: "y"}), f"/metadata/{'x' * 65}"),
    "id with a slash": (job_body(personas=[persona(id="a/b")]), "/personas/0/id"),
    "id with a space": (job_body(personas=[persona(id="a b")]), "/personas/0/id"),
    "planned beyond the service's limit": (
        job_body(tasks=["questionnaire"], personas=["big-five"], iterations=1000),
        "",
    ),
    # unknown fields
    "unknown field": (job_body(temperature=1), "/temperature"),
    "unknown field of a persona": (job_body(personas=[persona(trait={})]), "/personas/0/trait"),
    "unknown field of a model": (job_body(models=[{"model": "acme/acme-1", "temp": 1}]), "/models/0/temp"),
    "unknown protocol": (job_body(protocol="ours"), "/protocol"),
    # characters that can't be kept
    "NUL in a description": (job_body(personas=[persona(description="a\0b")]), "/personas/0/description"),
    "NUL in a label": (job_body(metadata={"a": "b\0"}), "/metadata/a"),
    "NUL in a parameter": (
        job_body(models=[{"model": "acme/acme-1", "extra": {"user": "a\0"}}]),
        "/models/0/extra",
    ),
    "NUL in a parameter's name": (
        job_body(models=[{"model": "acme/acme-1", "extra": {"a": [{"b\0": 1}]}}]),
        "/models/0/extra",
    ),
    # dimensions of one's own
    "scale upside down": (of_own(scale={"minimum": 5, "maximum": 1}), "/dimensions/0/scale"),
    "scale of one score": (of_own(scale={"minimum": 3, "maximum": 3}), "/dimensions/0/scale"),
    "not applicable inside the scale": (
        of_own(scale={"minimum": 1, "maximum": 10, "not_applicable": 9}),
        "/dimensions/0/scale",
    ),
    "scale too fine": (
        of_own(scale={"minimum": 1, "maximum": 200, "not_applicable": 0}),
        "/dimensions/0/scale",
    ),
    "one level": (of_own(levels=["low"]), "/dimensions/0/levels"),
    "level twice": (of_own(levels=["low", "low", "high"]), "/dimensions/0/levels"),
    "no options": (of_own(options=""), "/dimensions/0/options"),
    "no questions for the questionnaire": (of_own() | {"tasks": ["questionnaire"]}, "/personas/0"),
    "no context for the essay": (of_own() | {"tasks": ["essay"]}, "/personas/0"),
    "level of another dimension": (
        of_own(levels=["left", "right"]),
        "/personas/0/traits/politics",
    ),
    # existing texts
    "models and responses": (with_texts(TEXT, models=["acme/acme-1"]), "/models"),
    "instructions and responses": (with_texts(TEXT, instructions=[1]), "/instructions"),
    "response of an unknown persona": (
        with_texts(TEXT, TEXT | {"persona": "E-high"}),
        "/responses/1/persona",
    ),
    "response to an unknown task": (with_texts(TEXT | {"task": "questionnaire"}), "/responses/0/task"),
    "response to an unknown item": (with_texts(TEXT | {"item": "E-1"}), "/responses/0/item"),
    "response to one of ten items": (
        with_texts(TEXT | {"task": "questionnaire"}, tasks=["questionnaire"]),
        "/responses/0/item",
    ),
    "run twice": (with_texts(TEXT | {"run": 3}, TEXT | {"run": 3}), "/responses/1/run"),
    "negative run": (with_texts(TEXT | {"run": -1}), "/responses/0/run"),
    "run beyond two bytes": (with_texts(TEXT | {"run": 40_000}), "/responses/0/run"),
    "run under two instructions": (
        with_texts(
            TEXT | {"task": "questionnaire", "item": "E-1", "run": 0, "instruction": 1},
            TEXT | {"task": "questionnaire", "item": "E-2", "run": 0, "instruction": 2},
            tasks=["questionnaire"],
        ),
        "/responses/1/instruction",
    ),
    "NUL in a text": (with_texts(TEXT | {"text": "a\0"}), "/responses/0/text"),
    "text that is no text": (with_texts(TEXT | {"text": 5}), "/responses/0/text"),
    "more writers than models": (
        with_texts(*(TEXT | {"model": f"writer {n}"} for n in range(51))),
        "/responses/50/model",
    ),
}


class TestWrongFields:
    @pytest.mark.parametrize(("body", "pointer"), WRONG.values(), ids=WRONG)
    @pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/plan"], ids=["submit", "plan"])
    def test_the_field_is_named(self, api: Service, path: str, body: Json, pointer: str) -> None:
        response = api.post(path, body)
        assert response.status_code == 422, response.text
        assert pointer in pointers(response), response.text

    def test_all_wrong_fields_are_named_at_once(self, api: Service) -> None:
        response = api.post(
            "/v1/jobs",
            job_body(
                personas=["nobody"], tasks=["nothing"], models=["a/b"], judges=["c/d"], instructions=[9]
            ),
        )
        assert pointers(response) == ["/personas/0", "/tasks/0", "/models/0", "/judges/0", "/instructions/0"]

    @pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/plan"], ids=["submit", "plan"])
    def test_wrong_form_and_wrong_names_are_told_in_one_answer(self, api: Service, path: str) -> None:
        body = job_body(
            personas=["nobody", {"id": "x", "description": "a cook", "trait": {}}],
            models=[{"model": "acmee/acme-1", "temp": 1}],
            iterations="2",
            itteration=2,
        )
        problem = api.post(path, body)
        assert problem.status_code == 422
        told = {error["pointer"]: error["message"] for error in problem.json()["errors"]}
        assert told == {
            "/personas/1/trait": "unknown field; did you mean 'traits'?",
            "/models/0/temp": "unknown field; did you mean 'temperature'?",
            "/iterations": "must be a whole number",
            "/itteration": "unknown field; did you mean 'iterations'?",
            "/personas/0": "unknown persona or persona set 'nobody'; GET /v1/personas lists them",
            "/personas/1": "persona 'x' has no traits, but essay measures traits: add for example"
            ' "traits": {"E": "low"}',
            "/models/0": "unknown connection 'acmee'; did you mean 'acme'?",
        }

    def test_what_follows_from_a_wrong_field_is_not_told(self, api: Service) -> None:
        body = job_body(personas=[{"description": "a cook", "traits": [], "id": "cook"}], models="nobody/gpt")
        assert pointers(api.post("/v1/jobs", body)) == ["/personas/0/traits", "/models"]

    def test_a_form_that_cannot_be_read_is_told_alone(self, api: Service) -> None:
        assert pointers(api.post("/v1/jobs", job_body(personas=[5, "nobody"]))) == ["/personas/0"]

    def test_more_texts_for_one_item_than_runs_can_be_numbered(self, api: Service) -> None:
        # Runs are two-byte integers: 0 to 32,766. The first text beyond is named.
        response = api.post("/v1/jobs", with_texts(*[TEXT | {"text": "No."}] * 32_769))
        assert response.status_code == 422
        assert pointers(response)[0] == "/responses/32767/run"

    def test_a_text_of_more_sentences_than_can_be_numbered(self, api: Service) -> None:
        response = api.post("/v1/jobs", with_texts(TEXT, TEXT | {"text": "No! " * 33_000}))
        assert response.status_code == 422
        assert pointers(response) == ["/responses/1/text"]

    def test_more_items_than_memory(self, api: Service) -> None:
        # 1,000 personas × 20 dimensions × 200 questions are 4 million items in one run.
        dimensions = [POLITICS | {"id": f"d{n}", "questions": ["?!"] * 200} for n in range(20)]
        traits = {f"d{n}": "low" for n in range(20)}
        personas = [persona(id=f"p{n}", traits=traits) for n in range(1000)]
        response = api.post(
            "/v1/jobs",
            job_body(dimensions=dimensions, personas=personas, tasks=["questionnaire"], iterations=1),
        )
        assert response.status_code == 422
        assert response.elapsed.total_seconds() < 5
