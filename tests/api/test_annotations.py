"""Annotations, rounds of labelling, and the agreement that comes of them, of a finished job."""

import csv
import html
import io
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from app.domain.labels.annotation import MOST_ROWS
from tests.api.service import Json, Service, pointers
from tests.databases import libpq_url


@pytest.fixture
def service(stack: Service) -> Iterator[Service]:
    yield stack
    stack.empty("annotations", "labelling_rounds")


@pytest.fixture
def texts(service: Service, finished: Json) -> list[Json]:
    """Answers of one model, of one trait."""
    path = f"/v1/jobs/{finished['id']}/responses"
    found = service.walk(path, model="simulated/sim-faithful", persona="E-low", task="essay")
    return [response for response in found if len(response["units"]) > 2]


@pytest.fixture
def duo(service: Service, finished: Json) -> Json:
    """An answer that is judged on two dimensions."""
    path = f"/v1/jobs/{finished['id']}/responses"
    answer: Json = service.get(path, params={"persona": "duo", "task": "social_media_post"}).json()["data"][0]
    return answer


def keep(service: Service, *annotations: Json) -> Any:
    return service.post("/v1/annotations", {"annotations": list(annotations)})


def said(response: Json, unit: int | None, score: object, annotator: str = "anna", **more: object) -> Json:
    found = {"annotator": annotator, "response": response["id"], "unit": unit, "score": score, **more}
    return {name: value for name, value in found.items() if value is not None}


def judged(response: Json, unit: int) -> int | None:
    score: int | None = response["units"][unit]["verdicts"][0]["score"]
    return score


