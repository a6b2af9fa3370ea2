"""Whole responses graded by people, as in PersonaGym's study: rounds, the page, and what comes of known grades."""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from typing import Any

import pytest

from tests.api.service import Json, Service, pointers

PERSONAS = 8
TASKS = ("expected_action", "linguistic_habits")
MODELS = ("simulated/sim-drifting", "simulated/sim-refusing")
JUDGES = ("simulated/sim-judge-lenient", "simulated/sim-judge-noisy")


@pytest.fixture(scope="module")
def gym(stack: Service) -> Json:
    """A job with eight personas, two tasks, two models, two judges, and two questions each."""
    body = {
        "personas": [f"gym-{n:02}" for n in range(1, PERSONAS + 1)],
        "tasks": [{"task": task, "questions": 2} for task in TASKS],
        "models": list(MODELS),
        "reasoner": "simulated/sim-reasoner",
        "judges": list(JUDGES),
    }
    return stack.wait(stack.submit(body)["id"], "completed")


@pytest.fixture(scope="module")
def graded(stack: Service, gym: Json) -> list[Json]:
    """The responses that have a grade."""
    found = stack.walk(f"/v1/jobs/{gym['id']}/responses", limit=100)
    return [each for each in found if any(grade["score"] is not None for grade in each["grades"])]


@pytest.fixture
def service(stack: Service) -> Iterator[Service]:
    yield stack
    stack.empty("annotations", "labelling_rounds")


def draw(service: Service, job: Json, **body: object) -> Any:
    return service.post("/v1/labelling-rounds", {"job": job["id"], "kind": "responses"} | body)


def drawn(service: Service, job: Json, **body: object) -> Json:
    made = draw(service, job, **body)
    assert made.status_code == 201, made.text
    found: Json = made.json()
    return found


def page(service: Service, made: Json, annotator: str, at: int | None = None) -> str:
    parameters = {"annotator": annotator} | ({} if at is None else {"at": at})
    shown = service.get(made["links"]["page"], params=parameters)
    assert shown.status_code == 200
    return html.unescape(shown.text)


def say(service: Service, made: Json, annotator: str, at: int, answer: object) -> Any:
    form = {"annotator": annotator, "at": str(at), "answer": str(answer)}
    return service.http.post(made["links"]["page"], data=form, headers={"origin": service.url})


def position(shown: str) -> int:
    found = re.search(r'name="at" value="(\d+)"', shown)
    assert found is not None, shown
    return int(found[1])


def grade_all(service: Service, made: Json, annotator: str, answer: object) -> int:
    """Answers what the page asks until it asks no more; says how many that were."""
    given = 0
    while 'name="at"' in (shown := page(service, made, annotator)):
        assert say(service, made, annotator, position(shown), answer).status_code == 303
        given += 1
    return given


def annotated(service: Service) -> list[Json]:
    return list(service.walk("/v1/annotations", limit=500))


