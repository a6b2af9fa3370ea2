from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from app.domain.providers.model import ConnectionKind, Model, ModelParameters
from app.domain.providers.parameters import Sent, sent_parameters
from app.llm.connections.connections import Connection
from app.llm.models.table import (
    End,
    Table,
    end_of,
    load_table,
    plain_name,
    table_version,
    takes_at,
    takes_of,
    with_parameters,
)

ALL: dict[str, Any] = {"temperature": 0.0, "top_p": 0.5, "stop": ("END",), "max_tokens": 9, "seed": 1}


def model(name: str, **parameters: Any) -> Model:
    return Model(name, "any", name, ModelParameters(**parameters))


def body_parameters(kind: ConnectionKind, asked: Model) -> dict[str, Any]:
    return with_parameters(kind, asked, {})


def sent_to(kind: ConnectionKind, asked: Model) -> Sent:
    return sent_parameters(asked.parameters, takes_of(kind, asked))


def not_sent(kind: ConnectionKind, asked: Model) -> list[str]:
    return [dropped.name for dropped in sent_to(kind, asked).dropped]


class TestOpenAIFamilies:
    @pytest.mark.parametrize(
        "name",
        [
            *("o1", "o1-mini", "o3-2025-04-16", "o4-mini", "openai/o3", "ft:o4-mini-2025-04-16:org::id"),
            *(
                "gpt-5",
                "gpt-5-mini",
                "gpt-5-nano-2025-08-07",
                "gpt-5.2-pro",
                "gpt-5.3-codex",
                "gpt-5-2025-08-07",
            ),
            *(
                "gpt-6-astra",
                "gpt-6.1-sol",
                "gpt-7",
                "gpt-12.5-new",
                "openai/gpt-5:online",
                "openai/o3:nitro",
            ),
        ],
    )
    def test_that_reason_take_no_sampling_parameters(self, name: str) -> None:
        asked = model(name, **ALL)
        assert not_sent("openai", asked) == ["stop", "temperature", "top_p"]
        assert body_parameters("openai", asked) == {"max_completion_tokens": 9, "seed": 1}

    @pytest.mark.parametrize(
        "name", ["gpt-5.2", "gpt-5.4-mini", "openai/gpt-5.6-luna", "gpt-6-luna", "gpt-6.1-terra"]
    )
    def test_that_can_be_told_not_to_reason_then_take_them(self, name: str) -> None:
        assert not_sent("openai", model(name, temperature=0.0, top_p=0.5)) == ["temperature", "top_p"]
        told = model(name, temperature=0.0, top_p=0.5, extra={"reasoning_effort": "none"})
        assert not_sent("openai", told) == []
        assert body_parameters("openai", told) == {
            "reasoning_effort": "none", "temperature": 0.0, "top_p": 0.5,
        }  # fmt: skip

    def test_of_gpt_5_1_do_not_reason_unless_told(self) -> None:
        assert not_sent("openai", model("gpt-5.1-2025-11-13", temperature=0.0)) == []
        told = model("gpt-5.1", temperature=0.0, extra={"reasoning_effort": "high"})
        assert not_sent("openai", told) == ["temperature"]

    @pytest.mark.parametrize(
        "name",
        [
            *(
                "gpt-4o",
                "gpt-4.1-mini",
                "gpt-3.5-turbo",
                "o1verse",
                "meta-llama/Llama-3.3-70B",
                "gpt-oss-120b",
            ),
            *("ft:gpt-4o-2024-08-06:org::id", "openai/gpt-4o:extended", "my-judge"),
        ],
    )
    def test_of_other_models_take_everything(self, name: str) -> None:
        asked = model(name, **ALL)
        assert not_sent("openai", asked) == []
        assert body_parameters("openai", asked) == {**ALL, "stop": ["END"]}

    def test_of_gpt_5_chat_take_sampling_parameters(self) -> None:
        assert not_sent("openai", model("gpt-5-chat-latest", temperature=0.0)) == []


