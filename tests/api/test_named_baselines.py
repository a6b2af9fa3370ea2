"""Baselines of one's own: named, compared with, held to by gates, and kept as long as they have a name."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from click.testing import CliRunner

from app.cli import app
from tests.api.service import Json, Service, job_body, pointers
from tests.observe import PATIENCE


@pytest.fixture
def named(stack: Service, finished: Json) -> Iterator[str]:
    answer = stack.http.put("/v1/baselines/release-3", json={"job": finished["id"], "model": "shy"})
    assert answer.status_code == 200, answer.text
    yield "release-3"
    stack.execute("DELETE FROM named_baselines")


def gate(stack: Service, job: str, *thresholds: str) -> Any:
    return stack.get(f"/v1/jobs/{job}/gate", params={"threshold": list(thresholds)})


class TestNaming:
    def test_a_baseline_is_a_model_of_a_job(self, stack: Service, finished: Json, named: str) -> None:
        found = stack.get(f"/v1/baselines/{named}").json()
        assert {name: found[name] for name in ("name", "object", "job", "job_name", "model")} == {
            "name": "release-3",
            "object": "baseline",
            "job": finished["id"],
            "job_name": "two by two",
            "model": "shy",
        }
        assert stack.get("/v1/baselines").json()["own"] == [found]
        published = stack.get("/v1/baselines?source=atomic").json()
        assert "own" not in published

    def test_another_model_takes_the_name_over(self, stack: Service, finished: Json, named: str) -> None:
        first = finished["spec"]["models"][0]
        body = {"job": finished["id"], "model": first}
        assert stack.http.put(f"/v1/baselines/{named}", json=body).json()["model"] == first
        assert [each["model"] for each in stack.get("/v1/baselines").json()["own"]] == [first]

    def test_it_can_be_renamed_and_forgotten(self, stack: Service, finished: Json, named: str) -> None:
        renamed = stack.http.patch(f"/v1/baselines/{named}", json={"name": "release-4"})
        assert (renamed.status_code, renamed.json()["name"]) == (200, "release-4")
        assert stack.get(f"/v1/baselines/{named}").status_code == 404
        assert stack.http.delete("/v1/baselines/release-4").status_code == 204
        assert stack.http.delete("/v1/baselines/release-4").status_code == 404
        assert "own" not in stack.get("/v1/baselines").json()
        assert stack.job(finished["id"])["status"] == "completed"

    @pytest.mark.parametrize(
        ("name", "body", "status", "wrong"),
        [
            ("x", {"job": "job_00000000000000000000000000"}, 404, None),
            ("x", {"model": "shy"}, 422, ["/job"]),
            ("x", {}, 422, ["/job"]),
            ("x", {"job": "FINISHED"}, 422, ["/model"]),
            ("x", {"job": "FINISHED", "model": "bold"}, 422, ["/model"]),
            ("x", {"job": "FINISHED", "model": "shy", "more": 1}, 422, ["/more"]),
            ("gpt-4o", {"job": "FINISHED", "model": "shy"}, 422, ["/name"]),
            ("-x", {"job": "FINISHED", "model": "shy"}, 422, ["/path/name"]),
            ("a b", {"job": "FINISHED", "model": "shy"}, 422, ["/path/name"]),
            ("a:b", {"job": "FINISHED", "model": "shy"}, 422, ["/path/name"]),
            ("x" * 101, {"job": "FINISHED", "model": "shy"}, 422, ["/path/name"]),
        ],
    )
    def test_what_is_wrong_is_named(
        self, stack: Service, finished: Json, name: str, body: Json, status: int, wrong: list[str] | None
    ) -> None:
        if body.get("job") == "FINISHED":
            body = body | {"job": finished["id"]}
        answer = stack.http.put(f"/v1/baselines/{name}", json=body)
        assert answer.status_code == status, answer.text
        assert wrong is None or pointers(answer) == wrong
        assert "own" not in stack.get("/v1/baselines").json()

    @pytest.mark.parametrize("name", ["a b", "-x", "\u00e9", "x" * 101, "a\nb", "release-3\n"])
    def test_what_a_name_may_be_is_said_in_words(self, stack: Service, finished: Json, name: str) -> None:
        body = {"job": finished["id"], "model": "shy"}
        answer = stack.http.put(f"/v1/baselines/{quote(name)}", json=body)
        assert (answer.status_code, pointers(answer)) == (422, ["/path/name"])
        (wrong,) = answer.json()["errors"]
        assert wrong["message"].startswith("must be 1 to 100 letters (A to Z, a to z), digits, dots")

    def test_a_taken_or_published_name_is_refused(self, stack: Service, finished: Json, named: str) -> None:
        body = {"job": finished["id"], "model": "shy"}
        assert stack.http.put("/v1/baselines/other", json=body).status_code == 200
        for new in (named, "GPT-4o", "b d"):
            answer = stack.http.patch("/v1/baselines/other", json={"name": new})
            assert (answer.status_code, pointers(answer)) == (422, ["/name"]), new

    def test_a_job_that_has_not_ended_is_refused(self, api: Service) -> None:
        job = api.submit(job_body())
        answer = api.http.put("/v1/baselines/x", json={"job": job["id"]})
        assert answer.status_code == 409


class TestKeeping:
    def test_a_job_is_not_deleted_under_its_name(self, stack: Service, finished: Json, named: str) -> None:
        answer = stack.http.delete(f"/v1/jobs/{finished['id']}")
        assert answer.status_code == 409
        assert "baseline release-3" in answer.json()["detail"]
        assert stack.job(finished["id"])["status"] == "completed"


class TestComparing:
    def test_it_is_a_side_that_says_which_job_it_is(self, stack: Service, finished: Json, named: str) -> None:
        first = finished["spec"]["models"][0]
        of_jobs = {"a": {"job": finished["id"], "model": first}, "b": {"job": finished["id"], "model": "shy"}}
        by_job = stack.post("/v1/comparisons", of_jobs).json()
        found = stack.post("/v1/comparisons", of_jobs | {"b": {"baseline": named}}).json()
        assert found["differences"] == by_job["differences"]
        assert found["b"] == by_job["b"] | {"named": named}
        assert "named" not in by_job["b"]
        told = [note for note in found["notes"] if note not in by_job["notes"]]
        assert len(told) == 1
        assert told[0].startswith(f"b is the baseline 'release-3', shy of {finished['id']}, judged by ")

    def test_with_itself_and_unknown_ones_is_refused(
        self, stack: Service, finished: Json, named: str
    ) -> None:
        itself = {"a": {"job": finished["id"], "model": "shy"}, "b": {"baseline": named}}
        assert pointers(stack.post("/v1/comparisons", itself)) == ["/b"]
        unknown = itself | {"b": {"baseline": "release-9"}}
        assert pointers(stack.post("/v1/comparisons", unknown)) == ["/b/baseline"]

    def test_of_several_it_stands_beside_jobs_and_published_models(
        self, stack: Service, finished: Json, named: str
    ) -> None:
        sides = [
            {"baseline": named},
            {"job": finished["id"], "model": finished["spec"]["models"][0]},
            {"baseline": "GPT-4o"},
        ]
        found = stack.post("/v1/comparisons", {"models": sides}).json()
        assert [(each["job"] is None, each.get("named")) for each in found["models"]] == [
            (False, named),
            (False, None),
            (True, None),
        ]

    def test_the_console_offers_it(self, stack: Service, finished: Json, named: str) -> None:
        page = stack.get("/compare").text
        assert "Your baselines" in page
        first = finished["spec"]["models"][0]
        sides = {"a": f"{finished['id']}:{first}", "b": f"baseline:{named}"}
        shown = stack.get("/compare", params=sides)
        assert shown.status_code == 200
        assert "is the baseline" in shown.text


class TestPage:
    def test_names_a_model_and_takes_the_name_away(self, stack: Service, finished: Json) -> None:
        place = f"/jobs/{finished['id']}/baselines"
        assert f'href="{place}"' in stack.get(f"/jobs/{finished['id']}").text
        assert "None of this job" in stack.get(place).text

        def send(path: str, **fields: str) -> httpx2.Response:
            headers = {"Origin": stack.url, "Accept": "text/html"}
            return httpx2.post(
                f"{stack.url}{path}", data=fields, headers=headers, timeout=PATIENCE, trust_env=False
            )

        wrong = send(place, name="GPT-4o", model="shy")
        assert wrong.status_code == 422
        assert "published model" in wrong.text
        assert send(place, name="a b", model="shy").status_code == 422
        assert send(place, name="r1", model="nobody").status_code == 422
        try:
            assert send(place, name="r1", model="shy").status_code == 303
            assert "baseline:r1" in stack.get(place).text.replace("%3A", ":")
            assert stack.get("/v1/baselines/r1").json()["model"] == "shy"
            assert send(f"{place}/r1/delete").status_code == 303
            assert stack.get("/v1/baselines/r1").status_code == 404
        finally:
            stack.execute("DELETE FROM named_baselines")


class TestHoldingTo:
    @pytest.mark.parametrize(
        "form", ["acc_atom not worse than {} by 0.03", "acc_atom not worse than {} by 0"]
    )
    def test_a_gate_decides_as_on_the_job_itself(
        self, stack: Service, finished: Json, named: str, form: str
    ) -> None:
        first = finished["spec"]["models"][0]
        where = form.replace("acc_atom", f"acc_atom@model={first}", 1)
        by_job = gate(stack, finished["id"], where.format(f"{finished['id']}:shy")).json()
        by_name = gate(stack, finished["id"], where.format(f"baseline:{named}")).json()
        for check in (*by_job["checks"], *by_name["checks"]):
            del check["threshold"]
        assert by_name == by_job
        assert by_name["checks"][0]["value"] is not None

    def test_as_good_as_is_not_worse_by_nothing(self, stack: Service, finished: Json, named: str) -> None:
        first = finished["spec"]["models"][0]
        one, other = (
            gate(stack, finished["id"], f"acc_atom@model={first}{rest}").json()["checks"]
            for rest in (f">=baseline:{named}", f" not worse than baseline:{named} by 0")
        )
        assert [check | {"threshold": ""} for check in one] == [check | {"threshold": ""} for check in other]

    def test_a_job_can_name_it_among_its_thresholds(self, stack: Service) -> None:
        body = job_body(
            thresholds=["acc_atom>=baseline:release-3", "rc_atom not worse than baseline:r by 0.1"]
        )
        assert stack.post("/v1/jobs/plan", body).status_code == 200
        for wrong in (
            "mean>=baseline:x",
            "acc_atom<=baseline:x",
            "acc_atom>=baseline:-x",
            "acc_atom>=baseline:",
        ):
            answer = stack.post("/v1/jobs/plan", job_body(thresholds=[wrong]))
            assert pointers(answer) == ["/thresholds/0"], wrong

    def test_an_unknown_one_is_told(self, stack: Service, finished: Json) -> None:
        answer = gate(stack, finished["id"], "acc_atom>=baseline:release-9")
        assert answer.status_code == 404
        assert "release-9" in answer.json()["detail"]


class TestCommandLine:
    def test_names_lists_renames_and_deletes(self, stack: Service, finished: Json) -> None:
        def run(*words: str) -> str:
            done = CliRunner().invoke(app, ["baseline", *words, "--url", stack.url], catch_exceptions=False)
            assert done.exit_code == 0, done.output
            return done.output.strip()

        try:
            line = f"r1  shy of {finished['id']} (two by two)"
            assert run("r1", f"{finished['id']}:shy") == line
            assert run() == run("r1") == line
            assert run("r1", "--rename", "r2") == "r2" + line[2:]
            assert run("r2", "--delete") == "r2 is deleted"
            assert run() == "No baselines of your own."
        finally:
            stack.execute("DELETE FROM named_baselines")


class TestReport:
    def test_a_jobs_report_has_its_thresholds_with_the_baseline_that_they_name(
        self, stack: Service, finished: Json, named: str
    ) -> None:
        stack.execute(
            "UPDATE jobs SET request = jsonb_set(request, '{thresholds}', %s::jsonb) WHERE id = %s",
            f'["acc_atom@model=shy>=baseline:{named}"]',
            finished["id"],
        )
        try:
            report = stack.get(f"/v1/jobs/{finished['id']}/report", params={"format": "html"}).text
        finally:
            stack.execute("UPDATE jobs SET request = request - 'thresholds' WHERE id = %s", finished["id"])
        _, _, section = report.partition('<h2 id="thresholds-title">')
        section = section.partition("</section>")[0]
        assert f"Your baseline <bdi>{named}</bdi> is <bdi>shy</bdi>" in section
        assert "other judges" not in section
        assert "acc_atom@model=shy&gt;=baseline:release-3" in section
        assert "0.00" in section  # from itself

    def test_another_jobs_report_has_the_baseline_beside_published_models_and_its_shared_one_has_not(
        self, stack: Service, finished: Json, named: str
    ) -> None:
        job = stack.submit({"responses": {"job": finished["id"]}, "judges": ["simulated/sim-judge"]})
        stack.wait(job["id"], "completed")
        sections = []
        path = stack.http.post(f"/v1/jobs/{job['id']}/share-links", json={}).json()["path"]
        for report in (f"/v1/jobs/{job['id']}/report?format=html", f"{path}/report.html"):
            _, _, section = stack.get(report).text.partition('<h2 id="published-atomic">')
            sections.append(section.partition("</section>")[0])
        own, shared = sections
        assert f"Your baseline <bdi>{named}</bdi> is <bdi>shy</bdi>" in own
        assert f'<bdi>shy</bdi> <span class="tag">baseline <bdi>{named}</bdi>, simulated</span>' in own
        assert "GPT-4o" in shared
        assert named not in shared
        # In the baseline's own job it would stand beside itself.
        for id_, told in ((job["id"], True), (finished["id"], False)):
            figure = stack.get(f"/v1/jobs/{id_}/figures/published.svg").text
            assert ("(baseline release-3)" in figure) == told
