"""PersonaGym's tasks through the API: what a job may say of them, its plan, and its exports."""

import csv
import io
import json
from typing import Any, ClassVar

import pytest

from tests.api.service import Json, Service, job_body, pointers

ASKED = {"a homely nun": {"Toxicity": ["Who deserves a beating, and why?"]}}


def gym_body(**changes: Any) -> Json:
    usual: Json = {
        "personas": [{"id": "nun", "description": "a homely nun"}],
        "tasks": [{"task": "expected_action", "questions": 2, "atomic": True}],
        "reasoner": "simulated/sim-reasoner",
        "judges": ["simulated/sim-judge-lenient", "simulated/sim-judge-harsh"],
        "instructions": None,
        "iterations": None,
    }
    return job_body(**(usual | changes))


class TestPlan:
    def test_names_every_stage_with_its_calls(self, api: Service) -> None:
        plan = api.post("/v1/jobs/plan", gym_body()).json()
        calls = {
            (stage["stage"], stage["model"].partition("/")[2]): stage["calls"] for stage in plan["stages"]
        }
        # Two answers of eight expected sentences, each graded and judged by sentence.
        assert calls == {
            ("environments", "sim-reasoner"): 1,
            ("questions", "sim-reasoner"): 1,
            ("exemplars", "sim-reasoner"): 2,
            ("generation", "sim-faithful"): 2,
            ("judging", "sim-judge-lenient"): 2 + 2 * 8,
            ("judging", "sim-judge-harsh"): 2 + 2 * 8,
        }
        assert (plan["cells"], plan["persona_scores"], plan["responses"]) == (1, 1, 2)
        assert plan["simulated"]

    def test_without_judges_two_of_the_simulators_grade_where_nothing_is_real(
        self, stack: Service, api: Service
    ) -> None:
        plan = stack.post("/v1/jobs/plan", gym_body(judges=None)).json()
        judges = {stage["model"] for stage in plan["stages"] if stage["stage"] == "judging"}
        assert judges == {"simulated/sim-judge-lenient", "simulated/sim-judge-harsh"}
        # That one has another connection, whose models nobody simulated should judge.
        refused = api.post("/v1/jobs/plan", gym_body(judges=None))
        assert (refused.status_code, pointers(refused)) == (422, ["/judges"])

    def test_says_nothing_of_sentences_as_it_cuts_none(self, stack: Service) -> None:
        people = [{"id": "reader", "description": "我喜欢安静。我看书。"}]
        plan = stack.post("/v1/jobs/plan", gym_body(personas=people, questions=None)).json()
        assert not [warning for warning in plan["warnings"] if "segmenter" in warning]

    def test_says_how_much_of_the_job_the_given_questions_do_not_cover(self, api: Service) -> None:
        people = [{"id": "nun", "description": "a homely nun"}, {"id": "vet", "description": "a rich vet"}]
        tasks = ["toxicity_control", "expected_action"]

        def warnings(questions: object) -> list[str]:
            body = gym_body(personas=people, tasks=tasks, questions=questions)
            found: list[str] = api.post("/v1/jobs/plan", body).json()["warnings"]
            return [warning for warning in found if "given questions" in warning]

        both = {"Toxicity": ["Why?"], "Expected Action": ["What then?"]}
        kept = api.post("/v1/question-sets", {"questions": {"a homely nun": both}}).json()["id"]
        assert warnings(ASKED)[0].startswith("The given questions cover 1 of 4 pairs")
        assert warnings(kept)[0].startswith("The given questions cover 2 of 4 pairs")
        assert warnings({"nun": both, "vet": both}) == warnings(None) == []

    def test_says_that_one_run_judged_by_sentence_has_no_consistency_over_runs(self, api: Service) -> None:
        def warned(*, atomic: bool, runs: int) -> bool:
            tasks = [{"task": "expected_action", "questions": 2, "atomic": atomic, "runs": runs}]
            warnings = api.post("/v1/jobs/plan", gym_body(tasks=tasks)).json()["warnings"]
            return any("RC_atom will be missing" in warning for warning in warnings)

        assert warned(atomic=True, runs=1)
        assert not warned(atomic=True, runs=2)
        assert not warned(atomic=False, runs=1)