class TestKeeping:
    def test_the_same_again_changes_nothing_and_another_answer_replaces(
        self, service: Service, texts: list[Json]
    ) -> None:
        first = [said(texts[0], 0, 4), said(texts[0], 1, "not_applicable"), said(texts[0], None, 3)]
        assert keep(service, *first).json() == {"created": 3, "changed": 0, "unchanged": 0}
        assert keep(service, *first).json() == {"created": 0, "changed": 0, "unchanged": 3}
        second = [said(texts[0], 0, 5), first[1], said(texts[0], 0, 4, "ben")]
        assert keep(service, *second).json() == {"created": 1, "changed": 1, "unchanged": 1}
        assert service.get("/v1/annotations?annotator=%00").status_code == 422
        found = list(service.walk("/v1/annotations", annotator="anna", limit=1))
        assert [(each["unit"], each["score"]) for each in found] == [(0, 5), (1, "not_applicable"), (None, 3)]

    def test_a_pair_is_the_same_in_either_order(self, service: Service, texts: list[Json]) -> None:
        one, other = texts[0]["id"], texts[1]["id"]
        pair = {"annotator": "anna", "response": one, "unit": 0, "other_response": other, "other_unit": 1}
        turned = {"annotator": "anna", "response": other, "unit": 1, "other_response": one, "other_unit": 0}
        assert keep(service, pair | {"preferred": "first"}).json()["created"] == 1
        assert keep(service, turned | {"preferred": "second"}).json()["unchanged"] == 1
        assert keep(service, turned | {"preferred": "first"}).json()["changed"] == 1

    def test_csv_comes_back_as_it_went(
        self, service: Service, finished: Json, texts: list[Json], duo: Json
    ) -> None:
        keep(service, said(texts[0], 0, 4), said(duo, 0, 2, dimension="N"), said(duo, 0, 1, dimension="A"))
        path = f"/v1/annotations?format=csv&job={finished['id']}"
        exported = service.get(path).content
        assert [row["dimension"] for row in csv.DictReader(io.StringIO(exported.decode()))] == ["E", "N", "A"]
        again = service.send("/v1/annotations", exported, "text/csv; charset=utf-8")
        assert again.json() == {"created": 0, "changed": 0, "unchanged": 3}
        service.empty("annotations")
        assert service.send("/v1/annotations", exported, "text/csv").json()["created"] == 3
        assert service.get(path).content == exported

    def test_thousands_are_kept_in_their_order_and_whoever_sends_them_at_the_same_time_waits(
        self, service: Service, finished: Json, texts: list[Json]
    ) -> None:
        names = [f"person {n:03}" for n in range(MOST_ROWS // 8)]
        places = [(response, n) for response in texts for n in range(len(response["units"]))][:4]
        first = [said(*place, 4, name) for name in names for place in places]
        assert keep(service, *first).json() == {"created": len(first), "changed": 0, "unchanged": 0}
        kept = list(service.walk("/v1/annotations", limit=500))
        assert [(each["annotator"], each["unit"]) for each in kept] == [
            (each["annotator"], each["unit"]) for each in first
        ]
        higher = [each | {"score": 5} for each in first]
        lower = [each | {"score": 3} for each in reversed(first)]
        with ThreadPoolExecutor() as both:
            answers = list(both.map(lambda each: keep(service, *each), (higher, lower)))
        assert [answer.json()["changed"] for answer in answers] == [len(first)] * 2
        assert len({each["score"] for each in service.walk("/v1/annotations", limit=500)}) == 1

    def test_they_go_with_their_job(self, service: Service) -> None:
        body = {
            "personas": ["E-low"],
            "tasks": ["social_media_post"],
            "responses": [{"persona": "E-low", "task": "social_media_post", "text": "I stay in. I read."}],
            "judges": ["simulated/sim-judge"],
        }
        job = service.wait(service.submit(body)["id"], "completed")
        (response,) = service.walk(f"/v1/jobs/{job['id']}/responses")
        keep(service, said(response, 0, 1))
        assert service.http.delete(f"/v1/jobs/{job['id']}").status_code == 204
        assert service.get("/v1/annotations").json()["data"] == []


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
            ({"response": "resp_1"}, "response"),
            ({"response": "resp_01kxyz0abcdefghjkmnpqrstvw-0-0-0"}, "response"),
            ({"unit": 900}, "unit"),
            ({"score": 6}, "score"),
            ({"score": 0}, "score"),
            ({"score": 10**30}, "score"),
            ({"score": None}, "score"),
            ({"dimension": "N"}, "dimension"),
            ({"annotator": "=1+1"}, "annotator"),
            ({"preferred": "first"}, "preferred"),
            ({"score": 4.0}, "score"),
            ({"score": "high"}, "score"),
            ({"rating": 1}, "rating"),
        ],
    )
    def test_each_is_refused_by_row_and_field_and_nothing_is_kept(
        self, service: Service, texts: list[Json], change: Json, pointer: str
    ) -> None:
        wrong = {name: value for name, value in (said(texts[0], 0, 4) | change).items() if value is not None}
        answer = keep(service, said(texts[0], 1, 4), wrong)
        assert answer.status_code == 422
        assert set(pointers(answer)) == {f"/annotations/1/{pointer}"}
        assert service.get("/v1/annotations").json()["data"] == []

    def test_the_dimensions_own_number_for_not_applicable_is_told_the_word(
        self, service: Service, texts: list[Json]
    ) -> None:
        (told,) = keep(service, said(texts[0], 0, 9)).json()["errors"]
        assert told["message"] == "must lie between 1 and 5, or be not_applicable"

    def test_a_pair_needs_two_sentences_and_a_choice(
        self, service: Service, texts: list[Json], duo: Json
    ) -> None:
        pair = {"annotator": "anna", "response": texts[0]["id"], "unit": 0, "other_response": texts[0]["id"]}
        pairs = [
            pair | {"other_unit": 1},
            pair | {"preferred": "first"},
            pair | {"other_unit": 0, "preferred": "first"},
            pair | {"other_unit": 1, "preferred": "first", "score": 3},
            pair | {"other_unit": 0, "preferred": "first", "other_response": duo["id"]},
        ]
        assert pointers(keep(service, *pairs)) == [
            f"/annotations/{n}/{name}"
            for n, name in enumerate(("preferred", "other_unit", "other_unit", "score", "other_response"))
        ]

    def test_who_has_two_dimensions_must_say_which(self, service: Service, duo: Json) -> None:
        answer = keep(service, said(duo, 0, 4))
        assert pointers(answer) == ["/annotations/0/dimension"]
        assert answer.json()["errors"][0]["message"] == "is missing: one of A, N"

    def test_nobody_says_two_things_of_the_same(self, service: Service, texts: list[Json]) -> None:
        answer = keep(service, said(texts[0], 0, 4), said(texts[0], 0, 5, dimension="E"))
        assert pointers(answer) == ["/annotations/1"]

    def test_lines_are_named(self, service: Service, texts: list[Json]) -> None:
        body = f"annotator,response,unit,score\nanna,{texts[0]['id']},0,4\nanna,{texts[0]['id']},0,9\n"
        assert pointers(service.send("/v1/annotations", body.encode(), "text/csv")) == ["/lines/3/score"]
        assert service.send("/v1/annotations", b"\xff", "text/csv").status_code == 400
        assert service.send("/v1/annotations", b"x", "text/plain").status_code == 415


