"""FastAPI dependencies of the handlers."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, TypeVar, cast

from fastapi import Depends, Path, Request
from fastapi.dependencies.models import Dependant
from pydantic import AfterValidator
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.http.access import Caller, caller_of
from app.api.http.answers import Answers, Party
from app.api.http.pace import ChangePace
from app.api.http.path_ids import id_check
from app.api.http.problems import ProblemError, wrong_field
from app.api.http.received_files import ReceivedFiles
from app.api.http.sessions import Signer
from app.api.http.turns import Turns
from app.db.health import DatabaseCheck
from app.db.jobs.jobs import JobRow
from app.db.results.response_pages import Position
from app.db.row_level_security import TenantEngine, act_for
from app.domain.errors import FieldError
from app.instruments.loader import AtomicInstrument
from app.instruments.personagym_loader import PersonaGymInstrument
from app.limits.request_rates import RequestRates
from app.readers.pool import ReaderPool
from app.services.errors import NotFoundError
from app.services.identifiers import id_form, response_place
from app.services.job_context import JobContext, JobContexts
from app.services.jobs.check_model import CheckDependencies
from app.services.jobs.control import ControlDependencies, check_spender
from app.services.jobs.follow import JobFollower
from app.services.jobs.plan import PlanDependencies
from app.services.jobs.progress import RecentProgress
from app.services.jobs.share_links import ShareLinkFinder
from app.services.jobs.submit import SubmissionDependencies
from app.services.jobs.view import Holds, find_job
from app.services.keys.api_keys import KeyDependencies
from app.services.keys.authenticator import ApiKeyAuthenticator
from app.services.keys.refused_keys import RefusedKeys
from app.services.ops_metrics import MetricsReader
from app.services.providers.connection_book import ConnectionBook
from app.services.providers.connections import ConnectionDependencies
from app.services.results.read import ResultsReader
from app.services.results.reports import ReportPages
from app.services.uploads.uploads import UploadDependencies
from app.services.webhooks.webhooks import WebhookDependencies
from app.telemetry.states import StateLog


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the routers use; built once, in ``app.main``.

    Attributes:
        engine: The database as the tenant of the request sees it.
        row_level_security: What restricts ``engine`` to one tenant at a time.
        every_tenant: The database as a whole, for what is about no tenant: the installation's figures.
        probe: For asking whether the database answers, and which tables it has.
        is_local: Whether the service listens on this machine only.
        public_url: Where people reach the service, if that was set.
        body_bytes: The longest body of a request.
        bundles: Bundles that arrive.
        readers: Child processes that read files.
        ready_workers: How many workers would work on a job now.
        troubles: What is wrong with other processes, by their names.
        database: Finds out what is wrong with the database.
        answers: Bytes and streams under way.
        large_answers: Places in which large answers are prepared.
        figure_turns: Places in which figures are drawn.
        report_turns: Places in which HTML reports are made.
        states: What `/readyz` said last.
    """

    engine: AsyncEngine
    row_level_security: TenantEngine
    every_tenant: AsyncEngine
    probe: AsyncEngine
    redis: Redis
    holds: Holds
    instrument: AtomicInstrument
    gym: PersonaGymInstrument
    book: ConnectionBook
    making_connections: ConnectionDependencies
    submission: SubmissionDependencies
    share_links: ShareLinkFinder
    planning: PlanDependencies
    checking: CheckDependencies
    control: ControlDependencies
    contexts: JobContexts
    results: ResultsReader
    progress: RecentProgress
    follower: JobFollower
    metrics: MetricsReader
    is_local: bool
    public_url: str | None
    body_bytes: int
    readers: ReaderPool
    bundles: ReceivedFiles
    uploads: UploadDependencies
    webhooks: WebhookDependencies
    keys: KeyDependencies
    keyring: ApiKeyAuthenticator
    refused_keys: RefusedKeys
    signer: Signer
    request_rates: RequestRates
    change_pace: ChangePace
    answers: Answers
    large_answers: Turns
    figure_turns: Turns
    report_turns: Turns
    reports: ReportPages
    ready_workers: Callable[[], Awaitable[int]]
    troubles: Callable[[], Awaitable[dict[str, str]]]
    database: DatabaseCheck
    states: StateLog


def services_of(request: Request) -> Services:
    """Those of the application that the request came to."""
    return cast("Services", request.app.state.services)


async def _services(request: Request) -> Services:
    return services_of(request)


async def _caller(request: Request) -> Caller:
    return caller_of(request)