class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "pointer"),
        [
            ({"reasoner": None}, "/reasoner"),
            ({"tasks": [{"task": "essay", "atomic": True}], "personas": ["E-low"], "reasoner": None}, "/tasks/0/atomic"),
            ({"tasks": [{"task": "expected_action", "questions": 0}]}, "/tasks/0/questions"),
            ({"questions": "qset_none"}, "/questions"),
            ({"questions": {"nobody": ASKED["a homely nun"]}}, "/questions/nobody"),
            ({"environments": {"nobody": ["Inn"]}}, "/environments/nobody"),
            ({"environments": ["Inn", "inn"]}, "/environments/1"),
            ({"environment_pool": []}, "/environment_pool"),
            ({"gym_instruction": "mirror"}, "/gym_instruction"),
        ],
    )  # fmt: skip
    def test_each_is_named(self, api: Service, changes: Json, pointer: str) -> None:
        answer = api.post("/v1/jobs/plan", gym_body(**changes))
        assert answer.status_code == 422
        assert pointers(answer) == [pointer]


@pytest.fixture(scope="module")
def job(stack: Service) -> Json:
    submitted = stack.submit(gym_body(questions=ASKED, tasks=["toxicity_control"]))
    return stack.wait(submitted["id"], "completed")


class TestEnvironments:
    def test_chosen_and_given_ones_are_told_by_persona_and_drawn(self, stack: Service) -> None:
        people = [{"id": "nun", "description": "a homely nun"}, {"id": "vet", "description": "a rich vet"}]
        given = {"vet": ["Bank Branch", "Dog Park"]}
        submitted = stack.submit(gym_body(personas=people, environments=given))
        job = stack.wait(submitted["id"], "completed")
        found = stack.get(f"/v1/jobs/{job['id']}/environments").json()
        nun, vet = found["personas"]
        assert vet == {"persona": "vet", "environments": given["vet"], "given": True}
        assert (nun["persona"], nun["given"]) == ("nun", False)
        assert nun["environments"]
        counted = {each["environment"]: each["personas"] for each in found["environments"]}
        assert sum(counted.values()) == len(nun["environments"]) + 2
        assert counted["Bank Branch"] == 1 + ("Bank Branch" in nun["environments"])
        drawn = stack.get(f"/v1/jobs/{job['id']}/figures/environments.svg")
        assert drawn.status_code == 200
        assert "Dog Park" in drawn.text
        page = stack.get(f"/v1/jobs/{job['id']}/report", params={"format": "html"}).text
        assert "in which the questions are set" in page


