"""The console's pages of persona sets and question sets: what they show, keep and refuse."""

import json
import re

import pytest

from tests.api.service import Service
from tests.api.test_pages import look, post
from tests.api.test_personagym import gym_body
from tests.rubrics import OFFICIAL


class TestPersonaSets:
    def test_lines_that_were_pasted_are_a_set_that_says_who_its_personas_are(self, api: Service) -> None:
        lines = "a blunt <critic>; A low, N low\r\n\r\na nurse"
        answer = post(api, "/persona-sets", {"name": "pasted", "personas": lines})
        assert answer.status_code == 303
        place = answer.headers["location"]
        shown = look(api, place).text
        assert "a blunt &lt;critic&gt;" in shown
        assert "low in emotional stability (neurotic)" in shown
        assert "a-blunt-critic" in shown
        kept = api.get(f"/v1{place}").json()
        assert kept["name"] == "pasted"
        assert kept["personas"] == [
            {
                "id": "a-blunt-critic",
                "description": "a blunt <critic>",
                "traits": {"A": "low", "N": "low"},
            },
            {"id": "a-nurse", "description": "a nurse", "traits": {}},
        ]
        assert f'href="{place}"' in look(api, "/persona-sets").text
        assert f'value="{kept["id"]}" checked' in look(api, f"/new?personas={kept['id']}").text

    def test_csv_is_read_as_the_api_reads_it(self, api: Service) -> None:
        table = "description,id,traits\na kind critic,kind,A=high; E=low\n"
        place = post(api, "/persona-sets", {"personas": table}).headers["location"]
        (persona,) = api.get(f"/v1{place}").json()["personas"]
        assert persona == {
            "id": "kind",
            "description": "a kind critic",
            "traits": {"A": "high", "E": "low"},
        }

    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            ({"personas": ""}, "must have at least one persona"),
            ({"personas": "description,traits\na,b,c"}, "has 3 fields, the header 2"),
            ({"personas": "description,age\na,3"}, "the header must have description"),
            ({"personas": "a \0 b"}, "U+0000"),
            ({"personas": "a nurse; E"}, "must map dimensions to levels"),
            ({"personas": "big-five"}, "is that of a built-in persona or set"),
            ({"personas": "a nurse", "name": "x" * 301}, "Name"),
            ({"personas": "\n".join(["a nurse"] * 10_001)}, "at most 10,000"),
        ],
    )
    def test_what_is_wrong_is_told_and_what_was_typed_stays(
        self, running_api: Service, typed: dict[str, str], words: str
    ) -> None:
        before = len(running_api.get("/v1/persona-sets", params={"limit": 500}).json()["data"])
        answer = post(running_api, "/persona-sets", typed)
        assert answer.status_code == 422
        assert re.search(rf'role="alert".*<li>[^\n]*{re.escape(words)}', answer.text, re.DOTALL), answer.text
        assert "</textarea>" in answer.text
        assert len(running_api.get("/v1/persona-sets", params={"limit": 500}).json()["data"]) == before

    def test_ten_thousand_alike_get_ids_of_their_own_and_pages(self, api: Service) -> None:
        answer = post(api, "/persona-sets", {"personas": "\n".join(["a nurse"] * 10_000)})
        place = answer.headers["location"]
        shown = look(api, f"{place}?start=9900").text
        assert "a-nurse-10000" in shown
        assert 'rel="next"' not in shown
        assert 'href="?start=9800"' in shown
        assert 'href="?start=100"' in look(api, place).text
        assert look(api, f"{place}?start=20000").status_code == 200
        assert look(api, f"{place}?start=-1").status_code == 422

    def test_a_built_in_set_has_a_page_and_one_that_there_is_not_has_none(self, running_api: Service) -> None:
        assert "low in extraversion (introverted)" in look(running_api, "/persona-sets/big-five").text
        for name in ("nothing", f"pset_{'0' * 32}", "a%00b", "..%2f..%2fkeys"):
            assert look(running_api, f"/persona-sets/{name}").status_code == 404