class TestRounds:
    def test_each_persona_comes_with_every_task_and_model_before_another_does(
        self, service: Service, gym: Json, graded: list[Json]
    ) -> None:
        made = drawn(service, gym, size=3 * len(TASKS) * len(MODELS))
        assert (made["kind"], made["dimension"], made["n"]) == ("responses", None, 12)
        available = Counter((each["model"], each["task"]) for each in graded)
        assert {
            (each["model"], each["task"]): (each["drawn"], each["available"], each["scores"])
            for each in made["strata"]
        } == {key: (3, available[key], []) for key in available}
        assert grade_all(service, made, "anna", 3) == 12
        by_id = {each["id"]: each for each in graded}
        said = [by_id[each["response"]] for each in annotated(service)]
        personas = Counter(each["persona"] for each in said)
        assert list(personas.values()) == [4, 4, 4]
        asked = defaultdict(set)
        for each in said:
            asked[each["persona"], each["task"]].add(each["question"])
        assert {len(questions) for questions in asked.values()} == {1}
        assert drawn(service, gym, size=12)["id"] == made["id"]

    def test_all_are_drawn_if_so_many_are_wanted(
        self, service: Service, gym: Json, graded: list[Json]
    ) -> None:
        made = drawn(service, gym, size=2_000)
        assert made["n"] == len(graded)
        assert all(each["drawn"] == each["available"] for each in made["strata"])

    def test_a_seed_draws_others(self, service: Service, gym: Json) -> None:
        for seed, name in enumerate(("anna", "ben", "carl")):
            grade_all(service, drawn(service, gym, size=4, seed=seed), name, 3)
        found = defaultdict(set)
        for each in annotated(service):
            found[each["annotator"]].add(each["response"])
        assert len(set(map(frozenset, found.values()))) > 1

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"dimension": "E"}, "/dimension"),
            ({"size": 2_001}, "/size"),
            ({"answers_each": 0}, "/answers_each"),
            ({"answers_each": 1.5}, "/answers_each"),
            ({"answers_each": 10**9}, "/answers_each"),
            ({"kind": "answers"}, "/kind"),
        ],
    )
    def test_what_cannot_be_drawn_is_refused(
        self, service: Service, gym: Json, body: Json, pointer: str
    ) -> None:
        answer = draw(service, gym, **body)
        assert (answer.status_code, pointers(answer)) == (422, [pointer])

    def test_responses_are_not_divided_by_scores(self, service: Service, gym: Json) -> None:
        answer = draw(service, gym, allocation="neyman")
        assert answer.status_code == 422
        assert "allocation neyman is for sentences" in answer.text

    def test_a_job_without_grades_has_none(self, service: Service, finished: Json) -> None:
        answer = draw(service, finished)
        assert (answer.status_code, pointers(answer)) == (422, ["/kind"])


class TestPage:
    def test_has_what_judges_have_and_neither_model_nor_scores(
        self, service: Service, gym: Json, graded: list[Json]
    ) -> None:
        made = drawn(service, gym, size=4)
        shown = page(service, made, "anna")
        (seen,) = [each for each in graded if each["text"].strip() in shown]
        assert seen["question"] in shown
        assert "Expected Action in Given Setting" in shown or "Linguistic Habits" in shown
        assert len(re.findall(r'<button name="answer" value="\d"', shown)) == 5
        examples = re.findall(r"<i><bdi>(.*?)</bdi></i>", shown, re.DOTALL)
        assert len(examples) == 5
        assert all(examples)
        hidden = (*MODELS, *JUDGES, gym["id"], seen["id"], *(g["justification"] for g in seen["grades"]))
        assert not [each for each in hidden if each and each in shown]

    @pytest.mark.parametrize("answer", ["0", "6", "not_applicable", "left", "", "4.0", "٣"])
    def test_another_answer_is_refused(self, service: Service, gym: Json, answer: str) -> None:
        made = drawn(service, gym, size=4)
        refused = say(service, made, "anna", 1, answer)
        assert refused.status_code == 422
        assert "must be a score from 1 to 5" in refused.text
        assert annotated(service) == []

    def test_what_was_said_can_be_changed_and_is_exported_as_it_is_imported(
        self, service: Service, gym: Json
    ) -> None:
        made = drawn(service, gym, size=4)
        assert say(service, made, "anna", 1, 2).status_code == 303
        assert 'value="2" data-key="2" aria-current="true"' in page(service, made, "anna", 1)
        assert say(service, made, "anna", 1, 5).status_code == 303
        (kept,) = annotated(service)
        assert (kept["unit"], kept["dimension"], kept["score"]) == (None, None, 5)
        exported = service.get("/v1/annotations?format=csv").content
        service.empty("annotations")
        assert service.send("/v1/annotations", exported, "text/csv").json()["created"] == 1
        assert service.get(f"/v1/labelling-rounds/{made['id']}").json()["annotators"] == [
            {"annotator": "anna", "answered": 1}
        ]


