"""The OpenAI chat-completions format: https://platform.openai.com/docs/api-reference/chat."""

import json

from simulator.conversation import Conversation, FaultName, ProviderError, Reply, tokens
from simulator.formats import (
    WRONG_KEY,
    Headers,
    RateState,
    duration,
    prompt_characters,
    quote,
    read_limit,
    read_request,
    read_text,
    tool_characters,
)

_SYSTEM_ROLES = ("system", "developer")

# status, type and code of each error, as the real service has them
_ERRORS: dict[FaultName, tuple[int, str, str | None]] = {
    "malformed": (400, "invalid_request_error", None),
    "unauthenticated": (401, "invalid_request_error", None),
    "unknown_model": (404, "invalid_request_error", "model_not_found"),
    "unknown_path": (404, "invalid_request_error", None),
    "too_large": (413, "invalid_request_error", None),
    "rate_limited": (429, "requests", "rate_limit_exceeded"),
    "over_the_whole_limit": (429, "tokens", "rate_limit_exceeded"),
    "quota_exhausted": (429, "insufficient_quota", "insufficient_quota"),
    "unsupported_parameter": (400, "invalid_request_error", "unsupported_parameter"),
    "unsupported_value": (400, "invalid_request_error", "unsupported_value"),
    "filtered": (400, "invalid_request_error", "content_policy_violation"),
    "wrong_key": (401, "invalid_request_error", "invalid_api_key"),
    "server_error": (500, "server_error", None),
    "overloaded": (503, "service_unavailable_error", None),
}


class OpenAIFormat:
    """Speaks as `POST /v1/chat/completions` does."""

    def authenticate(self, headers: Headers) -> None:
        """Wants `Authorization: Bearer <anything but wrong>`."""
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not key.strip():
            raise ProviderError(
                "unauthenticated",
                "You didn't provide an API key. You need to provide your API key in an Authorization header using "
                "Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            )
        if key.strip() == WRONG_KEY:
            raise ProviderError("wrong_key", "Incorrect API key provided: wrong.")

    def read(self, payload: object, headers: Headers) -> Conversation:  # noqa: ARG002  # the protocol's signature
        """Reads a chat-completions request."""
        request, model, messages = read_request(payload)
        system: list[str] = []
        turns: list[tuple[str, str]] = []
        for index, message in enumerate(messages):
            role, text = str(message["role"]), read_text(message.get("content"), f"messages.{index}.content")
            if role in _SYSTEM_ROLES:
                system.append(text)
            else:
                turns.append((role, text))
        if not turns:
            raise ProviderError(
                "malformed", "messages: at least one user message is required", parameter="messages"
            )
        limit = read_limit(request, "max_completion_tokens") or read_limit(request, "max_tokens")
        return Conversation(model, "\n".join(system), tuple(turns), limit, tool_characters(request))

    def success(self, reply: Reply, conversation: Conversation, number: int, now: int) -> str:
        """A `chat.completion` object."""
        text = quote(reply.text)
        content, refusal, finish = text, "null", reply.finish
        if reply.finish == "refusal":
            content, refusal, finish = "null", text, "stop"
        elif reply.finish == "content_filter":
            content, refusal = "null", text
        read, written = tokens(prompt_characters(conversation)), tokens(len(reply.text))
        return (
            f'{{"id":"chatcmpl-sim{number:012x}","object":"chat.completion","created":{now},"model":"{conversation.model}",'
            f'"choices":[{{"index":0,"message":{{"role":"assistant","content":{content},"refusal":{refusal},'
            f'"annotations":[]}},"logprobs":null,"finish_reason":"{finish}"}}],'
            f'"usage":{{"prompt_tokens":{read},"completion_tokens":{written},"total_tokens":{read + written},'
            f'"prompt_tokens_details":{{"cached_tokens":{reply.cached},"audio_tokens":0}},'
            '"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,'
            '"rejected_prediction_tokens":0}},'
            '"service_tier":"default","system_fingerprint":"fp_simulator"}'
        )

    def error(self, fault: ProviderError, number: int) -> tuple[int, str]:  # noqa: ARG002  # the protocol's signature
        """An `error` object."""
        status, kind, code = _ERRORS[fault.name]
        error = {"message": fault.detail, "type": kind, "param": fault.parameter, "code": code}
        return status, json.dumps({"error": error})

    def headers(self, number: int, rate: RateState | None, latency: float, now: float) -> str:  # noqa: ARG002  # the protocol's signature
        """Request id, processing time and the state of the rate limit."""
        common = (
            f"x-request-id: req_sim{number:012x}\r\nopenai-processing-ms: {round(latency * 1000)}\r\n"
            "openai-version: 2020-10-01\r\nopenai-organization: simulated\r\n"
        )
        if rate is None:
            return common
        return (
            f"{common}x-ratelimit-limit-requests: {rate.limit}\r\nx-ratelimit-remaining-requests: {rate.remaining}\r\n"
            f"x-ratelimit-reset-requests: {duration(rate.reset)}\r\n"
        )

    def models(self, names: list[str]) -> str:
        """A `list` object."""
        return f'{{"object":"list","data":[{",".join(map(self.model, names))}]}}'

    def model(self, name: str) -> str:
        """A `model` object."""
        return f'{{"id":"{name}","object":"model","created":1763683200,"owned_by":"simulator"}}'
