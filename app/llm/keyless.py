"""Keeps a connection's key out of what its provider says: some repeat what they were sent."""

from dataclasses import replace

from pydantic import SecretStr

from app.domain.model import ChatReply
from app.telemetry.redaction import traces_of


def keyless(reply: ChatReply, key: SecretStr | None) -> ChatReply:
    """A reply without the key. A short key stays: it may be a word of the text."""
    if key is None:
        return reply
    named = (reply.text, reply.model_snapshot, reply.system_fingerprint, reply.provider_request_id)
    removed = traces_of(key.get_secret_value()).pieces_removed
    text, *names = (said and removed(said) for said in named)
    if (text, *names) == named:
        return reply
    snapshot, fingerprint, request_id = names
    return replace(
        reply,
        text=text or "",
        model_snapshot=snapshot,
        system_fingerprint=fingerprint,
        provider_request_id=request_id,
    )
