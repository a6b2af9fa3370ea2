"""Checks a model with short calls: whether it answers, which parameters it accepts, whether it can judge, and in which forms."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple, get_args

from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.jobs import budgets
from app.db.jobs.budgets import NOBODY, Payers
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.prompts import scoring_prompt, user_prompt
from app.domain.instruments.task import items_for
from app.domain.jobs.budget import NANOS, nanos_of
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.request import ModelIn
from app.domain.jobs.resolve import at_temperature_zero, look_up_model
from app.domain.judging.constrained import constrained, is_constrained, options_of
from app.domain.judging.verdict import Verdict, VerdictStatus, parse_verdict
from app.domain.personagym.specification import with_sampling
from app.domain.providers.contract import (
    CheckedLimits,
    CheckedPrice,
    CheckedReply,
    CheckedRole,
    CheckError,
    Finding,
    ModelCheck,
    ModelEnds,
    RefusedParameter,
)
from app.domain.providers.failure import cause, remedy
from app.domain.providers.model import (
    ChatReply,
    ChatRequest,
    ConstrainedForm,
    FinishReason,
    Model,
    ServerName,
    Usage,
)
from app.domain.providers.parameters import parameter_problems
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.models.table import end_of, plain_name, ways_to_constrain
from app.llm.transports import TransportKind
from app.ports import ModelCallError, PriceBook, SuspectReplyError
from app.services.errors import SpendingCapError
from app.services.execution.call_rows import believed, believed_usage, cost_of_answer, worst_case
from app.services.identifiers import new_id
from app.services.keys.tenant_limits import payers as payers_of
from app.services.providers.call_rules import has_price
from app.services.providers.catalog import with_connections
from app.services.providers.connection_book import ConnectionBook
from app.services.providers.model_parameters import UNKNOWN, parameters_of, sent_of

PROMPT = 'Reply with the word "ready" and nothing else.'
MOST_TOKENS = 400
"""Of the answer, where none are named: enough for a model that thinks a little first."""
JUDGE_TOKENS = 64
"""Of a judge's verdict, where no limit is named; a verdict that is cut off is asked for again with :data:`MOST_TOKENS`."""
PROBED = "social_media_post", "E"
PROBES = (
    "I love loud parties and I talk to everyone I meet.",
    "I avoid people and prefer to spend every evening alone.",
    "The meeting room is on the second floor.",
)
"""Sentences that any judge of extraversion tells apart: a high one, a low one, and one that says nothing about it."""
UNFIT = "Do not use it as a judge."
FORM_PROMPT = "Describe the sea in one sentence."
"""Asks for a text, so that a number comes back only if the server constrains the reply."""
DEADLINE_SECONDS = 60.0
MOST_CALLS = 4
"""One, and one more for each parameter that the provider refuses."""
SHOWN_CHARACTERS = 200
REFUSING_STATUSES = frozenset({400, 422})


@dataclass(frozen=True, slots=True)
class CheckDependencies:
    """What a check takes.

    Attributes:
        engine: The database.
        catalog: What a model's name is looked up in.
        book: Has the connections with their keys.
        prices: Knows what calls cost.
        transport: How calls are sent.
    """

    engine: AsyncEngine
    catalog: Catalog
    book: ConnectionBook
    prices: PriceBook
    transport: TransportKind


class Check(NamedTuple):
    """What to try.

    Attributes:
        model: The model, as a job names it.
        role: As what a job would call it, which decides what it is sent unless the model's own parameters say otherwise.
        call: Whether to call it; else only what is known of it is said.
        capped_key: The API key that asks, if there is a cap on what is spent with it.
    """

    model: ModelIn
    role: CheckedRole
    call: bool
    capped_key: str | None = None


class _Tried(NamedTuple):
    """How the calls of a check ended: with a reply or an error.

    Attributes:
        refused: Parameters without which the last call was sent, because the provider refused them, with its words.
        usd: What the answered call cost, as far as that is known.
        verdicts: A judge's verdicts on :data:`PROBES`, each with the reply.
        forms: The constrained replies that came back, each with the ``server`` by whose way; ``None`` if none was tried.
    """

    calls: int
    latency_ms: float
    reply: ChatReply | None
    error: ModelCallError | None
    refused: dict[str, str]
    usd: float | None
    verdicts: Sequence[tuple[Verdict, str]] = ()
    forms: Mapping[ConstrainedForm, ServerName | None] | None = None


