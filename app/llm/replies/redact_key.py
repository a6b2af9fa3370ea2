"""Keeps a connection's key out of what its provider says: some repeat what they were sent."""

from pydantic import SecretStr

from app.domain.providers.model import ChatReply
from app.telemetry.redaction import traces_of


def keyless(reply: ChatReply, key: SecretStr | None) -> ChatReply:
    """A reply without the key. A short key stays: it may be a word of the text."""
    if key is None:
        return reply
    removed = traces_of(key.get_secret_value()).pieces_removed
    said = (
        reply.text,
        reply.thoughts,
        reply.model_snapshot,
        reply.system_fingerprint,
        reply.provider_request_id,
        reply.provider_finish_reason,
    )
    shown = tuple([words and removed(words) for words in said])
    if shown == said:
        return reply
    text, thoughts, snapshot, fingerprint, request_id, finish_reason = shown
    return reply._replace(
        text=text or "",
        thoughts=thoughts,
        provider_finish_reason=finish_reason,
        model_snapshot=snapshot,
        system_fingerprint=fingerprint,
        provider_request_id=request_id,
    )
