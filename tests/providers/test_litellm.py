"""Whole jobs through LiteLLM's proxy, behind which is the simulator: what goes through another's code arrives unchanged."""

import json
from pathlib import Path

import pytest

from simulator.bank import load_bank
from tests.e2e.stack import TERMINAL, Json, Stack
from tests.integration.simulator.conftest import RunningSimulator
from tests.providers.servers import Server


def atomic_job(model: str, judge: str, **more: object) -> Json:
    return {
        "personas": ["E-high", "N-low"],
        "tasks": ["social_media_post"],
        "models": [model],
        "judges": [judge],
        "instructions": [1],
        "iterations": 1,
        **more,
    }


class TestAtomicJob:
    @pytest.mark.parametrize(
        ("model", "judge"),
        [
            ("litellm/sim-faithful", "litellm/sim-judge"),
            ("litellm-claude/claude", "litellm-claude/claude-judge"),
        ],
        ids=["openai", "anthropic"],
    )
    def test_has_the_texts_and_the_true_scores(
        self, through_proxy: Stack, simulator: RunningSimulator, model: str, judge: str
    ) -> None:
        job = through_proxy.ended(through_proxy.submit(atomic_job(model, judge)))
        assert (job["status"], job["completeness"]) == ("completed", "full")
        written = {line["text"] for line in simulator.ledger() if line["kind"] == "generation"}
        responses = list(through_proxy.responses(job["id"]))
        assert {response["text"] for response in responses} <= written
        truth = load_bank().truth
        for unit in (unit for response in responses for unit in response["units"]):
            for verdict in unit["verdicts"]:
                true = truth(unit["text"])
                if true is not None and true.dimension == verdict["dimension"]:
                    assert verdict["score"] == true.score
        assert job["usage"]["input_tokens"] > 0


class TestPersonaGym:
    def test_is_completed(self, through_proxy: Stack) -> None:
        job = through_proxy.ended(
            through_proxy.submit(
                {
                    "personas": ["gym-01"],
                    "tasks": [
                        {"task": "expected_action", "questions": 2},
                        {"task": "toxicity_control", "questions": 2},
                    ],
                    "models": ["litellm/sim-faithful"],
                    "judges": ["litellm/sim-judge", "litellm-claude/claude-judge"],
                    "reasoner": "litellm/sim-reasoner",
                }
            )
        )
        assert (job["status"], job["completeness"]) == ("completed", "full")
        (total,) = through_proxy.results(job["id"])["persona_score_totals"]
        assert 1 <= total["persona_score"]["value"] <= 5


class TestRefusals:
    @pytest.mark.parametrize(
        "model",
        ["litellm-wrong-key/sim-faithful", "litellm/no-such-model", "litellm/wrong-key"],
        ids=["wrong key", "unknown model", "wrong key behind the proxy"],
    )
    def test_what_can_never_succeed_ends_the_job_with_the_reason(
        self, through_proxy: Stack, model: str
    ) -> None:
        job_id = through_proxy.submit(atomic_job(model, "litellm/mock-judge"))
        job = through_proxy.until(job_id, lambda job: job["status"] in {*TERMINAL, "paused"})
        assert job["status"] in {"failed", "paused"}
        assert job["status_reason"]

    def test_one_filtered_prompt_does_not_stop_a_job(self, through_proxy: Stack) -> None:
        job = atomic_job("litellm/filtered", "litellm/mock-judge", personas=["E-high", "E-low"], iterations=8)
        done = through_proxy.ended(through_proxy.submit(job))
        assert done["status"] == "completed"
        texts = [response["text"] for response in through_proxy.responses(done["id"])]
        assert any(texts)


class TestRateLimits:
    def test_a_limit_behind_the_proxy_is_kept(
        self, through_proxy: Stack, simulator: RunningSimulator
    ) -> None:
        """30 calls in ten seconds, 180 a minute; the proxy passes limits and what is left on, but not the resets."""
        job = atomic_job("litellm/sim-faithful", "litellm/limited-judge")
        done = through_proxy.ended(through_proxy.submit(job))
        assert (done["status"], done["completeness"]) == ("completed", "full")
        (counts,) = json.loads(simulator.request("GET", "/_sim/stats")[2])["profiles"][
            "azure-30k-tpm"
        ].values()
        assert counts["accepted"] > 30

    def test_a_provider_that_always_answers_429_holds_a_job_until_it_is_cancelled(
        self, through_proxy: Stack
    ) -> None:
        job_id = through_proxy.submit(atomic_job("litellm/mock-429", "litellm/mock-judge"))
        through_proxy.until(job_id, lambda job: job["status"] == "running")
        assert through_proxy.act(job_id, "cancel")["status"] in {"cancelled", "cancelling"}
        assert through_proxy.ended(job_id)["status"] == "cancelled"


class TestOutage:
    def test_a_proxy_that_is_killed_and_started_again_loses_nothing(
        self, through_proxy: Stack, proxy: tuple[Server, Path], simulator: RunningSimulator
    ) -> None:
        server, _ = proxy
        job_id = through_proxy.submit(atomic_job("litellm/sim-faithful", "litellm/sim-judge", iterations=8))
        through_proxy.until(job_id, lambda job: job["progress"]["generation"]["succeeded"] >= 4)
        server.kill()
        server.start()
        done = through_proxy.ended(job_id, 120)
        assert (done["status"], done["completeness"]) == ("completed", "full")