async def check_model(deps: CheckDependencies, tenant: str, check: Check) -> ModelCheck:
    """What was found. A model that fails is an answer, not an error.

    Raises:
        InvalidJobError: If there is no such model, or it can't be asked like this.
        SpendingCapError: If the cap of the API key or the tenant does not leave enough.
    """
    connections = await deps.book.of_tenant(tenant)
    model = _model(with_connections(deps.catalog, connections), check)
    connection = connections.get(model.connection)
    if connection is None:
        raise InvalidJobError([FieldError("/model", "the model's connection was deleted")])
    tried = None
    if check.call:
        try:
            connection = await deps.book.with_key(connection.id, tenant) or connection
        except ModelCallError as error:
            tried = _Tried(0, 0.0, None, error, {}, None)
        else:
            async with deps.engine.connect() as reading:
                payers = await payers_of(reading, tenant, check.capped_key)
            try_it = _try_judge if check.role == "judge" else _try
            tried = await try_it(deps, connection, model, payers)
            if check.role == "judge" and tried.reply is not None and model.profile is None:
                tried = await _try_forms(deps, connection, model, payers, tried)
    return _found(deps, connection, model, check, tried)


def _model(catalog: Catalog, check: Check) -> Model:
    """The model, with what a job would ask of it.

    Raises:
        InvalidJobError: If there is none, or it takes less.
    """
    model, problem = look_up_model(check.model, catalog)
    if problem is not None:
        raise InvalidJobError([FieldError("/model", problem)])
    if model.profile is not None and (check.role != "judge" or model.profile not in catalog.profiles):
        known = ", ".join(catalog.profiles)
        message = (
            f"unknown profile {model.profile!r}; known: {known}"
            if check.role == "judge"
            else "is only for judges"
        )
        raise InvalidJobError([FieldError("/profile", message)])
    if check.role == "judge":
        model = at_temperature_zero(model)
    elif check.role == "persona_agent":
        model = with_sampling(model)
    wrong = list(parameter_problems(model.parameters, model.takes or UNKNOWN))
    if wrong:
        raise InvalidJobError([FieldError(f"/{name}", message) for name, message in wrong])
    return model


async def _try_judge(deps: CheckDependencies, connection: Connection, model: Model, payers: Payers) -> _Tried:
    """Ask for verdicts on all probes in the real judging prompt; the last call stands for all."""
    task, dimension = deps.catalog.tasks[PROBED[0]], deps.catalog.dimensions[PROBED[1]]
    (item,) = items_for(task, (dimension,))
    profile = None if model.profile is None else deps.catalog.profiles[model.profile]
    tokens, calls, usd = JUDGE_TOKENS if profile is None else MOST_TOKENS, 0, 0.0
    verdicts: list[tuple[Verdict, str]] = []
    refused: dict[str, str] = {}
    tried = None
    for sentence in PROBES:
        prompt = (
            scoring_prompt(task, dimension, item, sentence)
            if profile is None
            else profile.about_trait(dimension, user_prompt(task, item), sentence)
        )
        tried = await _try(deps, connection, model, payers, prompt, tokens)
        calls, usd = calls + tried.calls, usd + (tried.usd or 0.0)
        cut_off = tried.reply is not None and tried.reply.finish_reason is FinishReason.LENGTH
        if cut_off and model.parameters.max_tokens is None and tokens < MOST_TOKENS:
            tokens = MOST_TOKENS
            tried = await _try(deps, connection, model, payers, prompt, tokens)
            calls, usd = calls + tried.calls, usd + (tried.usd or 0.0)
        refused |= tried.refused
        for name in tried.refused:
            model = _without(model, name)
        if tried.reply is None:
            break
        cut_off = tried.reply.finish_reason is FinishReason.LENGTH
        text = tried.reply.text
        verdict = (
            parse_verdict(text, dimension, cut_off=cut_off)
            if profile is None
            else profile.read(text, cut_off=cut_off)
        )
        verdicts.append((verdict, text))
    if tried is None:
        raise RuntimeError("there are no probes")
    known = None if tried.usd is None else usd
    return tried._replace(calls=calls, usd=known, refused=refused, verdicts=verdicts)


