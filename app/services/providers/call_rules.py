"""The one check before money is spent: today's connections, prices and limits decide whether a job's models may be called."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sqlalchemy.ext.asyncio import AsyncConnection

from app import clock
from app.db.jobs.call_rules import CallFacts, read_facts
from app.domain.jobs.personagym_plan import asks_reasoner
from app.domain.jobs.specification import JobSpec
from app.domain.keys.allowed_models import is_allowed
from app.domain.providers.extra import extra_problem
from app.domain.providers.failure import (
    EXTRA_NOT_ALLOWED,
    MODEL_NOT_ALLOWED,
    NO_BATCH_ENDPOINTS,
    PARAMETERS_CHANGED,
    PRICE_UNKNOWN,
    TENANT_IS_PAUSED,
    TENANT_PAUSED,
    UNKNOWN_CONNECTION,
)
from app.domain.providers.model import Model, Takes, Usage
from app.domain.providers.parameters import most_output_tokens, sent_parameters
from app.llm.connections.connections import Connection
from app.llm.models.table import takes_at
from app.ports import ModelCallError, PriceBook
from app.services.errors import CallNotAllowedError
from app.services.providers.connection_book import ConnectionBook, name_in

FRESH_SECONDS = 1.0
"""How long a worker that has checked a job claims further shards of it unchecked."""
MOST_CHECKED = 1000


@dataclass(frozen=True, slots=True)
class CallRules:
    """Today's rules for calls; every way to spend money passes :meth:`check`."""

    book: ConnectionBook
    prices: PriceBook
    _checked: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def were_checked(self, job_id: str) -> bool:
        """Return whether this process has checked a job's calls within :data:`FRESH_SECONDS`."""
        return clock.monotonic() - self._checked.get(job_id, float("-inf")) < FRESH_SECONDS

    def note_check(self, job_id: str) -> None:
        """Remember that a job's calls are allowed at this moment."""
        if len(self._checked) >= MOST_CHECKED:
            self._checked.clear()
        self._checked[job_id] = clock.monotonic()

    async def check(self, connection: AsyncConnection, tenant: str, job_id: str, spec: JobSpec) -> None:
        """Refuse a stored job one of whose calls is not allowed today.

        A job under way keeps the parameters of its submission. Those of a job whose specification another installation
        wrote must be the ones that this installation sends.

        Raises:
            CallNotAllowedError: With the first reason.
        """
        facts = await read_facts(connection, tenant, job_id)
        if facts is not None:
            await self._check(connection, tenant, spec, facts, untrusted=facts.imported)

    async def check_new(
        self, connection: AsyncConnection, tenant: str, spec: JobSpec, facts: CallFacts
    ) -> None:
        """Refuse a job that is being submitted; its parameters must be the ones that this installation sends.

        Raises:
            CallNotAllowedError: With the first reason.
        """
        await self._check(connection, tenant, spec, facts, untrusted=True)

    async def _check(
        self, connection: AsyncConnection, tenant: str, spec: JobSpec, facts: CallFacts, *, untrusted: bool
    ) -> None:
        if facts.paused:
            raise CallNotAllowedError(TENANT_PAUSED, TENANT_IS_PAUSED)
        for model in called_models(spec, preparing=facts.preparing):
            found = await self._connection(connection, model, tenant)
            name = f"{name_in(model.connection)}/{model.name}"
            for code, problem in _problems(found, model, facts, spec, untrusted=untrusted):
                raise CallNotAllowedError(code, problem, name)
            if facts.in_dollars and not has_price(self.prices, model):
                problem = f"no price is known for {name}, and the job has to keep a limit in US dollars"
                raise CallNotAllowedError(PRICE_UNKNOWN, problem, name)

    async def _connection(self, connection: AsyncConnection, model: Model, tenant: str) -> Connection:
        name = name_in(model.connection)
        try:
            found = await self.book.usable(connection, model.connection, tenant)
        except ModelCallError as error:
            raise CallNotAllowedError(error.code, str(error), f"{name}/{model.name}") from error
        if found is None:
            problem = f"there is no connection named {name!r}"
            raise CallNotAllowedError(UNKNOWN_CONNECTION, problem, f"{name}/{model.name}")
        return found


def has_price(prices: PriceBook, model: Model) -> bool:
    """Return whether the model's price is known."""
    return prices.price(model, Usage(1, 1)).usd is not None


def called_models(spec: JobSpec, *, preparing: bool) -> Iterator[Model]:
    """The models that a job may still call; a reasoner that has nothing left to write is not among them."""
    idle = None if spec.gym is None or (preparing and asks_reasoner(spec)) else spec.gym.reasoner
    return (model for model in spec.called if model is not idle)


def _problems(
    connection: Connection, model: Model, facts: CallFacts, spec: JobSpec, *, untrusted: bool
) -> Iterator[tuple[str, str]]:
    """Codes and descriptions of what keeps a model from being called."""
    name, label = name_in(model.connection), f"{name_in(model.connection)}/{model.name}"
    if not connection.allows(model.name):
        yield MODEL_NOT_ALLOWED, f"connection {name!r} does not allow the model {model.name!r}"
    if not is_allowed(facts.models, name, model.name):
        yield MODEL_NOT_ALLOWED, f"the operator does not allow {label} for this tenant"
    takes = model.takes or takes_at(connection, model.name)
    for extra, value in model.parameters.extra.items():
        wrong = extra_problem(takes.format, connection.allow_extra, extra, value, takes.extra_fields)
        if wrong is not None:
            yield EXTRA_NOT_ALLOWED, f"extra.{extra} of {label}: {wrong}"
    if model in spec.batched and not connection.batches:
        yield NO_BATCH_ENDPOINTS, f"connection {name!r} has no known batch endpoints"
    if takes.format != connection.kind:
        yield PARAMETERS_CHANGED, f"connection {name!r} now has the wire format {connection.kind!r}"
    elif untrusted and not _is_as_here(connection, model, takes, spec):
        yield (
            PARAMETERS_CHANGED,
            f"this installation sends {label} other parameters than the job's specification",
        )


def _is_as_here(connection: Connection, model: Model, takes: Takes, spec: JobSpec) -> bool:
    """Tell whether a model of another installation's specification would be called as one of a job submitted here."""
    if model.constraint or model.simulated != connection.simulated:
        return False
    return any(
        _effect(model, takes, spec) == _effect(model, own, spec)
        for own in (takes_at(connection, model.name), takes_at(connection, model.name, takes.family or ""))
    )


def _effect(model: Model, takes: Takes, spec: JobSpec) -> tuple[object, ...]:
    """What a request has of a model's parameters, and how long its reply may be."""
    sent = sent_parameters(model.parameters, takes).body(takes)
    replies = None if spec.reply == "text" else takes.replies.get(spec.reply)
    return sent, replies, most_output_tokens(replace(model, takes=takes))