class TestAnswersEach:
    def test_each_is_answered_by_so_many_and_shown_to_no_further_people(
        self, service: Service, gym: Json
    ) -> None:
        made = drawn(service, gym, size=6, answers_each=2)
        assert made["answers_each"] == 2
        first = page(service, made, "anna")
        assert "0 of 6 answered" in first
        for name, share in (("anna", 6), ("ben", 4)):
            for _ in range(share):
                say(service, made, name, position(page(service, made, name)), 3)
        assert "0 of 2 answered" in page(service, made, "carl")
        assert grade_all(service, made, "carl", 4) == 2
        assert "Nothing left to rate" in page(service, made, "dora")
        assert "All done" in page(service, made, "anna")
        counts = Counter(each["response"] for each in annotated(service))
        assert list(counts.values()) == [2] * 6

    def test_of_people_who_answer_at_once_as_many_are_kept_as_shall(
        self, service: Service, gym: Json
    ) -> None:
        made = drawn(service, gym, size=3, answers_each=2)
        people = [f"person {n}" for n in range(6)]
        shown = {name: html.unescape(page(service, made, name)) for name in people}
        with ThreadPoolExecutor(len(people)) as pool:
            answers = list(pool.map(lambda name: say(service, made, name, position(shown[name]), 3), people))
        assert {each.status_code for each in answers} == {303}
        for name in people:
            grade_all(service, made, name, 4)
        counts = Counter(each["response"] for each in annotated(service))
        assert list(counts.values()) == [2] * 3
        # Who has answered may still change it.
        (first, *_) = annotated(service)
        at = next(
            n for n in range(1, 4) if 'aria-current="true"' in page(service, made, first["annotator"], n)
        )
        assert say(service, made, first["annotator"], at, 1).status_code == 303
        assert 1 in [each["score"] for each in annotated(service)]

    def test_an_answer_in_one_round_counts_in_another_at_the_same_moment(
        self, service: Service, gym: Json, graded: list[Json]
    ) -> None:
        rounds = [drawn(service, gym, size=len(graded), answers_each=1, seed=seed) for seed in (1, 2)]
        with ThreadPoolExecutor(6) as pool:
            people = [pool.submit(grade_all, service, rounds[n % 2], f"person {n}", 3) for n in range(6)]
        assert sum(each.result() for each in people) >= len(graded)
        counts = Counter(each["response"] for each in annotated(service))
        assert list(counts.values()) == [1] * len(graded)

    def test_pages_go_from_one_open_thing_to_the_next(self, service: Service, gym: Json) -> None:
        made = drawn(service, gym, size=6, answers_each=1)
        for _ in range(4):
            say(service, made, "anna", position(page(service, made, "anna")), 3)
        first = page(service, made, "ben")
        assert 'rel="prev"' not in first
        say(service, made, "ben", position(first), 3)
        again = page(service, made, "ben", position(first))
        following = re.search(r'rel="next" href="[^"]*at=(\d+)"', again)
        assert following is not None
        assert int(following[1]) == position(page(service, made, "ben"))

    def test_the_same_round_for_another_number_is_refused(self, service: Service, gym: Json) -> None:
        drawn(service, gym, size=6, answers_each=2)
        answer = draw(service, gym, size=6)
        assert (answer.status_code, pointers(answer)) == (422, ["/seed"])
        assert "answers_each 2" in answer.text
        assert drawn(service, gym, size=6, answers_each=2)["answers_each"] == 2

    def test_the_form_draws_them_too(self, service: Service, gym: Json) -> None:
        path = f"/jobs/{gym['id']}/labels"
        form = {"kind": "responses", "size": "4", "seed": "0", "answers_each": "2"}
        headers = {"origin": service.url}
        assert service.http.post(path, data=form, headers=headers).status_code == 303
        shown = service.get(path).text
        assert "4 responses" in shown
        assert "2 answers each" in shown
        wrong = service.http.post(path, data=form | {"answers_each": "two"}, headers=headers)
        assert wrong.status_code == 422


