"""The format of OpenAI's older completions: https://platform.openai.com/docs/api-reference/completions."""

from dataclasses import replace

from simulator.conversation import Conversation, ProviderError, Reply, tokens
from simulator.formats import Headers, prompt_characters, quote, read_limit
from simulator.openai_format import OpenAIFormat
from simulator.roles import recognise

USUAL_TOKENS = 16
"""What the real service writes at most where no limit is given."""


class CompletionsFormat(OpenAIFormat):
    """Speaks as `POST /v1/completions` does."""

    def read(self, payload: object, headers: Headers) -> Conversation:  # noqa: ARG002  # the protocol's signature
        """Reads a completions request. A text that is to be gone on with begins with who writes it."""
        if not isinstance(payload, dict):
            raise ProviderError("malformed", "The request body must be a JSON object.")
        model, prompt = payload.get("model"), payload.get("prompt")
        for name, value in (("model", model), ("prompt", prompt)):
            if not isinstance(value, str) or not value:
                raise ProviderError("malformed", f"{name}: Field required", parameter=name)
        limit = read_limit(payload, "max_tokens") or USUAL_TOKENS
        whole = Conversation(str(model), "", (("user", str(prompt)),), limit)
        system, blank, task = str(prompt).partition("\n\n")
        if not blank or recognise(whole) != "generation":
            return whole
        return replace(whole, system=system, turns=(("user", task.rstrip("\n")),))

    def success(self, reply: Reply, conversation: Conversation, number: int, now: int) -> str:
        """A `text_completion` object."""
        finish = reply.finish if reply.finish in {"length", "content_filter"} else "stop"
        read, written = tokens(prompt_characters(conversation)), tokens(len(reply.text))
        return (
            f'{{"id":"cmpl-sim{number:012x}","object":"text_completion","created":{now},"model":"{conversation.model}",'
            f'"choices":[{{"index":0,"text":{quote(reply.text)},"logprobs":null,"finish_reason":"{finish}"}}],'
            f'"usage":{{"prompt_tokens":{read},"completion_tokens":{written},"total_tokens":{read + written}}}}}'
        )