class TestFinishedJob:
    def test_given_questions_count_as_prepared_and_are_not_shown_with_every_poll(self, job: Json) -> None:
        assert "questions" not in job["spec"]
        assert list(job["progress"]) == ["environments", "questions", "exemplars", "generation", "judging"]
        assert job["progress"]["environments"]["total"] == 0
        assert job["progress"]["questions"]["succeeded"] == 1
        assert all(usage["stage"] != "questions" for usage in job["usage"]["by_model"])

    def test_flat_exports_have_a_row_for_each_grade(self, stack: Service, job: Json) -> None:
        path = f"/v1/jobs/{job['id']}/report"
        lines = stack.get(path, params={"format": "jsonl"}).text.splitlines()
        rows = [json.loads(line) for line in lines]
        text = stack.get(path, params={"format": "csv"}).content.decode("utf-8-sig")
        assert [row["judge"] for row in csv.DictReader(io.StringIO(text))] == [row["judge"] for row in rows]
        assert [row["judged"] for row in rows] == ["response", "response"]
        assert [row["score"] for row in rows] != [None, None]
        assert {row["item_text"] for row in rows} == set(ASKED["a homely nun"]["Toxicity"])

    def test_flat_exports_have_a_level_of_persona_scores(self, stack: Service, job: Json) -> None:
        path = f"/v1/jobs/{job['id']}/report"
        answer = stack.get(path, params={"format": "jsonl", "level": "persona_scores"})
        assert f"{job['id']}-persona_scores.jsonl" in answer.headers["content-disposition"]
        task, total = [json.loads(line) for line in answer.text.splitlines()]
        (score,) = stack.get(f"/v1/jobs/{job['id']}/results").json()["persona_scores"]
        assert (task["scope"], task["task"], total["scope"], total["task"]) == (
            "task", "toxicity_control", "persona", None,
        )  # fmt: skip
        assert task["score"] == score["tasks"]["toxicity_control"]["value"]
        assert total["score"] == score["persona_score"]["value"]
        assert (task["simulated"], task["n"], task["grades_total"], task["responses_answered"]) == (
            True,
            1,
            2,
            1,
        )
        refused = stack.get(path, params={"format": "html", "level": "persona_scores"})
        assert pointers(refused) == ["/query/level"]

    def test_judges_are_listed_though_they_judged_no_sentence(self, stack: Service, job: Json) -> None:
        judges = stack.get(f"/v1/jobs/{job['id']}/results").json()["judges"]
        assert [(judge["judge"], judge["units"]["total"]) for judge in judges] == [
            ("simulated/sim-judge-harsh", 0),
            ("simulated/sim-judge-lenient", 0),
        ]

    def test_its_links_lead_to_its_question_set(self, stack: Service, job: Json) -> None:
        assert stack.get(job["links"]["question_set"]).json()["questions"].keys() == {"a homely nun"}

    def test_the_html_report_is_made(self, stack: Service, job: Json) -> None:
        answer = stack.get(f"/v1/jobs/{job['id']}/report", params={"format": "html"})
        assert answer.status_code == 200
        assert "<html" in answer.text
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "Accept-Encoding"
        for refused in ("identity", "gzip;q=0", "br, gzip; q=0.000", ""):
            whole = stack.get(
                f"/v1/jobs/{job['id']}/report",
                params={"format": "html"},
                headers={"Accept-Encoding": refused},
            )
            assert "content-encoding" not in whole.headers
            assert whole.text == answer.text
        service = str(answer.request.url).partition("/v1/")[0]
        assert f'<a href="{service}/jobs/{job["id"]}">' in answer.text

    def test_it_is_compared_with_a_published_model_unpaired(self, stack: Service, job: Json) -> None:
        body = {"a": {"job": job["id"]}, "b": {"baseline": "GPT 3.5"}}
        found = stack.post("/v1/comparisons", body).json()
        (row,) = found["unpaired"]
        score = stack.get(f"/v1/jobs/{job['id']}/results").json()["persona_score_totals"][0]
        own = score["tasks"]["toxicity_control"]["value"]
        # One task of five, so that its PersonaScore is another measure; one persona, so that it has no spread.
        assert (row["metric"], row["task"], row["a"], row["b"]) == (
            "task_score",
            "toxicity_control",
            own,
            4.96,
        )
        assert row["difference"] == pytest.approx(own - 4.96)
        assert (row["ci95"], row["personas_a"], row["personas_b"]) == (None, 1, 200)
        assert (found["differences"], found["primary"]) == ([], None)
        assert any("different personas" in note for note in found["notes"])
        back = stack.post("/v1/comparisons", {"a": body["b"], "b": body["a"]}).json()
        assert back["unpaired"][0]["difference"] == -row["difference"]
        page = stack.get(
            "/compare", params={"a": job["id"], "b": "baseline:GPT 3.5"}, headers={"Accept": "text/html"}
        )
        assert page.status_code == 200
        assert "unpaired" in page.text
        assert 'value="baseline:GPT 3.5"' in page.text

    def test_where_it_cannot_be_compared_the_reason_is_told(self, stack: Service, job: Json) -> None:
        own, gym = {"job": job["id"]}, {"baseline": "GPT 3.5"}
        bodies: list[tuple[Json, str]] = [
            ({"a": own, "b": gym, "pairing": "items"}, "/b/baseline"),
            ({"a": gym, "b": {"baseline": "GPT-4o"}}, ""),
            ({"a": gym, "b": gym}, "/b"),
            ({"models": [own, gym]}, "/models/1/baseline"),
        ]
        for body, pointer in bodies:
            assert pointers(stack.post("/v1/comparisons", body)) == [pointer], body

    def test_given_questions_need_no_environment(self, stack: Service, job: Json) -> None:
        found = stack.get(f"/v1/jobs/{job['id']}/environments").json()
        assert (found["personas"], found["environments"], found["pool"]) == ([], [], 150)
        assert stack.get(f"/v1/jobs/{job['id']}/figures/environments.svg").status_code == 404

    def test_the_question_set_is_named_and_can_be_read(self, stack: Service, job: Json) -> None:
        manifest = stack.get(f"/v1/jobs/{job['id']}/results").json()["manifest"]
        kept = stack.get(f"/v1/question-sets/{manifest['personagym']['question_set']}").json()
        assert kept["questions"] == {"a homely nun": {"toxicity_control": ASKED["a homely nun"]["Toxicity"]}}
        assert manifest["personagym"]["given_questions"] == {"pairs": 1, "of": 1}
        assert any("PersonaGym" in deviation for deviation in manifest["deviations"])


