from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import app
from tests.api.service import Json, Service, pointers
from tests.observe import eventually

JOB: Json = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 1,
}
BODY: Json = {"name": "nightly", "cron": "30 2 * * *", "time_zone": "Europe/Berlin", "job": JOB}
GYM: Json = {
    "personas": [{"id": "cowboy", "description": "a cowboy"}],
    "tasks": ["expected_action"],
    "models": ["simulated/sim-faithful"],
    "reasoner": "simulated/sim-faithful",
    "judges": ["simulated/sim-judge"],
}


@pytest.fixture
def schedule(api: Service) -> Json:
    api.empty("schedules")
    made: Json = api.post("/v1/schedules", BODY).json()
    return made


class TestSchedules:
    def test_one_shows_when_it_is_due_and_the_rules_that_it_keeps(self, api: Service, schedule: Json) -> None:
        assert schedule["id"].startswith("sched_")
        assert (schedule["figure"], schedule["paused"], schedule["last_run"]) == ("acc_atom", False, None)
        assert schedule["next_due"][14:16] == "30"
        assert schedule["job"] == {**JOB, "versions": schedule["job"]["versions"]}
        assert set(schedule["job"]["versions"]) == {"segmenter", "refusals", "injections"}
        assert api.get(f"/v1/schedules/{schedule['id']}").json() == schedule
        assert api.get("/v1/jobs").json()["data"] == []

    def test_they_are_listed_newest_first_and_deleted(self, api: Service, schedule: Json) -> None:
        newer = api.post("/v1/schedules", BODY).json()
        assert [each["id"] for each in api.walk("/v1/schedules", limit=1)] == [newer["id"], schedule["id"]]
        path = f"/v1/schedules/{schedule['id']}"
        assert api.get(f"{path}/runs").json() == {"data": [], "has_more": False, "next_cursor": None}
        assert api.http.delete(path).status_code == 204
        for answer in (api.get(path), api.get(f"{path}/runs"), api.http.delete(path)):
            assert answer.status_code == 404
        assert api.http.patch(path, json={"paused": True}).status_code == 404

    def test_a_change_leaves_what_it_does_not_name(self, api: Service, schedule: Json) -> None:
        path = f"/v1/schedules/{schedule['id']}"
        limits = {"run_usd": 5, "total_usd": 100}
        changed = api.http.patch(path, json={"cron": "0  5 * * *", "budget": limits, "name": None}).json()
        assert (changed["cron"], changed["time_zone"], changed["name"]) == (
            "0 5 * * *",
            "Europe/Berlin",
            None,
        )
        assert changed["budget"] == {"run_usd": 5.0, "total_usd": 100.0, "spent_usd": 0.0}
        paused = api.http.patch(path, json={"paused": True}).json()
        assert (paused["paused_reason"], paused["next_due"], paused["budget"]) == (
            *("by_user", None, changed["budget"]),
        )
        assert api.http.patch(path, json={"budget": None}).json()["budget"]["run_usd"] is None

    def test_an_existing_job_can_be_run_again(self, api: Service) -> None:
        job = api.submit(JOB)
        made = api.post("/v1/schedules", {"cron": "0 2 * * *", "clone": job["id"]}).json()
        assert made["job"] == {**JOB, "versions": made["job"]["versions"]}

    def test_a_job_of_personagym_is_watched_by_its_score(self, api: Service) -> None:
        made = api.post("/v1/schedules", {"cron": "0 2 * * *", "job": GYM}).json()
        assert made["figure"] == "persona_score"

    def test_there_are_fifty_at_most_however_many_are_made_at_once(
        self, api: Service, schedule: Json
    ) -> None:
        with ThreadPoolExecutor(6) as clients:
            answers = list(clients.map(lambda _: api.post("/v1/schedules", BODY), range(52)))
        refused = [answer for answer in answers if answer.status_code != 201]
        assert len(refused) == 3
        assert {answer.json()["errors"][0]["message"] for answer in refused} == {
            "limit of 50 schedules reached"
        }


