import re
from pathlib import Path

import pytest

from app.llm.connections.connections import (
    SIMULATED_MODELS,
    Connection,
    Connections,
    ConnectionsError,
    Limits,
    load_connections,
)
from simulator.profiles import MODELS

EXAMPLE = (Path(__file__).parents[4] / "assay.example.yaml").read_text()
EXAMPLE_KEYS = {
    name: f"key of {name}"
    for name in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "TOGETHER_API_KEY",
        "OPENROUTER_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "MISTRAL_API_KEY",
    )
}
HOSTED = """
connections:
  hosted: {kind: openai, base_url: "https://models.example/v1/", api_key_env: HOSTED_KEY}
"""


def load(file_text: str | None = None, simulator_url: str | None = None, **env: str) -> Connections:
    return load_connections(file_text, env, simulator_url)


def one(connections: Connections, name: str) -> Connection:
    found = connections.get(name)
    assert found is not None
    return found


def key(connection: Connection) -> str | None:
    return connection.api_key.get_secret_value() if connection.api_key else None


class TestJudges:
    """Of jobs that name none."""

    def test_are_those_of_the_file(self) -> None:
        text = HOSTED + "judges: [hosted/a, hosted/org/b]\n"
        assert load(text, "http://simulator", HOSTED_KEY="k").judges == ("hosted/a", "hosted/org/b")

    def test_are_two_simulated_ones_where_nothing_is_real(self) -> None:
        judges = load(None, "http://simulator").judges
        assert len(judges) == len(set(judges)) == 2
        assert {judge.partition("/")[0] for judge in judges} == {"simulated"}

    def test_are_never_simulated_where_something_is_real(self) -> None:
        assert load(None, "http://simulator", OPENAI_API_KEY="k").judges == ()

    @pytest.mark.parametrize(
        ("judge", "problem"),
        [
            ("nobody/a", "judges.0: unknown connection 'nobody'"),
            ("hosted/c", "judges.0: connection 'hosted' does not allow that model"),
            ("hosted", "judges.0"),
        ],
    )
    def test_that_can_not_judge_are_refused(self, judge: str, problem: str) -> None:
        text = HOSTED.replace("api_key_env", "models: [a, b], api_key_env") + f"judges: [{judge}]\n"
        with pytest.raises(ConnectionsError, match=re.escape(problem)):
            load(text, HOSTED_KEY="k")


class TestEnvironment:
    def test_that_is_empty_makes_no_connections(self) -> None:
        assert list(load(OPENAI_API_KEY="")) == []

    def test_makes_the_vendors_connections_with_the_sdks_own_addresses(self) -> None:
        from anthropic import AsyncAnthropic
        from openai import AsyncOpenAI

        connections = load(OPENAI_API_KEY="a", ANTHROPIC_API_KEY="b")
        assert [(found.id, found.kind, key(found)) for found in connections] == [
            ("openai", "openai", "a"),
            ("anthropic", "anthropic", "b"),
        ]
        openai_url, anthropic_url = AsyncOpenAI(api_key="a").base_url, AsyncAnthropic(api_key="b").base_url
        assert one(connections, "openai").base_url == str(openai_url).rstrip("/")
        assert one(connections, "anthropic").base_url == str(anthropic_url).rstrip("/")

    def test_can_put_another_server_in_a_vendors_place_with_or_without_a_key(self) -> None:
        found = one(load(OPENAI_BASE_URL="http://localhost:8000/v1"), "openai")
        assert (found.base_url, found.api_key) == ("http://localhost:8000/v1", None)
        found = one(load(ANTHROPIC_BASE_URL="https://proxy.example", ANTHROPIC_API_KEY="b"), "anthropic")
        assert (found.base_url, key(found)) == ("https://proxy.example", "b")

    def test_with_an_address_that_is_none_is_refused_by_the_variables_name(self) -> None:
        with pytest.raises(ConnectionsError, match="OPENAI_BASE_URL: must be an http or https URL"):
            load(OPENAI_BASE_URL="localhost:8000")


class TestSimulator:
    def test_is_reached_in_both_wire_formats(self) -> None:
        connections = load(simulator_url="http://127.0.0.1:9000/")
        assert [(found.id, found.kind, found.base_url, found.simulated) for found in connections] == [
            ("simulated", "openai", "http://127.0.0.1:9000/v1", True),
            ("simulated-anthropic", "anthropic", "http://127.0.0.1:9000", True),
        ]

    def test_offers_what_the_simulator_offers(self) -> None:
        # The product never imports the simulator; here the two are held together.
        assert set(SIMULATED_MODELS) == set(MODELS)