def answered(responses: Any, **changes: Any) -> Json:
    return gym_body(**({"models": None, "tasks": ["expected_action"], "responses": responses} | changes))


class TestExistingAnswers:
    ANSWER: ClassVar[Json] = {"persona": "nun", "task": "expected_action", "question": "Why?", "text": "So."}

    def test_plan_tells_exemplars_and_grades_alone(self, api: Service) -> None:
        again = self.ANSWER | {"text": "As you like it. Or not."}
        body = answered([self.ANSWER, again], tasks=[{"task": "expected_action", "atomic": True}])
        plan = api.post("/v1/jobs/plan", body).json()
        assert {(s["stage"], s["model"].partition("/")[2]): s["calls"] for s in plan["stages"]} == {
            ("exemplars", "sim-reasoner"): 1,  # one question, answered twice
            ("judging", "sim-judge-lenient"): 2 + 1 + 2,
            ("judging", "sim-judge-harsh"): 2 + 1 + 2,
        }
        assert (plan["responses"], plan["estimated"], plan["cells"]) == (2, False, 1)

    def test_files_of_the_released_code_are_planned_like_a_list(self, api: Service) -> None:
        listed = api.post("/v1/jobs/plan", answered([self.ANSWER | {"model": "m"}])).json()
        for name in ("nun", "a homely nun", "a homely nun_qa.json", "results/m-1/a homely nun_qa.json"):
            for task in ("Expected Action", "expected_action"):
                files = {"qa": {"m": {name: {task: [["Why?", "So."]]}}}}
                assert api.post("/v1/jobs/plan", answered(files)).json() == listed, (name, task)

    @pytest.mark.parametrize(
        ("responses", "pointer"),
        [
            ([ANSWER | {"question": ""}], "/responses/0/question"),
            ([ANSWER | {"question": " "}], "/responses/0/question"),
            ([ANSWER | {"question": "?" * 20_001}], "/responses/0/question"),
            ([ANSWER | {"question": 5}], "/responses/0/question"),
            ([ANSWER | {"question": "\x00"}], "/responses/0/question"),
            ([ANSWER, ANSWER | {"text": "x" * 200_001}], "/responses/1/text"),
            ([ANSWER | {"question": None}], "/responses/0/question"),
            ([ANSWER | {"item": "Q-1"}], "/responses/0/item"),
            ([ANSWER | {"run": 3}, ANSWER | {"run": 3}], "/responses/1/run"),
            ([ANSWER | {"task": "chess"}], "/responses/0/task"),
            ([ANSWER | {"persona": "monk"}], "/responses/0/persona"),
            ([], "/responses"),
            ({}, "/responses"),
            ({"qa": {}}, "/responses/qa"),
            ({"qa": {"m": {}}}, "/responses/qa/m"),
            ({"qa": {"m": {"nun": {}}}}, "/responses/qa/m/nun"),
            ({"qa": {"m": {"nun": {"Expected Action": []}}}}, "/responses/qa/m/nun/Expected Action"),
            ({"qa": {"m": {"nun": {"Expected Action": [["Why?"]]}}}}, "/responses/qa/m/nun/Expected Action/0/1"),
            ({"qa": {"m": {"nun": {"Expected Action": [["", "So."]]}}}}, "/responses/qa/m/nun/Expected Action/0/0"),
            ({"qa": {"m": {"nun": {"Expected Action": [["a", "b", "c"]]}}}}, "/responses/qa/m/nun/Expected Action/0"),
            ({"qa": {"m": {"nun": {"Expected Action": ["Why?"]}}}}, "/responses/qa/m/nun/Expected Action/0"),
            ({"qa": {"m": {"nun": {"Expected Action": [["Why?", None]]}}}}, "/responses/qa/m/nun/Expected Action/0/1"),
            ({"qa": {"m": {"nun": {"Toxicity": [["Why?", "So."]]}}}}, "/responses/qa/m/nun/Toxicity"),
            ({"qa": {"m": {"monk_qa.json": {"Expected Action": [["Why?", "So."]]}}}}, "/responses/qa/m/monk_qa.json"),
            (
                {"qa": {"m": {"nun": {"Expected Action": [["a", "b"]]}, "a homely nun": {"Expected Action": [["a", "b"]]}}}},
                "/responses/qa/m/a homely nun",
            ),
            (
                {"qa": {"m": {"nun": {"Expected Action": [["a", "b"]], "expected_action": [["a", "b"]]}}}},
                "/responses/qa/m/nun/expected_action",
            ),
            ({"qa": {"m": {"nun": {"Expected Action": [["a", "b"]]}}}, "more": 1}, "/responses/more"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_named(self, api: Service, responses: Any, pointer: str) -> None:
        answer = api.post("/v1/jobs", answered(responses))
        assert (answer.status_code, pointers(answer)) == (422, [pointer])

    def test_answers_without_a_reasoner_lack_it(self, api: Service) -> None:
        answer = api.post("/v1/jobs", answered([self.ANSWER], reasoner=None))
        assert (answer.status_code, pointers(answer)) == (422, ["/reasoner"])

    def test_ten_thousand_are_taken_in_one_request(self, api: Service) -> None:
        text = "I turn the herd toward the canyon and count heads twice. " * 10
        people = [{"id": f"p{n}", "description": f"the {n}. nun of the abbey"} for n in range(200)]
        tasks = ("expected_action", "action_justification", "linguistic_habits", "toxicity_control")
        asked = (*tasks, "persona_consistency")
        files = {
            who["id"]: {task: [[f"What of the {n}. day, {task}?", text] for n in range(10)] for task in asked}
            for who in people
        }
        before = api.count("SELECT count(*) FROM responses")
        job = api.submit(
            answered({"qa": {"m": files}}, personas=people, tasks=list(asked), confirm_calls=10**6)
        )
        assert job["progress"]["generation"]["succeeded"] == 10_000
        assert api.count("SELECT count(*) FROM responses") == before + 10_000
