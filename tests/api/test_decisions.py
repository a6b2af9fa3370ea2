"""Baselines, comparisons and gates."""

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.api.service import Json, Service, job_body
from tests.api.test_pages import look

NO_JOB = f"job_{'0' * 26}"


def pointers(answer: Any) -> list[str]:
    assert answer.status_code == 422
    return [error["pointer"] for error in answer.json()["errors"]]


class TestBaselines:
    def test_they_have_the_form_of_results(self, api: Service) -> None:
        found = api.get("/v1/baselines", params={"model": "GPT-4o", "task": "essay"}).json()
        assert len(found["cells"]) == 15
        assert found["published"]
        assert found["totals"][0]["by"] == ["model"]

    def test_an_unknown_source_or_filter_is_refused(self, api: Service) -> None:
        assert pointers(api.get("/v1/baselines?source=blog")) == ["/query/source"]
        assert pointers(api.get("/v1/baselines?modle=GPT-4o")) == ["/query/modle"]


class TestComparisons:
    def test_two_models_of_a_job_are_compared(self, stack: Service, finished: Json) -> None:
        models = [{"job": finished["id"], "model": name} for name in ("simulated/sim-faithful", "shy")]
        found = stack.post("/v1/comparisons", {"a": models[0], "b": models[1]}).json()
        (row,) = [r for r in found["differences"] if (r["metric"], r["task"]) == ("acc_atom", None)]
        assert row["difference"] == pytest.approx(row["a"] - row["b"])
        assert (row["pairs"], row["personas"]) == (9, 2)
        assert row["ci95_reason"] == "too_few_personas: 2 personas; an interval needs 5"
        assert row["smallest_p_value"] == 0.5
        assert found["simulated"]
        assert {each["id"]: each["description"] for each in found["personas"]} == {
            "E-low": "introverted person",
            "duo": "a warm but anxious neighbour",
        }
        (duo,) = (each for each in found["personas"] if each["id"] == "duo")
        assert [trait["words"] for trait in duo["traits"]] == [
            "high in agreeableness",
            "low in emotional stability (neurotic)",
        ]
        assert found["notes"][0].startswith("Simulated:")
        # "shy" has refused some answers, so its runs are shorter: RC and RC_atom show nothing of the two.
        other_length = [
            r["metric"] for r in found["differences"] if str(r["ci95_reason"]).startswith("other_length: ")
        ]
        assert {"rc", "rc_atom"} <= set(other_length)
        tested = sum(r["task"] is None and r["p_value"] is not None for r in found["differences"])
        assert (
            found["notes"][-1]
            == f"2 personas cannot give a p-value below 0.5, or below 1 corrected for {tested - 1} metrics."
        )
        back = stack.post("/v1/comparisons", {"a": models[1], "b": models[0]}).json()
        assert [-r["difference"] for r in back["differences"]] == [
            r["difference"] for r in found["differences"]
        ]

    def test_the_page_says_who_the_personas_are(self, stack: Service, finished: Json) -> None:
        one, other = (f"{finished['id']}:{name}" for name in ("simulated/sim-faithful", "shy"))
        for query in (f"a={one}&b={other}", f"model={one}&model={other}"):
            shown = look(stack, f"/compare?{query}")
            assert shown.status_code == 200
            assert "The 2 personas of these values" in shown.text
            assert "a warm but anxious neighbour" in shown.text
            assert "low in emotional stability (neurotic)" in shown.text
        published = look(stack, f"/compare?a={other}&b=baseline:GPT-4o").text
        left_out = published.partition("left out")[2].partition("</ul>")[0]
        assert "a warm but anxious neighbour" in left_out

    def test_a_job_is_compared_with_a_published_model(self, stack: Service, finished: Json) -> None:
        body = {"a": {"job": finished["id"], "model": "shy"}, "b": {"baseline": "GPT-4o"}}
        found = stack.post("/v1/comparisons", body).json()
        assert {row["pairs"] for row in found["differences"] if row["task"] is None} <= {1, 2, 3}
        assert "duo" in {each["persona"] for each in found["left_out"]}
        assert any("Published results" in note for note in found["notes"])
        described = {each["id"]: each["description"] for each in found["personas"]}
        assert described["N-high"], "a persona of the paper's that the job has not"
        assert described.keys() >= {each["persona"] for each in found["left_out"]}

    def test_two_models_are_paired_by_what_they_were_asked(self, stack: Service, finished: Json) -> None:
        models = [{"job": finished["id"], "model": name} for name in ("simulated/sim-faithful", "shy")]
        body = {"a": models[0], "b": models[1], "pairing": "items"}
        found = stack.post("/v1/comparisons", body).json()
        assert found["pairing"] == "items"
        rows = [r for r in found["differences"] if (r["metric"], r["task"]) == ("acc_atom", "questionnaire")]
        left = [
            each
            for each in found["left_out"]
            if (each["metric"], each["task"]) == ("acc_atom", "questionnaire")
        ]
        # E-low has ten questions, duo ten for each of its two traits; those that one of the two refused have no partner.
        assert rows[0]["pairs"] + len(left) == rows[0]["over_items"]["items"] + len(left) == 30
        assert all(each["item"].endswith("?") for each in left)
        assert rows[0]["over_items"]["ci95"] is not None
        assert rows[0]["ci95_reason"] == "too_few_personas: 2 personas; an interval needs 5"

    def test_several_models_are_compared_by_what_they_were_asked(
        self, stack: Service, finished: Json
    ) -> None:
        models = [{"job": finished["id"], "model": name} for name in ("simulated/sim-faithful", "shy")]
        two = stack.post("/v1/comparisons", {"a": models[0], "b": models[1], "pairing": "items"}).json()
        many = stack.post("/v1/comparisons", {"models": models, "pairing": "items"}).json()
        assert (many["pairing"], many["calibrated"]) == ("items", [])
        for task, rankings in (
            (None, many["rankings"]),
            *((each["task"], [each]) for each in many["in_tasks"]),
        ):
            row = next(r for r in two["differences"] if (r["metric"], r["task"]) == ("acc_atom", task))
            ranking = rankings[0]
            (pair,), (of_items,) = ranking["differences"], ranking["over_items"]
            assert ranking["values"] == row["pairs"]
            assert pair["difference"] == of_items["difference"] == pytest.approx(abs(row["difference"]))
            assert pair["ci95_reason"] == "too_few_personas: 2 personas; an interval needs 5"
            if row["over_items"]["items"] < 5:
                assert of_items["ci95_reason"].startswith("too_few_items: ")
                continue
            low, high = of_items["ci95"]
            assert low <= of_items["difference"] <= high
            assert (of_items["p_value"] < 0.05) == (row["over_items"]["p_value"] < 0.05)

    def test_published_figures_have_no_items(self, stack: Service, finished: Json) -> None:
        body = {"a": {"job": finished["id"], "model": "shy"}, "b": {"baseline": "GPT-4o"}, "pairing": "items"}
        assert pointers(stack.post("/v1/comparisons", body)) == ["/b/baseline"]
        assert pointers(stack.post("/v1/comparisons", body | {"pairing": "runs"})) == ["/pairing"]

    def test_wrong_sides_are_named(self, stack: Service, finished: Json) -> None:
        good = {"job": finished["id"], "model": "shy"}
        sides: list[tuple[Json, list[str]]] = [
            ({"job": finished["id"]}, ["/b/model"]),
            ({"job": finished["id"], "model": "nobody"}, ["/b/model"]),
            ({"baseline": "GPT-9"}, ["/b/baseline"]),
            ({"baseline": "GPT-4o", "model": "x"}, ["/b"]),
            ({}, ["/b"]),
            (good, ["/b"]),
        ]
        for side, wrong in sides:
            assert pointers(stack.post("/v1/comparisons", {"a": good, "b": side})) == wrong

    def test_an_unknown_published_model_is_answered_with_those_that_there_are(
        self, stack: Service, finished: Json
    ) -> None:
        sides = {"a": {"job": finished["id"], "model": "shy"}, "b": {"baseline": "GPT-9"}}
        (error,) = stack.post("/v1/comparisons", sides).json()["errors"]
        assert "GPT-4o" in error["message"]
        assert "Claude" in error["message"]

    def test_jobs_that_are_not_there_or_not_over_are_refused(self, api: Service) -> None:
        queued = api.submit(job_body())["id"]
        for job, status in ((NO_JOB, 404), ("nonsense", 404), (queued, 409)):
            body = {"a": {"job": job, "model": "x"}, "b": {"baseline": "GPT-4o"}}
            assert api.post("/v1/comparisons", body).status_code == status


