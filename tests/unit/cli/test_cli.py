import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

from app.cli import app
from tests.stub_service import Answer, StubService
from tests.unit.cli.documents import job, problem, results


def assay(service: StubService, *arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, env={"ASSAY_URL": service.url}, input=stdin)


def planned(usd: float | None, *, confirm_calls: int | None = None) -> dict[str, Any]:
    cost: dict[str, Any] = {"usd_low": None if usd is None else 0.0, "usd_high": usd, "unpriced_models": []}
    return {
        "calls": 300_000,
        "estimated": True,
        "confirm_calls": confirm_calls,
        "cost": cost,
        "stages": [{"usd": usd}],
    }


def submit_at_terminal(
    service: StubService, directory: Path, answer: str, *options: str, more: str = ""
) -> subprocess.CompletedProcess[str]:
    service.on("POST /v1/jobs", Answer(job("queued"), 202))
    (directory / "job.yaml").write_text(f"personas: [E-high]\n{more}")
    terminal, keyboard = pty.openpty()
    os.write(terminal, f"{answer}\n".encode())
    try:
        return subprocess.run(
            [sys.executable, "-m", "app.cli", "submit", str(directory / "job.yaml"), *options],
            env=os.environ | {"ASSAY_URL": service.url},
            stdin=keyboard,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(keyboard)


class TestClone:
    def test_sends_the_changes_and_prints_the_new_id(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_0", Answer(job("completed", spec={"seed": 1})))
        service.on("POST /v1/jobs/plan", Answer(planned(0.2)))
        service.on("POST /v1/jobs/job_0/clone", Answer(job("queued"), 202))
        options = ("--set", "models=[openai/x]", "--set", "seed=null", "--set", "name=a = b")
        result = assay(service, "clone", "job_0", *options)
        assert (result.exit_code, result.stdout) == (0, "job_1\n")
        assert service.asked[-1].body == {"changes": {"models": ["openai/x"], "seed": None, "name": "a = b"}}

    def test_confirms_a_large_job_by_its_whole_body_when_asked_nothing(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_0", Answer(job("completed", spec={"seed": 1, "tasks": ["essay"]})))
        service.on("POST /v1/jobs/plan", Answer(planned(50.0, confirm_calls=300000)))
        service.on("POST /v1/jobs/job_0/clone", Answer(job("queued"), 202))
        assert assay(service, "clone", "job_0", "--set", "seed=null", "--yes").exit_code == 0
        assert [sent.body for sent in service.asked[1:]] == [
            {"tasks": ["essay"]},
            {"changes": {"seed": None, "confirm_calls": 300000}},
        ]

    @pytest.mark.parametrize("field", ["seed", "=3", "seed=[", "seed=!!python/object:os.system {}"])
    def test_names_a_change_that_is_none(self, service: StubService, field: str) -> None:
        result = assay(service, "clone", "job_0", "--set", field)
        assert (result.exit_code, service.asked) == (3, [])
        assert f"--set {field.partition('=')[0]}" in result.stderr


UNCONFIRMED = problem(422, "1 field is invalid", ("/confirm_calls", "about 300,000 calls are planned"))


class TestSubmit:
    def test_prints_the_id_for_scripts(self, service: StubService, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").write_text("personas: [E-high]")
        service.on("POST /v1/jobs/plan", Answer(planned(0.2)))
        service.on("POST /v1/jobs", Answer(job("queued"), 202))
        result = assay(service, "submit", str(tmp_path / "job.yaml"))
        assert (result.exit_code, result.stdout) == (0, "job_1\n")
        assert result.stderr == "About 300,000 calls, cost: about $0.2000 ($0.00 to $0.2000)\n"
        assert [sent.path for sent in service.asked] == ["/v1/jobs/plan", "/v1/jobs"]
        assert service.asked[-1].body == {"personas": ["E-high"]}

    def test_reads_standard_input(self, service: StubService) -> None:
        service.on("POST /v1/jobs/plan", Answer(planned(0.2)))
        service.on("POST /v1/jobs", Answer(job("queued"), 202))
        assert assay(service, "submit", "-", stdin='{"seed": 3}').exit_code == 0
        assert service.asked[-1].body == {"seed": 3}

    def test_waits_for_the_end_when_asked_to(self, service: StubService) -> None:
        service.on("POST /v1/jobs/plan", Answer(planned(0.2)))
        service.on("POST /v1/jobs", Answer(job("queued"), 202))
        running = Answer(job("running"), headers={"Retry-After": "0"})
        service.on("GET /v1/jobs/job_1", running, Answer(job("completed")))
        result = assay(service, "submit", "-", "--wait", stdin="{}")
        assert (result.exit_code, result.stdout) == (0, "job_1\n")
        assert "completed" in result.stderr

    def test_prints_one_json_document_when_asked_to(self, service: StubService) -> None:
        service.on("POST /v1/jobs", Answer(job("queued"), 202))
        service.on("GET /v1/jobs/job_1", Answer(job("completed")))
        result = assay(service, "submit", "-", "--wait", "--json", stdin="{}")
        assert json.loads(result.stdout)["status"] == "completed"
        assert service.asked[0].path == "/v1/jobs"

    def test_tells_what_is_wrong_field_by_field(self, service: StubService) -> None:
        wrong = problem(422, "2 fields are invalid", ("/tasks/0", "no such task"), ("", "too large"))
        service.on("POST /v1/jobs/plan", Answer(wrong, 422))
        result = assay(service, "submit", "-", stdin="{}")
        assert result.exit_code == 3
        assert result.stderr.splitlines() == [
            "Error: 2 fields are invalid",
            "  /tasks/0  no such task",
            "  (request)  too large",
        ]

    @pytest.mark.parametrize(("answer", "status", "posted"), [("y", 0, 1), ("n", 3, 0), ("\x04", 130, 0)])
    def test_a_large_job_is_confirmed_by_whoever_is_there(
        self, service: StubService, tmp_path: Path, answer: str, status: int, posted: int
    ) -> None:
        service.on("POST /v1/jobs/plan", Answer(planned(0.2, confirm_calls=300000)))
        asked = submit_at_terminal(service, tmp_path, answer)
        assert asked.returncode == status
        assert "300,000 calls" in asked.stderr
        assert "The job is large. Submit it?" in asked.stderr
        bodies = [sent.body for sent in service.asked if sent.path == "/v1/jobs"]
        assert bodies == [{"personas": ["E-high"], "confirm_calls": 300000}] * posted

    @pytest.mark.parametrize(
        ("usd", "job", "options", "question"),
        [
            (0.2, "", (), None),
            (12.0, "", (), "may cost more than $1.00"),
            (12.0, "", ("--confirm-usd", "20"), None),
            (12.0, "", ("--yes",), None),
            (12.0, "budget: {usd: 0.5}", (), None),
            (12.0, "budget: {usd: 5}", (), "may cost more than $1.00"),
            (None, "", (), "has models without a known price"),
            (None, "", ("-y",), None),
        ],
    )
    def test_a_price_above_the_limit_is_confirmed_by_whoever_is_there(
        self,
        service: StubService,
        tmp_path: Path,
        usd: float | None,
        job: str,
        options: tuple[str, ...],
        question: str | None,
    ) -> None:
        service.on("POST /v1/jobs/plan", Answer(planned(usd)))
        asked = submit_at_terminal(service, tmp_path, "n", *options, more=job)
        assert ("cost: unknown" if usd is None else f"($0.00 to ${usd:,.2f}") in asked.stderr
        assert asked.returncode == (0 if question is None else 3)
        assert (question or "") in asked.stderr
        assert ("Submit it?" in asked.stderr) is (question is not None)
        assert (service.asked[-1].path == "/v1/jobs") is (question is None)

    def test_a_large_job_can_be_submitted_unasked_without_a_terminal(self, service: StubService) -> None:
        service.on("POST /v1/jobs", Answer(job("queued"), 202))
        service.on("POST /v1/jobs/plan", Answer(planned(50.0, confirm_calls=300000)))
        assert assay(service, "submit", "-", "--yes", stdin="{}").exit_code == 0
        assert service.asked[-1].body == {"confirm_calls": 300000}

    def test_where_nobody_is_there_it_takes_the_number(self, service: StubService) -> None:
        service.on("POST /v1/jobs/plan", Answer(planned(50.0, confirm_calls=300000)))
        service.on("POST /v1/jobs", Answer(UNCONFIRMED, 422), Answer(job("queued"), 202))
        assert assay(service, "submit", "-", stdin="{}").exit_code == 3
        assert assay(service, "submit", "-", "--confirm-calls", "300000", stdin="{}").exit_code == 0
        assert service.asked[-1].body == {"confirm_calls": 300000}

    def test_a_file_that_is_missing_is_an_error(self, service: StubService) -> None:
        result = assay(service, "submit", "nowhere.yaml")
        assert (result.exit_code, result.stderr) == (
            3,
            "Error: cannot read nowhere.yaml: No such file or directory\n",
        )


class TestWatch:
    @pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 1), ("cancelled", 1)])
    def test_ends_as_the_job_did(self, service: StubService, status: str, code: int) -> None:
        service.on("GET /v1/jobs/job_1", Answer(job(status)))
        assert assay(service, "watch", "job_1").exit_code == code

    def test_says_why_a_job_failed(self, service: StubService) -> None:
        failed = job(
            "failed",
            status_reason="key_refused",
            error={"code": "x", "detail": "the provider refused the key"},
        )
        service.on("GET /v1/jobs/job_1", Answer(failed))
        stderr = assay(service, "watch", "job_1").stderr
        assert "failed (key refused)" in stderr
        assert "the provider refused the key" in stderr

    def test_an_unknown_job_is_an_error(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_2", Answer(problem(404, "job not found"), 404))
        result = assay(service, "watch", "job_2")
        assert result.exit_code == 3
        assert result.stderr == "Error: job not found\nList jobs with: assay jobs\n"

    def test_an_unknown_baseline_is_not_looked_for_among_jobs(self, service: StubService) -> None:
        service.on("GET /v1/baselines/r2", Answer(problem(404, "baseline r2 not found"), 404))
        result = assay(service, "baseline", "r2")
        assert result.exit_code == 3
        assert result.stderr == "Error: baseline r2 not found\nList baselines with: assay baseline\n"

    @pytest.mark.parametrize(
        ("detail", "hint"),
        [
            ("schedule not found", "List schedules with: assay schedule list\n"),
            ("schedule s1 has no values yet", ""),
        ],
    )
    def test_nor_is_a_schedule_or_what_it_does_not_have(
        self, service: StubService, detail: str, hint: str
    ) -> None:
        service.on("GET /v1/schedules/s1/runs?limit=30", Answer(problem(404, detail), 404))
        result = assay(service, "schedule", "runs", "s1")
        assert (result.exit_code, result.stderr) == (3, f"Error: {detail}\n{hint}")

    @pytest.mark.parametrize(
        ("status", "body", "advice"),
        [
            (401, problem(401, "an API key is needed"), "Set ASSAY_API_KEY"),
            (403, problem(403, "this key may only read"), "The key in ASSAY_API_KEY"),
            (404, {"detail": "Not Found"}, "Is this a Persona Assay service? Check ASSAY_URL."),
            (500, problem(500, "internal error"), "logs for request ID req_1"),
        ],
    )
    def test_a_refusal_says_what_to_do(
        self, service: StubService, status: int, body: dict[str, Any], advice: str
    ) -> None:
        service.on("GET /v1/jobs/job_1", Answer(body, status))
        result = assay(service, "status", "job_1")
        assert (result.exit_code, result.stdout) == (3, "")
        assert advice in result.stderr

    def test_whoever_stops_waiting_is_told_that_the_job_goes_on(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_1", Answer(job(), headers={"Retry-After": "1"}))
        watching = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "watch", "job_1", "--json"],
            env=os.environ | {"ASSAY_URL": service.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test that runs in a shell's background would hand its deafness on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one thread here
        )
        with watching:
            assert watching.stderr is not None
            for line in watching.stderr:
                if "running" in line:
                    break
            watching.send_signal(signal.SIGINT)
            said = watching.stderr.read()
            assert watching.wait(timeout=60) == 130
        assert "The job keeps running. Reattach with: assay watch job_1 --json." in said
        assert "Cancel with: assay cancel job_1" in said
        assert not any(asked.method == "POST" for asked in service.asked)


class TestReading:
    def test_results_are_tables(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_1/results", Answer(results()))
        result = assay(service, "results", "job_1")
        assert result.exit_code == 0
        assert "Fidelity by model" in result.stdout
        assert "\x1b" not in result.stdout

    def test_results_as_json_are_the_services_own(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_1/results", Answer(results()))
        assert json.loads(assay(service, "results", "job_1", "--json").stdout) == results()

    def test_jobs_are_listed_with_their_states(self, service: StubService) -> None:
        page = {"data": [job("paused", status_reason="paused_by_user")], "has_more": True}
        service.on("GET /v1/jobs?limit=1&status=paused", Answer(page))
        output = assay(service, "jobs", "--limit", "1", "--status", "paused").stdout
        assert "job_1" in output
        assert "paused (paused by user)" in output
        assert "More jobs: use --limit" in output

    def test_a_jobs_state_is_told_without_waiting(self, service: StubService) -> None:
        limit = {"limit": 40.0, "spent": 25.0, "reserved": 0.5, "remaining": 14.5}
        paused = job("paused", status_reason="budget_exhausted", budget={"usd": limit, "calls": None})
        service.on("GET /v1/jobs/job_1", Answer(paused))
        output = assay(service, "status", "job_1").stdout
        for shown in ("a test", "paused (budget exhausted)", "40/100", "$25.00 of $40.00 spent"):
            assert shown in output
        assert json.loads(assay(service, "status", "job_1", "--json").stdout) == paused

    def test_no_jobs_are_said_to_be_none(self, service: StubService) -> None:
        service.on("GET /v1/jobs?limit=20", Answer({"data": [], "has_more": False}))
        assert assay(service, "jobs").stdout == "No jobs.\n"

    def test_a_plan_shows_calls_and_the_range_of_the_cost(self, service: StubService) -> None:
        stages = [
            {"stage": "generation", "model": "openai/gpt-4o", "calls": 1800, "input_tokens": 90000}
            | {"output_tokens": 400000, "usd": 4.225},
            {"stage": "judging", "model": "local/judge", "calls": 20000, "input_tokens": 10**6}
            | {"output_tokens": 20000, "usd": None},
        ]
        plan = {"cells": 36, "runs_per_cell": 1, "responses": 1800, "calls": 21800, "estimated": True} | {
            "stages": stages,
            "cost": {"usd_low": 2.5, "usd_high": 6.25, "unpriced_models": ["local/judge"]},
            "shortest_seconds": 90.0,
            "simulated": False,
            "warnings": ["No price is known for local/judge; their calls are not in the cost."],
        }
        service.on("POST /v1/jobs/plan", Answer(plan))
        output = assay(service, "plan", "-", stdin="{}").stdout
        assert "36 cells · 1 run each · 1,800 responses · about 21,800 calls" in output
        assert ["total", "21,800", "1,090,000", "420,000"] in [line.split() for line in output.splitlines()]
        assert "Cost: about $4.22 ($2.50 to $6.25)" in output
        assert "unknown" in output
        assert "at least 1:30 because of rate limits" in output
        assert "No price is known for local/judge" in output

    def test_a_plan_of_personagym_alone_counts_no_cells(self, service: StubService) -> None:
        sizes = {"cells": 0, "persona_scores": 2, "runs_per_cell": None, "responses": 20, "calls": 50}
        cost = {"usd_low": 0.0, "usd_high": 0.0, "unpriced_models": []}
        plan = sizes | {"estimated": False, "stages": [], "cost": cost, "simulated": False, "warnings": []}
        service.on("POST /v1/jobs/plan", Answer(plan | {"shortest_seconds": 0.0}))
        output = assay(service, "plan", "-", stdin="{}").stdout
        assert output.startswith("2 persona scores · 20 responses · 50 calls\n")
        assert "cost" not in output.lower()  # the models are free

    def test_a_plan_shows_what_finds_a_difference(self, service: StubService) -> None:
        own = {"personas": 5, "wordings": 6, "iterations": 5, "power": None, "calls": 900, "usd": 1.5}
        option = {"personas": 108, "wordings": 12, "iterations": 2, "power": 0.803, "calls": 12345}
        detection = {
            "metric": "acc_atom",
            "difference": 0.05,
            "power": 0.8,
            "models": 6,
            "population": "personas like these, wordings like these",
            "planned": own | {"reason": "too_few_personas: 5; the comparison takes 6, two on each level"},
            "options": [option | {"usd": 2.25, "reason": None}],
            "reason": None,
            "noise": [
                {"of": "personas", "sd": 0.0912, "source": "published"},
                {"of": "wordings", "sd": 0.05, "source": "assumed"},
            ],
        }
        plan = {"cells": 5, "runs_per_cell": 30, "responses": 150, "calls": 900, "estimated": True} | {
            "stages": [],
            "cost": {"usd_low": 1.0, "usd_high": 2.0, "unpriced_models": []},
            "shortest_seconds": 0.0,
            "simulated": False,
            "warnings": [],
            "detection": detection,
        }
        service.on("POST /v1/jobs/plan", Answer(plan))
        output = assay(service, "plan", "-", "--detect", "0.05", stdin="{}").stdout
        assert service.asked[-1].body == {
            "detect": {
                "difference": 0.05,
                "power": 0.8,
                "metric": "acc_atom",
                "population": "both",
                "models": None,
                "from_job": None,
            }
        }
        lines = [line.split() for line in output.splitlines()]
        assert ["this", "job", "5", "6", "5", "never", "900", "$1.50"] in lines
        assert ["108", "12", "2", "80", "%", "12,345", "$2.25"] in lines
        assert "in acc_atom, to be found in 80 % of cases" in output
        assert "6 models compared at once, over personas like these, wordings like these." in output
        assert "This job: 5; the comparison takes 6, two on each level." in output
        assert "personas on one level 0.0912 (published), wordings 0.05 (assumed)" in " ".join(output.split())
        assert "--from-job JOB" in output

    def test_a_job_that_tells_the_noise_of_no_difference_is_an_error(self, service: StubService) -> None:
        result = assay(service, "plan", "-", "--from-job", "job_1", stdin="{}")
        assert result.exit_code == 3
        assert "--from-job needs --detect." in result.stderr


class TestCheck:
    FOUND: ClassVar[dict[str, object]] = {
        "works": False,
        "findings": [
            {"good": False, "text": "The call failed (invalid_api_key): HTTP 401: wrong key"},
            {"good": True, "text": "It costs $1.00."},
        ],
    }

    def test_says_what_was_found_and_ends_with_1_where_the_model_did_not_answer(
        self, service: StubService
    ) -> None:
        service.on("POST /v1/models/check", Answer(self.FOUND))
        done = assay(service, "check", "openai/gpt-6-luna", "--as", "model", "--family", "o3")
        assert done.exit_code == 1
        assert done.stdout == "! The call failed (invalid_api_key): HTTP 401: wrong key\n✓ It costs $1.00.\n"
        assert service.asked[-1].body == {
            "model": "openai/gpt-6-luna", "role": "model", "call": True, "family": "o3",
        }  # fmt: skip

    def test_without_a_call_ends_with_0(self, service: StubService) -> None:
        service.on("POST /v1/models/check", Answer(self.FOUND | {"works": None}))
        assert assay(service, "check", "openai/gpt-6-luna", "--no-call", "--json").exit_code == 0

    def test_shows_no_control_characters_of_a_reply(self, service: StubService) -> None:
        found = {"good": False, "text": "It answered: “\n\x1b]0;a\x07\x9b2J\u202e”."}
        service.on("POST /v1/models/check", Answer({"works": None, "findings": [found]}))
        shown = assay(service, "check", "openai/gpt-6-luna").stdout
        assert shown == "! It answered: “ \ufffd]0;a\ufffd\ufffd2J\ufffd”.\n"
        as_json = assay(service, "check", "openai/gpt-6-luna", "--json").stdout
        assert json.loads(as_json)["findings"] == [found]
        assert not [char for char in as_json if not char.isprintable() and char != "\n"]


class TestControl:
    @pytest.mark.parametrize(
        ("command", "status"),
        [("cancel", "cancelling"), ("pause", "paused"), ("resume", "queued"), ("retry", "queued")],
    )
    def test_says_what_the_job_is_then(self, service: StubService, command: str, status: str) -> None:
        service.on(f"POST /v1/jobs/job_1/{command}", Answer(job(status)))
        result = assay(service, command, "job_1")
        assert (result.exit_code, result.stdout) == (0, f"job_1 is {status}\n")

    def test_replies_are_read_again(self, service: StubService) -> None:
        example = {"text": "I read.", "judge": "harsh", "score_before": 1, "score_after": None}
        replies = {"reply": "1) Very extroverted", "repair_reply": None}
        change = {"of": "sentences", "before": "scored", "after": "unparsed", "count": 1200}
        found = {
            "job": "job_1",
            "reader_before": "replies-v0",
            "reader": "replies-v1",
            "replies": 5000,
            "changed": 1200,
            "applied": False,
            "changes": [change | {"examples": [example | replies]}],
        }
        service.on("POST /v1/jobs/job_1/reread", Answer(found), Answer(found | {"applied": True}))
        shown = assay(service, "reread", "job_1", "--examples", "1").stdout
        assert service.asked[-1].body == {"apply": False, "examples": 1}
        assert shown.splitlines() == [
            "1,200 verdicts changed among 5,000 replies: read with replies-v1, before with replies-v0",
            "  sentences: scored → unparsed: 1,200",
            "    1 → -  I read.",
            "      harsh replied: 1) Very extroverted",
            "Nothing is stored. To store the new verdicts: assay reread job_1 --apply",
        ]
        stored = assay(service, "reread", "job_1", "--apply").stdout
        assert service.asked[-1].body == {"apply": True, "examples": 3}
        assert stored.endswith("Stored. To wait for the new results: assay watch job_1\n")

    def test_a_job_is_deleted(self, service: StubService) -> None:
        service.on("DELETE /v1/jobs/job_1", Answer(b"", 204))
        assert assay(service, "delete", "job_1").stdout == "job_1 deleted\n"

    def test_what_people_keep_of_a_job_is_changed(self, service: StubService) -> None:
        kept = {"name": "pilot", "tags": ["old", "paper"], "notes": None, "archived_at": None}
        service.on("GET /v1/jobs/job_1", Answer(job() | kept))
        service.on("PATCH /v1/jobs/job_1", Answer(job() | kept | {"archived_at": "2026-11-22T09:00:00Z"}))
        arguments = ("--tag", "paper", "--tag", "new", "--untag", "old", "--notes", "", "--archive")
        result = assay(service, "edit", "job_1", *arguments)
        assert (result.exit_code, result.stdout) == (0, "job_1  pilot  #old  #paper  archived\n")
        assert service.asked[-1].body == {"notes": None, "archived": True, "tags": ["paper", "new"]}
        assert assay(service, "edit", "job_1", "--name", "").exit_code == 0
        assert service.asked[-1].body == {"name": None}

    def test_to_change_nothing_is_wrong_usage(self, service: StubService) -> None:
        assert assay(service, "edit", "job_1").exit_code == 3

    def test_a_budget_is_changed_by_the_limits_that_are_given(self, service: StubService) -> None:
        limit = {"limit": 40.0, "spent": 25.0, "reserved": 0.5, "remaining": 14.5}
        service.on("PATCH /v1/jobs/job_1", Answer(job("paused") | {"budget": {"usd": limit}}))
        result = assay(service, "budget", "job_1", "--usd", "40")
        assert (result.exit_code, result.stdout) == (0, "budget: $25.00 of $40.00 spent, $14.50 remaining\n")
        assert service.asked[-1].body == {"budget": {"usd": 40.0}}


class TestReport:
    def test_is_saved_under_the_given_name(self, service: StubService, tmp_path: Path) -> None:
        service.on("GET /v1/jobs/job_1/report?format=csv&level=cells", Answer(b"a,b\n"))
        path = tmp_path / "cells.csv"
        arguments = ("report", "job_1", "--format", "csv", "--level", "cells", "-o", str(path))
        assert assay(service, *arguments).stdout == f"{path} (4 bytes)\n"
        assert path.read_bytes() == b"a,b\n"

    def test_goes_to_standard_output_byte_for_byte(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_1/report?format=parquet", Answer(b"PAR1\x00\xff\r\n"))
        result = assay(service, "report", "job_1", "--format", "parquet", "-o", "-")
        assert result.stdout_bytes == b"PAR1\x00\xff\r\n"

    @pytest.mark.parametrize(
        ("format_", "content", "shown"),
        [
            ("csv", "id,text\r\n1,\x1b]0;title\x07é\u202e\r\n".encode(), "id,text \n1,�]0;title�é� \n"),
            ("parquet", b"PAR1", "Error: Parquet files cannot be shown on a terminal"),
        ],
    )
    def test_shows_no_control_characters_on_a_terminal(
        self, service: StubService, format_: str, content: bytes, shown: str
    ) -> None:
        service.on(f"GET /v1/jobs/job_1/report?format={format_}", Answer(content))
        terminal, output = pty.openpty()
        with os.fdopen(terminal, "rb", buffering=0) as screen:
            subprocess.run(
                [sys.executable, "-m", "app.cli", "report", "job_1", "--format", format_, "-o", "-"],
                env=os.environ | {"ASSAY_URL": service.url, "PYTHONUTF8": "1"},
                stdout=output,
                stderr=output,
                check=False,
            )
            os.close(output)
            assert shown in screen.read(4096).decode().replace("\r\n", "\n")

    def test_an_unknown_format_is_wrong_usage(self, service: StubService) -> None:
        assert assay(service, "report", "job_1", "--format", "docx").exit_code == 3


class TestUp:
    @pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::"])
    def test_refuses_to_be_reachable_from_elsewhere_without_a_key(self, host: str, tmp_path: Path) -> None:
        result = CliRunner().invoke(app, ["up", "--host", host, "--data-dir", str(tmp_path / "data")])
        assert result.exit_code == 3
        assert f"not on {host}" in result.stderr
        assert "assay keys create" in result.stderr
        assert not (tmp_path / "data").exists()

    @pytest.mark.parametrize(
        "command", [["keys", "create", "--name", "x"], ["keys", "list"], ["tenants", "list"]]
    )
    def test_no_empty_store_of_keys_is_made_in_a_wrong_directory(
        self, command: list[str], tmp_path: Path
    ) -> None:
        directory = tmp_path / "data"
        variables = {"DATABASE_URL": None, "ASSAY_DATA_DIR": str(directory)}
        result = CliRunner().invoke(app, command, env=variables)
        assert (result.exit_code, result.stdout) == (3, "")
        assert f"no service has run in {directory}: start it there once" in result.stderr
        assert not directory.exists()

    @pytest.mark.parametrize(
        ("variables", "reason"),
        [
            ({"ASSAY_WORKERS": "many"}, "ASSAY_WORKERS: must be a whole number"),
            (
                {"REDIS_URL": "redis://127.0.0.1:9/abc"},
                "REDIS_URL: its path must be the number of a database",
            ),
            ({"REDIS_URL": "redis://127.0.0.1:9/0"}, "REDIS_URL: Redis can't be used: connection refused"),
            ({"ASSAY_KEY_PEPPER_FILE": "/dev/null"}, "ASSAY_KEY_PEPPER_FILE: /dev/null is empty"),
            ({"ASSAY_ENCRYPTION_KEYS": "short"}, "ASSAY_ENCRYPTION_KEYS: key 1 is not 32 bytes"),
            ({"ASSAY_CONFIG": "/"}, "ASSAY_CONFIG: /: Is a directory"),
            ({"ASSAY_CONFIG": "/missing.yaml"}, "ASSAY_CONFIG: /missing.yaml: No such file"),
        ],
    )
    def test_a_wrong_variable_is_named_in_one_line(
        self, variables: dict[str, str], reason: str, tmp_path: Path
    ) -> None:
        directory = tmp_path / "data"
        result = CliRunner().invoke(app, ["up", "--data-dir", str(directory)], env=variables)
        assert result.exit_code == 3
        assert reason in result.stderr
        assert "Traceback" not in result.output
        assert not directory.exists()


class TestDemo:
    def test_a_report_that_could_not_be_written_is_said_before_anything_starts(
        self, service: StubService, tmp_path: Path
    ) -> None:
        result = assay(service, "demo", "--url", service.url, "-o", str(tmp_path / "none" / "report.html"))
        assert result.exit_code == 3
        assert "does not exist" in result.stderr
        assert service.asked == []


class TestMigrate:
    def test_says_that_it_needs_a_database(self) -> None:
        result = CliRunner().invoke(app, ["migrate"], env={"DATABASE_URL": None})
        assert (result.exit_code, "DATABASE_URL is not set" in result.stderr) == (3, True)


class TestStart:
    def test_help_loads_nothing_of_weight(self) -> None:
        script = (
            "import sys\nfrom click.testing import CliRunner\nfrom app.cli import app\n"
            "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
            "print(*{'rich.table', 'httpx2', 'yaml', 'pydantic', 'sqlalchemy', 'alembic', 'embedded'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == ""

    def test_a_service_that_is_not_there_is_told_with_what_to_do(self) -> None:
        environment = os.environ | {"ASSAY_URL": "http://127.0.0.1:9"}
        command = [sys.executable, "-m", "app.cli", "jobs"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 3
        assert "Is the service running? Start it with `assay up`" in done.stderr
        assert "Traceback" not in done.stderr
