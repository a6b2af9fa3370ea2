"""Whole jobs with llama.cpp's server and a tiny random model: what it writes is noise, and nothing of it is taken for a score."""

from pathlib import Path

from tests.e2e.stack import Json, Stack
from tests.providers.servers import Server

TINY = {"model": "llama/tiny", "max_tokens": 60}
JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["social_media_post"],
    "models": [TINY],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 3,
}


class TestAtomicJob:
    def test_texts_of_noise_are_judged_and_counted(self, with_tiny: Stack) -> None:
        job = with_tiny.ended(with_tiny.submit(JOB))
        assert job["status"] == "completed"
        responses = list(with_tiny.responses(job["id"]))
        assert {response["finish_reason"] for response in responses} <= {"length", "stop"}
        assert all(response["text"] for response in responses)

    def test_verdicts_of_noise_have_no_score_unless_there_is_a_number(self, with_tiny: Stack) -> None:
        text = "What a weekend! I danced until four. On Sunday I hid from everybody."
        job = with_tiny.ended(
            with_tiny.submit(
                {
                    "personas": ["E-high"],
                    "tasks": ["social_media_post"],
                    "responses": [
                        {"persona": "E-high", "task": "social_media_post", "model": "ours", "text": text}
                    ],
                    "judges": [TINY],
                }
            )
        )
        (response,) = with_tiny.responses(job["id"])
        verdicts = [verdict for unit in response["units"] for verdict in unit["verdicts"]]
        for verdict in verdicts:
            assert (verdict["score"] is not None) is (verdict["status"] == "scored")
        said = any(verdict["status"] in {"scored", "not_applicable"} for verdict in verdicts)
        assert (job["status"], job["status_reason"]) == (
            ("completed", None) if said else ("failed", "no_score")
        )


class TestOutage:
    def test_a_server_that_is_killed_and_started_again_loses_nothing(
        self, with_tiny: Stack, tiny: tuple[Server, Path]
    ) -> None:
        server, _ = tiny
        job_id = with_tiny.submit(JOB | {"iterations": 40})
        with_tiny.until(job_id, lambda job: job["progress"]["generation"]["succeeded"] >= 4)
        server.kill()
        server.start()
        done = with_tiny.ended(job_id, 120)
        assert (done["status"], done["completeness"]) == ("completed", "full")