class TestAgreement:
    def test_results_have_it_where_somebody_has_annotated(
        self, service: Service, finished: Json, texts: list[Json]
    ) -> None:
        path = f"/v1/jobs/{finished['id']}/results"
        assert "human_agreement" not in service.get(path).json()
        scored = [
            (response, n, score)
            for response in texts
            for n in range(len(response["units"]))
            if (score := judged(response, n)) is not None
        ]
        for annotator in ("anna", "ben"):  # both say what the first judge says
            keep(service, *[said(response, n, score, annotator) for response, n, score in scored])
        (group,) = service.get(path).json()["human_agreement"]
        assert (group["kind"], group["dimension"], group["annotators"], group["n"]) == (
            *("sentences", "E", 2, len(scored)),
        )
        first, second = group["judges"]
        assert first["judge"] == "simulated/sim-judge"
        assert first["kendall_tau"]["value"] == first["spearman_rho"]["value"] == pytest.approx(1.0)
        assert first["kendall_tau"]["n"] == len(scored)
        assert second["spearman_rho"]["value"] < 1.0
        assert group["fleiss_kappa"]["value"] == pytest.approx(1.0)
        keep(service, said(*scored[0][:2], 6 - scored[0][2], "anna"))
        assert service.get(path).json()["human_agreement"][0]["fleiss_kappa"]["value"] < 1.0
        document = service.get(f"/v1/jobs/{finished['id']}/report?format=json").json()
        assert document["human_agreement"][0]["n"] == len(scored)

    def test_an_answer_that_was_given_before_the_last_and_is_seen_after_it_is_not_overlooked(
        self, service: Service, finished: Json, texts: list[Json]
    ) -> None:
        path = f"/v1/jobs/{finished['id']}/results"

        def agreement() -> float:
            answer = service.get(path)
            assert answer.status_code == 200, answer.text
            value: float = answer.json()["human_agreement"][0]["fleiss_kappa"]["value"]
            return value

        places = [(response, n) for response in texts for n in range(2)]
        for annotator in ("anna", "ben"):
            kept = keep(service, *[said(*place, 3 + n % 2, annotator) for n, place in enumerate(places)])
            assert kept.json() == {"created": len(places), "changed": 0, "unchanged": 0}
        assert agreement() == pytest.approx(1.0)
        with psycopg.connect(libpq_url(service.database_url)) as slow:
            slow.execute(
                "UPDATE annotations SET score = 1, updated_at = clock_timestamp() WHERE annotator = 'anna'"
            )
            keep(service, said(*places[0], 5, "ben"))
            before = agreement()
        assert agreement() < before

    def test_the_console_counts_scores_for_what_people_call_not_applicable(
        self, service: Service, finished: Json, texts: list[Json]
    ) -> None:
        page = f"/jobs/{finished['id']}/labels"
        title = "People: not applicable, judge: scored"
        assert title not in service.get(page).text
        scored = [
            (text, n) for text in texts for n in range(len(text["units"])) if judged(text, n) is not None
        ]
        keep(service, *(said(*place, "not_applicable") for place in scored[:3]))
        _, shown, table = service.get(page).text.partition(title)
        assert shown
        assert "100 % of 3" in table