class TestGate:
    def test_figures_are_held_to_thresholds(self, stack: Service, finished: Json) -> None:
        path = f"/v1/jobs/{finished['id']}/gate"
        where = "refusal_rate@model=simulated/sim-faithful"
        query = {"threshold": [f"{where}<=1", f"{where}:gte:1"], "interval": "runs"}
        found = stack.get(path, params=query).json()
        assert found["verdict"] == "fail"
        assert [check["verdict"] for check in found["checks"]] == ["pass", "fail"]
        suite = ET.fromstring(stack.get(path, params=query | {"format": "junit"}).text)[0]
        assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")

    def test_one_run_for_a_wording_tells_nothing_of_repetition(self, stack: Service, finished: Json) -> None:
        query = {"threshold": "acc_atom@model=simulated/sim-faithful>=0", "interval": "runs"}
        (check,) = stack.get(f"/v1/jobs/{finished['id']}/gate", params=query).json()["checks"]
        assert check["verdict"] == "inconclusive"
        assert "too few runs for a wording" in check["reason"]

    def test_two_personas_tell_nothing_of_others(self, stack: Service, finished: Json) -> None:
        found = stack.get(f"/v1/jobs/{finished['id']}/gate", params={"threshold": "acc_atom>=0"}).json()
        assert found["verdict"] == "inconclusive"

    def test_wrong_thresholds_are_named(self, api: Service) -> None:
        job = api.submit(job_body())["id"]
        answer = api.get(f"/v1/jobs/{job}/gate", params={"threshold": ["acc_atom>=0.8", "speed>=1"]})
        assert pointers(answer) == ["/query/threshold/1"]
        assert pointers(api.get(f"/v1/jobs/{job}/gate")) == ["/query/threshold"]
        assert pointers(api.post("/v1/jobs", job_body(thresholds=["speed>=1"]))) == ["/thresholds/0"]
        assert api.get(f"/v1/jobs/{NO_JOB}/gate?threshold=acc_atom>=0.8").status_code == 404

    def test_a_job_brings_thresholds_of_its_own(self, api: Service) -> None:
        job = api.submit(job_body(thresholds=["acc_atom>=0.8"]))["id"]
        found = api.get(f"/v1/jobs/{job}/gate").json()
        assert found["verdict"] == "inconclusive"
        assert {check["threshold"] for check in found["checks"]} == {"acc_atom>=0.8"}
        report = api.get(f"/v1/jobs/{job}/report?format=junit")
        assert ET.fromstring(report.text)[0].attrib["failures"] == "0"

    def test_a_junit_report_needs_thresholds(self, api: Service) -> None:
        job = api.submit(job_body())["id"]
        assert pointers(api.get(f"/v1/jobs/{job}/report?format=junit")) == ["/query/threshold"]
