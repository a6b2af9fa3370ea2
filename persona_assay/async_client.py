"""The client for programs on asyncio: nothing blocks the loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Literal, ParamSpec, Self, TypeVar

import httpx2

from persona_assay import administration, operations
from persona_assay.calls import Call, Page
from persona_assay.draft import Draft
from persona_assay.errors import ProblemError
from persona_assay.exchange import (
    FOLLOWING_RETRY_SECONDS,
    RETRY_SECONDS,
    Core,
    Exchange,
    Listener,
    Watch,
)
from persona_assay.methods import described
from persona_assay.notebook import progress_shown
from persona_assay.operations import ExportFormat, ReportFormat, ReportLevel
from persona_assay.sent_file import SentFile, is_unfinished, lost_answer
from persona_assay.types import JobDetail, Upload

P = ParamSpec("P")
T = TypeVar("T")


def _method(build: Callable[P, Call[T]]) -> Callable[Concatenate["AsyncAssayClient", P], Awaitable[T]]:
    async def method(self: "AsyncAssayClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(build(*args, **kwargs))

    return described(method, build)


def _listing(
    build: Callable[P, Call[Page[T]]],
) -> Callable[Concatenate["AsyncAssayClient", P], AsyncIterator[T]]:
    async def method(self: "AsyncAssayClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        call = build(*args, **kwargs)
        while True:
            page = await self.send(call)
            for entry in page["data"]:
                yield entry
            if page["next_cursor"] is None:
                return
            call = call.after(page["next_cursor"])

    return described(method, build)


def _streamed(
    build: Callable[P, Call[bytes]],
) -> Callable[Concatenate["AsyncAssayClient", P], AsyncIterator[bytes]]:
    async def method(self: "AsyncAssayClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[bytes]:
        async with self._stream(build(*args, **kwargs)) as response:
            async for piece in response.aiter_bytes():
                yield piece

    return described(method, build, AsyncIterator[bytes])


class AsyncAssayClient:
    """`persona_assay.AssayClient` with methods to await, and lists and states by ``async for``."""

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        retry_seconds: float = RETRY_SECONDS,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._core = Core(url, api_key, retry_seconds)
        try:
            self._http = httpx2.AsyncClient(transport=transport, **self._core.settings())
        except httpx2.InvalidURL as error:
            raise self._core.explained(error) from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._core.url

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    submit = _method(operations.submit)
    clone = _method(operations.clone)
    read_import = _method(operations.read_import)
    create_share_link = _method(operations.create_share_link)
    share_links = _method(operations.share_links)
    revoke_share_link = _method(operations.revoke_share_link)
    plan = _method(operations.plan)
    jobs = _method(operations.jobs)
    iter_jobs = _listing(operations.jobs)
    job = _method(operations.job)
    change_budget = _method(operations.change_budget)
    change_job = _method(operations.change_job)
    delete_job = _method(operations.delete_job)
    cancel = _method(operations.cancel)
    pause = _method(operations.pause)
    resume = _method(operations.resume)
    retry = _method(operations.retry)
    reread = _method(operations.reread)

    results = _method(operations.results)
    distances = _method(operations.distances)
    environments = _method(operations.environments)
    groups = _method(operations.groups)
    results_by_instruction = _method(operations.results_by_instruction)
    responses = _method(operations.responses)
    iter_responses = _listing(operations.responses)
    judge_calls = _method(operations.judge_calls)
    side_by_side = _method(operations.side_by_side)
    figure = _method(operations.figure)

    gate = _method(operations.gate)
    gate_junit = _method(operations.gate_junit)
    compare = _method(operations.compare)
    compare_models = _method(operations.compare_models)
    bridge = _method(operations.bridge)

    create_upload = _method(operations.create_upload)
    add_upload_part = _method(operations.add_upload_part)
    get_upload = _method(operations.get_upload)
    uploads = _method(operations.uploads)
    iter_uploads = _listing(operations.uploads)
    delete_upload = _method(operations.delete_upload)

    keep_personas = _method(operations.keep_personas)
    keep_persona_file = _method(operations.keep_persona_file)
    generate_personas = _method(operations.generate_personas)
    persona_set = _method(operations.persona_set)
    persona_sets = _method(operations.persona_sets)
    iter_persona_sets = _listing(operations.persona_sets)
    keep_questions = _method(operations.keep_questions)
    question_set = _method(operations.question_set)
    question_sets = _method(operations.question_sets)
    iter_question_sets = _listing(operations.question_sets)
    question_set_exemplars = _method(operations.question_set_exemplars)
    iter_question_set_exemplars = _listing(operations.question_set_exemplars)
    exemplars = _method(operations.exemplars)
    iter_exemplars = _listing(operations.exemplars)
    keep_rubrics = _method(operations.keep_rubrics)
    rubric_set = _method(operations.rubric_set)
    rubric_sets = _method(operations.rubric_sets)
    iter_rubric_sets = _listing(operations.rubric_sets)

    keep_annotations = _method(operations.keep_annotations)
    keep_annotation_file = _method(operations.keep_annotation_file)
    annotations = _method(operations.annotations)
    iter_annotations = _listing(operations.annotations)
    annotations_csv = _method(operations.annotations_csv)
    set_flag = _method(operations.set_flag)
    flags = _method(operations.flags)
    iter_flags = _listing(operations.flags)
    remove_flag = _method(operations.remove_flag)
    draw_labelling_round = _method(operations.draw_labelling_round)
    labelling_round = _method(operations.labelling_round)
    calibration = _method(operations.calibration)
    human_study = _method(operations.human_study)

    create_schedule = _method(administration.create_schedule)
    schedule = _method(administration.schedule)
    schedules = _method(administration.schedules)
    iter_schedules = _listing(administration.schedules)
    change_schedule = _method(administration.change_schedule)
    delete_schedule = _method(administration.delete_schedule)
    schedule_runs = _method(administration.schedule_runs)
    iter_schedule_runs = _listing(administration.schedule_runs)
    schedule_figure = _method(administration.schedule_figure)
    create_webhook = _method(administration.create_webhook)
    webhook = _method(administration.webhook)
    webhooks = _method(administration.webhooks)
    iter_webhooks = _listing(administration.webhooks)
    change_webhook = _method(administration.change_webhook)
    rotate_webhook_secret = _method(administration.rotate_webhook_secret)
    delete_webhook = _method(administration.delete_webhook)
    test_webhook = _method(administration.test_webhook)
    webhook_deliveries = _method(administration.webhook_deliveries)
    iter_webhook_deliveries = _listing(administration.webhook_deliveries)
    create_api_key = _method(administration.create_api_key)
    api_key = _method(administration.api_key)
    api_keys = _method(administration.api_keys)
    iter_api_keys = _listing(administration.api_keys)
    limits = _method(administration.limits)
    change_api_key = _method(administration.change_api_key)
    rotate_api_key = _method(administration.rotate_api_key)
    revoke_api_key = _method(administration.revoke_api_key)
    create_connection = _method(administration.create_connection)
    connection = _method(administration.connection)
    connections = _method(administration.connections)
    change_connection = _method(administration.change_connection)
    delete_connection = _method(administration.delete_connection)

    personas = _method(operations.personas)
    tasks = _method(operations.tasks)
    models = _method(operations.models)
    check_model = _method(operations.check_model)
    baselines = _method(operations.baselines)
    name_baseline = _method(operations.name_baseline)
    baseline = _method(operations.baseline)
    rename_baseline = _method(operations.rename_baseline)
    delete_baseline = _method(operations.delete_baseline)

    async def follow(self, job_id: str, *, timeout: float | None = None) -> AsyncIterator[JobDetail]:  # noqa: ASYNC109 - as in the other client
        """A job's states until it is over, the last one included; see `AssayClient.follow`."""
        watch = Watch(job_id, timeout, self._core.clock)
        while True:
            yield watch.take(await self.send(watch.call(), retry_seconds=FOLLOWING_RETRY_SECONDS))
            pause = watch.pause()
            if pause is None:
                return
            await asyncio.sleep(pause)

    async def wait(
        self,
        job_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as in the other client
        progress: bool = False,
    ) -> JobDetail:
        """A job once it is over, however it ended; see `AssayClient.wait`."""
        with progress_shown() if progress else nullcontext() as show:
            async for job in self.follow(job_id, timeout=timeout):
                if show:
                    show(job)
        return job

    async def events(self, job_id: str) -> AsyncIterator[JobDetail]:
        """A job's states as the service tells them, until it is over; see `AssayClient.events`."""
        listener = Listener(job_id)
        while not listener.is_over:
            async with self._stream(listener.call(), retry_seconds=FOLLOWING_RETRY_SECONDS) as response:
                listener.begun(response)
                async for job in self._heard(listener, response):
                    yield job
            if not listener.is_over:
                await asyncio.sleep(listener.pause)

    report = _streamed(operations.report)

    async def save_report(
        self,
        job_id: str,
        path: str | Path,
        *,
        format: ReportFormat = "html",  # noqa: A002 - the contract's name
        level: ReportLevel = "verdicts",
    ) -> int:
        """Saves a job's results as a file that appears only once it is whole; see `AssayClient.save_report`."""
        return await _saved(self.report(job_id, format=format, level=level), path)

    export = _streamed(operations.export)
    import_bundle = _method(operations.import_bundle)

    async def save_export(
        self,
        job_id: str,
        path: str | Path,
        format: ExportFormat,  # noqa: A002 - the contract's name
        *,
        unit: Literal["response", "sentence"] | None = None,
        minimum_margin: float | None = None,
        judge: str | None = None,
        raw_replies: bool | None = None,
    ) -> int:
        """Saves an export as a file that appears only once it is whole; see `AssayClient.save_export`."""
        pieces = self.export(
            job_id, format, unit=unit, minimum_margin=minimum_margin, judge=judge, raw_replies=raw_replies
        )
        return await _saved(pieces, path)

    async def upload(
        self,
        path: str | Path,
        *,
        upload_id: str | None = None,
        purpose: str | None = None,
        on_progress: Callable[[Upload], object] | None = None,
    ) -> Upload:
        """Sends a file of existing responses in parts; see `AssayClient.upload`."""
        file = await asyncio.to_thread(SentFile, path, purpose)
        upload = (
            await self._begun(file) if upload_id is None else file.checked(await self.get_upload(upload_id))
        )
        tell = on_progress or (lambda _: None)
        tell(upload)
        while is_unfinished(upload):
            part = await asyncio.to_thread(file.part, upload["received"])
            try:
                await self.add_upload_part(upload["id"], upload["received"], part)
            except ProblemError as error:
                lost_answer(error)
            upload = await self.get_upload(upload["id"])
            tell(upload)
        while upload["status"] == "reading":
            await asyncio.sleep(1.0)
            upload = await self.get_upload(upload["id"])
            tell(upload)
        return upload

    async def _begun(self, file: SentFile) -> Upload:
        async for upload in self.iter_uploads(limit=100):
            if file.is_of(upload):
                return upload
        return await self.send(file.begin())

    async def send(self, call: Call[T], *, retry_seconds: float | None = None) -> T:
        """Makes a call of `persona_assay.operations`; see `AssayClient.send`."""
        exchange = Exchange(self._core, call, retry_seconds)
        return exchange.result(await self._answer(exchange, call, stream=False))

    @asynccontextmanager
    async def _stream(
        self, call: Call[object], *, retry_seconds: float | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """The answer to a call, its body still to come."""
        exchange = Exchange(self._core, call, retry_seconds)
        response = await self._answer(exchange, call, stream=True)
        try:
            if response.is_error:
                await response.aread()
                exchange.result(response)
            yield response
        except httpx2.RequestError as error:
            raise self._core.explained(error) from error
        finally:
            await response.aclose()

    async def _answer(self, exchange: Exchange[T], call: Call[T], *, stream: bool) -> httpx2.Response:
        request = self._http.build_request(**call.request())
        while True:
            try:
                response = await self._http.send(request, stream=stream)
            except httpx2.RequestError as error:
                pause = exchange.after_loss(error)
            else:
                again = exchange.after_answer(response)
                if again is None:
                    return response
                await response.aclose()
                pause = again
            await asyncio.sleep(pause)

    async def _heard(self, listener: Listener, response: httpx2.Response) -> AsyncIterator[JobDetail]:
        """What a connection tells until it ends or breaks."""
        if listener.is_over:
            return
        try:
            async for event in httpx2.EventSource(response, max_event_size=None):
                job = listener.take(event)
                if job is not None:
                    yield job
        except httpx2.SSEError:
            raise
        except httpx2.TransportError:
            return


async def _saved(pieces: AsyncIterator[bytes], path: str | Path) -> int:
    """The length of a file that appears only once it is whole."""
    draft = Draft(Path(path))
    await asyncio.to_thread(draft.open)
    try:
        async for piece in pieces:
            await asyncio.to_thread(draft.write, piece)
        return await asyncio.to_thread(draft.keep)
    finally:
        await asyncio.to_thread(draft.discard)
