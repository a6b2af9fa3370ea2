"""The client for programs that wait for each answer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
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


def _method(build: Callable[P, Call[T]]) -> Callable[Concatenate["AssayClient", P], T]:
    def method(self: "AssayClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(build(*args, **kwargs))

    return described(method, build)


def _listing(build: Callable[P, Call[Page[T]]]) -> Callable[Concatenate["AssayClient", P], Iterator[T]]:
    def method(self: "AssayClient", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        call = build(*args, **kwargs)
        while True:
            page = self.send(call)
            yield from page["data"]
            if page["next_cursor"] is None:
                return
            call = call.after(page["next_cursor"])

    return described(method, build)


def _streamed(
    build: Callable[P, Call[bytes]],
) -> Callable[Concatenate["AssayClient", P], Iterator[bytes]]:
    def method(self: "AssayClient", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[bytes]:
        with self._stream(build(*args, **kwargs)) as response:
            yield from response.iter_bytes()

    return described(method, build, Iterator[bytes])


class AssayClient:
    """A client of the service; a context manager that holds the connections.

    A call is repeated, with growing pauses, when its connection breaks or the service says that it is away; calls that
    may not safely be made twice only where they never left. A service that has never answered is given a second.

    Args:
        url: The service's URL; ``ASSAY_URL``, or this machine's port 8321, unless given.
        api_key: The key to ask with; ``ASSAY_API_KEY`` unless given. A service without keys needs none.
        retry_seconds: For how many seconds a call is repeated while the service is away; waiting for a job, for ten minutes.
        transport: How requests are sent; HTTP by default.

    Raises:
        AssayError: ``url`` is none, or the key cannot be one.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        retry_seconds: float = RETRY_SECONDS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._core = Core(url, api_key, retry_seconds)
        try:
            self._http = httpx2.Client(transport=transport, **self._core.settings())
        except httpx2.InvalidURL as error:
            raise self._core.explained(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._core.url

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

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

    def follow(self, job_id: str, *, timeout: float | None = None) -> Iterator[JobDetail]:
        """A job's states until it is over, the last one included; the service says how often to ask.

        Raises:
            TimeoutError: It is not over after ``timeout`` seconds. The job goes on.
        """
        watch = Watch(job_id, timeout, self._core.clock)
        while True:
            yield watch.take(self.send(watch.call(), retry_seconds=FOLLOWING_RETRY_SECONDS))
            pause = watch.pause()
            if pause is None:
                return
            time.sleep(pause)

    def wait(self, job_id: str, *, timeout: float | None = None, progress: bool = False) -> JobDetail:
        """A job once it is over, however it ended.

        Args:
            job_id: The job.
            timeout: For how many seconds to wait; until it is over unless given.
            progress: Whether to show how far it is, in a notebook or on standard error.

        Raises:
            TimeoutError: It is not over after ``timeout`` seconds. The job goes on.
        """
        with progress_shown() if progress else nullcontext() as show:
            for job in self.follow(job_id, timeout=timeout):
                if show:
                    show(job)
        return job

    def events(self, job_id: str) -> Iterator[JobDetail]:
        """A job's states as the service tells them, until it is over; goes on where a broken connection left off."""
        listener = Listener(job_id)
        while not listener.is_over:
            with self._stream(listener.call(), retry_seconds=FOLLOWING_RETRY_SECONDS) as response:
                listener.begun(response)
                yield from self._heard(listener, response)
            if not listener.is_over:
                time.sleep(listener.pause)

    report = _streamed(operations.report)

    def save_report(
        self,
        job_id: str,
        path: str | Path,
        *,
        format: ReportFormat = "html",  # noqa: A002 - the contract's name
        level: ReportLevel = "verdicts",
    ) -> int:
        """Saves a job's results as a file that appears only once it is whole.

        Returns:
            Its length in bytes.

        Raises:
            OSError: It cannot be written.
        """
        return _saved(self.report(job_id, format=format, level=level), path)

    export = _streamed(operations.export)
    import_bundle = _method(operations.import_bundle)

    def save_export(
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
        """Saves an export as a file that appears only once it is whole.

        Returns:
            Its length in bytes.

        Raises:
            OSError: It cannot be written.
        """
        pieces = self.export(
            job_id, format, unit=unit, minimum_margin=minimum_margin, judge=judge, raw_replies=raw_replies
        )
        return _saved(pieces, path)

    def upload(
        self,
        path: str | Path,
        *,
        upload_id: str | None = None,
        purpose: str | None = None,
        on_progress: Callable[[Upload], object] | None = None,
    ) -> Upload:
        """Sends a file of existing responses in parts, for a job's ``{"responses": {"upload": …}}``.

        What has arrived of the same file before is not sent again, whoever sent it: it is known by its SHA-256.

        Args:
            path: JSON Lines, perhaps compressed by gzip or zstd, or Parquet; each record has the fields of a job's response.
            upload_id: The upload of this file to go on with, if another client began it.
            purpose: ``import`` of any file that another tool wrote, for `read_import`.
            on_progress: Called with the upload's state before each part and at the end.

        Returns:
            The upload, with its number of records. After the first part with an error nothing more is sent.

        Raises:
            OSError: The file cannot be read.
            AssayError: The file was changed meanwhile, or the upload is of another one.
        """
        file = SentFile(path, purpose)
        upload = self._begun(file) if upload_id is None else file.checked(self.get_upload(upload_id))
        tell = on_progress or (lambda _: None)
        tell(upload)
        while is_unfinished(upload):
            part = file.part(upload["received"])
            try:
                self.add_upload_part(upload["id"], upload["received"], part)
            except ProblemError as error:
                lost_answer(error)
            upload = self.get_upload(upload["id"])
            tell(upload)
        while upload["status"] == "reading":
            time.sleep(1.0)
            upload = self.get_upload(upload["id"])
            tell(upload)
        return upload

    def _begun(self, file: SentFile) -> Upload:
        known = next(filter(file.is_of, self.iter_uploads(limit=100)), None)
        return known or self.send(file.begin())

    def send(self, call: Call[T], *, retry_seconds: float | None = None) -> T:
        """Makes a call of `persona_assay.operations`.

        Args:
            call: The call.
            retry_seconds: For how many seconds it is repeated, if that is more than the client's own.

        Raises:
            ProblemError: The service refused.
            UnreachableError: Nothing answered in all that time.
        """
        exchange = Exchange(self._core, call, retry_seconds)
        return exchange.result(self._answer(exchange, call, stream=False))

    @contextmanager
    def _stream(self, call: Call[object], *, retry_seconds: float | None = None) -> Iterator[httpx2.Response]:
        """The answer to a call, its body still to come."""
        exchange = Exchange(self._core, call, retry_seconds)
        response = self._answer(exchange, call, stream=True)
        try:
            if response.is_error:
                response.read()
                exchange.result(response)
            yield response
        except httpx2.RequestError as error:
            raise self._core.explained(error) from error
        finally:
            response.close()

    def _answer(self, exchange: Exchange[T], call: Call[T], *, stream: bool) -> httpx2.Response:
        request = self._http.build_request(**call.request())
        while True:
            try:
                response = self._http.send(request, stream=stream)
            except httpx2.RequestError as error:
                pause = exchange.after_loss(error)
            else:
                again = exchange.after_answer(response)
                if again is None:
                    return response
                response.close()
                pause = again
            time.sleep(pause)

    def _heard(self, listener: Listener, response: httpx2.Response) -> Iterator[JobDetail]:
        """What a connection tells until it ends or breaks."""
        if listener.is_over:
            return
        try:
            for event in httpx2.EventSource(response, max_event_size=None):
                job = listener.take(event)
                if job is not None:
                    yield job
        except httpx2.SSEError:
            raise
        except httpx2.TransportError:
            return


def _saved(pieces: Iterator[bytes], path: str | Path) -> int:
    """The length of a file that appears only once it is whole."""
    draft = Draft(Path(path))
    draft.open()
    try:
        for piece in pieces:
            draft.write(piece)
        return draft.keep()
    finally:
        draft.discard()