class TestAgreement:
    def read(self, service: Service, job: Json) -> Json:
        found: Json = service.get(f"/v1/jobs/{job['id']}/human-study").json()
        return found

    def said(self, response: Json, annotator: str, score: int) -> Json:
        return {"annotator": annotator, "response": response["id"], "score": score}

    def keep(self, service: Service, *annotations: Json) -> None:
        kept = service.post("/v1/annotations", {"annotations": list(annotations)})
        assert kept.status_code == 200, kept.text

    def by(self, response: Json, judge: str | None) -> float | None:
        given = [
            each["score"]
            for each in response["grades"]
            if each["score"] is not None and judge in {None, each["judge"]}
        ]
        return fmean(given) if given else None

    def test_is_empty_before_anybody_has_annotated(self, service: Service, gym: Json) -> None:
        assert self.read(service, gym) == {
            "job": gym["id"],
            "among_annotators": [],
            "data": [],
            "published": [],
        }

    def test_no_job_has_none(self, service: Service) -> None:
        path = "/v1/jobs/{}/human-study"
        assert service.get(path.format("job_01kxyz0abcdefghjkmnpqrstvw")).status_code == 404
        assert service.get(path.format("nothing")).status_code == 404

    def test_people_who_repeat_a_judge_agree_with_him_and_the_figures_are_scipys(
        self, service: Service, gym: Json, graded: list[Json]
    ) -> None:
        from scipy import stats

        lenient = [each for each in graded if self.by(each, JUDGES[0]) is not None]
        truth = {each["id"]: int(self.by(each, JUDGES[0]) or 0) for each in lenient}
        self.keep(
            service, *(self.said(each, name, truth[each["id"]]) for each in lenient for name in ("a", "b"))
        )
        found = {
            (each["model"], each["task"], each["judge"]): each for each in self.read(service, gym)["data"]
        }
        assert len(found) == len(MODELS) * (len(TASKS) + 1) * (len(JUDGES) + 1)
        for (model, task, judge), row in found.items():
            assert (row["kind"], row["dimension"]) == ("responses", None)
            if task is None:
                continue
            points = [
                (truth[each["id"]], score)
                for each in lenient
                if (each["model"], each["task"]) == (model, task)
                and (score := self.by(each, judge)) is not None
            ]
            one, other = zip(*points, strict=True)
            assert row["kendall_tau"]["n"] == len(points)
            if len(set(one)) == 1 or len(set(other)) == 1:
                assert row["kendall_tau"]["reason"].startswith("no_variation")
                continue
            assert row["kendall_tau"]["value"] == pytest.approx(stats.kendalltau(one, other).statistic)
            assert row["spearman_rho"]["value"] == pytest.approx(stats.spearmanr(one, other).statistic)
            if judge == JUDGES[0]:
                assert row["spearman_rho"]["value"] == pytest.approx(1.0)
                assert row["spearman_p"] < 0.01
        total = found[MODELS[0], None, JUDGES[0]]
        assert total["kendall_tau"]["n"] + total["left_out"] == PERSONAS
        assert total["kendall_tau"]["value"] == pytest.approx(1.0)
        for group in self.read(service, gym)["among_annotators"]:
            assert group["alpha_ordinal"]["value"] == pytest.approx(1.0)
            assert group["annotators"] == 2
        for path in (f"/jobs/{gym['id']}/labels", f"/v1/jobs/{gym['id']}/report?format=html"):
            shown = service.get(path).text
            assert "Agreement with people by model and task" in shown
            assert "PersonaScore</bdi>" in shown

    def test_follows_every_new_answer(self, service: Service, gym: Json, graded: list[Json]) -> None:
        self.keep(service, *(self.said(each, "a", 3) for each in graded))
        assert self.read(service, gym)["among_annotators"][0]["alpha_ordinal"]["value"] is None
        self.keep(service, *(self.said(each, "b", 1 + n % 5) for n, each in enumerate(graded)))
        assert self.read(service, gym)["among_annotators"][0]["alpha_ordinal"]["value"] is not None

    def test_a_rounds_responses_stand_for_all_of_their_model_and_task(
        self, service: Service, gym: Json, graded: list[Json]
    ) -> None:
        made = drawn(service, gym, size=16)
        grade_all(service, made, "anna", 3)
        results = service.get(f"/v1/jobs/{gym['id']}/results").json()
        available = Counter(each["task"] for each in graded)
        for group in results["human_agreement"]:
            weighted = group["weighted"]
            assert weighted["population"] == weighted["covered"] == available[group["task"]]


