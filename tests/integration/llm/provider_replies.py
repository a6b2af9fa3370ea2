"""Every kind of reply that a provider can give, and what we make of it: what the tests send and docs/provider-replies.md shows.

``make reference`` writes the page anew.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from app.domain.providers.failure import NO_SYSTEM_MESSAGE, STREAM_ONLY
from app.domain.providers.model import FinishReason
from app.ports import FailureKind
from tests.integration.llm.conftest import ANTHROPIC_REPLY, KEY, OPENAI_REPLY
from tests.integration.llm.stub_provider import Answer

RETRY, ITEM, FILTERED, JOB = FailureKind.RETRY, FailureKind.ITEM, FailureKind.FILTERED, FailureKind.JOB


def openai_error(status: int, code: object, kind: str = "invalid_request_error", **headers: str) -> Answer:
    fault = {"message": f"It says {KEY} here.", "type": kind, "param": None, "code": code}
    return Answer.of_json({"error": fault}, status, **headers)


def _filtered(status: int = 400, **fields: object) -> Answer:
    """A content filter's refusal whose code says nothing of it."""
    return Answer.of_json({"error": {"message": "Your input was flagged.", "code": status, **fields}}, status)


def anthropic_error(status: int, kind: str, error_code: str | None = None, **headers: str) -> Answer:
    fault: dict[str, object] = {"type": kind, "message": f"It says {KEY} here."}
    details = {"details": {"error_code": error_code}} if error_code else {}
    return Answer.of_json(
        {"type": "error", "error": fault | details, "request_id": "req_1"}, status, **headers
    )


def changed(reply: Mapping[str, Any], **changes: Any) -> Answer:
    return Answer.of_json({**reply, **changes})


def choice(finish_reason: str | None = "stop", **message: Any) -> Answer:
    answer = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return changed(OPENAI_REPLY, choices=[answer])


HALF = Answer.of_json(OPENAI_REPLY).body[:100]
PAGE = Answer(200, b"<html>Sign in</html>", {"content-type": "text/html"})
BIG = "x" * 5000

FAILURES: dict[str, tuple[str, Answer, FailureKind, str]] = {
    "rate limit": ("openai", openai_error(429, "rate_limit_exceeded", "requests"), RETRY, "rate_limit_exceeded"),
    "no credit": ("openai", openai_error(429, "insufficient_quota", "insufficient_quota"), JOB, "insufficient_quota"),
    "wrong key": ("openai", openai_error(401, "invalid_api_key"), JOB, "invalid_api_key"),
    "payment required": ("openai", openai_error(402, 402), JOB, "invalid_request_error"),
    "forbidden": ("openai", openai_error(403, "unsupported_country_region_territory"), JOB, "unsupported_country_region_territory"),
    "no such model": ("openai", openai_error(404, "model_not_found"), JOB, "model_not_found"),
    "no such path": ("openai", Answer(404, b"404 page not found"), JOB, "http_404"),
    "prompt too long": ("openai", openai_error(400, "context_length_exceeded"), ITEM, "context_length_exceeded"),
    "prompt against policy": ("openai", openai_error(400, "content_policy_violation"), FILTERED, "content_policy_violation"),
    "prompt filtered": ("openai", openai_error(400, "content_filter"), FILTERED, "content_filter"),
    "prompt filtered (Azure, named by the policy alone)": ("openai", _filtered(innererror={"code": "ResponsibleAIPolicyViolation"}), FILTERED, "http_400"),
    "prompt filtered (Azure behind LiteLLM)": ("openai", _filtered(provider_specific_fields={"innererror": {"code": "ResponsibleAIPolicyViolation"}}), FILTERED, "http_400"),
    "prompt flagged by moderation (OpenRouter)": ("openai", _filtered(403, metadata={"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI"}), FILTERED, "http_403"),
    "prompt flagged by moderation, in a good reply (OpenRouter)": ("openai", Answer(200, _filtered(403, metadata={"reasons": ["violence"]}).body), FILTERED, "http_403"),
    "prompt inspected and refused (Alibaba)": ("openai", openai_error(400, "data_inspection_failed"), FILTERED, "data_inspection_failed"),
    "prompt invalid": ("openai", openai_error(400, "invalid_prompt"), ITEM, "invalid_prompt"),
    "parameter refused": ("openai", openai_error(400, "unsupported_parameter"), JOB, "unsupported_parameter"),
    "value refused": ("openai", openai_error(400, "unsupported_value"), JOB, "unsupported_value"),
    "vLLM's bad request": ("openai", Answer.of_json({"object": "error", "message": "no", "code": 400}, 400), ITEM, "http_400"),
    "error as text": ("openai", Answer.of_json({"error": "model is loading"}, 503), RETRY, "http_503"),
    "body too large": ("openai", Answer(413), ITEM, "http_413"),
    "request time-out": ("openai", Answer(408), RETRY, "http_408"),
    "conflict": ("openai", Answer(409), RETRY, "http_409"),
    "server error": ("openai", openai_error(500, None, "server_error"), RETRY, "server_error"),
    "bad gateway": ("openai", Answer(502, b"<html>502</html>"), RETRY, "http_502"),
    "a code that is no code": ("openai", openai_error(500, BIG, "x y"), RETRY, "http_500"),
    "page in place of an answer": ("openai", PAGE, RETRY, "malformed_reply"),
    "half an answer": ("openai", Answer(200, HALF), RETRY, "malformed_reply"),
    "nothing": ("openai", Answer(200, b""), RETRY, "malformed_reply"),
    "a list": ("openai", Answer.of_json([]), RETRY, "malformed_reply"),
    "a hundred thousand brackets": ("openai", Answer(200, b"[" * 100_000), RETRY, "malformed_reply"),
    "null choices": ("openai", changed(OPENAI_REPLY, choices=None), RETRY, "malformed_reply"),
    "null message": ("openai", changed(OPENAI_REPLY, choices=[{"message": None}]), RETRY, "malformed_reply"),
    "content that is no text": ("openai", choice(content=[1]), RETRY, "malformed_reply"),
    "answer broken off": ("openai", choice("error", content="I lo"), RETRY, "broken_off"),
    "a router's rate limit": ("openai", Answer.of_json({"error": {"code": 429, "message": "slow"}}), RETRY, "http_429"),
    "a router's empty purse": ("openai", Answer.of_json({"error": {"code": 402, "message": "pay"}}), JOB, "http_402"),
    "a router's vague error": ("openai", Answer.of_json({"error": "odd"}), RETRY, "http_502"),
    "closed unanswered": ("openai", Answer(cut_after=0), RETRY, "connection_lost"),
    "closed in the head": ("openai", Answer(cut_after=9), RETRY, "connection_lost"),
    "closed in the body": ("openai", Answer(body=HALF, cut_after=80), RETRY, "connection_lost"),
    "no HTTP": ("openai", Answer(headers={"bad header\0": "x"}), RETRY, "connection_lost"),
    "broken gzip": ("openai", Answer(body=b"no gzip", headers={"content-encoding": "gzip"}), RETRY, "connection_lost"),
    "anthropic: rate limit": ("anthropic", anthropic_error(429, "rate_limit_error"), RETRY, "rate_limit_error"),
    "anthropic: spend limit": ("anthropic", anthropic_error(429, "rate_limit_error", "enforced_spend_limit_reached"), JOB, "enforced_spend_limit_reached"),
    "anthropic: overloaded": ("anthropic", anthropic_error(529, "overloaded_error"), RETRY, "overloaded_error"),
    "anthropic: wrong key": ("anthropic", anthropic_error(401, "authentication_error"), JOB, "authentication_error"),
    "anthropic: billing": ("anthropic", anthropic_error(402, "billing_error"), JOB, "billing_error"),
    "anthropic: no such model": ("anthropic", anthropic_error(404, "not_found_error"), JOB, "not_found_error"),
    "anthropic: bad request": ("anthropic", anthropic_error(400, "invalid_request_error"), ITEM, "invalid_request_error"),
    "anthropic: server error": ("anthropic", anthropic_error(500, "api_error"), RETRY, "api_error"),
    "anthropic: error in a good reply": ("anthropic", anthropic_error(200, "overloaded_error"), RETRY, "overloaded_error"),
    "anthropic: page": ("anthropic", PAGE, RETRY, "malformed_reply"),
    "anthropic: no content": ("anthropic", changed(ANTHROPIC_REPLY, content=None), RETRY, "malformed_reply"),
    "anthropic: odd content": ("anthropic", changed(ANTHROPIC_REPLY, content=["text"]), RETRY, "malformed_reply"),
    "anthropic: closed unanswered": ("anthropic", Answer(cut_after=0), RETRY, "connection_lost"),
}  # fmt: skip

