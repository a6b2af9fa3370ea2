"""The HTTP composition root: ``python -m app.serve --factory app.main:create_app``."""

import asyncio
import contextlib
import secrets
import sys
from collections.abc import AsyncIterator, MutableMapping
from functools import partial
from typing import Any

import structlog
from fastapi import Depends, FastAPI
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app import clock
from app.api.console import baselines as baselines_page
from app.api.console import (
    bridging,
    comparison,
    importing,
    labelling,
    listing,
    new_job,
    sharing,
    signing_in,
    static,
)
from app.api.console import connections as connections_page
from app.api.console import job as job_page
from app.api.console import keys as keys_page
from app.api.console import responses as responses_page
from app.api.console import schedules as schedules_pages
from app.api.console import sets as sets_pages
from app.api.console import webhooks as webhooks_pages
from app.api.http import database_timeouts, docs_page, health, metrics, problems
from app.api.http.access import AuthMiddleware, check_scope
from app.api.http.answer_headers import AnswerHeaders
from app.api.http.answers import Answers
from app.api.http.dependencies import Services
from app.api.http.hosts import KnownHost
from app.api.http.limits import Limits
from app.api.http.openapi import TAGS, DescribedApp
from app.api.http.pace import ChangePace
from app.api.http.received_files import ReceivedFiles
from app.api.http.same_origin import SameOrigin
from app.api.http.sessions import Signer
from app.api.http.traced import Traced
from app.api.http.turns import Turns
from app.api.jobs import bundles, catalog, events, exports, imports, reports, responses, results, share_links
from app.api.jobs import routes as jobs
from app.api.keys import limits
from app.api.keys import routes as api_keys
from app.api.labels import flags
from app.api.labels import routes as annotations
from app.api.providers import model_routes
from app.api.providers import routes as connections
from app.api.results import baselines as named_baselines
from app.api.results import figures
from app.api.results import routes as comparisons
from app.api.sets import exemplars, persona_sets, question_sets, rubric_sets
from app.api.uploads import routes as uploads
from app.api.uploads.method_override import MethodOverride
from app.api.watching import routes as schedules
from app.api.webhooks import routes as webhooks
from app.bootstrap import (
    LARGE_ANSWER_ENDED,
    configure_logging,
    give_memory_back,
    import_in_background,
    let_threads_give_way,
    load_key_ring,
    load_operator_connections,
)
from app.db.engine import STATEMENT_SECONDS, connect
from app.db.health import DatabaseCheck, is_away
from app.db.reasons import reason
from app.db.row_level_security import TenantEngine, act_for
from app.db.start import UnusableDatabaseError, check_database
from app.domain.providers.addresses import is_loopback
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from app.limits.holds import read_holds
from app.limits.request_rates import RequestRates
from app.llm.models.prices import GenaiPriceBook
from app.ports import Queue
from app.queue.celery_app import make_celery
from app.queue.sender import CeleryQueue
from app.readers.pool import ReaderPool
from app.services.identifiers import new_id
from app.services.job_context import JobContexts
from app.services.jobs.check_model import CheckDependencies
from app.services.jobs.control import ControlDependencies
from app.services.jobs.follow import JobFollower
from app.services.jobs.plan import PlanDependencies
from app.services.jobs.progress import RecentProgress
from app.services.jobs.share_links import ShareLinkFinder
from app.services.jobs.submit import SubmissionDependencies
from app.services.keys.api_keys import KeyDependencies, no_keys_yet
from app.services.keys.authenticator import ApiKeyAuthenticator
from app.services.keys.refused_keys import RefusedKeys
from app.services.keys.stored_secrets import lost_secret
from app.services.ops_metrics import MetricsReader
from app.services.providers.catalog import load_catalog
from app.services.providers.connection_book import ConnectionBook
from app.services.providers.connections import ConnectionDependencies
from app.services.results.noise import NoiseReader
from app.services.results.read import ResultsReader
from app.services.results.reports import ReportPages
from app.services.uploads.uploads import UploadDependencies
from app.services.webhooks.webhooks import WebhookDependencies, note_reader_end
from app.settings import PEPPER_BYTES, Settings, StartError, cache_folders, load_settings
from app.telemetry import tracing
from app.telemetry.board import MetricsBoard
from app.telemetry.metrics import count_request
from app.telemetry.states import StateLog
from persona_assay.version import VERSION

log = structlog.get_logger(__name__)

UNASKED_SECONDS = 1.0
"""After so long what only some requests need is imported: not before the first answers, which would wait for it."""
REDIS_SECONDS = 3.0
"""How long a request waits for Redis."""

DESCRIPTION = """Measures how faithfully language models stay in character: every sentence of every response is judged.

`POST /v1/jobs` with personas, tasks, models and judges; poll the job; read `/results`, `/responses` and `/report`.
Every error is `application/problem+json` and names the fields that are wrong."""


