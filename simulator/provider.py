"""The provider's endpoints: from an HTTP request to an answer."""

import json
import re
import time
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from hashlib import blake2b

from simulator.accounts import Account
from simulator.anthropic_format import AnthropicFormat
from simulator.bank import load_bank
from simulator.batches import Batches
from simulator.completions_format import CompletionsFormat
from simulator.constrained import constrain, read_constraint
from simulator.conversation import ChatKind, Conversation, Kind, ProviderError, Reply
from simulator.draw import Draws
from simulator.formats import RateState, WireFormat
from simulator.grade import grade
from simulator.grouped import is_grouped_prompt, reply_to_several
from simulator.judge import reply_to
from simulator.limiter import Bucket
from simulator.obedience import key_word, obeyed, unkeyed, with_key
from simulator.openai_format import OpenAIFormat
from simulator.persona_model import write
from simulator.profiles import MODELS, Model
from simulator.prompt_cache import PromptCache
from simulator.provider_profiles import provider_profile_names
from simulator.quirks import Quirk, change_reply, read_model_name, refuse
from simulator.reasoner import reason
from simulator.roles import recognise
from simulator.state import State
from simulator.wire import TOO_LARGE, Answer, Request, json_message

_REMEMBERED_CONVERSATIONS = 2**16
_UNKNOWN_ENDPOINT = "other"
_MODELS_PATH = b"/v1/models"
_OF_A_PROFILE = re.compile(
    rb"/p/(?P<profile>[\w.-]+)(?:/[\w.-]+)*?(?P<rest>/(?:chat/completions|completions|messages|models|files|batches)(?:/.*)?)"
)
"""A path that names its provider profile; what stands before the endpoint, as in `/v1beta/openai`, does not matter."""