class TestClaude:
    @pytest.mark.parametrize(
        "name",
        [
            *(
                "claude-opus-4-7",
                "claude-opus-4-7-20260416",
                "claude-opus-4-8",
                "claude-opus-4-10",
                "claude-sonnet-latest",
                "claude-opus-5",
                "claude-opus-5-5",
            ),
            *(
                "claude-sonnet-5",
                "claude-sonnet-5-5",
                "claude-haiku-5-5",
                "claude-fable-5-1",
                "claude-mythos-preview",
            ),
            *("anthropic/claude-opus-4.7", "anthropic/claude-4.7-opus", "us.anthropic.claude-opus-4-7-v1:0"),
            "claude-opus-12-1",
        ],
    )
    @pytest.mark.parametrize("kind", ["openai", "anthropic"])
    def test_from_opus_4_7_take_neither_temperature_nor_top_p(self, kind: ConnectionKind, name: str) -> None:
        assert not_sent(kind, model(name, temperature=0.0, top_p=0.5)) == ["temperature", "top_p"]

    @pytest.mark.parametrize(
        "name",
        [
            *("claude-opus-4-1-20250805", "claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4-5-20250929"),
            *("claude-sonnet-4-6", "claude-haiku-4-5-20251001", "anthropic/claude-sonnet-4.6"),
            *("claude-haiku-4-5@20251001", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ],
    )
    def test_4_5_and_4_6_take_one_of_the_two(self, name: str) -> None:
        both = sent_to("anthropic", model(name, temperature=0.9, top_p=0.9))
        assert dict(both.values) == {"temperature": 0.9, "max_tokens": 1024}
        assert [(dropped.name, dropped.value) for dropped in both.dropped] == [("top_p", 0.9)]
        assert "temperature is sent" in both.dropped[0].reason
        assert dict(sent_to("anthropic", model(name, top_p=0.9)).values) == {"top_p": 0.9, "max_tokens": 1024}

    @pytest.mark.parametrize(
        "name",
        [
            "claude-3-haiku-20240307",
            "claude-opus-4-20250514",
            "claude-sonnet-4-0",
            "claude-3-7-sonnet-20250219",
        ],
    )
    def test_4_0_and_earlier_take_both(self, name: str) -> None:
        assert body_parameters("anthropic", model(name, **ALL)) == {
            "temperature": 0.0, "top_p": 0.5, "max_tokens": 9, "stop_sequences": ["END"],
        }  # fmt: skip
        assert not_sent("anthropic", model(name, **ALL)) == ["seed"]


class TestOtherFamilies:
    def test_deepseek_takes_a_temperature_in_vain(self) -> None:
        assert sent_to("openai", model("deepseek-v4-pro", temperature=0.0)).ignored == ("temperature",)

    def test_kimi_has_temperatures_of_its_own(self) -> None:
        assert not_sent("openai", model("moonshotai/kimi-k2.6", temperature=0.0)) == ["temperature"]


class TestConnections:
    def test_of_a_host_that_names_a_parameter_otherwise(self) -> None:
        mistral = Connection("mistral", "openai", "https://api.mistral.ai/v1")
        asked = Model(
            "x",
            "mistral",
            "mistral-large-4",
            ModelParameters(seed=1),
            takes=takes_at(mistral, "mistral-large-4"),
        )
        assert body_parameters("openai", asked) == {"random_seed": 1}

    def test_whose_operator_says_which_family_a_deployment_is_of(self) -> None:
        azure = Connection(
            "azure", "openai", "https://x.openai.azure.com/openai/v1", families={"judge": "gpt-5"}
        )
        assert "temperature" in takes_at(azure, "judge").refuses
        assert takes_at(azure, "other").family is None

    def test_are_overruled_by_a_job(self) -> None:
        azure = Connection(
            "azure", "openai", "https://x.openai.azure.com/openai/v1", families={"judge": "gpt-5"}
        )
        assert takes_at(azure, "judge", "gpt-4o").refuses == ()
        assert takes_at(azure, "other", "o3").family == "o-series"

    def test_are_sure_to_heed_max_tokens_by_a_name_that_not_only_the_job_gives_it(self) -> None:
        at = Connection("it", "openai", "https://api.deepseek.com", families={"judge": "gpt-5"})
        for name, family in (("deepseek-chat", None), ("judge", None), ("judge", "o3"), ("gpt-5", "o3")):
            assert takes_at(at, name, family).bounds, (name, family)
        for name, family in (("deepseek-chat", "o3"), ("gpt-5", "deepseek-chat"), ("judge", "gpt-4o")):
            assert not takes_at(at, name, family).bounds, (name, family)

    def test_keep_what_a_job_was_submitted_with(self) -> None:
        kept = takes_at(Connection("c", "openai", "https://x.test/v1"), "unheard-of")
        assert body_parameters(
            "openai", Model("o3", "c", "o3", ModelParameters(temperature=0.5), takes=kept)
        ) == {"temperature": 0.5}


class TestEnds:
    OPENAI = Connection("openai", "openai", "https://api.openai.com/v1")

    @pytest.mark.parametrize(
        ("name", "day"),
        [
            ("gpt-4o-2024-08-06", date(2027, 1, 14)),
            ("ft:gpt-4o-2024-08-06:org::id", date(2027, 1, 14)),
            ("gpt-4o-2024-05-13", date(2026, 10, 23)),
            ("gpt-3.5-turbo-0125", date(2026, 10, 23)),
        ],
    )
    def test_are_known_by_exact_names_and_their_fine_tunes(self, name: str, day: date) -> None:
        found = end_of(self.OPENAI, name)
        assert found is not None
        assert found.day == day
        assert found.certainty == "vendor"

    def test_of_an_alias_are_inferred(self) -> None:
        found = end_of(self.OPENAI, "gpt-4o")
        assert found is not None
        assert found.certainty == "inferred"

    @pytest.mark.parametrize("name", ["gpt-6-luna", "gpt-4o-2024-08-06-of-ours"])
    def test_are_not_known_of_others(self, name: str) -> None:
        assert end_of(self.OPENAI, name) is None

    def test_say_nothing_of_other_hosts(self) -> None:
        azure = Connection("azure", "openai", "https://x.openai.azure.com/openai/v1")
        assert end_of(azure, "gpt-4o-2024-08-06") is None

    def test_that_are_not_announced_are_none(self) -> None:
        anthropic = Connection("anthropic", "anthropic", "https://api.anthropic.com")
        assert end_of(anthropic, "claude-sonnet-5-5") is None


class TestTable:
    def test_every_source_is_used(self) -> None:
        table = load_table()
        rules = (*table.formats.values(), *table.hosts.values(), *table.servers.values(), *table.families)
        used = {name for rule in rules for name in rule.sources} | {
            name for end in table.ends for name in end.sources
        }
        assert used == table.sources.keys()

    def test_names_each_model_of_a_host_once(self) -> None:
        named = [(end.host, name) for end in load_table().ends for name in end.models]
        assert len(named) == len(set(named))

    def test_has_a_version_that_its_content_changes(self) -> None:
        version, _, digest = table_version().partition("/")
        assert date.fromisoformat(version) <= date(2100, 1, 1)
        assert len(digest) == 12

    @pytest.mark.parametrize(
        "wrong",
        [
            {"families": [{"id": "x", "pattern": "(", "sources": ["s"]}]},
            {"families": [{"id": "x", "pattern": "x", "sources": ["unheard-of"]}]},
            {"families": [{"id": "x", "pattern": "x", "refuses": ["temprature"], "sources": ["s"]}]},
            {"families": [{"id": "x", "pattern": "x"}]},
        ],
    )
    def test_that_is_wrong_is_refused(self, wrong: dict[str, Any]) -> None:
        good = load_table().model_dump()
        with pytest.raises(ValidationError):
            Table.model_validate({**good, **wrong})

    def test_that_gives_no_date_is_refused(self) -> None:
        with pytest.raises(ValidationError, match="either ends or not_before"):
            End(host="x", models=("m",), sources=("s",))


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("ft:gpt-4o:org::id", "gpt-4o"),
        ("openai/o3", "o3"),
        ("accounts/fireworks/models/Kimi-K2.6", "kimi-k2.6"),
        ("us.anthropic.claude-opus-4-7-v1:0", "claude-opus-4-7-v1"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku-20240307-v1"),
        ("openai/ft:gpt-5.1:x", "gpt-5.1"),
    ],
)
def test_a_plain_name(name: str, plain: str) -> None:
    assert plain_name(name) == plain


class TestAllowedExtra:
    CONNECTION = Connection("c", "openai", "https://x.test/v1", allow_extra=("min_tokens",))

    def test_is_sent_on_its_connection_and_on_no_other(self) -> None:
        for connection, sent in (
            (self.CONNECTION, {"min_tokens": 5}),
            (replace(self.CONNECTION, allow_extra=()), {}),
        ):
            asked = Model(
                "m",
                "c",
                "m",
                ModelParameters(extra={"min_tokens": 5, "Min_Tokens": 6}),
                takes=takes_at(connection, "m"),
            )
            assert with_parameters("openai", asked, {}) == sent

    def test_stays_as_it_was_when_the_job_was_submitted(self) -> None:
        """A job from before there was a list has none; what it may not set is left out and said."""
        old = Model("m", "c", "m", ModelParameters(extra={"tools": [{}], "top_k": 5}))
        assert with_parameters("openai", old, {}) == {"top_k": 5}
        assert [dropped.name for dropped in sent_to("openai", old).dropped] == ["extra.tools"]
