"""Words a failed call's cause and remedy, the same for answers, console, terminal and webhooks."""

from collections.abc import Mapping

VENDORS: Mapping[str, str] = {"openai": "OpenAI", "anthropic": "Anthropic"}
"""Connections that a key in the environment makes, by the names that people know."""

_VERSION = "@"
"""Stands between the name of a tenant's connection and its version."""

_REJECTED = "{who} rejected the key"
_CREDIT = "the account at {who} has no credit left"
_NO_MODEL = "{who} has no model {model}, or the key may not use it"
_REFUSED_REQUEST = "{who} rejected the request"
NO_CREDIT_CODES = frozenset(
    {
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "budget_exceeded",
        "contract_spend_limit_reached",
        "credit_balance_too_low",
        "enforced_spend_limit_reached",
        "insufficient_quota",
        "linked_organization_billing_unavailable",
        "linked_organization_spend_limit_reached",
    }
)
"""Codes of a used-up account that jobs show as they are; all others are shown as ``insufficient_quota``."""
STREAM_ONLY = "streaming_required"
"""Our code for a server that answers only with event streams."""
NO_MODEL = "model_not_found"
"""OpenAI's code for a model that does not exist; also ours for providers that say so in words."""
NO_SYSTEM_MESSAGE = "system_message_not_supported"
"""Our code for a model whose chat template, or whose provider, takes no system message."""
BOUND_EXCEEDED = "bound_exceeded"
"""Why a job is paused whose model keeps billing more than is reserved for its calls."""
PRICE_UNKNOWN = "price_unknown"
"""Why a job with a limit in dollars is paused one of whose models has no price any more."""
SUSPECT_REPLY = "suspect_reply"
"""Our code for a reply whose connection brought more than that reply."""
FILTERED = "filtered"
"""Stands for whatever code a content filter has."""
UNKNOWN_CONNECTION = "unknown_connection"
MODEL_NOT_ALLOWED = "model_not_allowed"
EXTRA_NOT_ALLOWED = "extra_not_allowed"
TENANT_PAUSED = "tenant_paused"
TENANT_IS_PAUSED = "the operator has paused this tenant"
PARAMETERS_CHANGED = "parameters_changed"
BATCH_NOT_FOUND = "batch_not_found"
NO_BATCH_ENDPOINTS = "no_batch_endpoints"
_CAUSES: Mapping[str, str] = {
    **dict.fromkeys(NO_CREDIT_CODES, _CREDIT),
    BATCH_NOT_FOUND: "{who} reports that it has no such batch",
    STREAM_ONLY: "{who} answers {model} only with an event stream",
    NO_SYSTEM_MESSAGE: "{model} takes no system message, and the persona is one",
    "API_KEY_INVALID": _REJECTED,
    "DeploymentNotFound": _NO_MODEL,
    "account_deactivated": "{who} has deactivated the account",
    "authentication_error": _REJECTED,
    BOUND_EXCEEDED: "{who} bills calls of {model} beyond their worst case",
    "connection_lost": "the server of {who} closed the connection",
    "context_length_exceeded": "the prompts exceed the context length of {model}",
    "invalid_api_key": _REJECTED,
    "invalid_model": _NO_MODEL,
    "key_unreadable": "the stored key of {who} can't be decrypted",
    "malformed_reply": "{who} does not answer in the connection's wire format",
    "model_decommissioned": "{who} no longer serves {model}",
    "model_not_found": _NO_MODEL,
    "not_found_error": _NO_MODEL,
    PRICE_UNKNOWN: "no price is known for {model} at {who}",
    "request_too_large": "a request to {who} is larger than its rate limit",
    SUSPECT_REPLY: "{who} sent more than one reply to a request",
    "timeout": "{who} did not answer in time",
}
_CAUSES_BY_STATUS: Mapping[int, str] = {
    400: _REFUSED_REQUEST,
    401: _REJECTED,
    402: _CREDIT,
    403: "{who} does not allow this key the request",
    404: _NO_MODEL,
    422: _REFUSED_REQUEST,
    429: "the rate limit of {who} is used up",
}
_PASSING = frozenset({408, 409, 429})
_TIMED_OUT = frozenset({408, 504, 524})
_SERVER_ERROR = 500
_DOWN = "{model} at {who} is down or overloaded"