DEADLINE = 5.0
"""Of a call whose reply comes at once."""
SHORT = 0.3
"""Of a call whose reply comes too late."""
LONG = 50 * 10**6
"""Bytes of a reply that is no answer."""

FAILURES |= {
    "rate limit of tokens": ("openai", openai_error(429, "rate_limit_exceeded", "tokens"), RETRY, "rate_limit_exceeded"),
    "rate limit without a code": ("openai", Answer(429), RETRY, "http_429"),
    "quota used up, older code": ("openai", openai_error(429, "billing_hard_limit_reached"), JOB, "billing_hard_limit_reached"),
    "billing not active (behind LiteLLM)": ("openai", Answer.of_json({"error": {"message": "litellm.RateLimitError: OpenAIException - Your account is not active, please check your billing details on our website.", "type": "throttling_error", "code": "429"}}, 429), JOB, "insufficient_quota"),
    "a user's quota is used up (one-api)": ("openai", Answer.of_json({"error": {"message": "user [34] quota [-208]preConsumedQuota [743]is not enough", "type": "one_api_error", "code": ""}}, 403), JOB, "insufficient_quota"),
    "prompt blocked (Gemini behind one-api)": ("openai", Answer.of_json({"error": {"message": "blocked: prompt: BlockedReasonProhibitedContent ()", "type": "one_api_error", "code": "do_request_failed"}}, 500), FILTERED, "do_request_failed"),
    "billing not active": ("openai", openai_error(429, "billing_not_active", "billing_not_active"), JOB, "billing_not_active"),
    "account deactivated": ("openai", openai_error(401, "account_deactivated"), JOB, "account_deactivated"),
    "payment required, no reason": ("openai", Answer(402), JOB, "http_402"),
    "deployment gone (Azure)": ("openai", openai_error(404, "DeploymentNotFound"), JOB, "DeploymentNotFound"),
    "unknown parameter": ("openai", openai_error(400, "unknown_parameter"), JOB, "unknown_parameter"),
    "a text too long": ("openai", openai_error(400, "string_above_max_length"), ITEM, "string_above_max_length"),
    "bad request without a code": ("openai", Answer(400), ITEM, "http_400"),
    "unprocessable": ("openai", Answer(422), ITEM, "http_422"),
    "redirect": ("openai", Answer(302, headers={"location": "https://elsewhere.example"}), JOB, "http_302"),
    "slow down": ("openai", openai_error(503, None, "service_unavailable_error"), RETRY, "service_unavailable_error"),
    "gateway time-out": ("openai", Answer(504), RETRY, "http_504"),
    "no answer": ("openai", Answer(delay=60), RETRY, "timeout"),
    "an answer that drips in slower than the deadline": ("openai", Answer.of_json(OPENAI_REPLY).dripping(0.02), RETRY, "timeout"),
    "50 MB, announced": ("openai", Answer(length=LONG), RETRY, "malformed_reply"),
    "50 MB, not announced": ("openai", Answer(length=LONG, announced=False), RETRY, "malformed_reply"),
    "reset": ("openai", Answer(reset=True), RETRY, "connection_lost"),
    "anthropic: acceleration limit": ("anthropic", anthropic_error(429, "rate_limit_error", "ramp_limit_exceeded"), RETRY, "ramp_limit_exceeded"),
    "anthropic: contract's spend limit": ("anthropic", anthropic_error(429, "rate_limit_error", "contract_spend_limit_reached"), JOB, "contract_spend_limit_reached"),
    "anthropic: organization's spend limit": ("anthropic", anthropic_error(429, "rate_limit_error", "linked_organization_spend_limit_reached"), JOB, "linked_organization_spend_limit_reached"),
    "anthropic: billing unavailable": ("anthropic", anthropic_error(429, "rate_limit_error", "linked_organization_billing_unavailable"), JOB, "linked_organization_billing_unavailable"),
    "anthropic: organization on hold": ("anthropic", anthropic_error(403, "permission_error", "organization_on_hold"), JOB, "organization_on_hold"),
    "anthropic: empty purse": ("anthropic", Answer.of_json({"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}, 400), JOB, "credit_balance_too_low"),
    "anthropic: forbidden": ("anthropic", anthropic_error(403, "permission_error"), JOB, "permission_error"),
    "anthropic: request too large": ("anthropic", anthropic_error(413, "request_too_large"), ITEM, "request_too_large"),
    "anthropic: time-out": ("anthropic", anthropic_error(504, "timeout_error"), RETRY, "timeout_error"),
    "anthropic: null content": ("anthropic", changed(ANTHROPIC_REPLY, content=[None]), RETRY, "malformed_reply"),
    "anthropic: no answer": ("anthropic", Answer(delay=60), RETRY, "timeout"),
    "anthropic: drips in slower than the deadline": ("anthropic", Answer.of_json(ANTHROPIC_REPLY).dripping(0.02), RETRY, "timeout"),
}  # fmt: skip

_QUOTA = "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
_TOO_LARGE = "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit {}, Requested {}. Try less."
_EARLY = "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29500, Requested 900."


def fault(status: int, words: str, **fields: object) -> Answer:
    """An error in OpenAI's shape, of these words and fields."""
    return Answer.of_json({"error": {"message": words, **fields}}, status)


def google_error(status: int, words: str, name: str, *details: Mapping[str, object]) -> Answer:
    """An error of Gemini's OpenAI-compatible endpoint, whose body is a list."""
    error = {"code": status, "message": words, "status": name, "details": list(details)}
    return Answer.of_json([{"error": error}], status)


def in_choice(**error: object) -> Answer:
    """OpenRouter's answer where its provider failed on the way."""
    message = {"role": "assistant", "content": ""}
    return changed(
        OPENAI_REPLY, choices=[{"index": 0, "message": message, "finish_reason": "error", "error": error}]
    )


FAILURES |= {
    "a request larger than the limit": ("openai", fault(429, _TOO_LARGE.format(30000, 61337), type="tokens", code="rate_limit_exceeded"), ITEM, "request_too_large"),
    "a request too early, within the limit": ("openai", fault(429, _EARLY, type="tokens", code="rate_limit_exceeded"), RETRY, "rate_limit_exceeded"),
    "a request larger than the limit (Groq)": ("openai", fault(413, _TOO_LARGE.format(6000, 7011), type="tokens", code="rate_limit_exceeded"), ITEM, "request_too_large"),
    "Groq: model blocked by the organization": ("openai", fault(403, "The model `groq/compound` is blocked at the organization level.", type="permissions_error", code="model_permission_blocked_org"), JOB, "model_permission_blocked_org"),
    "Groq: model decommissioned": ("openai", fault(400, "It has been decommissioned.", type="invalid_request_error", code="model_decommissioned"), JOB, "model_decommissioned"),
    "Gemini: wrong key": ("openai", google_error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}), JOB, "API_KEY_INVALID"),
    "Gemini: rate limit": ("openai", google_error(429, _QUOTA + "head to: https://ai.google.dev/gemini-api/docs/rate-limits.", "RESOURCE_EXHAUSTED", {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}), RETRY, "RESOURCE_EXHAUSTED"),
    "Gemini: bad request": ("openai", google_error(400, "Invalid value at 'temperature'.", "INVALID_ARGUMENT"), ITEM, "INVALID_ARGUMENT"),
    "Gemini: region not served": ("openai", google_error(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"), JOB, "FAILED_PRECONDITION"),
    "Gemini: overloaded": ("openai", google_error(503, "The model is overloaded.", "UNAVAILABLE"), RETRY, "UNAVAILABLE"),
    "LiteLLM: wrong key": ("openai", fault(401, "Authentication Error, Invalid proxy server token passed", type="auth_error", param="None", code="401"), JOB, "auth_error"),
    "LiteLLM: wrong upstream key": ("openai", fault(401, "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key", type=None, param=None, code="401"), JOB, "http_401"),
    "LiteLLM: unknown model": ("openai", fault(400, "/chat/completions: Invalid model name passed in model=x.", type="invalid_request_error", param="model", code="400"), JOB, "model_not_found"),
    "LiteLLM: upstream quota used up": ("openai", fault(429, "litellm.RateLimitError: RateLimitError: OpenAIException - " + _QUOTA + "read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.", type="throttling_error", param=None, code="429"), JOB, "insufficient_quota"),
    "LiteLLM: upstream quota used up, quoted": ("openai", fault(429, "litellm.RateLimitError: Error code: 429 - {'error': {'message': 'no', 'type': 'insufficient_quota'}}", type="None", param="None", code="429"), JOB, "insufficient_quota"),
    "LiteLLM: upstream rate limit": ("openai", fault(429, "litellm.RateLimitError: RateLimitError: OpenAIException - slow", type="throttling_error", param=None, code="429"), RETRY, "throttling_error"),
    "OpenRouter: provider's words": ("openai", fault(400, "Provider returned error", code=400, metadata={"provider_name": "X", "raw": '{"error": {"message": "temperature is deprecated", "type": "invalid_request_error"}}'}), ITEM, "invalid_request_error"),
    "OpenRouter: provider's plain words": ("openai", fault(502, "Provider returned error", code=502, metadata={"raw": "upstream hiccup"}), RETRY, "http_502"),
    "OpenRouter: error in a choice": ("openai", in_choice(code=429, message="slow down"), RETRY, "http_429"),
    "OpenRouter: empty purse in a choice": ("openai", in_choice(code="402", message="Insufficient credits"), JOB, "http_402"),
    "OpenRouter: no such model": ("openai", fault(404, "No endpoints found for x/y.", code=404), JOB, "http_404"),
    "forbidden without a code": ("openai", fault(403, "no"), ITEM, "http_403"),
    "vLLM: no such model": ("openai", Answer.of_json({"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "param": None, "code": 404}, 404), JOB, "model_not_found"),
    "vLLM: system prompt not taken": ("openai", fault(400, "System role not supported", type="BadRequestError", param=None, code=400), JOB, NO_SYSTEM_MESSAGE),
    "vLLM: wrong key (FastAPI)": ("openai", Answer.of_json({"error": "Unauthorized"}, 401), JOB, "http_401"),
    "vLLM: wrong path (FastAPI)": ("openai", Answer.of_json({"detail": "Not Found"}, 404), JOB, "http_404"),
    "Mistral: unprocessable": ("openai", Answer.of_json({"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, "type": "invalid_request_error", "code": None}, 422), ITEM, "invalid_request_error"),
    "Mistral: unprocessable, FastAPI's shape": ("openai", Answer.of_json({"detail": [{"loc": ["body", "temperature"], "msg": "Input should be less than 1.5"}]}, 422), ITEM, "http_422"),
    "Mistral: no such model": ("openai", Answer.of_json({"object": "error", "message": "Invalid model: x", "type": "invalid_model", "param": None, "code": "1500"}, 400), JOB, "invalid_model"),
    "Mistral: wrong key": ("openai", Answer.of_json({"message": "Unauthorized", "request_id": "r"}, 401), JOB, "http_401"),
    "Ollama: no such model": ("openai", Answer.of_json({"error": "model 'x' not found"}, 404), JOB, "model_not_found"),
    "TGI: overloaded": ("openai", Answer.of_json({"error": "Model is overloaded", "error_type": "overloaded"}, 429), RETRY, "overloaded"),
    "TGI: prompt too long": ("openai", Answer.of_json({"error": "Input validation error", "error_type": "validation"}, 422), ITEM, "validation"),
    "Azure: wrong key": ("openai", fault(401, "Access denied due to invalid subscription key", code="401"), JOB, "http_401"),
    "Azure: model without chat": ("openai", fault(400, "The chatCompletion operation does not work with the model", code="OperationNotSupported"), JOB, "OperationNotSupported"),
    "AWS: throttled": ("openai", Answer.of_json({"message": "Too many requests", "__type": "ThrottlingException"}, 429), RETRY, "ThrottlingException"),
    "AWS: no access": ("openai", Answer.of_json({"Message": "You don't have access to the model."}, 403), ITEM, "http_403"),
    "a firewall's refusal": ("openai", fault(403, "Request blocked by security policy"), ITEM, "http_403"),
    "a wrong kind of content": ("openai", fault(400, "messages contains prohibited text type"), ITEM, "http_400"),
    "stream_options without a stream": ("openai", fault(400, "stream_options is only supported when streaming: stream must be true"), ITEM, "http_400"),
    "a template with an optional system message": ("openai", fault(400, "After the optional system message, conversation roles must alternate user/assistant"), ITEM, "http_400"),
    "a rate limit that advertises credits": ("openai", fault(429, "Too many requests. Add credits to your account for higher limits."), RETRY, "http_429"),
    "a credits service that is down": ("openai", fault(503, "no credits service available, upstream down"), RETRY, "http_503"),
    "an error in an error's message": ("openai", fault(400, '{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}', code=400), ITEM, "INVALID_ARGUMENT"),
}  # fmt: skip

_FLAGGED = "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt."
_SPENT = "Your team 8c26 has either used all available credits or reached its monthly spending limit. Please purchase more credits."
_BROKE = "Insufficient balance or no resource package. Please recharge."
_TEMPLATE = "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."


def plain(status: int, **body: object) -> Answer:
    """An error whose fields are at the top of the body."""
    return Answer.of_json(body, status)


FILTERS = {
    "Cloudflare: prompt blocked": ("openai", plain(424, success=False, error=[{"code": 2016, "message": "Prompt blocked due to security configurations"}]), FILTERED, "http_424"),
    "Portkey: guardrail": ("openai", Answer(446, b'{"error": {"message": "The guardrail checks defined in the config failed.", "type": "hooks_failed"}}'), FILTERED, "hooks_failed"),
    "Spark: refused in Chinese": ("openai", fault(400, "输出内容涉及敏感信息", code="10014"), FILTERED, "http_400"),
    "OpenAI: prompt flagged": ("openai", fault(400, _FLAGGED, type="invalid_request_error", code="invalid_prompt"), FILTERED, "invalid_prompt"),
    "OpenAI: prompt flagged, without a code": ("openai", fault(400, _FLAGGED, type="invalid_request_error", code=None), FILTERED, "invalid_request_error"),
    "OpenAI: prompt rejected by the safety system": ("openai", fault(400, "Your request was rejected as a result of our safety system.", code="moderation_blocked"), FILTERED, "moderation_blocked"),
    "anthropic: output blocked": ("anthropic", Answer.of_json({"type": "error", "error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}}, 400), FILTERED, "invalid_request_error"),
    "Azure: response filtered": ("openai", fault(400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", code=None), FILTERED, "http_400"),
    "Alibaba: output inspected": ("openai", plain(400, code="DataInspectionFailed", message="Output data may contain inappropriate content."), FILTERED, "DataInspectionFailed"),
    "Zhipu: unsafe content": ("openai", fault(400, "系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301"), FILTERED, "http_400"),
    "Z.ai: unsafe content": ("openai", fault(400, "System detected potentially unsafe or sensitive content in input or generation.", code="1301"), FILTERED, "http_400"),
    "MiniMax: sensitive input, in a good reply": ("openai", plain(200, choices=None, base_resp={"status_code": 1026, "status_msg": "input new_sensitive"}), FILTERED, "http_502"),
    "Moonshot: high risk": ("openai", fault(400, "The request was rejected because it was considered high risk", type="content_filter"), FILTERED, "content_filter"),
    "DeepSeek: content risk": ("openai", fault(400, "Content Exists Risk", type="invalid_request_error", code="invalid_request_error"), FILTERED, "invalid_request_error"),
    "Volcengine: sensitive output": ("openai", fault(400, "The output text may contain sensitive information.", type="BadRequest", code="OutputTextSensitiveContentDetected"), FILTERED, "OutputTextSensitiveContentDetected"),
    "xAI: usage guidelines": ("openai", plain(403, code="The caller does not have permission", error="Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"), FILTERED, "http_403"),
    "LiteLLM: a guardrail of Bedrock": ("openai", fault(400, "{'error': 'Violated guardrail policy', 'bedrock_guardrail_response': 'no'}", type="None", code="400"), FILTERED, "http_400"),
    "LiteLLM: policy of another provider": ("openai", fault(400, "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - no", type=None, code="400"), FILTERED, "http_400"),
    "Mistral: guardrail": ("openai", plain(403, object="error", message="Request was blocked by the guardrail policy.", type="guardrail_blocked"), FILTERED, "guardrail_blocked"),
    "MiniMax: sensitive output, by its code in words": ("openai", fault(500, "output new_sensitive (1027)", type="api_error"), FILTERED, "api_error"),
    "MiniMax: sensitive input, beside an empty choice": ("openai", plain(200, choices=[{"finish_reason": "stop", "message": {"content": ""}}], base_resp={"status_code": 1026, "status_msg": "input new_sensitive"}), FILTERED, "http_502"),
    "a router: flagged as NSFW": ("openai", fault(400, "Input flagged as NSFW by moderation"), FILTERED, "http_400"),
    "a router: output blocked": ("openai", fault(400, "blocked output: please retry with another prompt"), FILTERED, "http_400"),
    "a router: toxic prompt": ("openai", fault(400, "prompt contains toxic content"), FILTERED, "http_400"),
    "NeMo: rejected": ("openai", fault(400, "Prompt rejected by NeMo Guardrails"), FILTERED, "http_400"),
    "Xiaomi: blocked, as an event stream": ("openai", Answer(400, b'data: {"error": {"code": "421", "message": "Moderation Block", "type": "content_filter"}}', {"content-type": "text/event-stream"}), FILTERED, "content_filter"),
    "Baidu: sensitive, in a good reply": ("openai", plain(200, error_code=336104, error_msg="the content is sensitive"), FILTERED, "http_502"),
    "unavailable for legal reasons": ("openai", fault(451, "The content you provided or machine outputted is blocked.", type="censorship_blocked"), FILTERED, "censorship_blocked"),
}  # fmt: skip

NO_CREDIT = {
    "Yandex: billing account": ("openai", fault(403, "The billing account of the folder is not active", code=7), JOB, "insufficient_quota"),
    "Azure: subscription disabled": ("openai", fault(403, "The subscription 'x' is disabled and therefore marked as read only.", code="ReadOnlyDisabledSubscription"), JOB, "insufficient_quota"),
    "a free quota": ("openai", fault(403, "Free quota exhausted, please activate pay-as-you-go", code="FreeQuotaExhausted"), JOB, "insufficient_quota"),
    "an expired subscription": ("openai", fault(403, "Your subscription has expired. Renew it to continue using the API.", type="forbidden"), JOB, "insufficient_quota"),
    "a usage cap": ("openai", fault(429, "You've hit your usage cap for this billing period.", code="usage_cap"), JOB, "insufficient_quota"),
    "a prepaid balance": ("openai", fault(403, "Your prepaid balance has been used. Add more to continue."), JOB, "insufficient_quota"),
    "OpenAI: prepaid credit used up": ("openai", fault(429, "Your organization has no prepaid credits remaining.", type="insufficient_quota", code="credit_balance_exhausted"), JOB, "insufficient_quota"),
    "OpenAI: the project's spend limit": ("openai", fault(429, "Your project reached a configured hard spend limit.", type="insufficient_quota", code="project_spend_limit_exceeded"), JOB, "insufficient_quota"),
    "a proxy's Anthropic: spend limit": ("openai", fault(400, "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.", type="invalid_request_error"), JOB, "insufficient_quota"),
    "Zhipu: no credit": ("openai", fault(429, "您的账户已欠费,请充值后重试", code="1113"), JOB, "insufficient_quota"),
    "Z.ai: no credit": ("openai", fault(429, _BROKE, code="1113"), JOB, "insufficient_quota"),
    "Moonshot: no credit": ("openai", fault(429, "You exceeded your current token quota: org-x 0, please check your account balance", type="exceeded_current_quota_error"), JOB, "insufficient_quota"),
    "Moonshot's other platform: no credit": ("openai", fault(429, "Your account org-x is suspended due to insufficient balance, please recharge your account", type="insufficient_balance_error"), JOB, "insufficient_quota"),
    "xAI: no credit": ("openai", plain(429, code="Some resource has been exhausted", error=_SPENT), JOB, "insufficient_quota"),
    "xAI: no credit, forbidden": ("openai", plain(403, code="The caller does not have permission", error=_SPENT), JOB, "insufficient_quota"),
    "MiniMax: no credit": ("openai", fault(500, "insufficient balance (1008)", type="api_error"), JOB, "insufficient_quota"),
    "MiniMax: no credit, in a good reply": ("openai", plain(200, choices=None, base_resp={"status_code": 1008, "status_msg": "insufficient balance"}), JOB, "insufficient_quota"),
    "Alibaba: no credit": ("openai", fault(400, "Access denied, please make sure your account is in good standing.", type="Arrearage", code="Arrearage"), JOB, "insufficient_quota"),
    "xAI: a new team": ("openai", fault(403, "Your newly created team doesn't have any credits yet"), JOB, "insufficient_quota"),
    "DeepInfra: no payment method": ("openai", plain(403, detail={'error': 'inference prohibited, please enter a payment method'}), JOB, "insufficient_quota"),
    "Nebius: balance": ("openai", fault(403, 'Your balance is not sufficient'), JOB, "insufficient_quota"),
    "GitHub: budget limit": ("openai", fault(403, 'You reached your budget limit', code='budget_limit'), JOB, "insufficient_quota"),
    "AI21: trial": ("openai", plain(403, detail='You have exceeded your trial limits'), JOB, "insufficient_quota"),
    "OVH: no payment method": ("openai", plain(403, message='no payment method'), JOB, "insufficient_quota"),
    "LiteLLM: token budget": ("openai", fault(429, 'ExceededTokenBudget: over budget', type='auth_error'), JOB, "insufficient_quota"),
    "OpenRouter: key's limit": ("openai", fault(403, "Key limit exceeded (total limit). Manage it using the settings.", code=403), JOB, "insufficient_quota"),
    "OpenRouter: no credit for so long an answer": ("openai", fault(402, "This request requires more credits, or fewer max_tokens.", code=402), JOB, "http_402"),
    "DeepSeek: no credit": ("openai", fault(402, "Insufficient Balance", type="unknown_error", code="invalid_request_error"), JOB, "invalid_request_error"),
    "Venice: no credit": ("openai", fault(403, "no", code="INSUFFICIENT_BALANCE"), JOB, "insufficient_quota"),
    "SiliconFlow: no credit": ("openai", plain(403, code=30001, message="Sorry, your account balance is insufficient", data=None), JOB, "insufficient_quota"),
    "Volcengine: no credit": ("openai", fault(403, "The request failed because your account has an overdue balance.", type="Forbidden", code="AccountOverdueError"), JOB, "insufficient_quota"),
    "new-api: no credit": ("openai", fault(403, "用户额度不足, 剩余额度: 0", type="new_api_error", code="insufficient_user_quota"), JOB, "insufficient_quota"),
    "Gemini: prepayment used up": ("openai", google_error(429, "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.", "RESOURCE_EXHAUSTED"), JOB, "insufficient_quota"),
    "Fireworks: account suspended": ("openai", fault(412, "Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.", type="error"), JOB, "insufficient_quota"),
    "Volcengine: a limit that was set": ("openai", fault(429, "Your account [1] has reached the set inference limit for the [m] model, and the model service has been paused.", type="TooManyRequests", code="SetLimitExceeded"), JOB, "insufficient_quota"),
    "Cohere: a trial key's month": ("openai", plain(429, message="You are using a Trial key, which is limited to 1000 API calls / month."), JOB, "insufficient_quota"),
    "NVIDIA: credits expired": ("openai", plain(403, detail="Cloud credits expired - Please contact NVIDIA representatives"), JOB, "insufficient_quota"),
    "GitHub: no quota": ("openai", fault(429, "You have no quota remaining for this month", code="quota_exceeded"), JOB, "insufficient_quota"),
    "Mistral: a month's limit": ("openai", plain(429, message="Monthly usage limit exceeded", type="usage_limit", code="1300"), JOB, "insufficient_quota"),
    "a gateway's key": ("openai", fault(401, "This API key has reached its usage limit", type="api_error"), JOB, "insufficient_quota"),
    "a negative balance": ("openai", plain(403, detail="Your account is blocked: your balance has gone negative."), JOB, "insufficient_quota"),
    "a balance of nothing": ("openai", plain(429, detail="Quota exceeded and account balance is $0.0, please pay"), JOB, "insufficient_quota"),
    "a day's free allocation, in a list of errors": ("openai", plain(429, success=False, errors=[{"code": 4006, "message": "you have used up your daily free allocation of 10,000 neurons"}]), RETRY, "http_429"),
    "Together: credit limit": ("openai", fault(402, "Credit limit exceeded, please add a credit card.", type="credit_limit", code=None), JOB, "credit_limit"),
    "Hugging Face: included credits": ("openai", Answer.of_json({"error": "You have exceeded your monthly included credits for Inference Providers."}, 402), JOB, "http_402"),
    "a free model's daily limit (OpenRouter)": ("openai", fault(429, "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", code=429), RETRY, "http_429"),
    "a rate limit that offers a higher tier (Groq)": ("openai", fault(429, "Rate limit reached for model x on tokens per day (TPD): Limit 100000, Used 99000, Requested 2000. Upgrade to Dev Tier today at https://console.groq.com/settings/billing", type="tokens", code="rate_limit_exceeded"), RETRY, "rate_limit_exceeded"),
}  # fmt: skip

NO_SYSTEM = {
    "llama.cpp: no system message": ("openai", fault(500, "Jinja Exception: System role not supported", type="server_error", code=500), JOB, NO_SYSTEM_MESSAGE),
    "llama.cpp: roles that alternate": ("openai", fault(500, _TEMPLATE, type="server_error", code=500), JOB, NO_SYSTEM_MESSAGE),
    "Gemini: no system message for Gemma": ("openai", google_error(400, "Developer instruction is not enabled for models/gemma-3-27b-it", "INVALID_ARGUMENT"), JOB, NO_SYSTEM_MESSAGE),
    "OpenAI: no system message": ("openai", fault(400, "Unsupported value: 'messages[0].role' does not support 'system' with this model.", code="unsupported_value"), JOB, NO_SYSTEM_MESSAGE),
    "TGI: no system message": ("openai", Answer.of_json({"error": "Template error: invalid operation: System role not supported (in <string>:1)", "error_type": "template_error"}, 422), JOB, NO_SYSTEM_MESSAGE),
}  # fmt: skip

STREAMS = {
    "only streams, by a field": ("openai", fault(400, "stream=false is not supported for this model"), JOB, STREAM_ONLY),
    "only streams, in plain words": ("openai", fault(400, "Only streaming responses are supported by this endpoint"), JOB, STREAM_ONLY),
    "only streams, in Chinese": ("openai", fault(400, "该模型仅支持流式输出", code="InvalidParameter"), JOB, STREAM_ONLY),
    "Alibaba: only streams": ("openai", fault(400, "This model only support stream mode, please enable the stream parameter to access the model.", type="invalid_request_error", code="invalid_parameter_error"), JOB, STREAM_ONLY),
    "Alibaba: thoughts only in streams": ("openai", fault(400, "parameter.enable_thinking must be set to false for non-streaming calls", code="invalid_parameter_error"), JOB, STREAM_ONLY),
    "Fireworks: only streams for long answers": ("openai", fault(400, "Requests with max_tokens > 4096 must have stream=true", type="error", code="BAD_REQUEST", param="max_tokens"), JOB, STREAM_ONLY),
    "only streams, other words": ("openai", fault(400, "Streaming is required for this model"), JOB, STREAM_ONLY),
    "only streams, other words still": ("openai", fault(422, "Non-streaming requests are not supported"), JOB, STREAM_ONLY),
}  # fmt: skip


def tencent(code: str, words: str) -> Answer:
    """An error in Tencent's own shape, with a good status."""
    return plain(200, Response={"Error": {"Code": code, "Message": words}, "RequestId": "r"})


OTHERS = {
    "NVIDIA: end of life": ("openai", plain(410, title="Gone", detail="The model 'x/y' has reached its end of life and is no longer available."), JOB, "model_not_found"),
    "Hugging Face: no provider of the model": ("openai", fault(400, "The requested model 'x/y' is not supported by any provider you have enabled.", code="model_not_supported"), JOB, "model_not_found"),
    "a proxy's Anthropic: disabled organization": ("openai", fault(400, "This organization has been disabled.", type="invalid_request_error"), JOB, "invalid_request_error"),
    "a deprecated model": ("openai", fault(400, "The model `m` has been deprecated and is no longer available"), JOB, "model_not_found"),
    "LM Studio: no model loaded": ("openai", plain(400, error="No models loaded. Please load a model in the developer page."), JOB, "model_not_found"),
    "Bedrock: needs a profile": ("openai", plain(400, message="Invocation of model ID x with on-demand throughput isn't supported."), JOB, "http_400"),
    "a model that is loading": ("openai", plain(400, error="Model is still loading, please retry"), RETRY, "http_400"),
    "too many calls at once, forbidden": ("openai", fault(403, "Concurrency limit reached, try again in a moment", code="concurrency"), RETRY, "concurrency"),
    "given up by a proxy": ("openai", Answer(499), RETRY, "http_499"),
    "Tencent: illegal text": ("openai", tencent("OperationDenied.TextIllegalDetected", "no"), FILTERED, "OperationDenied.TextIllegalDetected"),
    "Tencent: no credit": ("openai", tencent("FailedOperation.ResourcePackExhausted", "资源包余量已用尽"), JOB, "insufficient_quota"),
    "Tencent: wrong signature": ("openai", tencent("AuthFailure.SignatureFailure", "no"), JOB, "AuthFailure.SignatureFailure"),
    "Tencent: no such model": ("openai", tencent("InvalidParameterValue.Model", "no"), JOB, "model_not_found"),
    "Tencent: too many requests": ("openai", tencent("RequestLimitExceeded.UinLimitExceeded", "slow down"), RETRY, "RequestLimitExceeded.UinLimitExceeded"),
    "Volcengine: a filter's code with a detail": ("openai", fault(400, "no", type="BadRequest", code="InputTextSensitiveContentDetected.PolicyViolation"), FILTERED, "InputTextSensitiveContentDetected.PolicyViolation"),
    "OpenRouter: moderation without its reasons": ("openai", fault(403, 'x/y requires moderation on OpenInference. Your input was flagged for "violence". No credits were charged.', code=403), FILTERED, "http_403"),
    "OpenAI: content with limited access": ("openai", fault(400, "Invalid prompt: we've limited access to this content for safety reasons.", code="invalid_prompt"), FILTERED, "invalid_prompt"),
    "Gemini's reason, relayed": ("openai", plain(200, error={"code": 400, "message": "Gemini blocked the prompt: PROHIBITED_CONTENT"}), FILTERED, "http_400"),
    "other filters' words": ("openai", plain(422, detail="NSFW content detected"), FILTERED, "http_422"),
    "other filters' words, moderated": ("openai", plain(403, message="Request was moderated: violence", type="moderation_error"), FILTERED, "moderation_error"),
    "OpenRouter: no such model, as a bad request": ("openai", fault(400, "x/y is not a valid model ID", code=400), JOB, "model_not_found"),
    "DeepSeek: no such model": ("openai", fault(400, "Model Not Exist", type="invalid_request_error"), JOB, "model_not_found"),
    "Bedrock: no such model": ("openai", plain(400, message="The provided model identifier is invalid.", __type="ValidationException"), JOB, "model_not_found"),
    "Zhipu: no such model": ("openai", fault(400, "模型不存在", code="1211"), JOB, "model_not_found"),
    "Zhipu: busy, as a bad request": ("openai", fault(400, "该模型当前访问量过大", code="1305"), RETRY, "http_400"),
    "busy, as a bad request": ("openai", fault(400, "Server is busy, please try again later", code="ServerBusy"), RETRY, "ServerBusy"),
    "TGI: generation failed": ("openai", plain(424, error="Request failed during generation", error_type="generation"), RETRY, "generation"),
    "Bedrock: too many tokens a minute": ("openai", plain(429, message="Too many tokens, please wait before trying again.", __type="ThrottlingException"), RETRY, "ThrottlingException"),
    "a rate limit named token limit": ("openai", fault(429, "You have exceeded the token limit of this minute."), RETRY, "http_429"),
    "AWS: throttled, as a bad request": ("openai", plain(400, message="Too many requests, please wait before trying again.", __type="ThrottlingException"), RETRY, "ThrottlingException"),
    "a month's budget": ("openai", plain(429, message="Your monthly quota has been exceeded.", code="monthly_quota_exceeded"), JOB, "insufficient_quota"),
    "no credit, in a good reply without a code": ("openai", plain(200, success=False, message="Insufficient credits", data=None), JOB, "insufficient_quota"),
}  # fmt: skip
FAILURES |= FILTERS | NO_CREDIT | NO_SYSTEM | STREAMS | OTHERS

WORDS = {
    "MiniMax: no credit, in a good reply": "HTTP 502: insufficient balance",
    "SiliconFlow: no credit": "HTTP 403: Sorry, your account balance is insufficient",
    "xAI: no credit": f"HTTP 429: {_SPENT}",
    "Zhipu: no credit": "HTTP 429: 您的账户已欠费,请充值后重试",
    "Gemini: wrong key": "HTTP 400: API key not valid. Please pass a valid API key.",
    "OpenRouter: provider's words": "HTTP 400: Provider returned error: temperature is deprecated",
    "OpenRouter: provider's plain words": "HTTP 502: Provider returned error: upstream hiccup",
    "OpenRouter: error in a choice": "HTTP 429: slow down",
    "vLLM: no such model": "HTTP 404: The model `x` does not exist.",
    "vLLM: wrong path (FastAPI)": "HTTP 404: Not Found",
    "Mistral: unprocessable": "HTTP 422: body.seed: Extra inputs are not permitted",
    "Mistral: unprocessable, FastAPI's shape": "HTTP 422: body.temperature: Input should be less than 1.5",
    "Ollama: no such model": "HTTP 404: model 'x' not found",
    "TGI: prompt too long": "HTTP 422: Input validation error",
    "AWS: no access": "HTTP 403: You don't have access to the model.",
    "an error in an error's message": "HTTP 400: API key not valid.",
    "error as text": "HTTP 503: model is loading",
    "no such path": "HTTP 404: 404 page not found",
}
"""What people read of some of them."""

TOO_LATE = {name for name, row in FAILURES.items() if row[3] == "timeout"}


class Good(NamedTuple):
    """A reply that is an answer."""

    connection: str
    answer: Answer
    text: str
    finish_reason: FinishReason
    counted: bool
    """Whether its tokens are known."""


def _openai_usage(**counts: object) -> Answer:
    return changed(OPENAI_REPLY, usage=counts)


ANSWERS: dict[str, Good] = {
    "answer": Good("openai", Answer.of_json(OPENAI_REPLY), "I love parties.", FinishReason.STOP, True),
    "refusal": Good("openai", choice("stop", content=None, refusal="I can't."), "I can't.", FinishReason.REFUSAL, True),
    "content filter": Good("openai", choice("content_filter", content=""), "", FinishReason.CONTENT_FILTER, True),
    "no choices (Gemini)": Good("openai", changed(OPENAI_REPLY, choices=[]), "", FinishReason.CONTENT_FILTER, True),
    "no choices, with the reason (Gemini)": Good("openai", changed(OPENAI_REPLY, choices=[], promptFeedback={"blockReason": "SAFETY"}), "", FinishReason.CONTENT_FILTER, True),
    "a choice without a message, filtered (Gemini)": Good("openai", changed(OPENAI_REPLY, choices=[{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]), "", FinishReason.CONTENT_FILTER, True),
    "stopped by a guardrail (Bedrock)": Good("openai", choice("guardrail_intervened", content="Sorry."), "Sorry.", FinishReason.CONTENT_FILTER, True),
    "cut off at the longest length": Good("openai", choice("length", content="I love"), "I love", FinishReason.LENGTH, True),
    "empty answer": Good("openai", choice("stop", content=""), "", FinishReason.STOP, True),
    "null answer": Good("openai", choice("stop", content=None), "", FinishReason.STOP, True),
    "tool call instead of text": Good("openai", choice("tool_calls", content=None), "", FinishReason.OTHER, True),
    "usage missing": Good("openai", changed(OPENAI_REPLY, usage=None), "I love parties.", FinishReason.STOP, False),
    "usage incomplete": Good("openai", _openai_usage(prompt_tokens=3), "I love parties.", FinishReason.STOP, False),
    "usage negative": Good("openai", _openai_usage(prompt_tokens=-3, completion_tokens=2), "I love parties.", FinishReason.STOP, False),
    "usage in words": Good("openai", _openai_usage(prompt_tokens="3", completion_tokens="2"), "I love parties.", FinishReason.STOP, False),
    "usage absurd": Good("openai", _openai_usage(prompt_tokens=10**18, completion_tokens=2), "I love parties.", FinishReason.STOP, False),
    "usage fractional": Good("openai", _openai_usage(prompt_tokens=2.5, completion_tokens=True), "I love parties.", FinishReason.STOP, False),
    "usage a list": Good("openai", changed(OPENAI_REPLY, usage=[3, 2]), "I love parties.", FinishReason.STOP, False),
    "anthropic: answer": Good("anthropic", Answer.of_json(ANTHROPIC_REPLY), "I love parties.", FinishReason.STOP, True),
    "anthropic: refusal": Good("anthropic", changed(ANTHROPIC_REPLY, content=[], stop_reason="refusal"), "", FinishReason.REFUSAL, True),
    "anthropic: cut off at the longest length": Good("anthropic", changed(ANTHROPIC_REPLY, stop_reason="max_tokens"), "I love parties.", FinishReason.LENGTH, True),
    "anthropic: empty answer": Good("anthropic", changed(ANTHROPIC_REPLY, content=[]), "", FinishReason.STOP, True),
    "anthropic: usage missing": Good("anthropic", changed(ANTHROPIC_REPLY, usage=None), "I love parties.", FinishReason.STOP, False),
    "anthropic: usage absurd": Good("anthropic", changed(ANTHROPIC_REPLY, usage={"input_tokens": -1, "output_tokens": "many"}), "I love parties.", FinishReason.STOP, False),
}  # fmt: skip


def events(*data: object, end: str = "\n\n", name: str = "") -> Answer:
    """A reply of server-sent events; dicts as JSON."""
    head = f"event: {name}\n" if name else ""
    lines = [head + "data: " + (one if isinstance(one, str) else json.dumps(one)) for one in data]
    return Answer(200, (end.join(lines) + end).encode(), {"content-type": "text/event-stream"})


def delta(finish_reason: str | None = None, **fields: object) -> dict[str, object]:
    """A chunk of a chat."""
    return {"model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


_HELLO, _REST = delta(role="assistant", content="I love "), delta(content="parties.")
_COUNTS = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5}}
_SAID = events(_HELLO, _REST, delta("stop"), _COUNTS, "[DONE]")
_BLOCKS: list[dict[str, object]] = [
    {
        "type": "message_start",
        "message": {"model": "c", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I love "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "parties."}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]

FAILURES |= {
    "event stream that ends early": ("openai", events(_HELLO, _REST), RETRY, "broken_off"),
    "event stream with an error": ("openai", events(_HELLO, {"error": {"code": 429, "message": "slow down"}}, "[DONE]"), RETRY, "http_429"),
    "event stream with an error event": ("openai", events({"message": "no", "code": 500}, name="error"), RETRY, "http_500"),
    "event stream with an error at the top of an event": ("openai", events(_HELLO, {"code": "DataInspectionFailed", "message": "no"}), FILTERED, "DataInspectionFailed"),
    "event stream of MiniMax with an error": ("openai", events(_HELLO, {"choices": [], "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}}), FILTERED, "http_502"),
    "finish reason timeout": ("openai", choice("timeout", content="Yes"), RETRY, "broken_off"),
    "event stream of nothing": ("openai", events("[DONE]"), RETRY, "malformed_reply"),
    "event stream of no JSON": ("openai", events("hello", "[DONE]"), RETRY, "malformed_reply"),
    "anthropic: event stream that ends early": ("anthropic", events(*_BLOCKS[:-2]), RETRY, "broken_off"),
    "anthropic: event stream with an error": ("anthropic", events(*_BLOCKS[:-2], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), RETRY, "overloaded_error"),
}  # fmt: skip
ANSWERS |= {
    "event stream": Good("openai", _SAID, "I love parties.", FinishReason.STOP, True),
    "event stream with comments and carriage returns": Good("openai", Answer(200, b": ping\r\n\r\n" + _SAID.body.replace(b"\n", b"\r\n")), "I love parties.", FinishReason.STOP, True),
    "event stream without empty lines": Good("openai", Answer(200, _SAID.body.replace(b"\n\n", b"\n")), "I love parties.", FinishReason.STOP, True),
    "event stream of one whole reply": Good("openai", events(OPENAI_REPLY), "I love parties.", FinishReason.STOP, True),
    "event in several lines": Good("openai", events(json.dumps(OPENAI_REPLY, indent=1).replace("\n", "\ndata: ")), "I love parties.", FinishReason.STOP, True),
    "finish reason done": Good("openai", choice("done", content="Yes."), "Yes.", FinishReason.STOP, True),
    "finish reason max_length": Good("openai", choice("max_length", content="Yes"), "Yes", FinishReason.LENGTH, True),
    "finish reason null as text": Good("openai", choice("null", content="Yes."), "Yes.", FinishReason.UNSTATED, True),
    "finish reason of a filter in other words": Good("openai", choice("safety-filter", content="Yes"), "Yes", FinishReason.CONTENT_FILTER, True),
    "finish reason of an end token": Good("openai", choice("<|im_end|>", content="Yes."), "Yes.", FinishReason.STOP, True),
    "finish reason of a length in other words": Good("openai", choice("max_tokens_reached", content="Yes"), "Yes", FinishReason.LENGTH, True),
    "finish reason repetition (vLLM)": Good("openai", choice("repetition", content="Yes"), "Yes", FinishReason.LENGTH, True),
    "prompt blocked, without choices (Gemini)": Good("openai", plain(200, promptFeedback={"blockReason": "OTHER"}, usage={"prompt_tokens": 3, "completion_tokens": 0}), "", FinishReason.CONTENT_FILTER, True),
    "prompt blocked, in an event stream (Gemini)": Good("openai", events({"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}, "[DONE]"), "", FinishReason.CONTENT_FILTER, False),
    "usage in the choice": Good("openai", changed(OPENAI_REPLY, usage=None, choices=[{**OPENAI_REPLY["choices"][0], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}]), "I love parties.", FinishReason.STOP, True),
    "usage below x_groq": Good("openai", changed(OPENAI_REPLY, usage=None, x_groq={"usage": {"prompt_tokens": 3, "completion_tokens": 2}}), "I love parties.", FinishReason.STOP, True),
    "usage in Gemini's words": Good("openai", changed(OPENAI_REPLY, usage=None, usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 2}), "I love parties.", FinishReason.STOP, True),
    "usage in the words of OpenAI's Responses": Good("openai", _openai_usage(input_tokens=3, output_tokens=2), "I love parties.", FinishReason.STOP, True),
    "finish reason unknown": Good("openai", choice("a new one", content="Yes."), "Yes.", FinishReason.UNSTATED, True),
    "anthropic: event stream": Good("anthropic", events(*_BLOCKS), "I love parties.", FinishReason.STOP, True),
}  # fmt: skip

PAGE_FILE = Path(__file__).parents[3] / "docs" / "provider-replies.md"
_MEANING = {RETRY: "tried again", ITEM: "item failed", FILTERED: "item refused", JOB: "job stopped"}
_INTRODUCTION = """# What providers answer, and what follows

Written by `make reference` from the replies that `tests/integration/llm/test_replies.py` sends over
real HTTP, so it says what was tested.

* *Tried again*: after a pause, at most `ASSAY_CALL_ATTEMPTS` times, then the item has failed; waits
  for a rate limit (429) do not count. `malformed_reply` is tried again once: each attempt may be
  paid.
* *Item failed*: only this response or verdict, with the code as its reason.
* *Item refused*: by the provider's content filter, counted apart from failures and from the model's
  refusals.
* *Job stopped*: paused, or failed if no call had succeeded, with the code as
  [`status_reason`](operations.md#jobs-that-stop).

Codes are the provider's own where it gives one. `http_…`, `timeout`, `connection_failed`,
`connection_lost`, `malformed_reply`, `credit_balance_too_low` and `system_message_not_supported`
are ours, and so is `insufficient_quota` for a used-up account whose provider has another code.
Codes, statuses and words are compared with [a list of rules](../app/llm/replies/meanings.yaml),
each with its source. A request larger than a rate limit is recognised by the two numbers in
*Limit 30000, Requested 61337*; it fails at once.

A 403 without a known code fails its item. Replies longer than 10 MB are not read to their end.
Impossible token counts are taken for missing, and the cost for unknown.
"""


def page() -> str:
    """The page's text."""
    lines = [_INTRODUCTION, "| provider's format | reply | HTTP | becomes | code |", "|---|---|---|---|---|"]
    for name, (connection, answer, kind, code) in FAILURES.items():
        lines.append(f"| {connection} | {_shown(name)} | {_status(answer)} | {_MEANING[kind]} | `{code}` |")
    lines += ["", "| provider's format | reply | becomes | finish reason | tokens |", "|---|---|---|---|---|"]
    for name, good in ANSWERS.items():
        becomes = "answer" if good.text else "empty answer"
        if good.finish_reason in {FinishReason.REFUSAL, FinishReason.CONTENT_FILTER}:
            becomes = "refusal, stored as one"
        tokens = "counted" if good.counted else "unknown"
        lines.append(
            f"| {good.connection} | {_shown(name)} | {becomes} | `{good.finish_reason}` | {tokens} |"
        )
    return "\n".join([*lines, ""])


def _shown(name: str) -> str:
    return name.removeprefix("anthropic: ")


def _status(answer: Answer) -> str:
    return "–" if answer.delay or answer.reset or answer.cut_after is not None else str(answer.status)


if __name__ == "__main__":
    PAGE_FILE.write_text(page(), encoding="utf-8")