class TestFigure:
    def test_values_over_time_are_a_file_and_without_any_there_is_none(
        self, api: Service, schedule: Json, tmp_path: Path
    ) -> None:
        path = f"/v1/schedules/{schedule['id']}/figures/timeline"
        none = api.get(f"{path}.svg")
        assert (none.status_code, none.json()["detail"]) == (
            404,
            f"schedule {schedule['id']} has no values yet",
        )
        api.execute(
            "INSERT INTO schedule_runs (id, tenant, schedule_id, due, state, value, n, left_out, low, high, ended_at)"
            " SELECT 'srun_' || n, 'default', %s, '2026-11-01Z'::timestamptz + n * interval '1 day', 'measured',"
            " 0.8 + n / 1000.0, 30 - n %% 3, n %% 3, 0.7, 0.9, now() FROM generate_series(1, 12) n",
            schedule["id"],
        )
        svg = api.get(f"{path}.svg", params={"theme": "dark"})
        assert (svg.status_code, svg.headers["Content-Type"]) == (200, "image/svg+xml")
        assert "12 values, the last one 0.812" in svg.text
        assert "acc_atom of the model (n = 28 to 30, up to 2 left out)" in svg.text
        last = api.get(f"/v1/schedules/{schedule['id']}/runs", params={"limit": 1}).json()["data"][0]
        assert (last["value"], last["n"], last["left_out"]) == (0.812, 30, 0)
        assert "n = 28, 2 left out" in api.get(f"/schedules/{schedule['id']}").text
        assert api.get(f"{path}.gif").status_code == 422
        saved = tmp_path / "values.png"
        result = CliRunner().invoke(
            app, ["schedule", "figure", schedule["id"], "-o", str(saved), "--url", str(api.http.base_url)]
        )
        assert result.exit_code == 0, result.output
        assert saved.read_bytes() == api.get(f"{path}.png").content
        assert saved.read_bytes().startswith(b"\x89PNG")
        wrong = CliRunner().invoke(app, ["schedule", "figure", schedule["id"], "-o", "values.pdf"])
        assert (wrong.exit_code, "must end with .svg or .png" in wrong.output) == (3, True)


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "wrong"),
        [
            ({"cron": "0 0 30 2 *"}, "/cron"),
            ({"cron": "* * * * *"}, "/cron"),
            ({"cron": "daily"}, "/cron"),
            ({"cron": 5}, "/cron"),
            ({"cron": None}, "/cron"),
            ({"cron": "0 2 * * *\u0000"}, "/cron"),
            ({"time_zone": "Europe/Berln"}, "/time_zone"),
            ({"time_zone": "../../etc/passwd"}, "/time_zone"),
            ({"budget": {}}, "/budget"),
            ({"budget": {"run_usd": 0}}, "/budget/run_usd"),
            ({"budget": {"total_usd": -1}}, "/budget/total_usd"),
            ({"budget": {"total_usd": 1e300}}, "/budget/total_usd"),
            ({"budget": {"usd": 1}}, "/budget/usd"),
            ({"job": {**JOB, "models": ["nobody/nothing"]}}, "/job/models/0"),
            ({"job": {**JOB, "tasks": []}}, "/job/tasks"),
            ({"job": {**JOB, "iteration": 1}}, "/job/iteration"),
            ({"job": []}, "/job"),
            ({"job": None}, ""),
            ({"clone": "job_01kxyz0abcdefghjkmnpqrstvw"}, ""),
            ({"job": None, "clone": "job_01kxyz0abcdefghjkmnpqrstvw"}, "/clone"),
            ({"job": None, "clone": "nothing"}, "/clone"),
            ({"figure": "acc_atom>=0.8"}, "/figure"),
            ({"figure": "nothing"}, "/figure"),
            ({"figure": "refusal_rate"}, "/figure"),
            ({"figure": "persona_score"}, "/figure"),
            ({"figure": "acc_atom@model=another"}, "/figure"),
            ({"figure": "acc_atom@task=interview"}, "/figure"),
            ({"figure": "acc_atom@level=neutral"}, "/figure"),
            ({"figure": "acc_atom@persona=nobody"}, "/figure"),
            ({"figure": "acc_atom not worse than job_1 by 0.1"}, "/figure"),
            ({"anchors": {"job": "job_01kxyz0abcdefghjkmnpqrstvw"}}, "/anchors/job"),
            ({"anchors": {"job": "x", "sample": {"responses": 1}}}, "/anchors/sample/responses"),
            ({"paused": "no"}, "/paused"),
            ({"name": "two\nlines"}, "/name"),
        ],
    )
    def test_what_is_wrong_is_named_by_its_field(self, api: Service, changes: Json, wrong: str) -> None:
        api.empty("schedules")
        answer = api.post("/v1/schedules", BODY | changes)
        assert answer.status_code == 422, answer.text
        assert pointers(answer) == [wrong]
        assert api.get("/v1/schedules").json()["data"] == []

    def test_of_several_models_the_watched_one_has_to_be_named(self, api: Service) -> None:
        two = {**JOB, "models": ["simulated/sim-faithful", "simulated/sim-drifting"]}
        answer = api.post("/v1/schedules", BODY | {"job": two})
        assert pointers(answer) == ["/figure"]
        assert "simulated/sim-drifting" in answer.text
        figure = "mean@model=simulated/sim-drifting"
        assert api.post("/v1/schedules", BODY | {"job": two, "figure": figure}).status_code == 201

    def test_a_limit_is_refused_that_no_run_could_keep_for_want_of_a_price(self, api: Service) -> None:
        unpriced = {**JOB, "judges": ["acme/acme-judge"]}
        answer = api.post("/v1/schedules", BODY | {"job": unpriced, "budget": {"run_usd": 1}})
        assert pointers(answer) == ["/budget"]
        assert "acme/acme-judge" in answer.text
        made = api.post("/v1/schedules", BODY | {"job": unpriced}).json()
        changed = api.http.patch(f"/v1/schedules/{made['id']}", json={"budget": {"total_usd": 1}})
        assert pointers(changed) == ["/budget"]

    def test_texts_are_not_kept_in_a_schedule(self, api: Service) -> None:
        text = {"persona": "E-low", "task": "essay", "text": "I stay at home."}
        job = {name: value for name, value in JOB.items() if name != "models"} | {"responses": [text]}
        answer = api.post("/v1/schedules", BODY | {"job": job})
        assert pointers(answer) == ["/job/responses"]

    @pytest.mark.parametrize("change", [{}, {"job": JOB}, {"cron": "* * * * *"}, {"paused": None}])
    def test_a_wrong_change_changes_nothing(self, api: Service, schedule: Json, change: Any) -> None:
        path = f"/v1/schedules/{schedule['id']}"
        assert api.http.patch(path, json=change).status_code == 422
        assert api.get(path).json() == schedule


