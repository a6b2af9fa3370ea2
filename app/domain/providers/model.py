"""Models, their parameters, and one call to them, without any provider's vocabulary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, Protocol, Self

from pydantic import Field

ConnectionKind = Literal["openai", "anthropic", "completions"]
"""The wire format that a provider speaks; ``completions`` is OpenAI's older one for base models, which know no roles."""


ServerName = Literal["vllm", "vllm-0.11", "llama.cpp", "sglang"]
"""The program that serves a connection's models, if it takes fields that its wire format lacks."""

ConstrainedForm = Literal["choice", "json_schema"]
ReplyForm = Literal["text", ConstrainedForm]
"""Form of a judge's reply: free text, the bare number of an option, or a JSON object with it. Servers enforce the last two."""

SystemPlace = Literal["message", "in_user_turn"]
"""Where a model reads the system prompt: in a system message, or at the head of the user's message."""


MOST_TOKENS = 1_000_000
MOST_SEED = 2**31


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """Sampling parameters of a model; ``None`` leaves the provider's default.

    The bounds are checked where a specification is read: another installation may have written it.

    Attributes:
        temperature: 0–2.
        top_p: 0–1.
        max_tokens: Longest answer, in tokens.
        seed: Passed to providers that know one.
        stop: Stop sequences.
        extra: Further fields of the provider's request body; :mod:`app.domain.providers.extra` says which there may be.
        unset: Parameters that the user explicitly leaves to the provider, whatever the papers set.
    """

    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=MOST_TOKENS)] = None
    seed: Annotated[int | None, Field(ge=0, le=MOST_SEED)] = None
    stop: tuple[str, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Takes:
    """Which parameters a model takes. Names are those of ``ModelParameters``.

    Attributes:
        family: Its family in the model table; ``None`` where the table knows none.
        table: The version of the table.
        format: The wire format in which it is asked.
        refuses: Parameters that the provider answers with an error.
        refuses_reasoning: The same, unless the model is told not to reason.
        default_effort: The reasoning effort of calls that name none; ``None`` where it is not known.
        one_of: Parameters of which only one may be sent; the first that is asked for is.
        ignores: Parameters that are taken and have no effect.
        at_most: The highest value that is taken.
        names: What the wire format calls a parameter, where it has another name.
        needs: Values that the wire format demands, where none is asked for.
        allowed_extra: Fields of ``extra`` that the operator allows beside those that every job may set.
        extra_fields: Which version of the list of those that every job may set.
        bounds: Whether its provider is sure to heed ``max_tokens``; not where only the job's own word on the family gives that
            another name, which others than that family may ignore.
        replies: Fields of the body that constrain a reply, by its form; see :mod:`app.domain.judging.constrained`.
    """

    family: str | None = None
    table: str = ""
    format: str = ""
    refuses: tuple[str, ...] = ()
    refuses_reasoning: tuple[str, ...] = ()
    default_effort: str | None = None
    one_of: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    at_most: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, int] = field(default_factory=dict)
    allowed_extra: tuple[str, ...] = ()
    extra_fields: str = "extra-v1"
    bounds: bool = True
    replies: Mapping[ConstrainedForm, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an imported judge's verdicts come from."""

    source: Annotated[str, Field(description="A file, a paper, a service.")]
    date: Annotated[str | None, Field(description="When they were given: a year, month or day.")] = None
    note: Annotated[str | None, Field(description="More, for people.")] = None

    @property
    def words(self) -> str:
        """All of it on a line."""
        dated = self.source if self.date is None else f"{self.source} ({self.date})"
        return dated if self.note is None else f"{dated}; {self.note}"


@dataclass(frozen=True, slots=True)
class Model:
    """A model under test, or a judge.

    Attributes:
        label: How results name it; unique within its list in a job. ``connection/name`` unless the user chose one.
        connection: Id of the connection that serves it.
        name: The provider's name for it, possibly with slashes.
        parameters: How it is sampled.
        simulated: Whether its connection leads to the simulator, so that nothing it says describes a real model.
        takes: Which parameters it took when its job was submitted; ``None`` for a model that is never called.
        imported: Where its verdicts come from, for a judge that is never called.
        system: Where the system prompt is sent.
        profile: Id of a judge's profile (:mod:`app.domain.judging.profiles`), if it has one.
        constraint: Fields of the body that constrain the reply of a single kind of call.
    """

    label: str
    connection: str
    name: str
    parameters: ModelParameters = ModelParameters()
    simulated: bool = False
    takes: Takes | None = None
    imported: Provenance | None = None
    system: SystemPlace = "message"
    profile: str | None = None
    constraint: Mapping[str, object] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """``connection/name``, whatever its label."""
        return f"{self.connection}/{self.name}"


class Stage(StrEnum):
    """The stage of a job to which a call belongs."""

    PERSONAS = "personas"
    """Making up personas, in a job that does nothing else."""
    ENVIRONMENTS = "environments"
    """Finding the environments of a persona; this and the next two make up PersonaGym's preparation."""
    QUESTIONS = "questions"
    EXEMPLARS = "exemplars"
    GENERATION = "generation"
    JUDGING = "judging"
    CHECKING = "checking"
    """Judging sentences alone that were judged with others, to see how far the two agree."""
    REPAIRING = "repairing"
    """Asking a judge once more whose reply could not be read."""
    REFUSAL_CHECK = "refusal_check"
    """Asking a judge whether a text is a refusal."""


class FinishReason(StrEnum):
    """Why a model stopped, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    UNSTATED = "unstated"
    """The provider gives no reason that is known. Its text counts as finished."""
    OTHER = "other"
    """The answer is not finished: the model called a tool, for example."""

    @property
    def cuts_off(self) -> bool:
        """Whether the text may lack its end."""
        return self is FinishReason.LENGTH or self is FinishReason.OTHER


LONGEST_TOKEN = 16
"""Characters per token, on average, above which a count is not believed; languages need one to six."""
SHORT_TEXT = 64
"""Characters that few tokens may stand for: a run of spaces is a single one."""


class Usage(NamedTuple):
    """Tokens of one call, or of many added up.

    Attributes:
        input_tokens: All prompt tokens, cached ones included.
        output_tokens: Answer tokens, reasoning included.
        cached_input_tokens: Prompt tokens served from the provider's cache.
        written_input_tokens: Prompt tokens that the provider stored in its cache, where it charges for that.
        reasoning_tokens: Answer tokens that are thoughts; ``None`` where the provider does not say.
        reported_usd: Cost of the call in US dollars that the provider reports; ``None`` if it reports no cost.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    written_input_tokens: int = 0
    reasoning_tokens: int | None = None
    reported_usd: float | None = None


class Message(NamedTuple):
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


class ChatRequest(NamedTuple):
    """One call to a model.

    Attributes:
        model: Which model, sampled how.
        system: System prompt; ``None`` for none.
        user: User prompt.
        request_id: Identity of what is asked for: ``job/…/attempt``, the same for a repeated attempt but for its
            last part. Sent along so that a provider's logs can be matched with ours.
        deadline_seconds: Wall-clock limit around the whole call.
        turns: Messages that follow the user prompt: alternately the model's and the user's, the last one the user's.
        tenant: Whose call it is. Tenants share no network connections.
    """

    model: Model
    system: str | None
    user: str
    request_id: str
    deadline_seconds: float = 120.0
    turns: tuple[Message, ...] = ()
    tenant: str = ""

    @property
    def messages(self) -> list[Message]:
        """The whole conversation."""
        system = [] if self.system is None else [Message("system", self.system)]
        return [*system, Message("user", self.user), *self.turns]

    @property
    def characters(self) -> int:
        """Characters of the whole conversation."""
        before = len(self.user) if self.system is None else len(self.user) + len(self.system)
        return before + sum([len(turn.content) for turn in self.turns]) if self.turns else before

    def placed(self) -> Self:
        """Return the request with the system prompt in the user's message if the model takes no system message."""
        if self.system is None or self.model.system == "message":
            return self
        return self._replace(system=None, user=f"{self.system}\n\n{self.user}")


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """What a provider's reply says of its own rate limits for the model; ``None`` where it does not say.

    Attributes:
        requests_per_minute: Calls that it allows.
        tokens_per_minute: Tokens that it allows, of prompts and answers together.
        input_tokens_per_minute: Tokens of prompts that it allows.
        output_tokens_per_minute: Tokens of answers that it allows.
        hold_seconds: Until a call is taken again, where more than a minute's allowance is used up; else 0.
        hold_reason: Which one that is, for people.
        hold_ends_seconds: Until a call is taken again by the provider's word, which may be later than it is waited for; for people.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    input_tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    hold_seconds: float = 0.0
    hold_reason: str | None = None
    hold_ends_seconds: float = 0.0


ONLY_THOUGHTS = "the model thought and gave no answer"
"""Why a reply of nothing but thoughts is no answer."""


class Delivery(Protocol):
    """Tells whether a reply belongs to its request."""

    @property
    def is_doubtful(self) -> bool:
        """Whether the reply must not be used before it is settled: its server has sent replies too many."""
        ...

    async def settled(self) -> bool:
        """Wait until the reply's connection has stayed quiet; return false if further bytes came, which make it suspect."""
        ...

    def watch(self, tell: Callable[[], None]) -> None:
        """Call a function once if the reply becomes suspect later, or is so already."""
        ...


class ChatReply(NamedTuple):
    """What a model answered.

    Attributes:
        text: The answer, without thoughts; empty where the model gave none.
        finish_reason: Why it stopped.
        usage: Tokens, as the provider counted them; ``None`` where it did not.
        model_snapshot: The model name that the provider reported.
        system_fingerprint: The provider's backend fingerprint, where it gives one.
        provider_request_id: The provider's id of the call, where it gives one.
        limits: The provider's rate limits, where the reply has news of them.
        thoughts: What the model thought before it answered; empty where the provider keeps that to itself, ``None`` where it did
            not think.
        provider_finish_reason: Why it stopped in the provider's words, if ``finish_reason`` is ``OTHER``, or ``UNSTATED`` because
            the words are not known.
        reported_usd: Cost in US dollars that the provider reports without usable counts of tokens.
        delivery: See :class:`Delivery`; ``None`` where nothing can go wrong with it.
    """

    text: str
    finish_reason: FinishReason
    usage: Usage | None = None
    model_snapshot: str | None = None
    system_fingerprint: str | None = None
    provider_request_id: str | None = None
    limits: ProviderLimits | None = None
    thoughts: str | None = None
    provider_finish_reason: str | None = None
    reported_usd: float | None = None
    delivery: Delivery | None = None

    @property
    def no_answer(self) -> str | None:
        """Why the reply is no finished answer; ``None`` where it is one, or a refusal."""
        if self.finish_reason is FinishReason.OTHER:
            return f"the model stopped for the reason {self.provider_finish_reason!r}, before the answer was complete"
        if self.text.strip():
            return None
        if self.finish_reason is FinishReason.LENGTH:
            return "the maximum length was reached before the answer began"
        if self.thoughts is not None:
            return ONLY_THOUGHTS
        if (
            self.finish_reason in {FinishReason.STOP, FinishReason.UNSTATED}
            and self.usage
            and self.usage.output_tokens
        ):
            return f"the reply has no text, though the provider counts {self.usage.output_tokens:,} output tokens"
        return None
