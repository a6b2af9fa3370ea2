"""The Anthropic messages format: https://docs.anthropic.com/en/api/messages."""

import json
from datetime import UTC, datetime

from simulator.conversation import Conversation, FaultName, ProviderError, Reply, tokens
from simulator.formats import (
    WRONG_KEY,
    Headers,
    RateState,
    prompt_characters,
    quote,
    read_limit,
    read_request,
    read_text,
    tool_characters,
)

# status and type of each error, as the real service has them
_ERRORS: dict[FaultName, tuple[int, str]] = {
    "malformed": (400, "invalid_request_error"),
    "unauthenticated": (401, "authentication_error"),
    "unknown_model": (404, "not_found_error"),
    "unknown_path": (404, "not_found_error"),
    "too_large": (413, "request_too_large"),
    "rate_limited": (429, "rate_limit_error"),
    "over_the_whole_limit": (429, "rate_limit_error"),
    "quota_exhausted": (400, "invalid_request_error"),
    "unsupported_parameter": (400, "invalid_request_error"),
    "unsupported_value": (400, "invalid_request_error"),
    "filtered": (400, "invalid_request_error"),
    "wrong_key": (401, "authentication_error"),
    "server_error": (500, "api_error"),
    "overloaded": (529, "overloaded_error"),
}

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "refusal": "refusal",
    "content_filter": "refusal",
}

_CREDIT_TOO_LOW = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."


class AnthropicFormat:
    """Speaks as `POST /v1/messages` does."""

    def authenticate(self, headers: Headers) -> None:
        """Wants `x-api-key` or a bearer token, of any value but `wrong`."""
        key = headers.get(b"x-api-key") or headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if not key:
            raise ProviderError("unauthenticated", "x-api-key header is required")
        if key == WRONG_KEY:
            raise ProviderError("wrong_key", "invalid x-api-key")

    def read(self, payload: object, headers: Headers) -> Conversation:
        """Reads a messages request; `anthropic-version` and `max_tokens` are required."""
        if b"anthropic-version" not in headers:
            raise ProviderError("malformed", "anthropic-version: header is required")
        request, model, messages = read_request(payload)
        limit = read_limit(request, "max_tokens")
        if limit is None:
            raise ProviderError("malformed", "max_tokens: Field required", parameter="max_tokens")
        turns: list[tuple[str, str]] = []
        for index, message in enumerate(messages):
            role, text = str(message["role"]), read_text(message.get("content"), f"messages.{index}.content")
            if role not in {"user", "assistant"}:
                raise ProviderError(
                    "malformed", f"messages.{index}.role: Input should be 'user' or 'assistant'"
                )
            turns.append((role, text))
        system = read_text(request.get("system") or "", "system")
        return Conversation(model, system, tuple(turns), limit, tool_characters(request))

    def success(self, reply: Reply, conversation: Conversation, number: int, now: int) -> str:  # noqa: ARG002  # the protocol's signature
        """A `message` object."""
        stop = _STOP_REASONS[reply.finish]
        content, details = f'[{{"type":"text","text":{quote(reply.text)},"citations":null}}]', "null"
        if stop == "refusal":
            content, details = "[]", f'{{"type":"refusal","category":null,"explanation":{quote(reply.text)}}}'
        read, written = tokens(prompt_characters(conversation)), tokens(len(reply.text))
        return (
            f'{{"id":"msg_sim{number:012x}","type":"message","role":"assistant","model":"{conversation.model}",'
            f'"content":{content},"stop_reason":"{stop}","stop_sequence":null,"stop_details":{details},'
            f'"usage":{{"input_tokens":{read},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,'
            f'"output_tokens":{written},"service_tier":"standard"}}}}'
        )

    def error(self, fault: ProviderError, number: int) -> tuple[int, str]:
        """An `error` object."""
        status, kind = _ERRORS[fault.name]
        words = _CREDIT_TOO_LOW if fault.name == "quota_exhausted" else fault.detail
        error = {"type": kind, "message": words}
        return status, json.dumps({"type": "error", "error": error, "request_id": f"req_sim{number:012x}"})

    def headers(self, number: int, rate: RateState | None, latency: float, now: float) -> str:  # noqa: ARG002  # the protocol's signature
        """Request id and the state of the rate limit."""
        common = f"request-id: req_sim{number:012x}\r\nanthropic-organization-id: simulated\r\n"
        if rate is None:
            return common
        reset = datetime.fromtimestamp(now + rate.reset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return (
            f"{common}anthropic-ratelimit-requests-limit: {rate.limit}\r\n"
            f"anthropic-ratelimit-requests-remaining: {rate.remaining}\r\nanthropic-ratelimit-requests-reset: {reset}\r\n"
        )

    def models(self, names: list[str]) -> str:
        """A page of models, complete."""
        data = ",".join(map(self.model, names))
        return f'{{"data":[{data}],"has_more":false,"first_id":"{names[0]}","last_id":"{names[-1]}"}}'

    def model(self, name: str) -> str:
        """A `model` object."""
        return (
            f'{{"type":"model","id":"{name}","display_name":"{name} (simulated)",'
            '"created_at":"2025-11-21T00:00:00Z","lifecycle":"active"}'
        )
