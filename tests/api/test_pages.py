"""Pages as answers: what confines them, what they load, and who may not change anything."""

import html
import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.api.service import Json, Service, job_body
from tests.databases import libpq_url
from tests.observe import PATIENCE

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def look(service: Service, path: str) -> httpx2.Response:
    """What a browser gets; the service's own client holds errors to the API's form."""
    return httpx2.get(f"{service.url}{path}", headers=BROWSER, timeout=PATIENCE, trust_env=False)


class TestPages:
    def test_run_nothing_but_the_consoles_own_scripts(self, running_api: Service) -> None:
        answer = look(running_api, "/")
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert re.findall(r"<style|<script(?![^>]* src=)|\son\w+=|\sstyle=|javascript:", answer.text) == []

    def test_load_files_that_a_browser_may_keep_since_a_new_version_has_another_address(
        self, running_api: Service
    ) -> None:
        addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', look(running_api, "/").text)
        assert {address.rpartition(".")[2] for address in addresses} == {"css", "js"}
        for address in addresses:
            answer = look(running_api, address)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
            former = re.sub(r"/static/\w+/", "/static/0000/", address)
            assert look(running_api, former).headers["cache-control"] == "no-store"
        assert look(running_api, "/static/0000/none.js").status_code == 404

    def test_tell_problems_in_pages_and_the_api_its_own_in_json(self, running_api: Service) -> None:
        for path, status in (
            ("/nowhere", 404),
            ("/?status=odd", 422),
            ("/?after=odd", 422),
            ("/?odd=1", 422),
        ):
            answer = look(running_api, path)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["x-request-id"] in answer.text
        gone = look(running_api, "/jobs/job_01kxyz0abcdefghjkmnpqrstvw").text
        assert "not found</bdi></h1>" in gone
        assert "It may have been deleted." in gone
        assert "<h1>Page not found</h1>" in look(running_api, "/nowhere").text
        assert look(running_api, "/v1/jobs/none").headers["content-type"] == "application/problem+json"
        assert running_api.get("/nowhere").headers["content-type"] == "application/problem+json"


class TestSearch:
    def test_shows_jobs_of_that_name_and_keeps_it_in_every_link(self, api: Service) -> None:
        for name in ("pilot & <b>", "other"):
            api.submit(job_body(name=name))
        found = look(api, "/?q=PILOT+%26&status=queued").text
        assert "pilot &amp; &lt;b&gt;" in found
        assert ">other<" not in found
        assert 'value="PILOT &amp;"' in found
        assert 'href="/?q=PILOT+%26&amp;status=paused"' in found
        assert 'formaction="/jobs/archive?q=PILOT+%26&amp;status=queued"' in found
        assert "No jobs match this filter." in look(api, "/?q=nobody").text
        assert look(api, "/?q=").text.count('href="/jobs/') == 2
        assert look(api, "/?q=%00").status_code == 422


class TestForeignPages:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
        ],
    )
    def test_change_nothing(self, api: Service, headers: dict[str, str]) -> None:
        job = api.submit(job_body())
        for path in ("/v1/jobs", f"/v1/jobs/{job['id']}/cancel"):
            answer = api.post(path, job_body(), headers=headers)
            assert answer.status_code == 403
            assert answer.json()["code"] == "foreign_origin"
        assert api.http.delete(f"/v1/jobs/{job['id']}", headers=headers).status_code == 403
        assert api.job(job["id"])["status"] == "queued"

    def test_our_own_and_programs_do(self, api: Service) -> None:
        for headers in (
            {},
            {"Sec-Fetch-Site": "same-origin", "Origin": "https://behind-a-proxy.example"},
            {"Sec-Fetch-Site": "none"},
            {"Origin": api.url},
        ):
            assert api.post("/v1/jobs", job_body(), headers=headers).status_code == 202


FORM = {
    "name": "by hand",
    "persona": "E-low",
    "task": "essay",
    "model_model_0": "simulated/sim-faithful",
    "judge_model_0": "simulated/sim-judge",
    "instruction": "1",
    "iterations": "2",
    "action": "plan",
}


def post(service: Service, path: str, form: Mapping[str, str | list[str]] | None = None) -> httpx2.Response:
    """What a browser gets that sends a form from one of our own pages."""
    headers = BROWSER | {"Sec-Fetch-Site": "same-origin"}
    return httpx2.post(f"{service.url}{path}", data=form, headers=headers, timeout=PATIENCE, trust_env=False)


