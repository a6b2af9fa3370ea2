"""What a job leaves: results, responses, reports. Run by real workers on simulated models."""

import csv
import html
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

from tests.api.service import Json, Service, job_body, pointers
from tests.e2e.stack import Stack

# Runs: 2 instructions × 1 iteration. Items: E-low 10 + 1 + 1, duo (two traits) 20 + 2 + 1.
RESPONSES = 2 * 2 * (12 + 23)
# Result cells: 2 models × (1 + 2 traits) × 3 tasks.
CELLS = 2 * 3 * 3


class TestFinishedJob:
    def test_it_completed_in_full(self, finished: Json, finished_body: Json) -> None:
        assert (finished["status"], finished["completeness"], finished["error"]) == (
            "completed",
            "full",
            None,
        )
        assert finished["created_at"] < finished["started_at"] < finished["finished_at"]
        assert finished["spec"] == finished_body

    def test_its_progress_is_whole(self, finished: Json) -> None:
        generation, judging = finished["progress"]["generation"], finished["progress"]["judging"]
        assert (generation["total"], generation["succeeded"]) == (RESPONSES, RESPONSES)
        assert judging["succeeded"] == judging["total"] > 10 * RESPONSES
        assert not judging["estimated"]

    def test_usage_adds_up(self, finished: Json) -> None:
        usage = finished["usage"]
        for name in ("calls", "failed_calls", "input_tokens", "output_tokens", "cached_input_tokens"):
            assert usage[name] == sum(row[name] for row in usage["by_model"])
        generated = [row["calls"] for row in usage["by_model"] if row["stage"] == "generation"]
        assert generated == [RESPONSES // 2] * 2
        # What the judges were asked is what they answered; refusals were not sent to them.
        asked = sum(row["calls"] for row in usage["by_model"] if row["stage"] == "judging")
        assert 0 < asked < finished["progress"]["judging"]["total"]

    def test_it_needs_no_more_polling(self, stack: Service, finished: Json) -> None:
        response = stack.get(f"/v1/jobs/{finished['id']}")
        assert "retry-after" not in response.headers
        again = stack.get(f"/v1/jobs/{finished['id']}", headers={"If-None-Match": response.headers["etag"]})
        assert again.status_code == 304


class TestDistances:
    def test_that_of_two_runs_is_what_rc_atom_says(self, stack: Service, finished: Json) -> None:
        results = stack.get(f"/v1/jobs/{finished['id']}/results").json()
        known = 0
        for cell in [cell for cell in results["cells"] if cell["persona"] == "duo"]:
            chosen = {name: cell[name] for name in ("model", "persona", "task", "dimension")}
            found = stack.get(f"/v1/jobs/{finished['id']}/distances", params=chosen).json()
            assert {name: found[name] for name in chosen} == chosen
            assert [run["run"] for run in found["runs"]] == [0, 1]
            for judge in found["by_judge"]:
                ((_, apart), _) = judge["distances"]
                rc_atom = cell["by_judge"][judge["judge"]]["metrics"]["rc_atom"]["value"]
                expected = None if apart is None else pytest.approx(1 - 2 * apart / found["width"], abs=1e-4)
                assert rc_atom == expected
                known += rc_atom is not None
        assert known > 5

    @pytest.mark.parametrize(
        ("asked", "pointer"),
        [
            ({"persona": "nobody", "task": "essay"}, "/query/persona"),
            ({"persona": "duo", "task": "opera"}, "/query/task"),
            ({"persona": "duo", "task": "essay"}, "/query/dimension"),
            ({"persona": "duo", "task": "essay", "model": "m"}, "/query/model"),
            ({"persona": "duo"}, "/query/task"),
        ],
    )
    def test_what_names_no_cell_is_told(
        self, stack: Service, finished: Json, asked: dict[str, str], pointer: str
    ) -> None:
        model = finished["spec"]["models"][0]
        label = model if isinstance(model, str) else model["model"]
        response = stack.get(f"/v1/jobs/{finished['id']}/distances", params={"model": label} | asked)
        assert response.status_code == 422
        assert pointer in {error["pointer"] for error in response.json()["errors"]}


class TestFiguresOfResponses:
    def test_they_average_to_the_cells_and_the_export_holds_the_same(
        self, stack: Service, finished: Json
    ) -> None:
        chosen = {"model": "simulated/sim-faithful", "persona": "duo", "task": "social_media_post"}
        listed = stack.get(f"/v1/jobs/{finished['id']}/responses", params=chosen | {"limit": "50"}).json()
        results = stack.get(f"/v1/jobs/{finished['id']}/results").json()
        cells = [c for c in results["cells"] if {name: c[name] for name in chosen} == chosen]
        assert len(cells) == 2
        for cell in cells:  # one response a run
            own = [
                figures
                for response in listed["data"]
                for figures in response["figures"]
                if figures["dimension"] == cell["dimension"]
            ]
            assert len(own) == 2
            for name in ("mean", "acc_atom"):
                expected = cell["metrics"][name]["value"]
                assert sum(each[name] for each in own) / 2 == pytest.approx(expected)
        export = {"format": "jsonl", "level": "responses"}
        lines = stack.get(f"/v1/jobs/{finished['id']}/report", params=export).text.splitlines()
        rows = {(row["response_id"], row["dimension"]): row for row in map(json.loads, lines)}
        assert len({response for response, _ in rows}) == RESPONSES
        for response in listed["data"]:
            for figures in response["figures"]:
                row = rows[response["id"], figures["dimension"]]
                assert row["text"] == response["text"]
                assert row["scored_sentences"] == figures["n"]
                for name in ("mean", "acc", "acc_atom", "ic_atom"):
                    assert row[name] == figures[name]


class TestGroups:
    def test_models_stand_alone_and_by_their_attributes(self, stack: Service, finished: Json) -> None:
        found = stack.get(f"/v1/jobs/{finished['id']}/groups").json()
        groups = {(each["attribute"], each["value"]): each for each in found["groups"]}
        assert list(groups) == [("model", "shy"), ("model", "simulated/sim-faithful"), ("caution", "high")]
        assert groups["caution", "high"]["models"] == ["shy"]
        assert groups["caution", "high"]["acc_atom"] == groups["model", "shy"]["acc_atom"]
        results = stack.get(f"/v1/jobs/{finished['id']}/results").json()
        (total,) = [
            t for t in results["totals"] if t["by"] == ["model"] and t["model"] == "simulated/sim-faithful"
        ]
        alone = groups["model", "simulated/sim-faithful"]
        assert alone["acc_atom"]["value"] == pytest.approx(total["metrics"]["acc_atom"]["value"])

    @pytest.mark.parametrize(
        ("attributes", "pointer"),
        [
            ({"size": 8}, "/models/0/attributes/size"),
            ({"size": ""}, "/models/0/attributes/size"),
            ({"": "x"}, "/models/0/attributes/"),
            ({str(n): "x" for n in range(11)}, "/models/0/attributes"),
            (["8B"], "/models/0/attributes"),
            ({"model": "x"}, "/models/0/attributes"),
        ],
    )
    def test_attributes_are_short_texts(self, api: Service, attributes: object, pointer: str) -> None:
        body = job_body(models=[{"model": "simulated/sim-faithful", "attributes": attributes}])
        refused = api.post("/v1/jobs/plan", body)
        assert refused.status_code == 422
        assert any(error["pointer"].startswith(pointer) for error in refused.json()["errors"])


class TestByInstruction:
    def test_wordings_average_to_the_whole_and_the_report_shows_them(
        self, stack: Service, finished: Json
    ) -> None:
        found = stack.get(f"/v1/jobs/{finished['id']}/instructions").json()
        assert [each["instruction"] for each in found["instructions"]] == [0, 1]
        totals = [
            {total["model"]: total for total in each["totals"] if total["by"] == ["model"]}
            for each in found["instructions"]
        ]
        results = stack.get(f"/v1/jobs/{finished['id']}/results").json()
        (whole,) = [
            total
            for total in results["totals"]
            if total["by"] == ["model"] and total["model"] == "simulated/sim-faithful"
        ]
        own = [each["simulated/sim-faithful"]["metrics"]["acc_atom"]["value"] for each in totals]
        # One run a wording, none of them refused.
        assert sum(own) / 2 == pytest.approx(whole["metrics"]["acc_atom"]["value"])
        assert own[0] != own[1]
        page = stack.get(f"/v1/jobs/{finished['id']}/report", params={"format": "html"}).text
        assert "Results by persona instruction" in page
        for each in found["instructions"]:
            assert each["words"] in page


class TestResults:
    @pytest.fixture
    def results(self, stack: Service, finished: Json) -> Json:
        found: Json = stack.get(f"/v1/jobs/{finished['id']}/results").json()
        return found

    def test_every_trait_of_every_persona_is_a_cell(self, results: Json) -> None:
        keys = {
            tuple(c[k] for k in ("model", "persona", "task", "dimension", "level")) for c in results["cells"]
        }
        assert len(keys) == len(results["cells"]) == CELLS
        assert ("shy", "duo", "essay", "N", "low") in keys

    def test_a_cells_units_are_the_verdicts_of_all_judges(self, results: Json) -> None:
        for cell in results["cells"]:
            units = cell["units"]
            assert units["total"] == sum(n for status, n in units.items() if status != "total")
            assert set(cell["by_judge"]) == {"simulated/sim-judge", "simulated/sim-judge-noisy"}

    def test_refusals_are_left_out_and_counted(self, results: Json) -> None:
        refused = Counter[str]()
        for cell in results["cells"]:
            refused[cell["model"]] += cell["units"]["refused"]
        assert refused["shy"] > 0 == refused["simulated/sim-faithful"]

    def test_everything_is_marked_as_simulated(self, results: Json) -> None:
        assert results["simulated"]
        assert all(part["simulated"] for part in results["cells"] + results["totals"])

    def test_the_report_in_json_holds_the_same(self, stack: Service, finished: Json, results: Json) -> None:
        report = stack.get(f"/v1/jobs/{finished['id']}/report").json()
        assert {name: report[name] for name in results} == results

    def test_the_manifest_says_what_was_used(self, results: Json) -> None:
        manifest = results["manifest"]
        assert [judge["parameters"]["temperature"] for judge in manifest["judges"]] == [0, 0]
        assert len(manifest["instructions"]) == 2
        assert any("2 judges" in deviation for deviation in manifest["deviations"])


class TestResponses:
    def path(self, job: Json) -> str:
        return f"/v1/jobs/{job['id']}/responses"

    def test_a_walk_returns_each_exactly_once(self, stack: Service, finished: Json) -> None:
        found = [response["id"] for response in stack.walk(self.path(finished), limit=37)]
        assert len(found) == len(set(found)) == RESPONSES

    def test_pages_may_be_of_any_size(self, stack: Service, finished: Json) -> None:
        whole = list(stack.walk(self.path(finished), limit=500))
        assert list(stack.walk(self.path(finished), limit=70, model="shy")) == [
            response for response in whole if response["model"] == "shy"
        ]

    @pytest.mark.parametrize(
        ("filters", "count"),
        [
            ({"model": "shy"}, RESPONSES // 2),
            ({"persona": "duo"}, 4 * 23),
            ({"task": "questionnaire"}, 4 * 30),
            ({"model": "shy", "persona": "E-low", "task": "essay"}, 2),
            ({"persona": "nobody"}, 0),
            ({"model": "simulated/sim-refusing"}, 0),  # its label is "shy"
        ],
    )
    def test_filters(self, stack: Service, finished: Json, filters: dict[str, str], count: int) -> None:
        found = list(stack.walk(self.path(finished), **filters))
        assert len(found) == count
        assert all(response[name] == value for response in found for name, value in filters.items())

    def test_what_judges_were_asked_can_be_read_of_each_sentence(
        self, stack: Service, finished: Json
    ) -> None:
        response = stack.get(self.path(finished), params={"task": "essay", "persona": "duo"}).json()["data"][
            0
        ]
        path = f"{self.path(finished)}/{response['id']}/judge-calls"
        unit = response["units"][1]
        found = stack.get(path, params={"unit": 1}).json()
        assert (found["certain"], found["text"]) == (True, unit["text"])
        told = ("judge", "dimension", "score", "raw")
        assert [[call[name] for name in told] for call in found["data"]] == [
            [verdict[name] for name in told] for verdict in unit["verdicts"]
        ]
        assert all(unit["text"] in call["prompt"] for call in found["data"])
        assert stack.get(path).json()["data"] == []  # nobody graded it as a whole
        for wrong in (len(response["units"]), -1, "x", 1.5, 99999):
            refused = stack.get(path, params={"unit": wrong})
            assert (refused.status_code, pointers(refused)) == (422, ["/query/unit"])
        for other in ("resp_x", "%00", f"{response['id']}1", response["id"].replace("-", "-9", 1)):
            assert stack.get(f"{self.path(finished)}/{other}/judge-calls").status_code == 404

    def test_the_page_of_a_score_shows_prompt_and_reply_as_text(self, stack: Service, finished: Json) -> None:
        response = stack.get(self.path(finished), params={"task": "essay"}).json()["data"][0]
        page = f"/jobs/{finished['id']}/responses/{response['id']}/judging?unit=0"
        listed = stack.get(f"/jobs/{finished['id']}/responses", params={"task": "essay"}).text
        assert f'href="{page}"' in listed
        (call, *_) = stack.get(f"/v1{page.replace('/judging', '/judge-calls')}").json()["data"]
        shown = html.unescape(stack.get(page).text)
        assert call["prompt"] in shown
        assert f'dir="auto">{call["raw"]}</pre>' in shown

    def test_texts_are_searched_and_sorted_and_a_cursor_is_of_its_order(
        self, stack: Service, finished: Json
    ) -> None:
        whole = list(stack.walk(self.path(finished), limit=500))
        word = next(each["text"] for each in whole if each["units"]).split()[-1]
        found = [each["id"] for each in stack.walk(self.path(finished), q=word.upper(), limit=7)]
        assert found == [each["id"] for each in whole if word.lower() in (each["text"] or "").lower()]
        lengths = [len(each["units"]) for each in stack.walk(self.path(finished), sort="-length", limit=30)]
        assert lengths == sorted((len(each["units"]) for each in whole), reverse=True)
        plain = stack.get(self.path(finished), params={"limit": 1}).json()["next_cursor"]
        sorted_ = stack.get(self.path(finished), params={"limit": 1, "sort": "score"}).json()["next_cursor"]
        for asked, pointer in (
            ({"sort": "score", "after": plain}, "/query/after"),
            ({"after": sorted_}, "/query/after"),
            ({"sort": "score", "after": "W05hTiwwLDAsMF0"}, "/query/after"),  # [NaN,0,0,0]
            ({"sort": "date"}, "/query/sort"),
            ({"sort": "score", "arm": "control"}, "/query/sort"),
            ({"q": "\0"}, "/query/q"),
            ({"q": "x" * 201}, "/query/q"),
        ):
            refused = stack.get(self.path(finished), params=asked)
            assert (refused.status_code, pointers(refused)) == (422, [pointer]), asked

    def test_the_page_leads_on_and_back_and_keeps_text_and_order(
        self, stack: Service, finished: Json
    ) -> None:
        path = f"/jobs/{finished['id']}/responses"

        def links(address: str) -> tuple[list[str], dict[str, str]]:
            shown = stack.get(address).text
            found = re.findall(r'<a rel="(prev|next)" href="([^"]+)"', shown)
            return re.findall(r'<details id="(resp_[^"]+)"', shown), {
                name: html.unescape(href) for name, href in found
            }

        first, to = links(f"{path}?q=i&sort=-length")
        assert to.keys() == {"next"}
        second, on = links(to["next"])
        third, last = links(on["next"])
        assert len({*first, *second, *third}) == len(first) + len(second) + len(third)
        assert links(last["prev"])[0] == second
        assert links(links(last["prev"])[1]["prev"])[0] == first == links(on["prev"])[0]

    def test_models_texts_stand_side_by_side_to_the_same_question(
        self, stack: Service, finished: Json
    ) -> None:
        whole = list(stack.walk(self.path(finished), limit=500))
        one = next(each for each in whole if each["model"] == "shy" and each["task"] == "questionnaire")
        same = ("persona", "task", "item", "run")
        alike = [each for each in whole if [each[name] for name in same] == [one[name] for name in same]]
        found = stack.get(f"{self.path(finished)}/{one['id']}/side-by-side").json()
        assert found["data"][0] == one
        assert [each["id"] for each in found["data"]] == [one["id"]] + [
            each["id"] for each in alike if each != one
        ]
        assert len(found["data"]) == 2
        page = stack.get(f"/jobs/{finished['id']}/responses/{one['id']}/side-by-side").text
        assert re.findall(r'<article class="side" id="([^"]+)"', page) == [
            each["id"] for each in found["data"]
        ]

    def test_another_jobs_texts_stand_beside_where_the_same_was_asked(
        self, stack: Service, finished: Json
    ) -> None:
        text = {"persona": "E-low", "task": "essay", "text": "I read <b>alone</b>.", "model": "an author"}
        body = job_body(models=None, instructions=None, iterations=None, responses=[text])
        other = stack.wait(stack.submit(body)["id"], "completed")
        one = stack.get(self.path(finished), params={"persona": "E-low", "task": "essay"}).json()["data"][0]
        path = f"{self.path(finished)}/{one['id']}/side-by-side"
        found = stack.get(path, params={"with": other["id"]}).json()["data"]
        assert [each["model"] for each in found] == [one["model"], "an author"]
        sides = f"a={finished['id']}:{one['model']}&b={other['id']}"
        link = re.search(r'<a href="([^"]+side-by-side[^"]*)"', stack.get(f"/compare?{sides}").text)
        assert link is not None
        page = stack.get(link[1]).text
        assert "I read &lt;b&gt;alone&lt;/b&gt;." in page or "an author" not in page
        for wrong in ("job_x", "job_00000000000000000000000000"):
            assert stack.get(path, params={"with": wrong}).status_code == 404

    def test_the_side_by_side_pages_follow_each_other_through_a_models_responses(
        self, stack: Service, finished: Json
    ) -> None:
        walked = stack.walk(self.path(finished), limit=500, model="shy")
        own = [each["id"] for each in walked][-12:]
        seen, page = [own[0]], f"/jobs/{finished['id']}/responses/{own[0]}/side-by-side"
        for _ in range(len(own) - 1):
            shown = stack.get(page).text
            following = re.search(r'<a rel="next" href="([^"]+)"', shown)
            assert following is not None
            back = re.search(r'<a rel="prev" href="([^"]+)"', stack.get(following[1]).text)
            assert back is not None
            assert back[1] == page
            page = following[1]
            seen.append(page.split("/")[-2])
        assert seen == own
        assert 'rel="next"' not in stack.get(page).text

    def test_out_of_character_means_a_score_outside_the_level(self, stack: Service, finished: Json) -> None:
        def strays(response: Json) -> bool:
            return any(v["in_character"] is False for unit in response["units"] for v in unit["verdicts"])

        whole = list(stack.walk(self.path(finished), limit=500))
        expected = [response["id"] for response in whole if strays(response)]
        found = [r["id"] for r in stack.walk(self.path(finished), out_of_character="true", limit=9)]
        assert 0 < len(expected) < len(whole)
        assert found == expected

    def test_judges_disagree_where_one_finds_a_sentence_in_character_and_another_does_not(
        self, stack: Service, finished: Json
    ) -> None:
        def disputed(response: Json) -> bool:
            found: dict[tuple[int, str], set[bool]] = {}
            for unit in response["units"]:
                for v in unit["verdicts"]:
                    if v["in_character"] is not None:
                        found.setdefault((unit["index"], v["dimension"]), set()).add(v["in_character"])
            return any(len(opinions) > 1 for opinions in found.values())

        whole = list(stack.walk(self.path(finished), limit=500))
        expected = [response["id"] for response in whole if disputed(response)]
        found = [r["id"] for r in stack.walk(self.path(finished), judges_disagree="true", limit=9)]
        assert 0 < len(expected) < len(whole)
        assert found == expected

    def test_a_text_of_two_traits_is_there_once_and_judged_on_both(
        self, stack: Service, finished: Json
    ) -> None:
        posts = list(
            stack.walk(
                self.path(finished), persona="duo", task="social_media_post", model="simulated/sim-faithful"
            )
        )
        assert len(posts) == 2  # runs
        for post in posts:
            assert post["levels"] == {"A": "high", "N": "low"}
            judged = [(v["dimension"], v["judge"]) for v in post["units"][0]["verdicts"]]
            judges = ("simulated/sim-judge", "simulated/sim-judge-noisy")
            assert judged == [(dimension, judge) for dimension in "AN" for judge in judges]

    def test_units_are_pieces_of_the_text(self, stack: Service, finished: Json) -> None:
        for response in stack.walk(self.path(finished), task="essay"):
            end = 0
            for unit in response["units"]:
                assert end <= unit["span"][0] < unit["span"][1] <= len(response["text"])
                end = unit["span"][1]

    def test_instruction_and_iteration_name_the_run(self, stack: Service, finished: Json) -> None:
        found = {(r["run"], r["instruction"], r["iteration"]) for r in stack.walk(self.path(finished))}
        assert found == {(0, 0, 0), (1, 1, 0)}


class TestFigures:
    @pytest.mark.parametrize(
        "name", ["models", "published", "heat_map", "scores", "cells", "accuracy", "runs"]
    )
    def test_each_is_an_svg_with_its_words(self, stack: Service, finished: Json, name: str) -> None:
        chosen = {"model": "shy"} if name in {"heat_map", "cells"} else {}
        response = stack.get(f"/v1/jobs/{finished['id']}/figures/{name}.svg", params=chosen)
        assert response.headers["content-type"] == "image/svg+xml"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        words = "".join(ET.fromstring(response.content).itertext())
        assert "Simulated: these values" in words
        if name in {"models", "heat_map"}:
            assert f"{self.acc_atom(stack, finished):.2f}" in words

    def acc_atom(self, stack: Service, job: Json) -> float:
        totals = stack.get(f"/v1/jobs/{job['id']}/results").json()["totals"]
        (total,) = [total for total in totals if total["by"] == ["model"] and total["model"] == "shy"]
        value: float = total["metrics"]["acc_atom"]["value"]
        return value

    def test_it_may_be_a_png(self, stack: Service, finished: Json) -> None:
        response = stack.get(f"/v1/jobs/{finished['id']}/figures/models.png?theme=dark")
        assert response.headers["content-type"] == "image/png"
        assert response.content.startswith(b"\x89PNG\r\n")

    def test_what_there_is_not_is_named(self, stack: Service, finished: Json) -> None:
        path = f"/v1/jobs/{finished['id']}/figures"
        for file, pointer in (
            ("pie.svg", "/path/name"),
            ("models.gif", "/path/file_format"),
            ("models.svg?theme=pink", "/query/theme"),
            ("models.svg?model=shy", "/query/model"),
            ("cells.svg", "/query/model"),
            ("cells.svg?model=nobody", "/query/model"),
            ("cells.svg?modle=shy", "/query/modle"),
        ):
            response = stack.get(f"{path}/{file}")
            assert response.status_code == 422, file
            assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
        assert stack.get(f"{path}/persona_scores.svg").status_code == 404
        assert stack.get(f"/v1/jobs/job_{'0' * 26}/figures/models.svg").status_code == 404


class TestReports:
    def report(self, stack: Service, job: Json, **parameters: str) -> Any:
        response = stack.get(f"/v1/jobs/{job['id']}/report", params=parameters)
        assert response.status_code == 200
        return response

    def test_the_api_s_own_process_draws_nothing(
        self, stack: Service, common_stack: Stack, finished: Json
    ) -> None:
        self.report(stack, finished, format="html")
        assert stack.get(f"/v1/jobs/{finished['id']}/figures/models.png").status_code == 200
        libraries = Path(f"/proc/{common_stack.pid('api')}/maps").read_text("utf-8")
        assert "numpy" in libraries
        assert "matplotlib" not in libraries

    def test_html_is_one_file_that_loads_nothing(self, stack: Service, finished: Json) -> None:
        response = self.report(stack, finished, format="html")
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert response.headers["content-disposition"] == f'inline; filename="{finished["id"]}.html"'
        assert response.text.startswith("<!")
        assert 'src="http' not in response.text
        assert "two by two" in response.text

    def test_tables_have_one_row_for_each_verdict(self, stack: Service, finished: Json) -> None:
        verdicts = finished["progress"]["judging"]["total"]
        rows = list(csv.DictReader(io.StringIO(self.report(stack, finished, format="csv").text)))
        lines = self.report(stack, finished, format="jsonl").text.splitlines()
        table = pq.read_table(io.BytesIO(self.report(stack, finished, format="parquet").content))
        assert len(rows) == table.num_rows == verdicts
        assert sum(len(unit["verdicts"]) for line in lines for unit in json.loads(line).get("units", [])) in {
            0,
            verdicts,
        }

    def test_tables_have_one_row_for_each_cell(self, stack: Service, finished: Json) -> None:
        cells = {"level": "cells"}
        rows = list(csv.DictReader(io.StringIO(self.report(stack, finished, format="csv", **cells).text)))
        lines = self.report(stack, finished, format="jsonl", **cells).text.splitlines()
        response = self.report(stack, finished, format="parquet", **cells)
        assert len(rows) == len(lines) == pq.read_table(io.BytesIO(response.content)).num_rows == CELLS
        assert response.headers["content-disposition"].endswith(f'"{finished["id"]}-cells.parquet"')


class TestRunningJob:
    @pytest.fixture
    def running(self, stack: Service) -> Json:
        """A job that has got somewhere and that has a long way to go."""
        body = job_body(personas=["big-five"], tasks=["questionnaire"], iterations=60)
        job_id = stack.submit(body)["id"]
        while not (job := stack.job(job_id))["progress"]["judging"]["succeeded"]:
            assert job["status"] in {"queued", "running"}
        return job

    def test_it_can_be_read_paused_resumed_cancelled_and_deleted(self, stack: Service, running: Json) -> None:
        path = f"/v1/jobs/{running['id']}"
        assert stack.get(path).headers["retry-after"] == "1"
        assert stack.http.delete(path).status_code == 409
        results = stack.get(f"{path}/results").json()
        assert (results["completeness"], len(results["cells"])) == ("partial", 15)
        assert stack.get(f"{path}/responses?limit=1").json()["data"]
        assert stack.get(f"{path}/report?format=csv").status_code == 200

        assert stack.post(f"{path}/pause").json()["status"] == "paused"
        assert stack.post(f"{path}/resume").json()["status"] in {"queued", "running"}
        assert stack.post(f"{path}/cancel").json()["status"] in {"cancelling", "cancelled"}
        job = stack.wait(running["id"], "cancelled")
        for stage in job["progress"].values():
            assert stage["total"] == sum(
                stage[part] for part in ("pending", "running", "succeeded", "failed")
            )
            assert stage["running"] == 0
        # What was paid for is kept.
        assert job["progress"]["generation"]["succeeded"] >= running["progress"]["generation"]["succeeded"]
        assert stack.get(f"{path}/results").json()["completeness"] == "partial"

        before = stack.rows()
        assert stack.http.delete(path).status_code == 204
        assert stack.http.delete(path).status_code == 404
        after = stack.rows()
        assert before["jobs"] - after["jobs"] == before["job_results"] - after["job_results"] == 1
        assert before["cells"] - after["cells"] == 15
        for table in ("shards", "responses", "verdicts", "calls"):
            assert after[table] < before[table]


class TestDelete:
    def test_nothing_of_a_deleted_job_is_left(self, stack: Service) -> None:
        before = stack.rows()
        both = ["essay", {"task": "expected_action", "questions": 1}]
        body = job_body(tasks=both, reasoner="simulated/sim-reasoner", budget={"calls": 10_000})
        job = stack.submit(body, headers={"Idempotency-Key": "to-be-deleted"})
        stack.wait(job["id"], "completed")
        unconcerned = {"uploads", "upload_parts", "upload_records"}
        grown = {table for table, count in stack.rows().items() if count > before[table]}
        assert grown == before.keys() - unconcerned
        assert stack.http.delete(f"/v1/jobs/{job['id']}").status_code == 204
        assert stack.rows() == before
        for suffix in ("", "/results", "/responses", "/report"):
            assert stack.get(f"/v1/jobs/{job['id']}{suffix}").status_code == 404


class TestExistingTexts:
    def test_wide_signs_cut_sentences_where_the_job_asks_for_it(self, stack: Service) -> None:
        text = {"persona": "E-low", "task": "essay", "text": "我喜欢安静。我看书。好", "model": "an author"}
        body = job_body(models=None, instructions=None, iterations=None, responses=[text])
        wide = body | {"versions": {"segmenter": "punkt-en-wide-v1"}}
        warned, silent = (
            [w for w in stack.post("/v1/jobs/plan", each).json()["warnings"] if "punkt-en-wide-v1" in w]
            for each in (body, wide)
        )
        assert (len(warned), silent) == (1, [])
        counts = []
        for each in (body, wide):
            job = stack.wait(stack.submit(each)["id"], "completed")
            (response,) = stack.get(f"/v1/jobs/{job['id']}/responses").json()["data"]
            counts.append(len(response["units"]))
            shown = stack.get(f"/jobs/{job['id']}/responses").text
            assert '<p class="text" dir="ltr" lang="zh">' in shown
        assert counts == [1, 3]
        manifest = stack.get(f"/v1/jobs/{job['id']}/results").json()["manifest"]
        assert manifest["instrument"]["segmenter"] == "punkt-en-wide-v1"

    def test_they_are_judged_and_not_generated(self, stack: Service) -> None:
        texts = [
            {
                "persona": "E-low",
                "task": "essay",
                "text": "I stay at home. I read alone.",
                "model": "an author",
            },
            {"persona": "E-low", "task": "essay", "text": "", "model": "an author"},
            {
                "persona": "E-low",
                "task": "essay",
                "text": "I'm sorry, but I can't help with that.",
                "model": "a refuser",
            },
        ]
        body = job_body(models=None, instructions=None, iterations=None, responses=texts)
        job = stack.wait(stack.submit(body)["id"], "completed", "failed")
        # Every call was made, but of the refuser there is no figure.
        assert (job["status"], job["completeness"]) == ("completed", "partial")
        assert [(row["stage"], row["calls"]) for row in job["usage"]["by_model"]] == [("judging", 2)]
        responses = stack.get(f"/v1/jobs/{job['id']}/responses").json()["data"]
        assert [(r["model"], r["run"], r["status"], len(r["units"])) for r in responses] == [
            ("an author", 0, "answered", 2),
            ("an author", 1, "answered", 0),
            ("a refuser", 0, "refused", 1),
        ]