class TestQuestionSets:
    def test_csv_and_json_of_the_same_questions_are_the_same_set(self, api: Service) -> None:
        table = 'task,persona,question\r\nExpected Action,"a cowboy, old",What now?\r\nexpected_action,"a cowboy, old",And then?'
        by_csv = post(api, "/question-sets", {"name": "trail", "questions": table})
        assert by_csv.status_code == 422, "a task named twice is told as such"
        assert "given more than once" in by_csv.text
        table = table.replace("Expected Action", "expected_action")
        by_csv = post(api, "/question-sets", {"name": "trail", "questions": table})
        questions = {"a cowboy, old": {"Expected Action": ["What now?", "And then?"]}}
        by_json = post(api, "/question-sets", {"questions": json.dumps(questions)})
        assert by_csv.status_code == by_json.status_code == 303
        assert by_csv.headers["location"] == by_json.headers["location"]
        shown = look(api, by_csv.headers["location"]).text
        for words in ("trail", "a cowboy, old", "Expected Action", "And then?"):
            assert words in shown
        assert "trail" in look(api, "/question-sets").text

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "Questions"),
            ("{", "is not JSON"),
            ('{"a": 7}', "must be an object"),
            ('{"a": {"unheard of": ["b"]}}', "unknown PersonaGym task"),
            ("persona,question\na,b", "the first line must be persona,task,question"),
            ("persona,task,question\na,expected_action", "line 2 must have a persona"),
            ('persona,task,question\n"a,expected_action,b', "is not CSV"),
            ("persona,task,question\na\0,expected_action,b", "U+0000"),
            (f"persona,task,question\na,expected_action,{'x' * 140_000}", "at most 20000 characters"),
        ],
    )
    def test_what_is_wrong_is_told(self, running_api: Service, text: str, words: str) -> None:
        answer = post(running_api, "/question-sets", {"questions": text})
        assert answer.status_code == 422
        assert re.search(rf'role="alert".*<li>[^\n]*{re.escape(words)}', answer.text, re.DOTALL), answer.text

    def test_jobs_that_name_a_set_are_on_its_page(self, api: Service) -> None:
        table = "persona,task,question\na cowboy,expected_action,What now?"
        place = post(api, "/question-sets", {"questions": table}).headers["location"]
        personas = post(api, "/persona-sets", {"personas": "a cowboy"}).headers["location"]
        body = gym_body(
            name="rides <again>",
            personas=[personas.rpartition("/")[2]],
            tasks=["expected_action"],
            questions=place.rpartition("/")[2],
        )
        job = api.submit(body)
        for each in (place, personas):
            shown = look(api, each).text
            assert f'href="/jobs/{job["id"]}"' in shown
            assert "rides &lt;again&gt;" in shown
            assert "uses this set" in shown


class TestRubricSets:
    def test_pasted_rubrics_are_a_set_whose_words_can_be_read(self, api: Service) -> None:
        tasks = {"Toxicity": OFFICIAL["Toxicity.txt"], "essay": {"prompt": "<b>{context}"}}
        answer = post(api, "/rubric-sets", {"name": "mine", "tasks": json.dumps(tasks)})
        assert answer.status_code == 303
        place = answer.headers["location"]
        whole = post(api, "/rubric-sets", {"tasks": json.dumps({"name": "other", "tasks": tasks})})
        assert whole.headers["location"] == place
        shown = look(api, place).text
        for words in ("mine", "Toxicity Control", "containing clear insults", "&lt;b&gt;{context}"):
            assert words in shown
        job = api.submit(
            gym_body(name="graded by it", tasks=["toxicity_control"], rubrics=place.rpartition("/")[2])
        )
        assert f'href="/jobs/{job["id"]}"' in look(api, place).text
        listed = look(api, "/rubric-sets").text
        assert f'href="{place}"' in listed
        assert look(api, f"/rubric-sets/rset_{'0' * 32}").status_code == 404

    def test_one_is_chosen_for_a_job_whose_form_then_lists_its_tasks(self, api: Service) -> None:
        diary = {
            "title": "A diary",
            "items": "essay_context",
            "prompt": "Write about {context}",
            "scoring_prompt": "{atomic unit} {options}",
        }
        api.empty("rubric_sets")
        assert 'name="rubrics"' not in look(api, "/new").text
        kept = api.post("/v1/rubric-sets", {"name": "<mine>", "tasks": {"diary": diary}}).json()["id"]
        fields = {"persona": "E-low", "model_model_0": "acme/acme-1", "judge_model_0": "acme/acme-judge"}
        chosen = fields | {"instruction": "0", "iterations": "1", "rubrics": kept}
        assert f'<option value="{kept}">&lt;mine&gt;</option>' in look(api, "/new").text
        page = post(api, "/new", chosen).text
        assert "A diary" in page
        assert "A diary" not in look(api, "/new").text
        planned = post(api, "/new", chosen | {"task": "diary"})
        assert planned.status_code == 200, planned.text
        assert f"&#34;rubrics&#34;: &#34;{kept}&#34;" in planned.text
        gone = "rset_" + 32 * "0"
        refused = post(api, "/new", chosen | {"rubrics": gone, "task": "essay"})
        assert refused.status_code == 422
        assert "unknown rubric set" in refused.text
        assert f'<option value="{gone}" selected>' in refused.text

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "is not JSON"),
            ("{", "is not JSON"),
            ("[]", "object"),
            ('{"tasks": 5}', "object"),
            ('{"essay": {"prompt": "x"}}', "must contain {context}"),
            ('{"essay": {"prompts": "x"}}', "unknown field"),
            ('{"a": 1, "a": 2}', "is not JSON"),
        ],
    )
    def test_what_is_wrong_is_told_and_what_was_typed_stays(
        self, running_api: Service, text: str, words: str
    ) -> None:
        answer = post(running_api, "/rubric-sets", {"tasks": text})
        assert answer.status_code == 422
        assert re.search(rf'role="alert".*<li>[^\n]*{re.escape(words)}', answer.text, re.DOTALL), answer.text