async def _try_forms(
    deps: CheckDependencies, connection: Connection, model: Model, payers: Payers, tried: _Tried
) -> _Tried:
    """Ask for a text under each constraint until one comes back as a number; add what that cost to ``tried``."""
    calls, usd = tried.calls, tried.usd
    numbers = options_of(deps.catalog.dimensions[PROBED[1]].scale)
    for name in tried.refused:
        model = _without(model, name)
    ways = {form: ways_to_constrain(connection, form) for form in get_args(ConstrainedForm)}
    forms: dict[ConstrainedForm, ServerName | None] = {}
    for server in dict.fromkeys([connection.server, *ways["choice"]]):
        for form, by_server in ways.items():
            if form in forms or server not in by_server:
                continue
            able = replace(model, takes=replace(model.takes or UNKNOWN, replies=by_server[server].replies))
            judge = constrained(able, form, numbers)
            asked = await _try(deps, connection, judge, payers, FORM_PROMPT, JUDGE_TOKENS)
            calls += asked.calls
            usd = None if usd is None or asked.usd is None else usd + asked.usd
            if asked.reply is not None and is_constrained(asked.reply.text, form, numbers):
                forms[form] = server
            elif server != connection.server:
                break  # another server's way: one attempt shows that it is not this one
        if len(forms) == len(ways):
            break
    return tried._replace(calls=calls, usd=usd, forms=forms)


async def _try(
    deps: CheckDependencies,
    connection: Connection,
    model: Model,
    payers: Payers,
    prompt: str = PROMPT,
    tokens: int = MOST_TOKENS,
) -> _Tried:
    gateway = Gateway(Connections({connection.id: connection}), deps.transport)
    asked = _short(model, tokens)
    refused: dict[str, str] = {}
    calls = 0
    try:
        # Not part of the call's time. The operator's connections are for everybody; one of a tenant was fetched for its own.
        await gateway.prepare(connection.id, connection.tenant or "")
        while True:
            calls += 1
            request = ChatRequest(asked, None, prompt, f"{new_id('check')}/check/a{calls}", DEADLINE_SECONDS)
            started = clock.monotonic()
            try:
                body = gateway.body_bytes(request)
                async with _within_caps(deps, request, body, payers) as bill:
                    bill.reply = reply = believed(await gateway.complete(request), request)
                if reply.delivery is not None and not await reply.delivery.settled():
                    raise SuspectReplyError
            except ModelCallError as error:
                name = refused_parameter(asked, error)
                if name is None or calls == MOST_CALLS:
                    return _Tried(calls, clock.milliseconds_since(started), None, error, refused, None)
                refused[name] = str(error)
                asked = _without(asked, name)
            else:
                return _Tried(calls, clock.milliseconds_since(started), reply, None, refused, bill.usd)
    finally:
        await gateway.close()


def _short(model: Model, tokens: int) -> Model:
    """The model, told to answer shortly."""
    if model.parameters.max_tokens is not None:
        return model
    return replace(model, parameters=replace(model.parameters, max_tokens=tokens))


def refused_parameter(model: Model, error: ModelCallError) -> str | None:
    """The parameter that an error names as the reason; of several the last, so that one of two that exclude each other stays."""
    takes = model.takes or UNKNOWN
    if error.status not in REFUSING_STATUSES:
        return None
    words = str(error)
    named = [
        name
        for name in sent_of(model).values
        if name not in takes.needs and re.search(rf"\b{re.escape(takes.names.get(name, name))}\b", words)
    ]
    return named[-1] if named else None


def _without(model: Model, name: str) -> Model:
    takes = model.takes or UNKNOWN
    return replace(model, takes=replace(takes, refuses=(*takes.refuses, name)))


