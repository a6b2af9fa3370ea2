import pytest

from app.domain.providers.model import ConnectionKind
from app.llm.connections.connections import Connection
from app.llm.connections.provider_names import provider_of


@pytest.mark.parametrize(
    ("kind", "url", "name", "address"),
    [
        ("openai", "https://api.openai.com/v1", "openai", "api.openai.com"),
        ("anthropic", "https://api.anthropic.com", "anthropic", "api.anthropic.com"),
        ("openai", "https://north.openai.azure.com/openai/v1", "azure.ai.openai", "north.openai.azure.com"),
        ("openai", "https://api.x.ai/v1", "x_ai", "api.x.ai"),
        (
            "openai",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "gcp.gemini",
            "generativelanguage.googleapis.com",
        ),
        # Servers of one's own are called by what they speak; what only looks like a provider is one of those.
        ("completions", "http://127.0.0.1:8000/v1", "openai", "127.0.0.1"),
        ("anthropic", "http://gateway.internal:4000", "anthropic", "gateway.internal"),
        ("anthropic", "https://not-openai.com", "anthropic", "not-openai.com"),
        ("openai", "http://user:password@[::1]:8000/v1", "openai", "::1"),
    ],
)
def test_a_provider_is_named_as_the_convention_does_and_its_address_holds_no_password(
    kind: ConnectionKind, url: str, name: str, address: str
) -> None:
    assert provider_of(Connection("house", kind, url)) == (name, address)


def test_a_connection_that_is_gone_leads_to_nobody() -> None:
    assert provider_of(None) is None
