from typing import Any

import pytest

from app.domain.model import Model, ModelParameters
from app.llm.capabilities import capabilities, unsupported_parameters
from app.llm.connections import ConnectionKind


def model(name: str, **parameters: Any) -> Model:
    return Model(name, "any", name, ModelParameters(**parameters))


class TestFamilies:
    @pytest.mark.parametrize(
        "name", ["o1", "o1-mini", "o3-2025-04-16", "o4-mini", "gpt-5", "gpt-5.2-pro", "openai/o3"]
    )
    def test_of_reasoning_models_take_no_sampling_parameters(self, name: str) -> None:
        asked = model(name, temperature=0.0, top_p=0.5, stop=("END",), max_tokens=9, seed=1)
        assert unsupported_parameters("openai", asked) == ["stop", "temperature", "top_p"]
        assert capabilities("openai", name).max_tokens_field == "max_completion_tokens"

    @pytest.mark.parametrize(
        "name", ["gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "o1verse", "meta-llama/Llama-3.3-70B"]
    )
    def test_of_other_models_take_everything(self, name: str) -> None:
        asked = model(name, temperature=0.0, top_p=0.5, stop=("END",), max_tokens=9, seed=1)
        assert unsupported_parameters("openai", asked) == []
        assert capabilities("openai", name).max_tokens_field == "max_tokens"

    def test_of_gpt_5_chat_models_take_sampling_parameters(self) -> None:
        assert unsupported_parameters("openai", model("gpt-5-chat-latest", temperature=0.0)) == []

    def test_of_anthropic_know_no_seed(self) -> None:
        assert unsupported_parameters(
            "anthropic", model("claude-3-haiku-20240307", temperature=0.0, seed=1)
        ) == ["seed"]


class TestUnsupportedParameters:
    def test_do_not_count_what_is_the_default_anyway(self) -> None:
        assert unsupported_parameters("openai", model("o3", temperature=1.0, top_p=1.0)) == []

    @pytest.mark.parametrize("kind", ["openai", "anthropic"])
    def test_count_extra_fields_that_are_ours(self, kind: ConnectionKind) -> None:
        asked = model("any", extra={"stream": True, "messages": [], "n": 5, "top_k": 1})
        assert unsupported_parameters(kind, asked) == ["extra.messages", "extra.n", "extra.stream"]