RESOURCES = (
    jobs.router,
    results.router,
    responses.router,
    reports.router,
    share_links.router,
    exports.router,
    imports.router,
    bundles.router,
    events.router,
    figures.router,
    comparisons.router,
    named_baselines.router,
    question_sets.router,
    persona_sets.router,
    rubric_sets.router,
    exemplars.router,
    uploads.router,
    annotations.router,
    flags.router,
    schedules.router,
    webhooks.router,
    api_keys.router,
    limits.router,
    connections.router,
    catalog.router,
    model_routes.router,
    health.router,
    metrics.router,
)
"""What programs ask, in the document's order."""
PAGES = (
    listing.router,
    comparison.router,
    bridging.router,
    new_job.router,
    importing.router,
    responses_page.router,
    labelling.router,
    sharing.router,
    baselines_page.router,
    job_page.router,
    sets_pages.router,
    connections_page.router,
    schedules_pages.router,
    webhooks_pages.router,
    keys_page.router,
    signing_in.router,
    static.router,
    docs_page.router,
)
"""What browsers show."""


def create_app(settings: Settings | None = None, queue: Queue | None = None) -> DescribedApp:
    """The application, configured by the environment unless settings are given; its queue is Celery's unless another is given."""
    loaded = settings or load_settings()
    configure_logging(loaded)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        services = _services(loaded, queue)
        app.state.services = services
        if loaded.traces:
            tracing.start("assay-api", app.version)
        await _refuse_pooler(services, loaded)
        await _require_keys_off_loopback(services.keyring, loaded.host)
        await _require_known_secrets(services)
        let_threads_give_way()
        import_in_background(
            "scipy.special",
            "anyio._backends._asyncio",
            after=UNASKED_SECONDS,
            then=give_memory_back,
        )
        await services.readers.start()
        yield
        services.submission.planning.close()
        await services.uploads.packed.close()
        await services.uploads.tool_files.close()
        await services.readers.close()
        await services.keyring.close()
        await services.results.close()
        await services.progress.close()
        await services.redis.aclose()
        for engine in (services.engine, services.every_tenant, services.probe):
            await engine.dispose()
        await asyncio.to_thread(tracing.stop)

    app = DescribedApp(
        title="Persona Assay",
        version=VERSION,
        description=DESCRIPTION,
        openapi_tags=[*TAGS],
        servers=[{"url": "/", "description": "Where this document was read."}],
        contact={"name": "The maintainers of Persona Assay"},
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,
        default_response_class=JSONResponse,  # pydantic would write floats another way: 1e-6 for 1e-06
        dependencies=[Depends(check_scope)],
    )
    app.add_middleware(AuthMiddleware)
    app.add_middleware(database_timeouts.DatabaseTimeoutMiddleware)
    app.add_middleware(SameOrigin)
    app.add_middleware(KnownHost, names=loaded.known_hosts)
    app.add_middleware(Limits, most_bytes=loaded.max_body_bytes, seconds=loaded.upload_seconds)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(MethodOverride)
    if loaded.traces:
        app.add_middleware(Traced)
    app.add_middleware(RequestContext)
    app.add_middleware(ToldStart)
    problems.install(app)
    for router in (*RESOURCES, *PAGES):
        app.include_router(router)
    return app


async def _refuse_pooler(services: Services, settings: Settings) -> None:
    """Does not start behind a connection pooler that refuses us; `/readyz` says all else that is wrong with the database.

    Raises:
        StartError: If one does.
    """
    try:
        await check_database(services.every_tenant, settings.database_pooler)
    except UnusableDatabaseError as error:
        raise StartError(str(error)) from error


async def _require_known_secrets(services: Services) -> None:
    """Refuse to start with secrets that don't fit the database.

    Raises:
        StartError: If one was lost or changed.
    """
    lost = await lost_secret(services.every_tenant, services.keys.pepper, services.making_connections.ring)
    if lost is not None:
        raise StartError(lost)


async def _require_keys_off_loopback(keyring: ApiKeyAuthenticator, host: str) -> None:
    """Does not start a service without keys for other machines.

    A server that was not told by ``ASSAY_HOST`` where it listens starts, and refuses each request from elsewhere.

    Raises:
        StartError: If there are none.
    """
    if is_loopback(host):
        return
    try:
        exist = await keyring.any_exist()
    except Exception as error:
        if not is_away(error):
            raise
        log.warning("whether there are keys is not known yet", reason=reason(error))
        return
    if not exist:
        raise StartError(no_keys_yet(f"listens on a loopback address only, not on {host}"))


