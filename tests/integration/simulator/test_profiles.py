"""Provider profiles over real HTTP, seen by the clients that OpenAI and Anthropic themselves publish."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anthropic
import openai
import pytest

from simulator.provider_profiles import load_provider_profile, provider_profile_names
from simulator.quirks import THOUGHTS
from tests.integration.simulator.conftest import RunningSimulator
from tests.unit.simulator.prompts import OPTIONS, essay_score

JUDGED = essay_score("I get irritated quicker than most people around me.", OPTIONS["N"])
"""Its true score is 2."""


@contextmanager
def gpt(
    simulator: RunningSimulator, profile: str, root: str = "v1", key: str = "any"
) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulator.url}/p/{profile}/{root}", api_key=key, max_retries=0) as client:
        yield client


@contextmanager
def claude(simulator: RunningSimulator, profile: str, key: str = "any") -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=f"{simulator.url}/p/{profile}", api_key=key, max_retries=0) as client:
        yield client


def ask(
    client: openai.OpenAI, model: str = "judge", **parameters: object
) -> openai.types.chat.ChatCompletion:
    return client.chat.completions.create(
        model=model,
        messages=[{"role": "system", "content": "You judge."}, {"role": "user", "content": JUDGED}],
        extra_body=parameters,
    )


def tell(client: anthropic.Anthropic, model: str = "judge", **parameters: object) -> anthropic.types.Message:
    return client.messages.create(
        model=model,
        max_tokens=100,
        messages=[{"role": "user", "content": JUDGED}],
        extra_body=parameters,
    )


class TestEveryProfile:
    @pytest.mark.parametrize("form", ["openai", "anthropic"])
    def test_answers_its_judge(self, simulator: RunningSimulator, form: str) -> None:
        for name in provider_profile_names():
            if load_provider_profile(name).server.seconds > 1 or ("anthropic" in name) is (form == "openai"):
                continue
            if form == "openai":
                with gpt(simulator, name, root="openai/v1") as client:
                    assert ask(client).choices[0].message.content == "2"
                    assert ask(client).model == "judge"
            else:
                with claude(simulator, name) as other:
                    assert [block.text for block in tell(other).content if block.type == "text"] == ["2"]

    def test_is_listed_with_the_names_of_its_models(self, simulator: RunningSimulator) -> None:
        with gpt(simulator, "mistral-paid") as client:
            assert {"sim-judge", "magistral-medium-latest"} <= {model.id for model in client.models.list()}

    def test_one_that_does_not_exist_is_not_found(self, simulator: RunningSimulator) -> None:
        with gpt(simulator, "openai-tier-99") as client, pytest.raises(openai.NotFoundError):
            ask(client)


class TestLimits:
    def test_openais_headers_are_on_every_reply_and_fall(self, simulator: RunningSimulator) -> None:
        with gpt(simulator, "openai-4o-tier-1") as client:
            heads = []
            for _ in range(3):
                raw = client.chat.completions.with_raw_response.create(
                    model="judge", messages=[{"role": "user", "content": JUDGED}], max_tokens=500
                )
                heads.append(raw.headers)
                assert raw.parse().choices[0].message.content == "2"
        assert [int(head["x-ratelimit-remaining-requests"]) for head in heads] == [499, 498, 497]
        left = [int(head["x-ratelimit-remaining-tokens"]) for head in heads]
        assert left[0] < 30_000 - 500
        assert left[0] - left[1] == left[1] - left[2] > 500

    def test_a_429_is_read_by_openais_client(self, simulator: RunningSimulator) -> None:
        with gpt(simulator, "openai-free") as client:
            for _ in range(3):
                ask(client)
            with pytest.raises(openai.RateLimitError) as refusal:
                ask(client)
        assert (refusal.value.code, refusal.value.type) == ("rate_limit_exceeded", "requests")
        assert refusal.value.response.headers["x-ratelimit-remaining-requests"] == "0"
        assert 55 < int(refusal.value.response.headers["retry-after"]) <= 60
        counts = json.loads(simulator.request("GET", "/_sim/stats")[2])["profiles"]["openai-free"]
        assert counts == {"judge": {"accepted": 3, "over requests per min (RPM)": 1}}
        assert [line.get("over") for line in simulator.ledger()] == [None] * 3 + ["requests per min (RPM)"]

    def test_a_429_is_read_by_anthropics_client(self, simulator: RunningSimulator) -> None:
        with claude(simulator, "anthropic-tier-1") as client:
            raw = client.messages.with_raw_response.create(
                model="judge", max_tokens=100, messages=[{"role": "user", "content": JUDGED}]
            )
            assert raw.headers["anthropic-ratelimit-requests-remaining"] == "49"
            assert raw.headers["anthropic-ratelimit-output-tokens-limit"] == "8000"
            for _ in range(49):
                tell(client)
            with pytest.raises(anthropic.RateLimitError, match="requests per minute") as refusal:
                tell(client)
        assert refusal.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
        assert "retry-after" in refusal.value.response.headers

    def test_geminis_429_is_a_list_without_headers(self, simulator: RunningSimulator) -> None:
        with gpt(simulator, "gemini-free", root="v1beta/openai") as client:
            for _ in range(15):
                ask(client)
            with pytest.raises(openai.RateLimitError) as refusal:
                ask(client)
        assert not [name for name in refusal.value.response.headers if "ratelimit" in name or "retry" in name]
        assert refusal.value.response.json()[0]["error"]["status"] == "RESOURCE_EXHAUSTED"

    def test_the_usual_profile_is_set_by_the_configuration_and_batches_are_not_limited(
        self, simulator: RunningSimulator
    ) -> None:
        simulator.request("POST", "/_sim/config", {"openai_profile": "openai-free"})
        with openai.OpenAI(base_url=f"{simulator.url}/v1", api_key="any", max_retries=0) as client:
            raw = client.chat.completions.with_raw_response.create(
                model="sim-judge", messages=[{"role": "user", "content": JUDGED}]
            )
            assert raw.headers["x-ratelimit-limit-requests"] == "3"


class TestErrors:
    @pytest.mark.parametrize(
        ("profile", "error"),
        [
            ("openai-4o-tier-1", openai.AuthenticationError), ("gemini-free", openai.BadRequestError),
            ("mistral-paid", openai.AuthenticationError), ("llama-cpp-one-fast-slot", openai.AuthenticationError),
        ],
    )  # fmt: skip
    def test_a_wrong_key_is_refused_in_each_providers_form(
        self, simulator: RunningSimulator, profile: str, error: type[openai.APIStatusError]
    ) -> None:
        with gpt(simulator, profile, key="wrong") as client, pytest.raises(error):
            ask(client)

    def test_a_wrong_key_of_anthropic(self, simulator: RunningSimulator) -> None:
        with (
            claude(simulator, "anthropic-tier-4", key="wrong") as client,
            pytest.raises(anthropic.AuthenticationError),
        ):
            tell(client)

    def test_parameters_are_refused_as_the_models_of_that_name_refuse_them(
        self, simulator: RunningSimulator
    ) -> None:
        with gpt(simulator, "openai-4o-tier-5") as client:
            with pytest.raises(openai.BadRequestError) as refusal:
                ask(client, "o4-mini", temperature=0)
            assert (refusal.value.code, refusal.value.param) == ("unsupported_value", "temperature")
            with pytest.raises(openai.BadRequestError) as refusal:
                ask(client, "gpt-5", max_tokens=5)
            assert (refusal.value.code, refusal.value.param) == ("unsupported_parameter", "max_tokens")
            ask(client, "o4-mini", max_completion_tokens=50)
        with claude(simulator, "anthropic-tier-4") as other:
            with pytest.raises(anthropic.BadRequestError, match="cannot both be specified"):
                tell(other, "claude-sonnet-4-6", temperature=0, top_p=0.5)
            with pytest.raises(anthropic.BadRequestError, match="deprecated"):
                tell(other, "claude-opus-4-7", temperature=0)
            tell(other, "claude-sonnet-4-6", temperature=0)

    def test_azures_filter_and_routers_moderation(self, simulator: RunningSimulator) -> None:
        with gpt(simulator, "azure-450k-tpm", root="openai/v1") as client:
            with pytest.raises(openai.BadRequestError) as refusal:
                ask(client, "sim-faithful+filtered")
            assert refusal.value.code == "content_filter"
        with (
            gpt(simulator, "openrouter-paid", root="api/v1") as client,
            pytest.raises(openai.PermissionDeniedError),
        ):
            ask(client, "sim-faithful+filtered")


class TestThoughts:
    def test_are_read_by_the_clients_where_they_have_a_place(self, simulator: RunningSimulator) -> None:
        with gpt(simulator, "deepseek") as client:
            message = ask(client, "sim-judge+reasoning-content").choices[0].message
            assert (message.content, getattr(message, "reasoning_content", None)) == ("2", THOUGHTS)
        with claude(simulator, "anthropic-tier-4") as other:
            thinking, text = tell(other, "sim-judge+think-blocks").content
            assert thinking.type == "thinking"
            assert (thinking.thinking, text.type) == (THOUGHTS, "text")


class TestQueues:
    def test_a_server_of_one_slot_answers_one_call_after_the_other(self, simulator: RunningSimulator) -> None:
        ended: list[float] = []

        def call() -> None:
            with gpt(simulator, "llama-cpp-one-fast-slot") as client:
                ask(client)
                ended.append(time.monotonic())

        start = time.monotonic()
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, end in enumerate(sorted(ended), start=1):
            assert end - start >= number * 0.2 - 0.01

    @pytest.mark.parametrize(
        ("profile", "for_nobody"), [("llama-cpp-one-fast-slot", 0), ("llama-cpp-one-fast-slot-oblivious", 1)]
    )
    def test_what_was_computed_for_nobody_is_counted(
        self, simulator: RunningSimulator, profile: str, for_nobody: int
    ) -> None:
        body = json.dumps({"model": "judge", "messages": [{"role": "user", "content": JUDGED}]}).encode()
        head = f"POST /p/{profile}/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer any\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", simulator.port)) as connection:
            connection.sendall(head.encode() + body)
            time.sleep(0.05)
        with gpt(simulator, profile) as client:
            ask(client)
        counts = json.loads(simulator.request("GET", "/_sim/stats")[2])["profiles"][profile]["judge"]
        assert counts.get("computed for nobody", 0) == for_nobody
        assert [line.get("for_nobody", False) for line in simulator.ledger()] == [bool(for_nobody), False]

    def test_a_full_queue_is_a_503(self, start: Callable[..., RunningSimulator]) -> None:
        simulator, statuses = start(), list[int]()

        def call() -> None:
            with gpt(simulator, "ollama-short-fast-queue") as client:
                try:
                    ask(client)
                    statuses.append(200)
                except openai.APIStatusError as error:
                    statuses.append(error.status_code)

        threads = [threading.Thread(target=call) for _ in range(14)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) == {200, 503}
        assert statuses.count(200) >= 9