class TestRounds:
    def draw(self, service: Service, job: Json, **body: object) -> Any:
        return service.post("/v1/labelling-rounds", {"job": job["id"], "kind": "sentences"} | body)

    def test_the_same_body_is_the_same_round(self, service: Service, finished: Json) -> None:
        body = {"dimension": "E", "size": 12}
        one, same = self.draw(service, finished, **body), self.draw(service, finished, **body)
        assert (one.status_code, one.json()["id"]) == (201, same.json()["id"])
        other = self.draw(service, finished, **body, seed=1).json()
        assert other["id"] != one.json()["id"]
        shown = one.json()
        assert shown["n"] == sum(stratum["drawn"] for stratum in shown["strata"]) == 12
        drawn: Counter[int] = Counter()
        available: Counter[int] = Counter()
        for stratum in shown["strata"]:
            drawn[stratum["scores"][0]] += stratum["drawn"]
            available[stratum["scores"][0]] += stratum["available"]
        assert all(
            drawn[score] in {available[score], max(drawn.values()), max(drawn.values()) - 1}
            for score in drawn
        )
        assert service.get(f"/v1/labelling-rounds/{shown['id']}").json() == shown

    def test_pairs_are_of_different_scores(self, service: Service, finished: Json) -> None:
        shown = self.draw(service, finished, kind="pairs", dimension="N", size=6).json()
        assert shown["n"] <= 6
        assert all(one != other for one, other in (stratum["scores"] for stratum in shown["strata"]))

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"dimension": "X"}, "/dimension"),
            ({}, "/dimension"),
            ({"dimension": "E", "size": 0}, "/size"),
            ({"dimension": "E", "kind": "trios"}, "/kind"),
        ],
    )
    def test_what_cannot_be_drawn_is_refused(
        self, service: Service, finished: Json, body: Json, pointer: str
    ) -> None:
        answer = self.draw(service, finished, **body)
        assert answer.status_code == 422
        assert pointers(answer) == [pointer]

    def test_what_there_is_not_is_not_found(self, service: Service) -> None:
        assert self.draw(service, {"id": "job_01kxyz0abcdefghjkmnpqrstvw"}).status_code == 404
        assert service.get("/v1/labelling-rounds/lab_01kxyz0abcdefghjkmnpqrstvw").status_code == 404
        assert service.get("/v1/labelling-rounds/lab").status_code == 404


class TestWeightedBack:
    def test_a_rounds_sentences_stand_for_all_that_it_drew_from(
        self, service: Service, finished: Json
    ) -> None:
        path = f"/v1/jobs/{finished['id']}/responses"
        texts = [each for each in service.walk(path, persona="E-low") if each["status"] == "answered"]
        scored = [
            (text, unit, score)
            for text in texts
            for unit in range(len(text["units"]))
            if (score := judged(text, unit)) is not None
        ]
        # They agree with the first judge but for two points, which they give one another's score.
        swapped = {4: 5, 5: 4}
        keep(service, *(said(text, unit, swapped.get(score, score)) for text, unit, score in scored))
        group = self.agreement(service, finished)
        assert group["weighted"]["population"] == group["weighted"]["covered"] == 0
        assert group["weighted"]["fleiss_kappa"]["reason"].startswith("not_drawn:")

        few = self.draw(service, finished, 12)
        group = self.agreement(service, finished)
        available = sum(stratum["available"] for stratum in few["strata"])
        assert available / 2 < group["weighted"]["covered"] <= group["weighted"]["population"] == available
        first = group["judges"][0]
        assert first["weighted"]["kendall_tau"]["n"] <= 12 < first["kendall_tau"]["n"]
        assert first["weighted"]["kendall_tau"]["value"] != first["kendall_tau"]["value"]

    def draw(self, service: Service, job: Json, size: int) -> Json:
        body = {"job": job["id"], "kind": "sentences", "dimension": "E", "size": size}
        shown: Json = service.post("/v1/labelling-rounds", body).json()
        return shown

    def agreement(self, service: Service, job: Json) -> Json:
        results = service.get(f"/v1/jobs/{job['id']}/results").json()
        (group,) = results["human_agreement"]
        found: Json = group
        return found


class TestPersonaGym:
    @pytest.fixture
    def gym(self, service: Service) -> Json:
        """A job whose answers are graded and also judged sentence by sentence."""
        body = {
            "personas": [{"id": "nun", "description": "a homely nun"}],
            "tasks": [{"task": "expected_action", "questions": 2, "atomic": True}],
            "models": ["simulated/sim-faithful"],
            "reasoner": "simulated/sim-reasoner",
            "judges": ["simulated/sim-judge"],
        }
        return service.wait(service.submit(body)["id"], "completed")

    def test_grades_have_people_beside_them_and_sentences_their_persona_and_question(
        self, service: Service, gym: Json
    ) -> None:
        answers = list(service.walk(f"/v1/jobs/{gym['id']}/responses"))
        kept = keep(service, *[said(each, None, each["grades"][0]["score"]) for each in answers])
        assert kept.json()["created"] == 2
        refused = keep(service, said(answers[0], None, "not_applicable"))
        assert pointers(refused) == ["/annotations/0/score"]
        (group,) = service.get(f"/v1/jobs/{gym['id']}/results").json()["human_agreement"]
        assert (group["kind"], group["task"], group["dimension"]) == ("responses", "expected_action", None)
        assert group["judges"][0]["kendall_tau"]["reason"].startswith("too_few_items: 2")
        made = service.post("/v1/labelling-rounds", {"job": gym["id"], "kind": "sentences", "size": 1}).json()
        shown = service.get(made["links"]["page"], params={"annotator": "anna"}).text
        assert "a homely nun" in shown
        assert any(answer["question"] in html.unescape(shown) for answer in answers)