def _services(settings: Settings, queue: Queue | None) -> Services:
    database_url = settings.require_database_url()
    isolated = TenantEngine(
        database_url, pool_size=10, application_name="assay api", pooler=settings.database_pooler
    )
    engine = isolated.engine
    every_tenant = connect(
        database_url,
        pool_size=2,
        max_overflow=2,
        application_name="assay api, every tenant",
        pooler=settings.database_pooler,
        statement_seconds=STATEMENT_SECONDS,
    )
    server = settings.require_redis()
    redis = server.client(REDIS_SECONDS)
    queue = queue or CeleryQueue(make_celery(server))
    board = MetricsBoard(redis, "api")
    operator, ring = load_operator_connections(settings), load_key_ring(settings)
    book = ConnectionBook(engine, operator, settings.for_all(settings.connection_guard), ring)
    pepper = settings.read_key_pepper()
    instrument, gym = load_atomic(), load_personagym()
    contexts = JobContexts(engine)
    prices = GenaiPriceBook(operator)
    submission = SubmissionDependencies(
        engine=engine,
        catalog=load_catalog(
            operator, pepper or secrets.token_bytes(PEPPER_BYTES), reply_days=settings.reply_days
        ),
        queue=queue,
        window=settings.shard_window,
        max_planned_calls=settings.max_planned_calls,
        confirm_calls_above=settings.confirm_calls_above,
        max_unfinished_jobs=settings.max_unfinished_jobs,
        prices=prices,
        book=book,
    )
    results = ResultsReader(engine, contexts)
    readers = ReaderPool(
        "app.services.file_readers:prepare", partial(note_reader_end, engine), cache_folders()
    )
    progress, holds = RecentProgress(engine), partial(read_holds, redis)
    return Services(
        engine=engine,
        row_level_security=isolated,
        every_tenant=every_tenant,
        probe=connect(
            database_url,
            pool_size=database_timeouts.PROBES,
            application_name=database_timeouts.NAME,
            pooler=settings.database_pooler,
        ),
        redis=redis,
        instrument=instrument,
        gym=gym,
        book=book,
        making_connections=ConnectionDependencies(engine, operator, settings.connection_guard, ring),
        submission=submission,
        share_links=ShareLinkFinder(every_tenant),
        planning=PlanDependencies(
            submission,
            operator,
            prices,
            settings.max_in_flight,
            settings.max_unwritten,
            NoiseReader(engine, results).read,
        ),
        checking=CheckDependencies(engine, submission.catalog, book, prices, settings.transport),
        control=ControlDependencies(
            engine, queue, settings.shard_window, submission.call_rules, settings.max_unfinished_jobs
        ),
        contexts=contexts,
        results=results,
        progress=progress,
        follower=JobFollower(engine, progress, holds),
        holds=holds,
        metrics=MetricsReader(every_tenant, board, queue, board.process),
        is_local=is_loopback(settings.host),
        public_url=settings.public_url,
        body_bytes=settings.max_body_bytes,
        readers=readers,
        bundles=ReceivedFiles(),
        uploads=UploadDependencies(
            engine,
            readers,
            submission.catalog.rules,
            settings.max_upload_bytes,
            settings.tenant_upload_bytes,
            settings.upload_days,
        ),
        webhooks=WebhookDependencies(engine, settings.webhook_guard, ring),
        keys=KeyDependencies(engine, pepper),
        keyring=ApiKeyAuthenticator(every_tenant, pepper),
        refused_keys=RefusedKeys(),
        request_rates=RequestRates(redis),
        change_pace=ChangePace(settings.tenant_changes_per_second),
        signer=Signer(pepper or secrets.token_bytes(PEPPER_BYTES)),
        answers=Answers(settings.answer_bytes, settings.max_streams, LARGE_ANSWER_ENDED.set),
        large_answers=Turns(6, 3, waiting=64),
        figure_turns=Turns(2, 1, waiting=8, seconds=20),
        report_turns=Turns(2, 1),
        reports=ReportPages(engine, readers),
        ready_workers=board.ready,
        troubles=board.troubles,
        database=DatabaseCheck(engine),
        states=StateLog(),
    )


class RequestContext:
    """Gives every request an id, which its answer, its problem and its log line carry, and nobody's rows to begin with."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        act_for("")  # a server may begin a request where it ended the last one
        request_id = new_id("req")
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def named(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        started = clock.monotonic()
        try:
            await self._app(scope, receive, named)
        finally:
            count_request(scope["method"], status)
            milliseconds = round(clock.milliseconds_since(started), 1)
            log.debug(
                "request",
                id=request_id,
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=milliseconds,
            )


class ToldStart:
    """Has the server say why the application does not start, without the traceback that the framework gives it instead."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles the application's life, or one request."""

        async def told(message: MutableMapping[str, Any]) -> None:
            error = sys.exc_info()[1]  # which the framework is just handling
            if message["type"] == "lifespan.startup.failed" and isinstance(error, StartError):
                message["message"] = str(error)
            await send(message)

        await self._app(scope, receive, told if scope["type"] == "lifespan" else send)
