from pathlib import Path
from typing import Any

import pytest

from tests.stub_service import Answer, StubService
from tests.unit.cli.documents import problem
from tests.unit.cli.test_cli import assay

DUE = "2026-11-24T02:30:00Z"


def run(**changes: Any) -> dict[str, Any]:
    return {
        "id": "srun_1",
        "schedule": "sched_1",
        "due": DUE,
        "state": "measured",
        "reason": None,
        "missed": 0,
        "job": "job_1",
        "anchor_job": None,
        "value": 0.8125,
        "limits": [0.79, 0.83],
        "anchor_value": None,
        "anchor_limits": None,
        "alarms": [],
        "usd": 0.25,
        "ended_at": DUE,
    } | changes


def schedule(**changes: Any) -> dict[str, Any]:
    return {
        "id": "sched_1",
        "name": "nightly",
        "cron": "30 2 * * *",
        "time_zone": "Europe/Berlin",
        "figure": "acc_atom",
        "paused": False,
        "paused_reason": None,
        "next_due": DUE,
        "last_run": run(),
        "simulated": False,
    } | changes


class TestAdd:
    def test_sends_a_job_file_with_what_was_said_of_it_and_nothing_else(
        self, service: StubService, tmp_path: Path
    ) -> None:
        (tmp_path / "job.yaml").write_text("personas: [E-high]")
        service.on("POST /v1/schedules", Answer(schedule(), 201))
        options = (
            "--cron",
            "30 2 * * *",
            "--time-zone",
            "Europe/Berlin",
            "--anchors",
            "job_0",
            "--run-usd",
            "5",
        )
        result = assay(service, "schedule", "add", str(tmp_path / "job.yaml"), *options)
        assert (result.exit_code, result.stdout) == (0, f"sched_1 is next due {DUE}\n")
        assert service.asked[-1].body == {
            "job": {"personas": ["E-high"]},
            "cron": "30 2 * * *",
            "time_zone": "Europe/Berlin",
            "anchors": {"job": "job_0"},
            "budget": {"run_usd": 5.0},
        }

    def test_names_an_existing_job(self, service: StubService) -> None:
        service.on("POST /v1/schedules", Answer(schedule(), 201))
        options = ("--cron", "0 0 * * *", "--anchors", "job_0", "--anchor-responses", "50", "--json")
        assert assay(service, "schedule", "add", "job_1", *options).exit_code == 0
        anchors = {"job": "job_0", "sample": {"responses": 50}}
        assert service.asked[-1].body == {"clone": "job_1", "cron": "0 0 * * *", "anchors": anchors}

    def test_tells_what_is_wrong_by_its_field(self, service: StubService) -> None:
        service.on(
            "POST /v1/schedules", Answer(problem(422, "1 field is invalid", ("/cron", "is never due")), 422)
        )
        result = assay(service, "schedule", "add", "job_1", "--cron", "0 0 30 2 *")
        assert result.exit_code == 3
        assert "/cron" in result.stderr
        assert "is never due" in result.stderr


class TestShown:
    def test_schedules_with_when_they_are_due_or_why_not(self, service: StubService) -> None:
        paused = schedule(id="sched_2", next_due=None, paused_reason="budget_used_up", last_run=None)
        service.on("GET /v1/schedules?limit=500", Answer({"data": [schedule(), paused], "has_more": False}))
        result = assay(service, "schedule", "list")
        assert result.exit_code == 0
        for words in ("sched_1", "2026-11-24 02:30", "measured 0.812", "paused: budget used up"):
            assert words in " ".join(result.stdout.split())

    def test_what_does_not_fit_beside_each_other_has_its_name(self, service: StubService) -> None:
        wide = schedule(figure=f"acc_atom@model={'m' * 60}", simulated=True)
        service.on("GET /v1/schedules?limit=500", Answer({"data": [wide], "has_more": False}))
        said = " ".join(assay(service, "schedule", "list").stdout.split())
        for words in (
            "nightly (simulated)",
            "next due (UTC) 2026-11-24 02:30",
            "value acc_atom@",
            "last run measured 0.812",
        ):
            assert words in said

    def test_runs_with_their_alarms_and_reasons(self, service: StubService) -> None:
        alarm = {
            "cause": "judge",
            "since": DUE,
            "shift": 0.05,
            "before": 0.7,
            "after": 0.75,
            "ci95": [0.04, 0.06],
        }
        skipped = run(
            state="skipped",
            value=None,
            limits=None,
            job=None,
            usd=None,
            reason="the previous run has not ended",
        )
        page = {
            "data": [run(alarms=[alarm], n=30, anchor_value=0.75, anchor_n=28, anchor_left_out=2), skipped]
        }
        service.on("GET /v1/schedules/sched_1/runs?limit=30", Answer(page))
        result = assay(service, "schedule", "runs", "sched_1")
        assert result.exit_code == 0
        for words in (
            "0.790 to 0.830",
            "28 of 30",
            "drift of the judge since 2026-11-24 02:30: +0.050",
            "has not ended",
        ):
            assert words in " ".join(result.stdout.split())

    @pytest.mark.parametrize(("command", "said"), [("pause", "is paused"), ("resume", f"is next due {DUE}")])
    def test_a_pause_and_its_end(self, service: StubService, command: str, said: str) -> None:
        service.on("PATCH /v1/schedules/sched_1", Answer(schedule(paused=command == "pause")))
        result = assay(service, "schedule", command, "sched_1")
        assert (result.exit_code, result.stdout) == (0, f"sched_1 {said}\n")
        assert service.asked[-1].body == {"paused": command == "pause"}

    def test_a_deletion(self, service: StubService) -> None:
        service.on("DELETE /v1/schedules/sched_1", Answer(None, 204))
        assert assay(service, "schedule", "delete", "sched_1").stdout == "sched_1 deleted\n"
