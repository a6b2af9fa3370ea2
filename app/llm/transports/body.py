"""What is posted: as the fields that an SDK takes, and as the JSON that both SDKs make of them."""

import json
import secrets
from collections.abc import Callable
from typing import NamedTuple

from pydantic_core import to_json

from app.domain.providers.model import ChatRequest, Model

MOST_FORMS = 256
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

Write = Callable[[ChatRequest], dict[str, object]]
"""What a request is in a wire format; but for the two prompts themselves, nothing in it depends on their words."""


class Body(NamedTuple):
    """The body of one call.

    Attributes:
        request: What is asked.
        forms: Of the connection.
    """

    request: ChatRequest
    forms: "BodyForms"

    @property
    def tenant(self) -> str:
        """Whose call it is."""
        return self.request.tenant

    @property
    def fields(self) -> dict[str, object]:
        """As an SDK takes it."""
        return self.forms.write(self.request)

    @property
    def content(self) -> bytes:
        """As both SDKs encode it.

        Raises:
            ValueError: If no JSON can express it.
        """
        return self.forms.fill(self.request)


class EmptyBody:
    """The body of a call that asks for nothing."""

    tenant = ""

    @property
    def fields(self) -> dict[str, object]:
        """As an SDK takes it."""
        return {}

    @property
    def content(self) -> bytes:
        """As JSON."""
        return b"{}"


class BodyForms:
    """The bodies of one connection's calls, as JSON, of which all but the prompts is written once for a model.

    Attributes:
        write: The wire format.
    """

    def __init__(self, write: Write) -> None:
        self.write = write
        self._known: dict[tuple[int, bool], _Form] = {}

    def fill(self, request: ChatRequest) -> bytes:
        """See :attr:`Body.content`."""
        if request.turns:  # rare: no form is kept for it
            return _encode(self.write(request)).encode()
        model, system = request.model, request.system
        known = (id(model), system is None)
        form = self._known.get(known)
        if form is None:
            if len(self._known) >= MOST_FORMS:
                self._known.clear()
            form = self._known[known] = _form(self.write, request)
        before, between, after = form.parts
        if system is None:
            return b"%b%b%b" % (before, to_json(request.user), after)
        return b"%b%b%b%b%b" % (before, to_json(system), between, to_json(request.user), after)


class _Form(NamedTuple):
    """What stands around the prompts.

    Attributes:
        parts: Before both, between them, and after them.
        model: Whose it is: as long as it is kept, no other model has its identity.
    """

    parts: tuple[bytes, bytes, bytes]
    model: Model


def _form(write: Write, request: ChatRequest) -> _Form:
    """The form of a request's body, found by what stands where its prompts stood.

    Raises:
        ValueError: If no JSON can express it.
    """
    system, user = (None if request.system is None else secrets.token_hex()), secrets.token_hex()
    text = _encode(write(request._replace(system=system, user=user)))
    before, _, after = text.partition(f'"{user}"')
    between = ""
    if system is not None:
        before, _, between = before.partition(f'"{system}"')
    return _Form((before.encode(), between.encode(), after.encode()), request.model)