class TestCalibration:
    def read(self, service: Service, job: Json, **parameters: object) -> Any:
        return service.get(f"/v1/jobs/{job['id']}/calibration", params=parameters)

    def label(self, service: Service, job: Json, size: int, score: int, dimension: str = "E") -> Json:
        """A round of sentences, all of which somebody gives this score."""
        body = {"job": job["id"], "kind": "sentences", "dimension": dimension, "size": size}
        drawn: Json = service.post("/v1/labelling-rounds", body).json()
        identifier = job["id"].replace("job_", "resp_")
        rows = [
            said({"id": f"{identifier}-{cell}-{run}-{item}"}, unit, score, dimension=dimension)
            for cell, run, item, unit in sorted(self.things(service, drawn))
        ]
        assert keep(service, *rows).status_code == 200
        return drawn

    def test_nobody_has_labelled(self, service: Service, finished: Json) -> None:
        assert self.read(service, finished).json() == {
            "job": finished["id"],
            "half_width": 0.03,
            "totals": [],
            "differences": [],
            "not_calibrated": {},
            "data": [],
        }

    def test_judged_figures_are_the_results_and_labels_of_all_sentences_are_the_truth(
        self, service: Service, finished: Json
    ) -> None:
        drawn = self.label(service, finished, 1_000, 5)
        assert drawn["n"] == sum(stratum["available"] for stratum in drawn["strata"])
        (found,) = self.read(service, finished).json()["data"]
        assert (found["dimension"], found["labels"]) == ("E", drawn["n"])
        results = service.get(f"/v1/jobs/{finished['id']}/results").json()["totals"]
        totals = {
            (each["model"], each["level"]): each["metrics"]
            for each in results
            if each["by"] == ["model", "level", "dimension"] and each["dimension"] == "E"
        }
        compared = 0
        for each in found["totals"]:
            if set(each["keys"]) == {"model", "level"}:
                level = each["keys"]["level"]
                judged = totals[each["keys"]["model"], level][each["metric"]]["value"]
                assert each["judged"] == pytest.approx(judged)
                chance = 0.2 if level == "neutral" else 0.4
                hit = float(level == "high")
                people = {"mean": 5.0, "acc_atom": hit}.get(each["metric"], (hit - chance) / (1 - chance))
                assert each["calibrated"]["value"] == pytest.approx(people)
                compared += 1
        assert compared == 3 * len(totals)

    def test_all_dimensions_together_are_the_results_where_each_has_labels(
        self, service: Service, finished: Json
    ) -> None:
        for dimension in "EA":
            self.label(service, finished, 1_000, 5, dimension)
        without = self.read(service, finished).json()
        for each in without["totals"] + without["differences"]:
            assert each["judged"] is each["calibrated"]["value"] is None
            assert each["ci95_texts_reason"].startswith("no_label: no sentence on N was drawn")
        assert without["not_calibrated"].keys() >= {"acc", "rc", "ic_atom", "rc_atom"}
        self.label(service, finished, 1_000, 5, "N")
        found = self.read(service, finished).json()
        results = service.get(f"/v1/jobs/{finished['id']}/results").json()["totals"]
        for each in found["totals"]:
            (total,) = (
                one
                for one in results
                if set(one["by"]) == set(each["keys"]) and all(one[k] == v for k, v in each["keys"].items())
            )
            assert each["judged"] == pytest.approx(total["metrics"][each["metric"]]["value"])
            assert each["metric"] != "mean" or each["calibrated"]["value"] == pytest.approx(5)
        assert {tuple(each["keys"]) for each in found["totals"]} >= {("model",), ("model", "level")}

    def test_a_few_labels_have_intervals_and_say_how_many_more_it_takes(
        self, service: Service, finished: Json
    ) -> None:
        self.label(service, finished, 60, 3)
        (found,) = self.read(service, finished, half_width=0.1).json()["data"]
        assert found["labels"] == 60
        for each in found["totals"] + found["differences"]:
            if each["calibrated"]["value"] is None:
                assert each["ci95_texts_reason"]
            elif each["ci95_texts"] is not None:
                low, high = each["ci95_texts"]
                assert low <= each["calibrated"]["value"] <= high
                assert each["labels_needed"] >= each["labels_needed_at_best"]
        assert {each["judge"] for each in found["judge_errors"]} == set(finished["spec"]["judges"])
        assert {each["by"] for each in found["judge_errors"]} == {None, "level", "model", "length"}
        lengths = {each["key"] for each in found["judge_errors"] if each["by"] == "length"}
        assert lengths == {"short", "long"}

    def test_stands_beside_the_judges_figures_in_report_and_console(
        self, service: Service, finished: Json
    ) -> None:
        pages = (f"/v1/jobs/{finished['id']}/report?format=html", f"/jobs/{finished['id']}/labels")
        title = "Human scores estimated for all texts"
        for path in pages:
            assert title not in service.get(path).text
        self.label(service, finished, 200, 3)
        (found,) = self.read(service, finished).json()["data"]
        (figure,) = (
            each
            for each in found["totals"]
            if each["metric"] == "mean" and each["keys"] == {"model": "simulated/sim-faithful"}
        )
        cells = [
            f"<td>{figure['judged']:.2f}</td><td>{figure['calibrated']['value']:.2f}",
            f"<td>{figure['calibrated']['n']}</td><td>{figure['labels_needed']:,}",
        ]
        for path in pages:
            _, shown, section = service.get(path).text.partition(f">{title}</h2>")
            assert shown
            flat = "".join(section.partition("</section>")[0].split("\n"))
            assert "<td><bdi>all</bdi></td>" not in flat
            for cell in cells:
                assert cell in flat

    def test_a_further_round_is_divided_by_the_labels_so_far(self, service: Service, finished: Json) -> None:
        body = {"job": finished["id"], "kind": "sentences", "dimension": "E", "size": 40}
        neyman = body | {"allocation": "neyman", "seed": 1}
        refused = service.post("/v1/labelling-rounds", neyman)
        assert pointers(refused) == ["/allocation"]
        assert "there are 0" in refused.json()["errors"][0]["message"]
        assert pointers(service.post("/v1/labelling-rounds", neyman | {"kind": "pairs"})) == [""]
        first = self.label(service, finished, 40, 3)
        assert first["allocation"] == "even"
        assert all(stratum["spread"] is None for stratum in first["strata"])
        assert pointers(service.post("/v1/labelling-rounds", neyman | {"seed": 0})) == ["/seed"]
        made = service.post("/v1/labelling-rounds", neyman).json()
        assert service.post("/v1/labelling-rounds", neyman).json()["id"] == made["id"]
        assert (made["allocation"], made["n"]) == ("neyman", 40)
        assert all(stratum["spread"] > 0 for stratum in made["strata"])
        sizes = [
            {(s["task"], *s["scores"]): s["available"] for s in each["strata"]} for each in (first, made)
        ]
        assert sizes[0] == sizes[1]
        one, other = self.things(service, first), self.things(service, made)
        assert not one & other
        assert service.get(made["links"]["page"], params={"annotator": "anna"}).status_code == 200
        shown = service.get(f"/jobs/{finished['id']}/labels").text
        assert "divided by earlier labels" in shown

    def things(self, service: Service, drawn: Json) -> set[tuple[int, ...]]:
        with psycopg.connect(libpq_url(service.database_url)) as connection:
            ((things,),) = connection.execute(
                "SELECT things FROM labelling_rounds WHERE id = %s", [drawn["id"]]
            ).fetchall()
        return {tuple(place) for (place,) in things}

    def test_what_nobody_drew_says_nothing(self, service: Service, finished: Json, texts: list[Json]) -> None:
        keep(service, *[said(text, n, 1) for text in texts for n in range(3)])
        assert self.read(service, finished).json()["data"] == []

    def test_what_there_is_not_is_not_found(self, service: Service) -> None:
        assert self.read(service, {"id": "job_01kxyz0abcdefghjkmnpqrstvw"}).status_code == 404