class TestForm:
    def test_a_planned_job_is_submitted_once_however_often_its_button_is_pressed(self, api: Service) -> None:
        plan = post(api, "/new", FORM)
        assert plan.status_code == 200
        assert api.get("/v1/jobs").json()["data"] == []
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', plan.text))
        answers = [post(api, "/new", FORM | hidden | {"action": "submit"}) for _ in range(2)]
        assert {answer.status_code for answer in answers} == {303}
        assert len({answer.headers["location"] for answer in answers}) == 1
        (job,) = api.get("/v1/jobs").json()["data"]
        assert answers[0].headers["location"] == f"/jobs/{job['id']}"
        assert job["spec"]["iterations"] == 2

    def test_another_than_the_planned_one_is_not(self, api: Service) -> None:
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', post(api, "/new", FORM).text))
        answer = post(api, "/new", FORM | hidden | {"action": "submit", "iterations": "3"})
        assert answer.status_code == 200
        assert hidden["planned"] not in answer.text
        assert api.get("/v1/jobs").json()["data"] == []

    def test_is_filled_in_as_a_job_was(self, api: Service) -> None:
        job = api.submit(job_body(name="first try", iterations=3))
        assert f'href="/new?from={job["id"]}"' in look(api, f"/jobs/{job['id']}").text
        answer = look(api, f"/new?from={job['id']}")
        assert answer.status_code == 200
        for part in ('value="first try"', 'value="simulated/sim-faithful"', 'value="E-low" checked'):
            assert part in answer.text
        texts = [{"persona": "E-low", "task": "essay", "text": "I stay in."}]
        given = api.submit(job_body(models=None, instructions=None, responses=texts))
        assert "give it again" in look(api, f"/new?from={given['id']}").text
        for unknown in ("job_01kxyz0abcdefghjkmnpqrstvw", "odd"):
            assert look(api, f"/new?from={unknown}").status_code == 404

    def test_its_models_are_checked_by_a_button(self, api: Service) -> None:
        models = {"model_model_0": "acme/acme-1", "judge_model_0": "acme/unheard-of", "action": "check"}
        answer = post(api, "/new", FORM | models)
        assert answer.status_code == 200
        assert "acme/acme-1 as a model" in answer.text
        assert "Nothing listens at 127.0.0.1:9 (connection_failed)" in answer.text
        assert "does not allow the model" in answer.text

    def test_a_size_that_finds_a_difference_fills_the_form_by_its_button(self, api: Service) -> None:
        asked = FORM | {"persona": "big-five", "model_model_1": "simulated/sim-drifting"}
        asked |= {"detect_difference": "0.15", "detect_power": "0.7"}
        page = post(api, "/new", asked).text
        assert "This job" in page
        sizes = re.findall(r'value="size_(\d+)_(\d+)"', page)
        assert {wordings for wordings, _ in sizes} == {"3", "6"}, "no more than there are to choose"
        filled = post(api, "/new", asked | {"action": "size_3_5"}).text
        assert re.findall(r'name="instruction" value="(\d)" checked', filled) == ["0", "1", "2"]
        assert 'name="iterations" type="text" inputmode="numeric" value="5"' in filled
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', filled))
        assert '"detect"' not in filled, "which is no field of a job"
        seen: dict[str, str | list[str]] = {"instruction": ["0", "1", "2"], "iterations": "5"}
        seen["action"] = "submit"
        assert post(api, "/new", {**asked, **hidden, **seen}).status_code == 303
        (job,) = api.get("/v1/jobs").json()["data"]
        assert (job["spec"]["instructions"], job["spec"]["iterations"]) == ([0, 1, 2], 5)
        assert "detect" not in job["spec"]

    @pytest.mark.parametrize(
        ("typed", "words"),
        [
            ({"detect_difference": "much"}, "must be a number"),
            ({"detect_difference": "2"}, "must be at most 1"),
            ({"detect_difference": "0.1", "detect_power": "1"}, "less than or equal to 0.99"),
            ({"detect_difference": "0.1", "detect_models": "1"}, "greater than or equal to 2"),
            (
                {
                    "detect_difference": "0.1",
                    "task": ["essay", "expected_action"],
                    "reasoner": "simulated/sim-reasoner",
                },
                "is only for jobs of atomic tasks",
            ),
        ],
    )
    def test_a_difference_that_cannot_be_planned_says_why_at_its_field(
        self, running_api: Service, typed: dict[str, str | list[str]], words: str
    ) -> None:
        answer = post(running_api, "/new", {**FORM, **typed})
        assert answer.status_code == 422
        (field,) = {name for name in typed if name.startswith("detect_")} - {
            "detect_difference" if len(typed) == 2 else ""
        }
        assert re.search(rf'id="wrong-{field}"><bdi>[^<]*{words}', answer.text)

    def test_a_job_on_a_persona_and_dimension_of_ones_own_needs_no_api(self, api: Service) -> None:
        typed = {name: value for name, value in FORM.items() if name != "persona"} | {
            "persona_description_0": "a gun owner",
            "persona_traits_0": "politics high",
            "dimension_id": "politics",
            "dimension_name": "conservatism",
            "dimension_options": "1) Very progressive. 5) Very conservative. 9) None.",
            "dimension_questions": "What do you think of taxes?\r\nAnd of schools?",
            "task": "questionnaire",
        }
        shown = post(api, "/new", typed)
        assert shown.status_code == 200, shown.text
        assert '<option value="politics high" selected>high</option>' in shown.text
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', shown.text))
        assert post(api, "/new", typed | hidden | {"action": "submit"}).status_code == 303
        (job,) = api.get("/v1/jobs").json()["data"]
        assert job["spec"]["personas"] == [
            {"id": "a-gun-owner", "description": "a gun owner", "traits": {"politics": "high"}}
        ]
        assert job["spec"]["dimensions"][0]["questions"] == ["What do you think of taxes?", "And of schools?"]

    @pytest.mark.parametrize(
        ("typed", "field", "words"),
        [
            ({"json": "{"}, "json", "is not JSON"),
            ({"json": '{"persona": ["E-low"]}'}, "json", "did you mean &#39;personas&#39;?"),
            ({"persona_list": "a nurse; E hig"}, "persona_list", "has no level &#39;hig&#39;"),
            (
                {"persona_traits_0": "E hig", "persona_description_0": "a nurse"},
                "persona_traits_0",
                "no level",
            ),
            ({"texts": "persona,task,words\nE-low,essay,I go."}, "texts", "unknown field"),
            ({"texts": "persona,task,text\nE-low,essay,I go, too."}, "texts", "unknown field"),
            ({"dimension_options": "1) No. 5) Yes. 9) None."}, "dimension_id", "required"),
        ],
    )
    def test_what_is_wrong_is_told_in_words_beside_its_field(
        self, running_api: Service, typed: dict[str, str], field: str, words: str
    ) -> None:
        answer = post(running_api, "/new", FORM | typed)
        assert answer.status_code == 422
        assert re.search(rf'id="wrong-{field}[^>]*><bdi>[^<]*{re.escape(words)}', answer.text), answer.text

    @pytest.mark.parametrize(
        "models", ["7", "null", '"sim"', "[7, null, [], {}]", '{"a": 1}', '[{"model": 7}]', '[{"model": []}]']
    )
    def test_models_that_are_none_are_checked_without_an_error_of_ours(
        self, running_api: Service, models: str
    ) -> None:
        answer = post(running_api, "/new", {"json": f'{{"judges": {models}}}', "action": "check"})
        assert answer.status_code == 200
        assert 'class="bad"' in answer.text

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            ({"model": 7}, "model: must be text."),
            (
                {"model": "acme/acme-1", "temperature": "hot"},
                "temperature: must be a number.",
            ),
            ({"model": "acme/acme-1", "colour": "red"}, "colour: unknown field"),
        ],
    )
    def test_a_check_names_a_model_s_wrong_field(
        self, running_api: Service, model: dict[str, Any], words: str
    ) -> None:
        answer = post(running_api, "/new", {"json": json.dumps({"judges": [model]}), "action": "check"})
        assert words in html.unescape(answer.text)

    @pytest.mark.parametrize("key", ["\0", "k" * 9000, "form_Ü"])
    def test_a_key_that_is_not_ours_is_none(self, api: Service, key: str) -> None:
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', post(api, "/new", FORM).text))
        answer = post(api, "/new", FORM | hidden | {"action": "submit", "key": key})
        assert answer.status_code == 303
        assert len(api.get("/v1/jobs").json()["data"]) == 1

    @settings(max_examples=40)
    @given(
        st.dictionaries(
            st.sampled_from(
                [
                    *FORM,
                    "detect_difference",
                    "detect_power",
                    "detect_metric",
                    "detect_population",
                    "detect_models",
                    "seed",
                    "persona_id_0",
                    "persona_traits_0",
                    "persona_list",
                    "dimension_id",
                    "texts",
                    "json",
                    "budget_usd",
                    "reuse_judging",
                ]
            ),
            st.one_of(
                st.text(st.characters(codec="utf-8"), max_size=12),
                st.sampled_from(
                    [
                        "\0",
                        "nan",
                        "-inf",
                        "1e999",
                        "9" * 5000,
                        "E high",
                        "submit",
                        "across_jobs",
                        "size_99_9999",
                        "0.1",
                    ]
                ),
            ),
        )
    )
    def test_whatever_is_typed_the_answer_is_a_plan_or_what_is_wrong(
        self, running_api: Service, typed: dict[str, str]
    ) -> None:
        answer = post(running_api, "/new", FORM | typed | {"planned": "nothing"})
        assert answer.status_code in {200, 422}, typed

    def test_what_is_no_form_is_a_problem(self, running_api: Service) -> None:
        for content, type_, status in (
            (b"a=%ff", "application/x-www-form-urlencoded", 400),
            (b"{}", "a/b", 415),
        ):
            answer = running_api.http.post("/new", content=content, headers={"content-type": type_})
            assert answer.status_code == status