# -- money --------------------------------------------------------------------------------------------------------


class _Bill:
    """What a call is to cost.

    Attributes:
        reply: Its reply, once there is one.
        usd: Its cost, where it is known.
    """

    reply: ChatReply | None = None
    usd: float | None = None


@asynccontextmanager
async def _within_caps(
    deps: CheckDependencies, request: ChatRequest, body: int, payers: Payers
) -> AsyncIterator[_Bill]:
    """Takes the worst case of a call, whose encoded body has ``body`` bytes, from what the API key and the tenant may spend.

    What it did not cost is given back.

    Raises:
        SpendingCapError: If that is more than a cap leaves.
    """
    bill, model = _Bill(), request.model
    held = worst_case(deps.prices, request, body).nanos
    if payers != NOBODY:
        await _hold(deps, payers, model, held)
    paid = held
    try:
        yield bill
    except ModelCallError as error:
        usage = believed_usage(error.usage, request)
        usd = None if usage is None else deps.prices.price(model, usage).usd
        paid = nanos_of(usd) if usd is not None else held if error.maybe_paid or error.usage else 0
        raise
    else:
        bill.usd = None if bill.reply is None else cost_of_answer(bill.reply, model, deps.prices)
        paid = held if bill.usd is None else nanos_of(bill.usd)
    finally:
        if payers != NOBODY and paid != held:
            async with deps.engine.begin() as connection:
                await budgets.charge(connection, payers, paid - held)


async def _hold(deps: CheckDependencies, payers: Payers, model: Model, nanos: int) -> None:
    unpriced = not has_price(deps.prices, model)
    async with deps.engine.begin() as connection:
        await budgets.charge(connection, payers, nanos)
        for cap in await budgets.read_caps(connection, payers):
            if unpriced:
                raise SpendingCapError(
                    f"the {cap.of} has a spending cap, and no price is known for {model.full_name}"
                )
            if cap.nanos_taken > cap.nanos_limit:
                left = max(0, cap.nanos_limit - (cap.nanos_taken - nanos))
                raise SpendingCapError(
                    f"this check may cost ${nanos / NANOS:,.4f}; the {cap.of}'s spending cap leaves ${left / NANOS:,.4f}"
                )


# -- what was found -----------------------------------------------------------------------------------------------


def _found(
    deps: CheckDependencies, connection: Connection, model: Model, check: Check, tried: _Tried | None
) -> ModelCheck:
    price = deps.prices.price(model, Usage(1_000_000, 0))
    returned = deps.prices.price(model, Usage(0, 1_000_000))
    ends = end_of(connection, model.name)
    reply = None if tried is None else tried.reply
    error = None if tried is None else tried.error
    found = ModelCheck(
        model=check.model.model,
        role=check.role,
        kind=connection.kind,
        base_url=connection.base_url,
        simulated=connection.simulated,
        works=None if tried is None else reply is not None and bool(reply.text.strip()),
        calls=0 if tried is None else tried.calls,
        latency_ms=None if tried is None else round(tried.latency_ms, 1),
        usd=None if tried is None else tried.usd,
        reply=None if reply is None else _reply(reply),
        limits=None if reply is None or reply.limits is None else CheckedLimits.of_row(reply.limits),
        error=None if error is None else _error(error, model),
        refused=[]
        if tried is None
        else [RefusedParameter(parameter=name, said=words) for name, words in tried.refused.items()],
        price=CheckedPrice(input=price.usd, output=returned.usd, source=price.source),
        ends=None
        if ends is None
        else ModelEnds(day=ends.day.isoformat(), source=ends.source, certainty=ends.certainty),
        model_table=(model.takes or UNKNOWN).table or None,
        parameters=parameters_of(model),
        reply_forms=None if tried is None or tried.forms is None else ["text", *tried.forms],
        findings=[],
    )
    found.findings += [
        *_of_call(found),
        *_of_name(found, model),
        *_of_verdicts(() if tried is None else tried.verdicts),
        *_of_forms(connection, None if tried is None else tried.forms),
        *_of_profile(deps.catalog, check.role, model),
        *_of_hold(reply or error),
        *_of_parameters(found),
        *_of_price(found),
        *([] if ends is None else [_bad(f"It {ends.told(clock.now().date())}")]),
    ]
    return found


