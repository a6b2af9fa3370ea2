"""What to do about a failed call, in one sentence, by the provider's code or status."""

from collections.abc import Mapping
from http import HTTPStatus

from app.llm.connections.connections import Connection
from app.ports import FailureKind, ModelCallError

_BY_CODE: Mapping[str, str] = {
    "connection_failed": "Nothing listens at {url}: check the connection's base URL, and whether the server runs.",
    "connection_lost": "The server at {url} closed the connection: check its log.",
    "timeout": "The server did not answer in time: it is loading a model, or overloaded. Try again in a few minutes.",
    "address_refused": "The connection's address is not allowed: use a public https address, or have the operator allow"
    " its network.",
    "malformed_reply": "The server at {url} does not use the connection's wire format: check its kind and base URL.",
    "model_not_found": "The provider has no such model, or this key may not use it: check the name.",
    "DeploymentNotFound": "Azure has no deployment of that name: use the deployment's name as the model.",
    "insufficient_quota": "The account has no credit left: add credit at the provider.",
    "credit_balance_too_low": "The account has no credit left: add credit at the provider.",
    "key_unreadable": "The stored key can't be decrypted: set it again.",
}
_BY_STATUS: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "The provider rejects the key: check the variable that holds it, or give the connection a new one.",
    HTTPStatus.PAYMENT_REQUIRED: "The account has no credit left: add credit at the provider.",
    HTTPStatus.FORBIDDEN: "The provider refuses this key, model or prompt: check what the key may do.",
    HTTPStatus.NOT_FOUND: "The model does not exist, or {url} is not the API's base URL: check the name and the base URL.",
    HTTPStatus.TOO_MANY_REQUESTS: "The account's rate limit or quota is exhausted: wait, or raise it at the provider.",
}


def remedy_of(error: ModelCallError, connection: Connection) -> str:
    """What to do about a failed call to a connection."""
    known = _BY_CODE.get(error.code) or _BY_STATUS.get(error.status or 0)
    if known is None and error.status is not None and error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        known = "The provider is down or overloaded: try again in a few minutes."
    if known is None and error.kind is FailureKind.RETRY:
        known = "Try again in a few minutes."
    return (known or "See the provider's message above: it rejects the request.").format(
        url=connection.base_url
    )
