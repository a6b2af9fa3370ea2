from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.instruments.rules import UnknownVersionError, Versions
from app.domain.providers import extra
from app.domain.providers.extra import extra_conflicts, extra_problem, fixed_field, thought_tokens
from app.domain.providers.model import ModelParameters, Takes
from app.domain.providers.parameters import sent_parameters

FORMATS = ("openai", "anthropic", "completions")

# by the name of what they do
HARMFUL: dict[str, dict[str, Any]] = {
    "tools": {"tools": [{"type": "function", "function": {"name": "f", "description": "x" * 1000}}]},
    "searches": {"web_search_options": {"search_context_size": "high"}},
    "servers": {"mcp_servers": [{"type": "url", "url": "https://x.test", "name": "x"}]},
    "plugins": {"plugins": [{"id": "web"}]},
    "other models": {"models": ["openai/gpt-6-astra"]},
    "fallbacks": {"fallbacks": [{"model": "gpt-6-astra"}]},
    "another provider": {"provider": {"only": ["dearest"]}},
    "another address": {"api_base": "https://x.test/v1"},
    "a tier": {"service_tier": "priority"},
    "a speed": {"speed": "fast"},
    "a place": {"inference_geo": "us"},
    "a prediction": {"prediction": {"type": "content", "content": "x" * 1000}},
    "several answers": {"n": 8},
    "the best of several": {"best_of": 20},
    "capitals": {"N": 8},
    "capitals within": {"Tools": []},
    "a look-alike": {"to\u03bfls": []},
    "spaces": {"tools ": []},
    "nothing": {"": 1},
    "another model": {"model": "gpt-6-astra"},
    "other words": {"messages": []},
    "a stream": {"stream": True},
    "a longer answer": {"max_completion_tokens": 100_000},
    "a template": {"chat_template": "{{ x }}"},
    "a template within": {"chat_template_kwargs": {"chat_template": "{{ x }}"}},
    "tools within": {"chat_template_kwargs": {"tools": []}},
    "a schema": {"response_format": {"type": "json_schema", "json_schema": {}}},
    "a parameter of ours": {"extra_body": {"tools": []}},
    "headers": {"extra_headers": {"x": "y"}},
    "more thoughts than any": {"thinking": {"type": "enabled", "budget_tokens": 10**9}},
    "thoughts below none": {"thinking": {"type": "enabled", "budget_tokens": -1}},
    "a list for thoughts": {"thinking": [{"type": "enabled"}]},
    "an hour's cache": {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
    "a long word": {"reasoning_effort": "high" * 10_000},
    "an object for a word": {"verbosity": {"low": 1}},
    "true for a number": {"top_k": True},
    "a fraction": {"top_k": 1.5},
    "many biases": {"logit_bias": {str(n): 1 for n in range(2000)}},
    "a large bias": {"logit_bias": {"1": 101}},
    "a text for a token": {"logit_bias": {"tools": 1}},
}

ALLOWED: dict[str, dict[str, Any]] = {
    "openai": {
        "frequency_penalty": 0.5,
        "presence_penalty": -2,
        "logit_bias": {"50256": -100},
        "top_k": 40,
        "min_p": 0.05,
        "top_a": 0.2,
        "typical_p": 1,
        "repetition_penalty": 1.1,
        "repeat_penalty": 1.1,
        "reasoning_effort": "none",
        "verbosity": "low",
        "reasoning": {"effort": "high", "exclude": True},
        "include_reasoning": False,
        "reasoning_format": "parsed",
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "enable_thinking": False,
        "thinking_budget": 500,
        "chat_template_kwargs": {"enable_thinking": False},
    },
    "completions": {"top_k": 40, "min_p": 0.05, "logit_bias": {"1": 2}},
    "anthropic": {
        "top_k": 5,
        "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
        "output_config": {"effort": "low"},
        "cache_control": {"type": "ephemeral"},
    },
}


@pytest.mark.parametrize("wire_format", [*FORMATS, ""])
@pytest.mark.parametrize("harm", HARMFUL)
def test_no_format_takes_what_could_change_the_price_or_the_way(wire_format: str, harm: str) -> None:
    ((name, value),) = HARMFUL[harm].items()
    assert extra_problem(wire_format, (), name, value)


@pytest.mark.parametrize(
    ("wire_format", "name"), [(form, name) for form, fields in ALLOWED.items() for name in fields]
)
def test_what_says_how_to_sample_or_to_reason_is_taken(wire_format: str, name: str) -> None:
    assert extra_problem(wire_format, (), name, ALLOWED[wire_format][name]) is None


def test_each_format_has_its_own() -> None:
    assert extra_problem("anthropic", (), "reasoning_effort", "low")
    assert extra_problem("openai", (), "output_config", {"effort": "low"})
    assert extra_problem("completions", (), "thinking", {"type": "disabled"})


@given(st.text(max_size=30), st.sampled_from(FORMATS))
def test_a_name_is_taken_letter_by_letter(name: str, wire_format: str) -> None:
    taken = extra_problem(wire_format, (), name, 1) is None
    assert not taken or name in ALLOWED[wire_format] or name in ALLOWED["openai"]


class TestWhatTheOperatorAllows:
    def test_has_any_value(self) -> None:
        assert extra_problem("openai", ("service_tier",), "service_tier", {"any": []}) is None
        assert extra_problem("openai", ("service_tier",), "Service_Tier", "x")

    @pytest.mark.parametrize("name", ["n", "N", "best_of", "model", "messages", "max_tokens", "seed"])
    def test_is_never_what_is_set_here_or_multiplies_a_call(self, name: str) -> None:
        assert fixed_field(name)
        assert extra_problem("openai", (name,), name, 1) == fixed_field(name)


class TestThoughts:
    def test_of_anthropics_count_within_max_tokens_and_must_leave_room(self) -> None:
        extra = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
        assert thought_tokens("anthropic", extra) == 0
        assert not extra_conflicts("anthropic", extra, 2001)
        for most in (None, 2000):
            assert "below max_tokens" in extra_conflicts("anthropic", extra, most)["thinking"]

    def test_of_others_are_added_wherever_they_are_named(self) -> None:
        extra = {
            "thinking": {"budget_tokens": 1},
            "reasoning": {"max_tokens": 20},
            "thinking_budget": 300,
        }
        assert thought_tokens("openai", extra) == 321

    def test_that_nothing_bounds_are_refused(self) -> None:
        assert (
            "thinking_budget" in extra_conflicts("openai", {"enable_thinking": True}, 100)["enable_thinking"]
        )
        assert not extra_conflicts("openai", {"enable_thinking": True, "thinking_budget": 9}, 100)
        assert not extra_conflicts("openai", {"enable_thinking": False}, 100)


def test_a_job_keeps_the_list_of_its_submission_and_no_list_allows_what_is_fixed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists: dict[str, dict[str, dict[str, Any]]] = {
        "extra-v1": {"openai": {"tools": extra._Flag(), "n": extra._Flag()}},
        "extra-v2": {"openai": {}},
    }
    monkeypatch.setattr(
        extra, "EXTRA_FIELDS", Versions("list", {name: partial(lists.get, name) for name in lists})
    )
    asked = ModelParameters(extra={"tools": True, "n": True})
    before, now = (Takes(format="openai", extra_fields=f"extra-v{n}") for n in (1, 2))
    assert sent_parameters(asked, before).extra == {"tools": True}
    assert sent_parameters(asked, now).extra == {}
    with pytest.raises(UnknownVersionError, match="known: extra-v1, extra-v2"):
        sent_parameters(asked, Takes(format="openai", extra_fields="extra-v3"))
