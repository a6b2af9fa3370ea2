import json
from typing import Any

import pytest

from simulator.anthropic_format import AnthropicFormat
from simulator.conversation import Conversation, ProviderError, Reply
from simulator.openai_format import OpenAIFormat
from simulator.quirks import QUIRKS, THOUGHTS, Quirk, change_reply, read_model_name, refuse

CONVERSATION = Conversation("m", "You are calm.", (("user", "Hello"),), None)
REPLY = Reply("I stay calm. I always do.", "stop", "generation")
ONLY_ANTHROPIC = {"think-blocks"}
ONLY_OPENAI = {"think-list", "reasoning-content", "reasoning", "error-in-choice"}


def openai_reply(name: str, value: str = "") -> Any:
    body = OpenAIFormat().success(REPLY, CONVERSATION, 1, 0)
    return json.loads(change_reply((Quirk(name, value),), body, 1, 0))


def anthropic_reply(name: str) -> Any:
    body = AnthropicFormat().success(REPLY, CONVERSATION, 1, 0)
    return json.loads(change_reply((Quirk(name),), body, 1, 0))


def said(body: Any) -> object:
    return body["choices"][0]["message"]["content"]


class TestNames:
    def test_a_name_is_a_model_and_its_quirks(self) -> None:
        assert read_model_name("sim-judge+no-temperature+filtered=0.1") == (
            "sim-judge",
            (Quirk("no-temperature"), Quirk("filtered", "0.1")),
        )
        assert read_model_name("sim-judge") == ("sim-judge", ())

    @pytest.mark.parametrize(
        "name", ["sim-judge+no", "sim-judge+filtered=2", "sim-judge+filtered=x", "sim-judge+"]
    )
    def test_an_unknown_quirk_is_no_model(self, name: str) -> None:
        with pytest.raises(ValueError, match=r"^\S*|could not convert"):
            read_model_name(name)


class TestRefusals:
    @pytest.mark.parametrize(
        ("quirk", "payload", "name"),
        [
            ("no-temperature", {"temperature": 1}, "unsupported_parameter"),
            ("no-top-p", {"top_p": 1}, "unsupported_parameter"),
            ("no-max-tokens", {"max_tokens": 5}, "unsupported_parameter"),
            ("default-temperature", {"temperature": 0}, "unsupported_value"),
            ("deprecated-temperature", {"temperature": 0}, "malformed"),
            ("not-both", {"temperature": 0, "top_p": 1}, "malformed"),
            ("no-system", {}, "malformed"),
            ("filtered", {}, "filtered"),
        ],
    )
    def test_are_for_what_the_model_does_not_take(
        self, quirk: str, payload: dict[str, object], name: str
    ) -> None:
        with pytest.raises(ProviderError) as refusal:
            refuse((Quirk(quirk),), payload, CONVERSATION, 0)
        assert refusal.value.name == name

    @pytest.mark.parametrize(
        ("quirk", "payload"),
        [
            ("default-temperature", {"temperature": 1}),
            ("not-both", {"temperature": 0}),
            ("no-temperature", {}),
        ],
    )
    def test_are_for_nothing_else(self, quirk: str, payload: dict[str, object]) -> None:
        refuse((Quirk(quirk),), payload, CONVERSATION, 0)

    def test_a_share_concerns_the_same_prompts_every_time(self) -> None:
        def refused(text: str) -> bool:
            try:
                refuse((Quirk("filtered", "0.3"),), {}, Conversation("m", "", (("user", text),), None), 0)
            except ProviderError:
                return True
            return False

        first = [refused(str(number)) for number in range(200)]
        # 60 expected, standard deviation 6.5
        assert 30 < sum(first) < 90
        assert [refused(str(number)) for number in range(200)] == first


class TestReplies:
    def test_every_change_leaves_a_reply_that_can_be_sent(self) -> None:
        for name in QUIRKS:
            if name not in ONLY_ANTHROPIC:
                assert isinstance(openai_reply(name, "odd" if name == "finish" else ""), dict)
            if name not in ONLY_OPENAI and name != "finish":
                assert isinstance(anthropic_reply(name), dict)

    def test_thoughts_stand_where_real_models_put_them(self) -> None:
        assert said(openai_reply("think-tags")) == f"<think>\n{THOUGHTS}\n</think>\n\n{REPLY.text}"
        assert said(openai_reply("think-end-tag")) == f"{THOUGHTS}\n</think>\n\n{REPLY.text}"
        assert said(openai_reply("think-unclosed")) == f"<think>{THOUGHTS}"
        for member in ("reasoning_content", "reasoning"):
            body = openai_reply(member.replace("_", "-"))
            assert (body["choices"][0]["message"][member], said(body)) == (THOUGHTS, REPLY.text)
        listed = said(openai_reply("think-list"))
        assert listed == [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHTS}]},
            {"type": "text", "text": REPLY.text},
        ]
        blocks = anthropic_reply("think-blocks")["content"]
        assert [(block["type"], block.get("thinking", block.get("text"))) for block in blocks] == [
            ("thinking", THOUGHTS),
            ("text", REPLY.text),
        ]

    def test_endings_say_what_real_providers_say(self) -> None:
        assert openai_reply("cut-off")["choices"][0]["finish_reason"] == "length"
        assert anthropic_reply("cut-off")["stop_reason"] == "max_tokens"
        assert openai_reply("finish", "model_length")["choices"][0]["finish_reason"] == "model_length"
        assert openai_reply("error-in-choice")["choices"][0]["finish_reason"] == "error"
        assert openai_reply("error-in-200")["error"]["code"] == 502
        assert "usage" not in openai_reply("no-usage")
        assert said(openai_reply("only-thoughts")) == ""