class Provider:
    """A provider of simulated models, without the sockets.

    Args:
        state: Its settings, counters and ledger.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._bank = load_bank()
        self._buckets: dict[str, Bucket] = {}
        self._asked: OrderedDict[bytes, int] = OrderedDict()
        self._quota = self._charged = 0
        self._cache = PromptCache()
        self._openai, self._anthropic = OpenAIFormat(), AnthropicFormat()
        self._chat: dict[bytes, WireFormat] = {
            b"/v1/chat/completions": self._openai,
            b"/v1/messages": self._anthropic,
            b"/v1/completions": CompletionsFormat(),
        }
        self._batches = Batches(state, self._converse_in_batch)

    def handle(self, request: Request) -> Answer:
        """Answers a request to any path."""
        self._state.counters.received += 1
        account: Account | None = None
        if found := _OF_A_PROFILE.fullmatch(request.path):
            name = found["profile"].decode("latin-1")
            if name not in provider_profile_names():
                return self._describe(request)
            account, request = self._state.account(name), replace(request, path=b"/v1" + found["rest"])
        form = self._chat.get(request.path)
        if form is not None and request.method == b"POST":
            return self._converse(request, form, account or self._usual_account(form))[0]
        return self._describe(request, account)

    def _usual_account(self, form: WireFormat) -> Account | None:
        config = self._state.config
        name = config.openai_profile if form is self._openai else config.anthropic_profile
        return self._state.account(name) if name else None

    def _converse_in_batch(self, request: Request) -> tuple[int, str]:
        """Status and body of the answer to a request in a batch, which no rate limit holds back."""
        self._state.counters.received += 1
        answer, status, body = self._converse(request, self._chat[request.path], None, batched=True)
        if answer.settle is not None:
            answer.settle(True)
        return status, body

    def _converse(
        self, request: Request, form: WireFormat, account: Account | None, *, batched: bool = False
    ) -> tuple[Answer, int, str]:
        number, latency, seed = self._state.counters.received, 0.0, self._state.config.seed
        model: str | None = None
        kind: Kind = "other"
        reply: Reply | None = None
        rate: RateState | None = None
        refusal: ProviderError | None = None
        try:
            form.authenticate(request.headers)
            payload = _load(request.body)
            conversation = form.read(payload, request.headers)
            played, quirks = _find_model(conversation.model, account)
            model = conversation.model
            kind = recognise(conversation)
            if quirks and isinstance(payload, dict):
                refuse(quirks, payload, conversation, seed)
            self._charge()
            rate = None if batched else self._take_permit(model)
            latency = self._latency(number)
            self._fail_sometimes(number, account)
            reply = self._reply(replace(conversation, model=played), kind, request)
            if (constraint := read_constraint(payload)) is not None:
                reply = constrain(reply, constraint)
            if account is not None and rate is None:
                account.take(model, conversation, reply)
            if form is self._openai and (cached := self._cache.read(conversation)):
                reply = replace(reply, cached=cached)
            body = form.success(reply, conversation, number, int(time.time()))
            status, body = 200, change_reply(quirks, body, number, seed)
        except ProviderError as fault:
            if fault.name == "rate_limited" and self._state.config.requests_per_minute:
                rate = self._rate_state(model or "")
            reply, refusal = None, fault
            in_own_form = account.profile.error(fault) if account is not None else None
            status, body = in_own_form or form.error(fault, number)
        headers = form.headers(number, rate, latency, time.time())
        if account is not None and model is not None and rate is None:
            headers += account.headers(model)
        if refusal is not None and refusal.retry_after is not None:
            headers += _retry_headers(refusal.retry_after, account)
        answer = self._answer(
            request, status, body, headers, model=model, kind=kind, reply=reply, latency=latency,
            account=account, refusal=refusal,
        )  # fmt: skip
        return answer, status, body

    def _reply(self, conversation: Conversation, kind: ChatKind, request: Request) -> Reply:
        model, seed = MODELS[conversation.model], self._state.config.seed
        if kind == "judge" or kind == "grade":  # noqa: PLR1714 - mypy narrows by this form only
            return self._judge(conversation, kind, model)
        if kind == "refusal_check":
            refuses = any(words in conversation.prompt for words in self._bank.refusals)
            return Reply("Yes" if refuses else "No", "stop", kind)
        identity = self._identity(conversation, request)
        if kind != "generation":
            return reason(
                kind, conversation, reasoner=model.reasoner, bank=self._bank, seed=seed, identity=identity
            )
        words = ascii(conversation.turns)
        draws = Draws(seed, "generation", conversation.model, conversation.system, words, identity[0])
        return write(
            conversation,
            writer=model.writer,
            bank=self._bank,
            draws=draws,
            length_factor=self._state.config.length_factor,
        )

    def _judge(self, conversation: Conversation, kind: ChatKind, model: Model) -> Reply:
        if conversation.opening is not conversation:  # asked once more: now it keeps to the form
            readable = replace(model, judge=replace(model.judge, unparsable=0.0))
            return self._judge(conversation.opening, kind, readable)
        if model.judge.gullible and (reply := obeyed(conversation)):
            return reply
        word = key_word(conversation)
        if word is not None:
            return with_key(self._judge(unkeyed(conversation, word), kind, model), word)
        key = (self._state.config.seed, conversation.model)
        if kind == "judge" and is_grouped_prompt(conversation.prompt):
            bias = self._state.config.position_bias
            return reply_to_several(
                conversation.prompt, judge=model.judge, bank=self._bank, key=key, position_bias=bias
            )
        if kind == "judge":
            return reply_to(
                conversation.prompt,
                judge=model.judge,
                bank=self._bank,
                key=key,
                order_bias=self._state.config.order_bias,
            )
        return grade(conversation, judge=model.judge, bank=self._bank, key=key)

    def _identity(self, conversation: Conversation, request: Request) -> tuple[str, str]:
        """What tells this request from another with the same words, the same at every attempt; and the attempt.

        The header is `<job>/<identity>/<attempt>`; a request without it is told apart by counting.
        """
        parts = request.headers.get(b"x-client-request-id", b"").decode("latin-1").split("/")
        if len(parts) > 2:  # noqa: PLR2004  # job, identity, attempt
            return "/".join(parts[1:-1]), parts[-1]
        words = ascii((conversation.model, conversation.system, conversation.turns))
        key = blake2b(words.encode("ascii")).digest()
        count = self._asked.pop(key, 0)
        self._asked[key] = count + 1
        if len(self._asked) > _REMEMBERED_CONVERSATIONS:
            self._asked.popitem(last=False)
        return f"#{count}", ""

    def _charge(self) -> None:
        quota = self._state.config.quota
        if quota != self._quota:
            self._quota, self._charged = quota, 0
        self._charged += 1
        if 0 < quota < self._charged:
            raise ProviderError(
                "quota_exhausted",
                "You exceeded your current quota, please check your plan and billing details.",
            )

    def _latency(self, number: int) -> float:
        mean, jitter = self._state.config.latency_ms, self._state.config.jitter_ms
        if jitter:
            mean += jitter * (2 * Draws(self._state.config.seed, "latency", number).unit() - 1)
        return max(0.0, mean / 1000)

    def _fail_sometimes(self, number: int, account: Account | None) -> None:
        if account is not None and account.slots is not None and account.slots.full:
            raise ProviderError("overloaded", "Overloaded")
        if not self._state.config.error_rate:
            return
        draws = Draws(self._state.config.seed, "fault", number)
        if draws.unit() >= self._state.config.error_rate:
            return
        if draws.unit() < 0.5:  # noqa: PLR2004  # the two kinds of failure are equally frequent
            raise ProviderError(
                "server_error", "The server had an error while processing your request. Sorry about that!"
            )
        raise ProviderError("overloaded", "Overloaded")

    def _take_permit(self, model: str) -> RateState | None:
        per_minute = self._state.config.requests_per_minute
        if not per_minute:
            self._buckets.clear()
            return None
        now, capacity = time.monotonic(), self._state.config.burst or per_minute
        bucket = self._buckets.get(model)
        if bucket is None:
            bucket = self._buckets[model] = Bucket(capacity, now)
        wait = bucket.take(now, per_minute=per_minute, capacity=capacity)
        if wait:
            raise ProviderError(
                "rate_limited",
                f"Rate limit reached for {model} in organization simulated on requests per min (RPM): "
                f"Limit {per_minute}. Please try again in {wait:.3f}s.",
                retry_after=wait,
            )
        return self._rate_state(model)

    def _rate_state(self, model: str) -> RateState:
        per_minute = self._state.config.requests_per_minute
        level = self._buckets[model].level
        return RateState(
            per_minute, int(level), ((self._state.config.burst or per_minute) - level) * 60 / per_minute
        )

    def _describe(self, request: Request, account: Account | None = None) -> Answer:
        """Answers requests about models and batches, and everything that does not exist."""
        number = self._state.counters.received
        form: WireFormat = self._anthropic if b"anthropic-version" in request.headers else self._openai
        try:
            if self._batches.own(request.path):
                form.authenticate(request.headers)
                status, body = 200, self._batches.handle(request)
            else:
                status, body = 200, self._read_models(request, form, account)
        except ProviderError as fault:
            status, body = form.error(fault, number)
        return self._answer(request, status, body, form.headers(number, None, 0.0, time.time()))

    def _read_models(self, request: Request, form: WireFormat, account: Account | None) -> str:
        if request is TOO_LARGE:
            raise ProviderError("too_large", "The request is too large.")
        form.authenticate(request.headers)
        path = request.path
        if request.method != b"GET" or not (path == _MODELS_PATH or path.startswith(_MODELS_PATH + b"/")):
            where = f"{request.method.decode('latin-1')} {path.decode('latin-1')}"
            raise ProviderError("unknown_path", f"Invalid URL ({where})")
        name = path[len(_MODELS_PATH) + 1 :].decode("latin-1")
        if not name:
            return form.models([*MODELS, *(account.profile.models if account is not None else ())])
        _find_model(name, account)
        return form.model(name)

    def _answer(
        self,
        request: Request,
        status: int,
        body: str,
        headers: str,
        *,
        model: str | None = None,
        kind: Kind = "other",
        reply: Reply | None = None,
        latency: float = 0.0,
        account: Account | None = None,
        refusal: ProviderError | None = None,
    ) -> Answer:
        path = request.path.decode("latin-1")
        endpoint = path if request.path in self._chat or request.path == _MODELS_PATH else _UNKNOWN_ENDPOINT
        row = self._state.counters.receive(endpoint, model, kind, status)
        entry: dict[str, object] | None = None
        if self._state.ledger is not None:
            entry = {
                "received": self._state.counters.received,
                "at": round(time.monotonic(), 6),
                "answered": None,
                "request_id": request.headers.get(b"x-client-request-id", b"").decode("latin-1") or None,
                "endpoint": endpoint,
                "model": model,
                "kind": kind,
                "status": status,
            }
            if account is not None:
                entry["profile"] = account.profile.name
            if refusal is not None and "what" in refusal.values:
                entry["over"] = refusal.values["what"]
            if reply is not None:
                entry["text" if kind == "generation" else "reply"] = reply.text
                entry.update(reply.record)
        slots = account.slots if account is not None and reply is not None else None
        computed_by = account if reply is not None else None
        settle = partial(self._settle, row, entry, computed_by, model or "")
        return Answer(json_message(status, body, headers), latency, slots, settle)

    def _settle(
        self,
        row: list[int],
        entry: dict[str, object] | None,
        account: Account | None,
        model: str,
        sent: bool,
    ) -> None:
        answered = self._state.counters.answer(row) if sent else None
        if not sent and account is not None and not account.profile.server.notices_hang_ups:
            account.count(model, "computed for nobody")
            if entry is not None:
                entry["for_nobody"] = True
        if entry is not None and self._state.ledger is not None:
            entry["answered"], entry["ended"] = answered, round(time.monotonic(), 6)
            self._state.ledger.append(entry)


def _load(body: bytes) -> object:
    try:
        loaded: object = json.loads(body)
    except (ValueError, RecursionError):
        raise ProviderError("malformed", "We could not parse the JSON body of your request.") from None
    return loaded


def _find_model(name: str, account: Account | None) -> tuple[str, tuple[Quirk, ...]]:
    """The simulated model that a name stands for, and its quirks."""
    meant = name if account is None else account.profile.models.get(name, name)
    if meant in MODELS:
        return meant, ()
    try:
        model, quirks = read_model_name(meant)
    except ValueError:
        model, quirks = "", ()
    if model not in MODELS:
        words = f"The model `{name}` does not exist or you do not have access to it."
        raise ProviderError("unknown_model", words, values={"model": name})
    return model, quirks


def _retry_headers(seconds: float, account: Account | None) -> str:
    """The headers that say how long to wait: all of them, or those that the profile has."""
    values = {"retry-after": _whole_seconds(seconds), "retry-after-ms": f"{seconds * 1000:.0f}"}
    names = values if account is None else account.profile.retry_after
    return "".join(f"{name}: {values[name]}\r\n" for name in names)


def _whole_seconds(seconds: float) -> int:
    return -int(-seconds // 1)