def _reply(reply: ChatReply) -> CheckedReply:
    return CheckedReply(
        text=reply.text[:SHOWN_CHARACTERS],
        finish_reason=reply.finish_reason.value,
        model_snapshot=reply.model_snapshot,
        input_tokens=None if reply.usage is None else reply.usage.input_tokens,
        output_tokens=None if reply.usage is None else reply.usage.output_tokens,
        thoughts=reply.thoughts is not None,
    )


def _error(error: ModelCallError, model: Model) -> CheckError:
    name, words = model.full_name, str(error)
    return CheckError(
        code=error.code,
        status=error.status,
        message=words,
        cause=cause(error.code, error.status, name, words),
        remedy=remedy(error.code, error.status, name),
    )


def _good(text: str) -> Finding:
    return Finding(good=True, text=text)


def _bad(text: str) -> Finding:
    return Finding(good=False, text=text)


def _of_call(found: ModelCheck) -> Iterator[Finding]:
    error, reply = found.error, found.reply
    if error is not None:
        said = "" if error.message == error.cause else f": {error.message}"
        yield _bad(f"{error.cause[0].upper()}{error.cause[1:]} ({error.code}{said}).")
        yield _bad(error.remedy)
    if reply is None:
        return
    tokens = "" if reply.output_tokens is None else f", {reply.output_tokens} output tokens"
    snapshot = f" as {reply.model_snapshot}" if reply.model_snapshot else ""
    yield _good(f"It answered{snapshot} in {(found.latency_ms or 0) / 1000:.1f} s{tokens}.")
    if not reply.text.strip():
        cut = reply.finish_reason == FinishReason.LENGTH.value
        why = " It was cut off at max_tokens: allow more, or have it reason less." if cut else ""
        yield _bad(f"The answer has no text (finish reason {reply.finish_reason}).{why}")
    if reply.thoughts:
        yield _good("It thinks before it answers: its thoughts are paid for and not scored.")
    limits = {} if found.limits is None else found.limits.model_dump(exclude_none=True)
    named = [f"{limit:,.0f} {name.replace('_', ' ')}" for name, limit in limits.items()]
    yield _good(f"Its headers name limits: {', '.join(named)}." if named else "Its headers name no limits.")


def _of_name(found: ModelCheck, model: Model) -> Iterator[Finding]:
    """Warn if a server answers under a name in which the requested one does not occur, as servers of a single model do."""
    answered = (found.reply.model_snapshot if found.reply else None) or ""
    if answered and _words(model.name).isdisjoint(_words(answered)):
        yield _bad(
            f"The server answered as {answered}, not as {model.name}: it may ignore the model's name. Use the name it gives."
        )


def _words(name: str) -> set[str]:
    """The parts of a model's name that tell it from others."""
    return set(re.findall(r"[a-z]{2,}|\d+(?:\.\d+)?", name.lower()))


def _of_verdicts(verdicts: Sequence[tuple[Verdict, str]]) -> Iterator[Finding]:
    """Say whether a judge tells the probes apart."""
    if len(verdicts) < len(PROBES):
        return
    yield from _of_unread(verdicts)
    (high, _), (low, _), (neutral, _) = verdicts
    for (verdict, _), sentence in zip(verdicts[:2], PROBES, strict=False):
        if verdict.status is VerdictStatus.NOT_APPLICABLE:
            yield _bad(f"It answers “not applicable” to “{sentence}”, which shows the trait.")
    shown = ", ".join(
        verdict.status if verdict.score is None else str(verdict.score) for verdict, _ in verdicts
    )
    if high.score is not None and low.score is not None and high.score <= low.score:
        yield _bad(
            f"It does not tell opposite sentences apart: {high.score} for “{PROBES[0]}”, {low.score} for “{PROBES[1]}”."
            f" {UNFIT}"
        )
    elif high.status is low.status is VerdictStatus.NOT_APPLICABLE:
        yield _bad(f"It does not tell opposite sentences apart: both are “not applicable”. {UNFIT}")
    elif high.score is not None and low.score is not None:
        yield _good(
            f"It tells opposite sentences apart (verdicts on a high, a low and a neutral sentence: {shown})."
        )
    if neutral.score is not None:
        yield _bad(
            f"It scores a sentence that says nothing about the trait: {neutral.score} for “{PROBES[2]}”."
        )