class TestKeeping:
    def test_name_tags_and_notes_are_typed_and_shown_as_text(self, api: Service) -> None:
        path = f"/jobs/{api.submit(job_body(name='first'))['id']}"
        typed = {"name": "<b>", "tags": "paper, , <i>,paper,two  blanks", "notes": "one\r\n<two>"}
        assert post(api, f"{path}/details", typed).headers["location"] == path
        job = api.get(f"/v1{path}").json()
        assert (job["name"], job["tags"], job["notes"]) == (
            "<b>",
            ["paper", "<i>", "two  blanks"],
            "one\n<two>",
        )
        for shown in (look(api, path).text, look(api, "/").text):
            assert "&lt;b&gt;" in shown
            assert "&lt;two&gt;" in shown
            assert not any(tag in shown for tag in ("<b>", "<i>", "<two>"))
        assert 'href="/?tag=%3Ci%3E"' in look(api, "/").text
        assert '<option value="two  blanks">' in look(api, "/").text  # without, a browser sends one blank
        assert ">&lt;b&gt;<" not in look(api, "/?tag=pape").text
        assert post(api, f"{path}/details", {"name": ""}).status_code == 303
        job = api.get(f"/v1{path}").json()
        assert (job["name"], job["tags"], job["notes"]) == (None, [], None)

    @pytest.mark.parametrize(
        ("name", "value"), [("name", "a" * 301), ("tags", "b" * 51), ("notes", "c" * 5001), ("notes", "\0")]
    )
    def test_what_cannot_be_kept_is_refused_by_its_name(self, api: Service, name: str, value: str) -> None:
        path = f"/jobs/{api.submit(job_body(name='first'))['id']}"
        answer = post(api, f"{path}/details", {"name": "second", name: value})
        assert answer.status_code == 422
        assert name.capitalize() in answer.text
        assert api.get(f"/v1{path}").json()["name"] == "first"

    def test_the_chosen_jobs_are_archived_and_the_same_list_is_shown_again(self, api: Service) -> None:
        first, second, third = (api.submit(job_body(name=name))["id"] for name in ("a1", "a2", "a3"))
        answer = post(api, "/jobs/archive?q=a&sort=name", {"model": [first, third], "archived": "true"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/?q=a&sort=name")
        assert [job["id"] for job in api.walk("/v1/jobs")] == [second]
        assert "a1" in look(api, "/?archived=true").text
        post(api, "/jobs/archive?archived=true", {"model": [first], "archived": "false"})
        assert [job["id"] for job in api.walk("/v1/jobs")] == [second, first]
        assert post(api, "/jobs/archive", {"archived": "true"}).status_code == 303
        assert post(api, "/jobs/archive", {"model": ["job_x"]}).status_code == 404
        assert post(api, "/jobs/archive?price=1", {"archived": "true"}).status_code == 422

    def test_a_job_says_what_is_lost_with_it_and_is_gone_once_it_is_deleted(self, api: Service) -> None:
        job = api.submit(job_body(name="gone"))["id"]
        assert "Delete this job" not in look(api, f"/jobs/{job}").text
        assert post(api, f"/jobs/{job}/delete").status_code == 409
        api.execute("UPDATE jobs SET status = 'completed', finished_at = now() WHERE id = %s", job)
        shown = look(api, f"/jobs/{job}").text
        assert "Delete this job" in shown
        assert "the job <bdi>gone</bdi> with its results and reports" in shown
        assert post(api, f"/jobs/{job}/archive", {"archived": "true"}).status_code == 303
        assert "Unarchive" in look(api, f"/jobs/{job}").text
        assert post(api, f"/jobs/{job}/delete").headers["location"] == "/"
        assert api.get(f"/v1/jobs/{job}").status_code == 404

    def test_choices_that_were_left_open_filter_nothing(self, api: Service) -> None:
        api.submit(job_body(name="here"))
        assert ">here<" in look(api, "/?q=&tag=&framework=&archived=false").text
        assert look(api, "/?q=&tag=&framework=x").status_code == 422


class TestJobPages:
    def test_say_that_there_is_no_such_job(self, running_api: Service) -> None:
        for path in (
            "/jobs/none",
            "/jobs/job_01kxyz0abcdefghjkmnpqrstvw",
            "/jobs/none/responses",
            "/live/jobs/none",
        ):
            assert look(running_api, path).status_code == 404
        assert post(running_api, "/jobs/none/cancel").status_code == 404
        assert post(running_api, "/jobs/job_01kxyz0abcdefghjkmnpqrstvw/remove").status_code == 422

    def test_do_only_what_a_jobs_state_allows(self, api: Service) -> None:
        job = api.submit(job_body())["id"]
        assert post(api, f"/jobs/{job}/pause").headers["location"] == f"/jobs/{job}"
        assert api.job(job)["status"] == "paused"
        page = look(api, f"/jobs/{job}").text
        assert re.findall(r'id="deed-(\w+)"', page) == ["resume", "cancel"]
        post(api, f"/jobs/{job}/cancel")
        refused = post(api, f"/jobs/{job}/pause")
        assert refused.status_code == 409
        assert "be paused" in refused.text

    def test_change_the_budget_of_a_job_that_paused(self, api: Service) -> None:
        job = api.submit(job_body(budget={"calls": 10}))["id"]
        post(api, f"/jobs/{job}/pause")
        assert 'name="calls" value="10"' in look(api, f"/jobs/{job}").text
        assert post(api, f"/jobs/{job}/budget", {"calls": "25"}).status_code == 303
        assert api.job(job)["budget"]["calls"]["limit"] == 25
        for typed, field in (
            ({"calls": "few"}, "Budget, calls:"),
            ({"usd": "5"}, "Budget, usd:"),
            ({"usd": ""}, "Budget:"),
        ):
            refused = post(api, f"/jobs/{job}/budget", typed)
            assert refused.status_code == 422
            assert field in refused.text

    @pytest.mark.parametrize(
        ("error", "words"),
        [
            ({"code": "budget_exhausted", "detail": "no <more>"}, "<bdi>no &lt;more&gt;</bdi></p>"),
            ({"code": "odd", "detail": "", "shard": 7}, "<bdi>odd</bdi></p>"),
            (
                {"code": "odd", "detail": "gone", "model": "a/b", "remedy": "Wait."},
                "<bdi>a/b</bdi>: <bdi>gone</bdi><br>Wait.</p>",
            ),
            (
                {"code": "odd", "cause": "a <b>", "detail": "gone", "model": "a/b", "remedy": "Wait."},
                "<strong><bdi>A &lt;b&gt;</bdi></strong><br>Wait.<br><bdi>a/b</bdi>: <bdi>gone</bdi></p>",
            ),
            (
                {"code": "odd", "detail": "gone", "model": "a/b", "stage": "judging"},
                '<bdi>a/b</bdi> <span class="quiet">judging</span>: <bdi>gone</bdi></p>',
            ),
        ],
    )
    def test_say_what_is_known_of_what_stopped_a_job(self, api: Service, error: Json, words: str) -> None:
        job = api.submit(job_body())["id"]
        with psycopg.connect(libpq_url(api.database_url)) as connection:
            connection.execute("UPDATE jobs SET error = %s WHERE id = %s", [Jsonb(error), job])
        answer = look(api, f"/jobs/{job}")
        assert answer.status_code == 200
        assert f'<p class="notice">{words}' in answer.text

    def test_do_not_depend_on_there_being_results(self, api: Service) -> None:
        job = api.submit(job_body())["id"]
        for path in (
            f"/jobs/{job}",
            f"/jobs/{job}/responses",
            f"/jobs/{job}/responses?out_of_character=true",
        ):
            assert look(api, path).status_code == 200
        assert look(api, f"/compare?a={job}&b=baseline:GPT-4o").status_code == 409

    @pytest.mark.parametrize(
        ("a", "b", "status"),
        [
            ("baseline:GPT-4o", "baseline:", 422),
            ("baseline:GPT-4o", "baseline:" + "G" * 350, 422),
            ("baseline:GPT-4o", ":", 404),
            ("baseline:GPT-4o", "job_01kxyz0abcdefghjkmnpqrstvw:m", 404),
            ("baseline:GPT-4o", "baseline:GPT-4o", 422),
        ],
    )
    def test_say_what_the_address_of_a_comparison_names_wrongly(
        self, api: Service, a: str, b: str, status: int
    ) -> None:
        assert look(api, f"/compare?a={a}&b={b}").status_code == status
