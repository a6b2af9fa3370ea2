"""What to do about a failure that stopped a job."""

from collections.abc import Mapping

_KEY = "Correct the connection's key."
_CREDIT = "Add credit, or raise the spending limit, with the provider."
_MODEL = "Correct the model's name or the connection's base URL."
_PARAMETERS = (
    "The model rejects a parameter. Omit it, set it to null, or name the model's `family` in the connection."
)
_UNREACHABLE = "Check that the server is running and that the connection's base URL is correct."

_BY_CODE: Mapping[str, str] = {
    "insufficient_quota": _CREDIT,
    "credit_balance_too_low": _CREDIT,
    "budget_exceeded": _CREDIT,
    "invalid_api_key": _KEY,
    "API_KEY_INVALID": _KEY,
    "authentication_error": _KEY,
    "model_not_found": _MODEL,
    "not_found_error": _MODEL,
    "invalid_model": _MODEL,
    "DeploymentNotFound": _MODEL,
    "model_decommissioned": "The provider no longer serves the model. Submit with another one.",
    "unsupported_parameter": _PARAMETERS,
    "unsupported_value": _PARAMETERS,
    "unknown_parameter": _PARAMETERS,
    "context_length_exceeded": "The prompts exceed the model's context length. Submit with a model that has a longer one.",
    "request_too_large": "A request exceeds the rate limit. Ask the provider for a higher limit, or use shorter texts.",
    "malformed_reply": "The server's replies are not in the connection's format. Correct the connection's kind or base URL.",
    "timeout": "Raise `ASSAY_CALL_DEADLINE_SECONDS`, or lower the connection's `max_in_flight`.",
    "unknown_version": "Upgrade the workers to a release that has the job's version, then resume the job.",
    "provider_unreachable": f"{_UNREACHABLE} The job resumes automatically once the server answers.",
    "no_usable_text": "Check the responses' errors. A higher `max_tokens`, a different wording or another model may help.",
    "no_score": "Check the verdicts' replies and errors. A higher `max_tokens` or another judge may help.",
    "connection_failed": _UNREACHABLE,
    "connection_lost": _UNREACHABLE,
}
_BY_STATUS: Mapping[int, str] = {
    400: f"Change what the provider's message names. {_PARAMETERS}",
    401: _KEY,
    402: _CREDIT,
    403: "Check the permissions of the connection's key and the provider's message.",
    404: _MODEL,
    422: f"Change what the provider's message names. {_PARAMETERS}",
}
_OTHERWISE = "Change what the provider's message names."


def remedy(code: str, status: int | None = None) -> str:
    """What to change before the job can go on.

    Args:
        code: The provider's error code, or ours.
        status: HTTP status of the answer, if there was one.
    """
    return _BY_CODE.get(code) or _BY_STATUS.get(status or 0) or _OTHERWISE