async def _tenant(request: Request) -> str:
    """Whose data the request is about: that of the key that was shown."""
    return caller_of(request).tenant


async def _acting_tenant(tenant: Annotated[str, Depends(_tenant)]) -> str:
    """Whose request it is; from here on it sees and writes that tenant's rows alone."""
    act_for(tenant)
    return tenant


job_id_of = id_check("job", id_form("job"))
"""A text that may be a job's id; any other raises :class:`app.services.errors.NotFoundError`."""
_METADATA = re.compile(r"metadata\[([^\x00]+)\]", re.DOTALL)


async def metadata_filter(request: Request) -> dict[str, str]:
    """The labels of ``metadata[key]=value`` parameters, by key."""
    found: dict[str, str] = {}
    for name, value in request.query_params.items():
        label = _METADATA.fullmatch(name)
        if label is not None and "\0" not in value:
            found[label[1]] = value
        elif name.startswith("metadata["):
            raise wrong_field(
                f"/query/{name}", "labels are named metadata[key], without the character U+0000"
            )
    return found


async def no_unknown_parameters(request: Request) -> None:
    """Refuses misspelt query parameters, which would otherwise silently filter nothing."""
    dependant = request.scope["route"].dependant
    takers = list(_takers(dependant))
    known = {parameter.alias for taker in takers for parameter in taker.query_params}
    takes_labels = any(taker.call is metadata_filter for taker in takers)
    unknown = [
        name
        for name in request.query_params
        if name not in known and not (takes_labels and name.startswith("metadata["))
    ]
    if unknown:
        listed = ", ".join(sorted(known)) or "none"
        errors = [
            FieldError(f"/query/{name}", f"unknown parameter; known: {listed}")
            for name in sorted(set(unknown))
        ]
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "unknown query parameters", errors=errors
        )


def _takers(dependant: Dependant) -> Iterator[Dependant]:
    """A route's handler and all that it depends on."""
    yield dependant
    for each in dependant.dependencies:
        yield from _takers(each)


ServicesDep = Annotated[Services, Depends(_services)]
CallerDep = Annotated[Caller, Depends(_caller)]
TenantDep = Annotated[str, Depends(_acting_tenant)]

D = TypeVar("D", ConnectionDependencies, WebhookDependencies)


def for_caller(deps: D, services: Services, caller: Caller) -> D:
    """What making a connection or a webhook takes, for whoever asks.

    Where the service listens on this machine only and nobody needs a key, whoever reaches it is on this machine, and may name
    its servers. Behind a proxy that lets others in there are keys.
    """
    if not services.is_local or caller.holder is not None:
        return deps
    return replace(deps, guard=deps.guard.with_loopback())


async def takes_a_stream(services: ServicesDep, tenant: TenantDep) -> AsyncIterator[None]:
    """Holds one of the tenant's streams until the answer has ended, or its reader has gone."""
    with services.answers.stream(tenant):
        yield


async def _takes_a_turn(services: ServicesDep, tenant: TenantDep) -> AsyncIterator[None]:
    """Holds a place while a handler prepares a large answer; sending it counts as bytes."""
    async with services.large_answers.place(Party(tenant)):
        yield


TAKES_A_TURN = Depends(_takes_a_turn, scope="function")
"""For routes whose answers can take megabytes."""


JobId = Annotated[
    str,
    Path(description="A job's id.", examples=["job_01kxyz0abcdefghjkmnpqrstvw"]),
    AfterValidator(job_id_of),
]


async def _response_place(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    response_id: Annotated[
        str,
        Path(
            description="A response's id.",
            examples=["resp_01kxyz0abcdefghjkmnpqrstvw-0-3-0"],
            max_length=100,
        ),
    ],
) -> tuple[JobRow, JobContext, Position]:
    job = await find_job(services.engine, tenant, job_id)
    place = response_place(job_id, response_id)
    if place is None:
        raise NotFoundError("response not found")
    return job, await services.contexts.get(tenant, job_id), place


ResponsePlace = Annotated[tuple[JobRow, JobContext, Position], Depends(_response_place)]
"""The job, its context, and the place in it of the response that a path names."""


async def _spending_job_id(job_id: JobId, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> str:
    """The job that a path names, of which the caller may have more spent."""
    await check_spender(services.control, tenant, job_id, caller.capped_key)
    return job_id


SpendingJobId = Annotated[str, Depends(_spending_job_id)]
MetadataFilter = Annotated[dict[str, str], Depends(metadata_filter)]