def _of_unread(verdicts: Sequence[tuple[Verdict, str]]) -> Iterator[Finding]:
    """Show the verdicts that cannot be read; most of them unread make the judge unfit."""
    lost = {VerdictStatus.UNPARSED, VerdictStatus.REFUSED}
    unread = [
        (sentence, reply)
        for (verdict, reply), sentence in zip(verdicts, PROBES, strict=True)
        if verdict.status in lost
    ]
    for sentence, reply in unread:
        yield _bad(f"Its verdict on “{sentence}” cannot be read: “{reply[:SHOWN_CHARACTERS]}”.")
    if len(unread) > 1:
        yield _bad(f"{len(unread)} of its {len(PROBES)} verdicts cannot be read. {UNFIT}")


def _of_forms(
    connection: Connection, forms: Mapping[ConstrainedForm, ServerName | None] | None
) -> Iterator[Finding]:
    """Say to which forms the server constrained replies, and which setting that takes."""
    if forms is None:
        return
    ready = [form for form, server in forms.items() if server == connection.server]
    yield _good(
        f"Its server constrains replies to the form {' or '.join(ready)} (judging.reply)."
        if ready
        else "Its server constrains no replies as it is configured: judging.reply must be text."
    )
    for form, server in forms.items():
        if form not in ready:
            yield _bad(
                f"Its server takes the fields by which {server} constrains replies to the form {form}:"
                f" for judging.reply, set `server: {server}` for the connection in the operator's file."
            )


def _of_profile(catalog: Catalog, role: CheckedRole, model: Model) -> Iterator[Finding]:
    """Name the profile of a judge model that is checked without it."""
    for profile in catalog.profiles.values():
        if role == "judge" and model.profile is None and plain_name(model.name) in profile.models:
            yield _bad(
                f'It was trained on a prompt form of its own: name the judge with "profile": "{profile.id}".'
            )


def _of_hold(answer: ChatReply | ModelCallError | None) -> Iterator[Finding]:
    """Says which limit of more than a minute is used up, by the headers of the answer."""
    limits = None if answer is None else answer.limits
    if limits is None or limits.hold_reason is None:
        return
    until = clock.now() + timedelta(seconds=limits.hold_ends_seconds)
    yield _bad(
        f"Its headers say: {limits.hold_reason}, until {until:%Y-%m-%d %H:%M} UTC. A job's calls to it wait for that.",
    )


def _of_parameters(found: ModelCheck) -> Iterator[Finding]:
    parameters = found.parameters
    for refused in found.refused:
        yield _bad(
            f"The provider refuses {refused.parameter} ({refused.said}), which the model table does not know:"
            f' a job has to leave it out with "{refused.parameter}": null or name the model\'s family.',
        )
    for dropped in parameters.not_sent:
        yield _bad(f"{dropped.parameter} {dropped.value} is not sent: {dropped.reason}.")
    for name in parameters.without_effect:
        yield _bad(f"It takes {name} and ignores it while it reasons.")
    sent = ", ".join(f"{name} {value}" for name, value in parameters.sent.items()) or "no parameters"
    yield _good(f"As a {found.role.replace('_', ' ')}, a job would send {sent}.")


def _of_price(found: ModelCheck) -> Iterator[Finding]:
    price = found.price
    if price.input is None or price.output is None:
        yield _bad("No price is known: add it to the connection, or a budget in dollars can't be kept.")
    elif price.input == price.output == 0:
        if not found.simulated:
            yield _good(f"Its calls are free ({price.source}).")
    else:
        yield _good(
            f"It costs ${price.input:.2f} per million input and ${price.output:.2f} per million output tokens"
            f" ({price.source}).",
        )