class TestFile:
    def test_example_is_valid_and_means_what_it_says(self) -> None:
        connections = load(EXAMPLE, **EXAMPLE_KEYS)
        assert {found.id for found in connections} == {
            "openai", "anthropic", "together", "mistral", "openrouter", "azure", "vllm", "vllm-base", "ollama",
            "stream-only",
        }  # fmt: skip
        together = one(connections, "together")
        assert key(together) == "key of TOGETHER_API_KEY"
        assert together.allows("openai/gpt-oss-120b")
        assert not together.allows("other")
        assert one(connections, "ollama").api_key is None
        assert [found.id for found in connections if found.stream] == ["stream-only"]
        assert one(connections, "openai").prices["gpt-6-sol"].cached_input == 0.2

    def test_adds_to_a_vendors_connection_from_the_environment(self) -> None:
        connections = load("connections: {openai: {limits: {max_in_flight: 3}}}", OPENAI_API_KEY="a")
        found = one(connections, "openai")
        assert (key(found), found.base_url) == ("a", "https://api.openai.com/v1")
        assert connections.limits("openai", "any") == Limits(max_in_flight=3)

    def test_limits_of_a_model_go_before_its_connections_one_by_one(self) -> None:
        connections = load(EXAMPLE, **EXAMPLE_KEYS)
        assert connections.limits("openai", "gpt-6-sol") == Limits(
            requests_per_minute=5000, tokens_per_minute=450_000, max_in_flight=200
        )
        assert connections.limits("openai", "gpt-6-luna").tokens_per_minute == 2_000_000
        assert connections.limits("nowhere", "any") == Limits()

    def test_never_sends_a_vendors_key_to_an_address_that_the_file_names(self) -> None:
        text = "connections: {openai: {base_url: 'https://elsewhere.example/v1'}}"
        assert one(load(text, OPENAI_API_KEY="a"), "openai").api_key is None

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("connections: {x: {base_url: 'https://a.example'}}", "connections.x.kind: is required"),
            ("connections: {x: {kind: openai}}", "connections.x.base_url: is required"),
            ("connections: {x: {kind: gopher}}", "connections.x.kind: must be 'openai', 'anthropic' or 'completions'"),
            ("connections: {openai: {kind: anthropic}}", "connections.openai.kind: must be openai"),
            ("connections: {openai: {}}", "connections.openai: the environment variable OPENAI_API_KEY is not set"),
            ("connections: {x: {base_url: 'ftp://a'}}", "connections.x.base_url: must be an http or https URL"),
            ("connections: {x: {base_url: 'https://me:pw@a'}}", "connections.x.base_url: must not carry a user name"),
            ("connections: {x: {limits: {requests_per_minute: 0}}}", "connections.x.limits.requests_per_minute: "),
            ("connections: {x: {limits: {models: {m: {a: 1}}}}}", "connections.x.limits.models.m.a: unknown field"),
            ("connections: {x: {prices: {m: {input: 1}}}}", "connections.x.prices.m.output: is required"),
            ("connections: {x: {prices: {m: {input: .nan, output: 1}}}}", "connections.x.prices.m.input: "),
            ("connections: {X!: {}}", "connections.X!: must match"),
            ("connections: {simulated: {kind: openai}}", "connections.simulated: the name is the simulator's"),
            ("connexions: {}", "connections: is required"),
            ("- 1", "the file: "),
            ("a: [", "line 1: not YAML"),
            ("connections:\n  x: {kind: openai}\n  x: {kind: openai}", "line 3: 'x' is already set in line 2"),
            ("connections: {x: {kind: openai, kind: anthropic}}", "line 1: 'kind' is already set in line 1"),
            (HOSTED, "connections.hosted.api_key_env: the environment variable HOSTED_KEY is not set"),
        ],
    )  # fmt: skip
    def test_that_is_wrong_is_refused_by_field_and_reason(self, text: str, problem: str) -> None:
        with pytest.raises(ConnectionsError, match=re.escape(problem)):
            load(text)


class TestKeys:
    def test_in_the_file_are_refused_and_not_repeated(self) -> None:
        with pytest.raises(ConnectionsError, match=r"connections\.x\.api_key: .* api_key_env") as raised:
            load("connections: {x: {kind: openai, api_key: sk-secret}}")
        assert "sk-secret" not in str(raised.value)

    def test_in_a_broken_file_are_not_repeated(self) -> None:
        with pytest.raises(ConnectionsError) as raised:
            load("connections: {x: {api_key: [sk-secret")
        assert "sk-secret" not in str(raised.value)
        assert raised.value.__context__ is None

    def test_that_no_header_can_carry_are_refused_and_not_repeated(self) -> None:
        with pytest.raises(ConnectionsError, match=r"connections\.hosted: its key") as raised:
            load(HOSTED, HOSTED_KEY="sk-sécret")
        assert "sécret" not in str(raised.value)

    def test_never_show(self) -> None:
        connections = load(HOSTED, HOSTED_KEY="sk-secret\n")
        assert key(one(connections, "hosted")) == "sk-secret"
        assert "sk-secret" not in repr(connections) + str(connections)


class TestBatches:
    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            ("openai: {}", True),
            ("openai: {base_url: 'https://gateway.example/v1'}", False),
            ("openai: {base_url: 'https://gateway.example/v1', batches: true}", True),
            ("openai: {batches: false}", False),
            ("own: {kind: anthropic, base_url: 'https://gateway.example'}", False),
        ],
    )
    def test_are_there_at_the_makers_hosts_or_where_the_operator_says_so(
        self, entry: str, expected: bool
    ) -> None:
        connections = load(f"connections: {{{entry}}}", OPENAI_API_KEY="a key")
        assert one(connections, entry.partition(":")[0]).batches is expected


class TestAllowedExtra:
    def test_is_what_the_file_says_and_nothing_by_itself(self) -> None:
        own = "own: {kind: openai, base_url: 'http://gpu/v1', allow_extra: [min_tokens, service_tier]}"
        connections = load(f"connections: {{openai: {{}}, {own}}}", OPENAI_API_KEY="a key")
        assert one(connections, "own").allow_extra == ("min_tokens", "service_tier")
        assert one(connections, "openai").allow_extra == ()

    @pytest.mark.parametrize("name", ["n", "N", "best_of", "model", "Messages", "max_tokens"])
    def test_is_never_what_multiplies_a_call_or_is_set_here(self, name: str) -> None:
        with pytest.raises(
            ConnectionsError, match=rf"connections\.openai\.allow_extra\.0: no job may set {name}"
        ):
            load(f"connections: {{openai: {{allow_extra: [{name}]}}}}", OPENAI_API_KEY="a key")
