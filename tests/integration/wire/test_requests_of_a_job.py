"""What reaches the providers when a job runs, byte for byte: from the API through workers and SDKs to the socket."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Stack, running_stack
from tests.integration.wire.recorder import Recorder, Request, recording

GOLDEN = Path(__file__).parents[2] / "golden"
KEY = "sk-recorded"
MODELS: dict[str, Any] = {
    "openai": "openai/gpt-4o-2024-08-06",
    "anthropic": {
        "model": "anthropic/claude-3-haiku-20240307",
        "temperature": 1,
        "max_tokens": 1024,
    },
}
JUDGES = {"openai": "openai/gpt-4o-2024-08-06", "anthropic": "anthropic/claude-3-haiku-20240307"}
RESPONSES = 15 * 6 * (10 + 1 + 1)  # personas × instructions × items of the three tasks


@dataclass(frozen=True)
class Recorded:
    """What one whole job sent, and what it should have."""

    job_id: str
    requests: list[Request]
    golden: dict[str, Any]


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with recording() as running:
        yield running


@pytest.fixture(scope="module")
def stack(
    recorder: Recorder,
    databases: Databases,
    template_database: str,
    valkey: EmbeddedValkey,
) -> Iterator[Stack]:
    providers = {
        "OPENAI_BASE_URL": f"{recorder.url}/v1",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": recorder.url,
        "ANTHROPIC_API_KEY": KEY,
    }
    with (
        databases.new("wire", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url(), environment=providers) as running,
    ):
        yield running


@pytest.fixture(scope="module", params=["openai", "anthropic"])
def recorded(request: pytest.FixtureRequest, recorder: Recorder, stack: Stack) -> Recorded:
    """The paper's job with one iteration, all of it sent to one provider."""
    recorder.requests.clear()
    job_id = stack.submit(
        {
            "personas": ["big-five"],
            "tasks": ["questionnaire", "essay", "social_media_post"],
            "models": [MODELS[request.param]],
            "judges": [JUDGES[request.param]],
            "iterations": 1,
        }
    )
    job = stack.ended(job_id)
    assert (job["status"], job["completeness"]) == ("completed", "full")
    golden = json.loads((GOLDEN / f"wire_{request.param}.json").read_text(encoding="utf-8"))
    return Recorded(job_id, list(recorder.requests), golden)


def compact(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class TestRequestsOfAJob:
    def test_are_one_for_each_text_and_one_for_each_sentence(self, recorded: Recorded) -> None:
        assert len(recorded.requests) == 2 * RESPONSES
        assert {request.line for request in recorded.requests} == {recorded.golden["line"]}

    def test_have_the_bodies_of_the_papers_tables_byte_for_byte(self, recorded: Recorded) -> None:
        sent = Counter(request.body for request in recorded.requests)
        missing = [call["what"] for call in recorded.golden["calls"] if not sent[compact(call["body"])]]
        assert missing == []

    def test_are_sent_once_for_each_run(self, recorded: Recorded) -> None:
        sent = Counter(request.body for request in recorded.requests)
        for call in recorded.golden["calls"]:
            # A question is judged for three personas under six instructions, each of which gave the same sentence.
            times = 3 * 6 if call["what"].startswith("judging") else 1
            assert sent[compact(call["body"])] == times, call["what"]

    def test_to_the_judge_have_temperature_0_and_no_system_message(self, recorded: Recorded) -> None:
        judging = [json.loads(r.body) for r in recorded.requests if b"single number:" in r.body]
        assert len(judging) == RESPONSES
        assert {body["temperature"] for body in judging} == {0}
        assert {tuple(message["role"] for message in body["messages"]) for body in judging} == {("user",)}
        assert not any("system" in body for body in judging)

    def test_are_named_after_the_job_and_what_they_are_for(self, recorded: Recorded) -> None:
        names = [request.headers["x-client-request-id"] for request in recorded.requests]
        generation = rf"{recorded.job_id}/generation/\d+/[0-5]/\d/a1"
        judging = rf"{recorded.job_id}/judging/\d+/[0-5]/\d/0/0/0/a1"
        assert len(set(names)) == len(names)
        assert sum(re.fullmatch(generation, name) is not None for name in names) == RESPONSES
        assert sum(re.fullmatch(judging, name) is not None for name in names) == RESPONSES

    def test_carry_the_key_in_one_header(self, recorded: Recorded) -> None:
        carrying = {
            name for request in recorded.requests for name, value in request.headers.items() if KEY in value
        }
        assert carrying == {"authorization"}