class TestPeopleAgainstJudges:
    def found(self, service: Service, job: Json, **parameters: object) -> list[str]:
        path = f"/v1/jobs/{job['id']}/responses"
        return [
            each["id"] for each in service.walk(path, people_against_judges="true", limit=7, **parameters)
        ]

    @pytest.mark.parametrize("gap", [None, 0.5, 1, 3.5])
    def test_grades_far_from_the_judges_mean_are_listed(
        self, service: Service, gym: Json, graded: list[Json], gap: float | None
    ) -> None:
        assert self.found(service, gym) == []
        people = {each["id"]: (1 + n % 5, 1 + n % 3) for n, each in enumerate(graded)}
        rows = [
            {"annotator": name, "response": each, "score": score}
            for each, scores in people.items()
            for name, score in zip(("anna", "ben"), scores, strict=True)
        ]
        assert service.post("/v1/annotations", {"annotations": rows}).status_code == 200
        judged = {
            each["id"]: fmean(g["score"] for g in each["grades"] if g["score"] is not None) for each in graded
        }
        wanted = [each for each in people if abs(fmean(people[each]) - judged[each]) >= (gap or 2)]
        assert wanted
        assert self.found(service, gym, **({} if gap is None else {"min_gap": gap})) == wanted
        (one, *_) = wanted
        shown = service.get(
            f"/jobs/{gym['id']}/responses", params={"people_against_judges": "true", "min_gap": gap or 2}
        ).text
        assert f"{fmean(people[one]):.2f}" in shown
        assert "for the response" in shown

    def test_a_sentence_counts_on_its_own_dimension(self, service: Service, finished: Json) -> None:
        path = f"/v1/jobs/{finished['id']}/responses"
        scored: dict[tuple[str, int], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for response in service.walk(path, persona="duo", task="social_media_post", limit=100):
            for unit in response["units"]:
                for v in unit["verdicts"]:
                    if v["score"] is not None:
                        scored[response["id"], unit["index"]][v["dimension"]].append(v["score"])
        (duo, unit), given = next((place, each) for place, each in scored.items() if len(each) == 1)
        ((judged, scores),) = given.items()
        (other,) = {"A", "N"} - {judged}

        def say(dimension: str, score: int) -> None:
            row = {"annotator": "anna", "response": duo, "unit": unit, "dimension": dimension}
            kept = service.post("/v1/annotations", {"annotations": [row | {"score": score}]})
            assert kept.status_code == 200

        say(judged, round(fmean(scores)))
        for score in (1, 5):  # no judge gave the sentence a score on that dimension
            say(other, score)
            assert self.found(service, finished) == []
        say(judged, 5 if fmean(scores) < 3 else 1)
        assert self.found(service, finished) == [duo]
        assert self.found(service, finished, persona="E-low") == []
        console = service.get(
            f"/jobs/{finished['id']}/responses", params={"people_against_judges": "true"}
        ).text
        assert f"for sentence {unit + 1} " in console

    @pytest.mark.parametrize(
        "parameters",
        [
            {"min_gap": "2"},
            {"people_against_judges": "true", "min_gap": "0"},
            {"people_against_judges": "true", "min_gap": "nan"},
            {"people_against_judges": "true", "min_gap": "1e9"},
            {"people_against_judges": "true", "min_gap": "two"},
        ],
    )
    def test_a_gap_that_is_none_is_refused(
        self, service: Service, gym: Json, parameters: dict[str, str]
    ) -> None:
        answer = service.get(f"/v1/jobs/{gym['id']}/responses", params=parameters)
        assert answer.status_code == 422
        assert [pointer.removeprefix("/query") for pointer in pointers(answer)] == ["/min_gap"]

    def test_it_may_be_combined_with_other_filters(
        self, service: Service, gym: Json, graded: list[Json]
    ) -> None:
        far = [each for each in graded if all(grade["score"] == 5 for grade in each["grades"])]
        rows = [{"annotator": "anna", "response": each["id"], "score": 1} for each in far]
        assert service.post("/v1/annotations", {"annotations": rows}).status_code == 200
        assert self.found(service, gym) == [each["id"] for each in far]
        assert self.found(service, gym, judges_disagree="true") == []
