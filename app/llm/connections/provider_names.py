"""Whom a connection leads to, in the words of OpenTelemetry's conventions for generative AI."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from app.llm.connections.connections import Connection
from app.telemetry.tracing import Provider

_BY_DOMAIN: Mapping[str, str] = {
    "openai.com": "openai",
    "anthropic.com": "anthropic",
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "amazonaws.com": "aws.bedrock",
    "x.ai": "x_ai",
    "deepseek.com": "deepseek",
    "groq.com": "groq",
    "mistral.ai": "mistral_ai",
    "moonshot.ai": "moonshot_ai",
    "perplexity.ai": "perplexity",
    "cohere.ai": "cohere",
}
"""The convention's values, by the ends of providers' host names."""


def provider_of(connection: Connection | None) -> Provider | None:
    """Whom a connection leads to; a server that the convention has no name for is called by the wire format that it speaks."""
    if connection is None:
        return None
    host = urlsplit(connection.base_url).hostname or ""
    format_ = "anthropic" if connection.kind == "anthropic" else "openai"
    known = (name for domain, name in _BY_DOMAIN.items() if host == domain or host.endswith(f".{domain}"))
    return Provider(next(known, format_), host)
