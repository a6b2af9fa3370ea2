"""Whole jobs against what real providers do: their limits, headers, errors, thoughts, parameters and queues."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from simulator.bank import load_bank
from simulator.quirks import THOUGHTS
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import TERMINAL, Json, Stack, connected_stack
from tests.integration.simulator.conftest import RunningSimulator

DAY = timedelta(days=1)
ROOTS = {
    "openai-4o-tier-1": "v1", "openai-mini-tier-5": "v1", "groq-30-a-day": "openai/v1", "gemini-tier-1": "v1beta/openai", "gemini-free-fast": "v1beta/openai",
    "mistral-paid": "v1", "azure-450k-tpm": "openai/v1", "deepseek": "v1", "openrouter-paid": "api/v1", "vllm-64-slots": "v1",
    "llama-cpp-one-fast-slot": "v1", "llama-cpp-one-fast-slot-oblivious": "v1", "ollama-short-fast-queue": "v1",
}  # fmt: skip
"""The paths of the profiles, as the providers have them."""


@pytest.fixture(scope="module")
def providers(simulator: RunningSimulator, databases: Databases, template_database: str) -> Iterator[Stack]:
    """A service that is connected to all of them."""
    connections: dict[str, object] = {
        name: {
            "kind": "openai",
            "base_url": f"{simulator.url}/p/{name}/{root}",
            "api_key_env": "PROVIDER_KEY",
        }
        for name, root in ROOTS.items()
    }
    connections["gemini-wrong-key"] = {
        "kind": "openai", "base_url": f"{simulator.url}/p/gemini-tier-1/v1beta/openai", "api_key_env": "WRONG_KEY",
    }  # fmt: skip
    for name in ("anthropic-tier-4", "anthropic-contract"):
        connections[name] = {
            "kind": "anthropic", "base_url": f"{simulator.url}/p/{name}", "api_key_env": "PROVIDER_KEY",
        }  # fmt: skip
    connections["vllm-base-models"] = {
        "kind": "completions", "base_url": f"{simulator.url}/p/vllm-64-slots/v1", "api_key_env": "PROVIDER_KEY",
    }  # fmt: skip
    with (
        scratch_directory() as directory,
        connected_stack(
            connections, directory, databases, template_database, PROVIDER_KEY="any", WRONG_KEY="wrong"
        ) as stack,
    ):
        yield stack


def written_by(model: str | Json, **more: object) -> Json:
    """A job of three texts of a model, judged exactly."""
    return {
        "personas": ["E-high"],
        "tasks": ["social_media_post"],
        "models": [model],
        "judges": ["openai-mini-tier-5/judge"],
        "instructions": [1],
        "iterations": 1,
        **more,
    }


def judged_by(judge: str, texts: int = 2) -> Json:
    """A job of texts that are there, of five sentences each, judged by one model."""
    sentences = [load_bank().trait["E", score][0][0] for score in (1, 2, 3, 4, 5)]
    responses = [
        {"persona": "E-high", "task": "social_media_post", "model": "ours", "text": " ".join(part)}
        for part in (sentences[n % 5 :] + sentences[: n % 5] for n in range(texts))
    ]
    return {"personas": ["E-high"], "tasks": ["social_media_post"], "responses": responses, "judges": [judge]}


def verdicts(stack: Stack, job: Json) -> list[tuple[str, Json]]:
    """Each verdict of a job, with its sentence."""
    return [
        (unit["text"], verdict)
        for response in stack.responses(job["id"])
        for unit in response["units"]
        for verdict in unit["verdicts"]
    ]


def run(stack: Stack, job: Json) -> Json:
    return stack.until(stack.submit(job), lambda job: job["status"] in {*TERMINAL, "paused"})


def assert_truly_judged(stack: Stack, job: Json) -> None:
    assert (job["status"], job["completeness"]) == ("completed", "full")
    found = verdicts(stack, job)
    assert found
    for sentence, verdict in found:
        dimension, score = load_bank().truth(sentence)  # type: ignore[misc]  # each is a sentence of the bank
        if dimension == "E":
            assert (verdict["status"], verdict["score"]) == ("scored", score)


class TestTexts:
    @pytest.mark.parametrize(
        "model",
        [
            "vllm-64-slots/qwen-thinking", "vllm-64-slots/qwen-thinking-end-tag", "deepseek/deepseek-reasoner",
            "openrouter-paid/sim/reasoning", "mistral-paid/magistral-medium-latest",
            "anthropic-contract/claude-opus-4-7-thinking",
        ],
    )  # fmt: skip
    def test_of_models_that_think_are_judged_without_their_thoughts(
        self, providers: Stack, model: str
    ) -> None:
        job = run(providers, written_by(model))
        assert_truly_judged(providers, job)
        assert all(THOUGHTS[:20] not in response["text"] for response in providers.responses(job["id"]))

    def test_of_base_models_are_asked_for_by_their_own_format_and_judged(
        self, providers: Stack, simulator: RunningSimulator
    ) -> None:
        asked = {"model": "vllm-base-models/sim-faithful", "max_tokens": 2000, "temperature": 0.7}
        job = run(providers, written_by(asked))
        assert_truly_judged(providers, job)
        texts = len(list(providers.responses(job["id"])))
        asked_for = simulator.counts()["/v1/completions", "sim-faithful", "generation", 200]
        assert asked_for == (texts, texts)
        assert "vllm-base-models/sim-faithful" in {used["model"] for used in job["usage"]["by_model"]}

    @pytest.mark.parametrize(
        "model",
        ["vllm-64-slots/qwen-thinking-unclosed", "deepseek/sim-faithful+only-thoughts", "anthropic-contract/sim-faithful+only-thoughts"],
    )  # fmt: skip
    def test_that_are_thoughts_only_are_not_judged(self, providers: Stack, model: str) -> None:
        job = run(providers, written_by(model))
        assert job["status"] in {"completed", "failed", "paused"}
        assert [verdict for _, verdict in verdicts(providers, job) if verdict["score"] is not None] == []


class TestJudges:
    @pytest.mark.parametrize(
        "judge",
        [
            "vllm-64-slots/sim-judge+think-tags", "vllm-64-slots/sim-judge+think-end-tag",
            "deepseek/sim-judge+reasoning-content", "mistral-paid/magistral-judge",
            "anthropic-contract/sim-judge+think-blocks",
        ],
    )  # fmt: skip
    def test_that_think_are_read_by_what_they_say_at_last(self, providers: Stack, judge: str) -> None:
        assert_truly_judged(providers, run(providers, judged_by(judge)))

    def test_that_are_cut_off_while_they_weigh_give_no_score(self, providers: Stack) -> None:
        job = run(providers, judged_by("openai-mini-tier-5/sim-judge+cut-off-musing"))
        assert {verdict["score"] for _, verdict in verdicts(providers, job)} <= {None}


class TestParameters:
    @pytest.mark.parametrize(
        "model",
        [
            "openai-mini-tier-5/o4-mini", "openai-mini-tier-5/gpt-5", "openai-mini-tier-5/ft:o4-mini:lab",
            "anthropic-contract/claude-sonnet-4-6", "anthropic-contract/claude-opus-4-7", "anthropic-contract/claude-opus-4-8",
        ],
    )  # fmt: skip
    def test_that_a_family_refuses_are_not_sent_to_it(self, providers: Stack, model: str) -> None:
        assert_truly_judged(providers, run(providers, written_by(model)))

    @pytest.mark.parametrize("model", ["claude-sonnet-4-6", "claude-opus-4-7"])
    def test_of_personagym_are_fitted_to_claude(self, providers: Stack, model: str) -> None:
        job = run(
            providers,
            {
                "personas": ["gym-01"],
                "tasks": [{"task": "expected_action", "questions": 1}],
                "models": [f"anthropic-contract/{model}"],
                "judges": ["openai-mini-tier-5/judge"],
                "reasoner": f"anthropic-contract/{model}",
            },
        )
        assert (job["status"], job["completeness"]) == ("completed", "full")


class TestFailures:
    @pytest.mark.parametrize(
        "model", ["openrouter-paid/sim/error-in-200", "openrouter-paid/sim/error-in-choice"]
    )
    def test_within_a_good_reply_are_tried_again(self, providers: Stack, model: str) -> None:
        assert_truly_judged(providers, run(providers, written_by(model)))

    @pytest.mark.parametrize("model", ["azure-450k-tpm/filtered-deployment", "openrouter-paid/sim/moderated"])
    def test_of_one_prompt_that_was_filtered_do_not_stop_a_job(self, providers: Stack, model: str) -> None:
        job = run(providers, written_by(model, personas=["E-high", "E-low", "N-high"], iterations=4))
        assert job["status"] == "completed"
        refused = [response for response in providers.responses(job["id"]) if not response["units"]]
        assert refused

    @pytest.mark.parametrize(
        "model",
        [
            "gemini-wrong-key/gemini-2.5-flash-lite", "vllm-64-slots/gemma", "mistral-paid/no-such-model",
            "azure-450k-tpm/no-such-deployment", "gemini-tier-1/no-such-model", "openrouter-paid/no-such-model",
        ],
    )  # fmt: skip
    def test_that_no_retry_mends_end_the_job_before_much_is_spent(
        self, providers: Stack, simulator: RunningSimulator, model: str
    ) -> None:
        job = run(providers, written_by(model, iterations=20))
        assert job["status"] in {"failed", "paused"}
        assert job["status_reason"]


class TestLimits:
    @pytest.mark.parametrize(
        "profile", ["openai-4o-tier-1", "anthropic-tier-4", "mistral-paid", "azure-450k-tpm", "gemini-tier-1"]
    )
    def test_are_never_exceeded_where_the_headers_name_them(
        self, providers: Stack, simulator: RunningSimulator, profile: str
    ) -> None:
        before = over(simulator, profile)
        assert_truly_judged(providers, run(providers, judged_by(f"{profile}/judge")))
        assert over(simulator, profile) == before

    def test_that_no_header_names_are_waited_for_by_what_a_429_says(
        self, providers: Stack, simulator: RunningSimulator
    ) -> None:
        job = run(providers, judged_by("gemini-free-fast/judge", texts=4))
        assert_truly_judged(providers, job)
        turned_down = over(simulator, "gemini-free-fast")
        assert 1 <= turned_down <= 10, "of 20 calls, 5 more than a window takes"

    def test_of_a_day_that_are_used_up_hold_the_job_and_say_until_when(self, providers: Stack) -> None:
        job_id = providers.submit(judged_by("groq-30-a-day/judge", texts=8))
        job = providers.until(job_id, lambda job: bool(job["held"]))
        (held,) = job["held"]
        assert (held["model"], held["reason"]) == (
            "groq-30-a-day/judge",
            "daily limit of requests used up",
        )
        # By the last good reply one of 30 is back in 48 minutes, by a 429 after a day: never is it the hour for which we wait.
        wait = datetime.fromisoformat(held["until"]) - datetime.now(UTC)
        assert any(end - timedelta(minutes=10) < wait <= end for end in (DAY / 30, DAY))
        assert job["status"] == "running"
        providers.act(job_id, "cancel")
        assert providers.ended(job_id)["status"] == "cancelled"


class TestQueues:
    @pytest.mark.parametrize(
        "profile", ["llama-cpp-one-fast-slot", "llama-cpp-one-fast-slot-oblivious", "ollama-short-fast-queue"]
    )
    def test_of_small_servers_lose_nothing_and_compute_nothing_for_nobody(
        self, providers: Stack, simulator: RunningSimulator, profile: str
    ) -> None:
        assert_truly_judged(providers, run(providers, judged_by(f"{profile}/judge")))
        assert sum(counts.get("computed for nobody", 0) for counts in counted(simulator, profile)) == 0


def counted(simulator: RunningSimulator, profile: str) -> list[dict[str, int]]:
    """What the simulator counted of each model of a profile."""
    found: Any = json.loads(simulator.request("GET", "/_sim/stats")[2])["profiles"].get(profile, {})
    return list(found.values())


def over(simulator: RunningSimulator, profile: str) -> int:
    """Calls that were over one of the profile's limits."""
    return sum(
        number
        for counts in counted(simulator, profile)
        for what, number in counts.items()
        if what.startswith("over ")
    )