class TestRun:
    def test_the_sweeper_runs_it_with_its_anchors_and_keeps_the_figures(
        self, stack: Service, finished: Json
    ) -> None:
        anchors = {"job": finished["id"], "sample": {"responses": 10}}
        body = BODY | {"cron": "0 0 1 1 *", "anchors": anchors}
        schedule = stack.post("/v1/schedules", body).json()
        path = f"/v1/schedules/{schedule['id']}"
        kept = stack.http.delete(f"/v1/jobs/{finished['id']}")
        assert (kept.status_code, kept.json()["detail"]) == (
            409,
            f"the schedule nightly ({schedule['id']}) judges the job's texts; delete that schedule first",
        )
        stack.execute(
            "UPDATE schedules SET next_due = clock_timestamp() - interval '1 second' WHERE id = %s",
            schedule["id"],
        )

        def runs() -> list[Json]:
            return [run for run in stack.get(f"{path}/runs").json()["data"] if run["ended_at"]]

        assert eventually(lambda: bool(runs()))
        (run,) = runs()
        assert run["state"] == "measured", run
        for job, value in ((run["job"], run["value"]), (run["anchor_job"], run["anchor_value"])):
            assert stack.job(job)["status"] == "completed"
            assert 0 < value <= 1
        shown = stack.get(path).json()
        assert (shown["last_run"], shown["simulated"]) == (run, True)
        page = stack.get(f"/schedules/{schedule['id']}").text
        assert "<strong>Simulated.</strong>" in page
        assert (
            "Simulated: these values describe no real model."
            in stack.get(f"{path}/figures/timeline.svg").text
        )
        assert stack.http.delete(path).status_code == 204
        assert stack.job(run["job"])["status"] == "completed"
