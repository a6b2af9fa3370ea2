import json

import pytest

from app.domain.providers.model import ChatRequest, Model, ModelParameters
from app.llm.transports.body import Body, BodyForms, Write

WORDS = [
    "",
    "plain",
    '"quoted" \\ \n\x00\x7f',
    "Zoë \u2028 派对 \U0001f600",
    "%(id)s {user}",
    '"user"',
    "0" * 64,
]
PLAIN = Model("plain", "c", "gpt-4o", ModelParameters())
RICH = Model(
    "rich",
    "c",
    "gpt-4o",
    ModelParameters(
        temperature=1e-7, stop=("", '"'), extra={"messages": "mine", "system": 1, "é": {"user": [None]}}
    ),
)


@pytest.fixture(params=["openai", "anthropic"])
def write(request: pytest.FixtureRequest) -> Write:
    """A wire format."""
    from app.llm.formats.anthropic import AnthropicChat
    from app.llm.formats.openai import OpenAIChat

    return OpenAIChat.body if request.param == "openai" else AnthropicChat.body


class TestBody:
    def test_is_the_json_of_its_fields_whatever_the_words(self, write: Write) -> None:
        forms = BodyForms(write)
        for model in (PLAIN, RICH):
            for system in (None, *WORDS):
                for user in WORDS:
                    body = Body(ChatRequest(model, system, user, "id"), forms)
                    assert body.content.decode() == json.dumps(
                        body.fields, ensure_ascii=False, separators=(",", ":")
                    )

    @pytest.mark.parametrize(
        "request_", [ChatRequest(PLAIN, "\ud800", "u", "id"), ChatRequest(PLAIN, None, "\udfff", "id")]
    )
    def test_cannot_be_made_of_half_a_character(self, write: Write, request_: ChatRequest) -> None:
        with pytest.raises(ValueError, match="surrogates"):
            _ = Body(request_, BodyForms(write)).content