_KEY = "Set {variable} and restart the service."
_ADD_CREDIT = "Add credit, or raise the spending limit, at {who}."
_MODEL = "Correct the model's name or the connection's base URL."
_PARAMETERS = (
    "The model rejects a parameter. Omit it, set it to null, or name the model's `family` in the connection."
)
_UNREACHABLE = "Check that the server is running and that the connection's base URL is correct."
_LATER = "Try again in a few minutes."
_REPEATED = "The service repeats such calls; `retry` repeats the items that failed for good."
_REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(NO_CREDIT_CODES, _ADD_CREDIT),
    NO_SYSTEM_MESSAGE: 'Submit with `"system": "in_user_turn"` on the model, which puts the system prompt at the head of the user\'s message.',
    "API_KEY_INVALID": _KEY,
    "DeploymentNotFound": "Use the name of the deployment as the model, and check the connection's base URL.",
    BATCH_NOT_FOUND: "Resume the job once {who} has the batch again, or cancel the job to give the batch up.",
    FILTERED: "The provider's content filter refuses the text. Another wording or another model may help.",
    EXTRA_NOT_ALLOWED: "Ask the operator to allow the field (`allow_extra`), or submit a job without it.",
    MODEL_NOT_ALLOWED: "Ask the operator to allow the model, or submit a job with another model.",
    NO_BATCH_ENDPOINTS: 'Ask the operator to set `batches: true` for the connection, or submit with `"execution": "direct"`.',
    PARAMETERS_CHANGED: "Submit a new job, which is sent this installation's parameters.",
    STREAM_ONLY: "Set `stream: true` for the connection.",
    TENANT_PAUSED: "Ask the operator to resume the tenant.",
    UNKNOWN_CONNECTION: "Configure the connection again, or submit a job with another model.",
    "address_refused": "Use a public https address, or have the operator allow its network.",
    "authentication_error": _KEY,
    BOUND_EXCEEDED: "Submit with a higher `max_tokens` or another model. Or have the operator check the server and run"
    " `assay tenants reset-bounds`, then resume the job.",
    "connection_failed": _UNREACHABLE,
    "connection_lost": _UNREACHABLE,
    "context_length_exceeded": "Submit with a model that has a longer context.",
    "internal_error": "Look up the error in the service's log and remove its cause, or report it as a bug.",
    "invalid_api_key": _KEY,
    "invalid_model": _MODEL,
    "key_unreadable": "Give the connection its key again.",
    "malformed_reply": "Correct the connection's kind (wire format) or base URL.",
    "model_decommissioned": "Submit with another model.",
    "model_not_found": _MODEL,
    "no_score": "Check the verdicts' replies and errors. A higher `max_tokens` or another judge may help.",
    "no_usable_text": "Check the responses' errors. A different wording or another model may help, and where texts are empty a higher `max_tokens`.",
    "not_found_error": _MODEL,
    PRICE_UNKNOWN: "Have the operator set a price for the model in `prices` of {who}, then resume the job.",
    "preparation_failed": "Submit with another reasoner, or with a higher `max_tokens` for the reasoner.",
    "provider_unreachable": f"{_UNREACHABLE} The job resumes automatically once the server answers, six times at most without an answered call between.",
    "request_too_large": "Ask {who} for a higher limit, or use shorter texts.",
    SUSPECT_REPLY: "Repair the server of {who}, or the proxy in front of it: each request must get exactly one reply.",
    "timeout": "Texts that take longer are missing. Lower the model's `max_tokens`, raise `ASSAY_CALL_DEADLINE_SECONDS`,"
    " or lower the connection's `max_in_flight`.",
    "unknown_parameter": _PARAMETERS,
    "unknown_version": "Upgrade the workers to a release that has the job's version, then resume the job.",
    "unsupported_parameter": _PARAMETERS,
    "unsupported_value": _PARAMETERS,
}
_REMEDIES_BY_STATUS: Mapping[int, str] = {
    400: f"Change what the provider's message names. {_PARAMETERS}",
    401: _KEY,
    402: _ADD_CREDIT,
    403: "Check the permissions of the connection's key and the provider's message.",
    404: _MODEL,
    422: f"Change what the provider's message names. {_PARAMETERS}",
    429: "Wait, or raise the rate limit or quota at {who}.",
}
_REPEATED_BY_STATUS: Mapping[int, str] = {
    429: "The service repeats such calls. A higher rate limit or quota at {who} lets them through sooner."
}
_OTHERWISE = "Change what the provider's message names."


def cause(code: str, status: int | None, model: str, detail: str | None = None) -> str:
    """Why a call failed, as a clause.

    Args:
        code: The provider's error code, or ours.
        status: HTTP status of the answer, if there was one.
        model: The call's, as ``connection/model``.
        detail: The provider's words, or ours, which are said where nothing plainer is known.
    """
    known = _CAUSES.get(code) or _CAUSES_BY_STATUS.get(status or 0)
    if known is None and status is not None and status >= _SERVER_ERROR:
        known = _DOWN
    return _filled(known, model) if known is not None else detail or code.replace("_", " ")


def remedy(code: str, status: int | None = None, model: str = "", *, repeated: bool = False) -> str:
    """Return what to do about a failure, in sentences.

    Args:
        code: The failure's code.
        status: Its HTTP status.
        model: The model's full name.
        repeated: Whether the service repeats the call itself if that may help.
    """
    by_status = {**_REMEDIES_BY_STATUS, **(_REPEATED_BY_STATUS if repeated else {})}
    known = _REMEDIES.get(code) or by_status.get(status or 0)
    if known is None and status is not None and status >= _SERVER_ERROR:
        known = _REPEATED if repeated else _LATER
    if known == _KEY and _VERSION in model.partition("/")[0]:
        known = "Give the connection {who} a new key."
    return _filled(known or _OTHERWISE, model)


def is_time_out(code: str, status: int | None) -> bool:
    """Return whether a call ended at our deadline or at that of the provider."""
    return code == "timeout" or status in _TIMED_OUT


def may_pass(status: int | None) -> bool:
    """Whether a failure with this HTTP status, ``None`` where no response came, is tried again."""
    return status is None or status >= _SERVER_ERROR or status in _PASSING


def _filled(words: str, model: str) -> str:
    connection, _, name = model.partition("/")
    own_name = connection.partition(_VERSION)[0]
    variable = f"{connection.upper()}_API_KEY" if connection in VENDORS else f"the key variable of {own_name}"
    return words.format(
        who=VENDORS.get(connection) or own_name or "the provider", model=name, variable=variable
    )
