"""`/v1/annotations` and `/v1/labelling-rounds`."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from fastapi import Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, ValidationError

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.answers import Download, Reader, count_answer
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import (
    TAKES_A_TURN,
    JobId,
    Services,
    ServicesDep,
    TenantDep,
    job_id_of,
)
from app.api.http.media import CSV_TYPE, BodyForm, form_of, json_of, text_of
from app.api.http.openapi import CONFLICT, NOT_FOUND, Responses, described_body
from app.api.http.path_ids import id_check
from app.api.http.resources import resource
from app.api.http.strict_json import StrictRequest
from app.domain.errors import FieldError, InvalidJobError
from app.domain.keys.api_key import Scope
from app.domain.labels.annotation import MOST_ROWS, ROWS_AT_ONCE
from app.domain.labels.annotation_file import AnnotationDraft, read_csv
from app.domain.labels.calibration import HALF_WIDTH
from app.domain.labels.contract import (
    RESPONSE,
    AnnotationList,
    AnnotationsIn,
    JobCalibration,
    KeptAnnotations,
    LabellingRound,
    LabellingRoundIn,
)
from app.domain.labels.human_agreement import HumanStudy
from app.domain.labels.rounds import NO_PILOT, Allocation
from app.domain.validation import field_error
from app.services.identifiers import id_form
from app.services.jobs.view import find_job
from app.services.labels.annotations import (
    AnnotationFilter,
    export_csv,
    keep_annotations,
    read_annotations,
    show_annotation,
)
from app.services.labels.rounds import draw_round, show_round
from app.services.results.calibration import read_pilot

router = resource("", "annotations")

ANNOTATIONS: Responses = {
    200: {
        "model": AnnotationList,
        "content": {"application/json": {}, f"{CSV_TYPE}; charset=utf-8": {}},
    }
}
CSV_EXAMPLE = f"annotator,response,unit,score\r\nanna,{RESPONSE},0,4\r\n"
RoundId = Annotated[
    str, Path(description="A round's id."), AfterValidator(id_check("labelling round", id_form("lab")))
]


@router.post(
    "/annotations",
    operation_id="addAnnotations",
    responses=NOT_FOUND,
    openapi_extra=described_body(AnnotationsIn, {CSV_TYPE: CSV_EXAMPLE}),
    summary="Add annotations",
)
@needs(Scope.SUBMIT)
async def create(request: StrictRequest, services: ServicesDep, tenant: TenantDep) -> KeptAnnotations:
    """Stores human labels of sentences, pairs of sentences and responses: all of them or, if any is invalid, none.

    Takes JSON, or CSV with the columns that `GET` returns, of which `annotator` and `response` are required. Pointers into CSV
    begin with `/lines/<number>`. Sending the same labels again changes nothing; a new answer by the same annotator replaces
    the earlier one. The job's results show how far people agree with the judges in `human_agreement`.
    """
    if form_of(request, BodyForm.CSV) is BodyForm.CSV:
        drafts = await asyncio.to_thread(_drafts_of_csv, await request.body())
    else:
        drafts = await asyncio.to_thread(_drafts_of_json, await json_of(request))
    return await keep_annotations(services.engine, services.contexts, tenant, drafts)


def _drafts_of_csv(body: bytes) -> Sequence[AnnotationDraft]:
    """CPU only."""
    read = read_csv(text_of(body))
    if read.errors:
        raise InvalidJobError(read.errors)
    return read.drafts


def _drafts_of_json(sent: object) -> Sequence[AnnotationDraft]:
    """CPU only."""
    drafts: list[AnnotationDraft] = []
    errors: list[FieldError] = []
    for start, part in _slices(sent):
        try:
            drafts += AnnotationsIn.model_validate(part).to_drafts(start)
        except ValidationError as error:
            errors += [
                field_error({**each, "loc": _moved(each["loc"], start)}, sent) for each in error.errors()
            ]
    if errors:
        raise InvalidJobError(list(dict.fromkeys(errors)))
    return drafts


def _slices(sent: object) -> Iterator[tuple[int, object]]:
    """What was sent, some annotations at a time, each time with the index of the first: while pydantic is at it, no other thread runs."""
    rows = sent.get("annotations") if isinstance(sent, dict) else None
    if not isinstance(sent, dict) or not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
        yield 0, sent  # wrong as a whole
        return
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield start, sent | {"annotations": rows[start : start + ROWS_AT_ONCE]}


def _moved(location: Sequence[int | str], by: int) -> tuple[int | str, ...]:
    """Where in the body a location within a slice is."""
    return "body", *(
        token + by if n == 1 and isinstance(token, int) else token for n, token in enumerate(location)
    )


@router.get(
    "/annotations",
    operation_id="listAnnotations",
    responses=ANNOTATIONS | NOT_FOUND,
    summary="List annotations",
)
@needs(Scope.READ)
async def list_(
    request: Request,
    services: ServicesDep,
    tenant: TenantDep,
    job: Annotated[str | None, Query(max_length=100, description="Only about this job.")] = None,
    annotator: Annotated[
        str | None, Query(max_length=100, pattern=r"^[^\x00]*$", description="Only this person's.")
    ] = None,
    format_: Annotated[
        Literal["json", "csv"], Query(alias="format", description="`csv` is all of them, streamed.")
    ] = "json",
    limit: PageLimit = 50,
    after: After = None,
) -> Response:
    """Annotations, in the order in which they were first given."""
    wanted = AnnotationFilter(None if job is None else job_id_of(job), annotator)
    if format_ == "csv":
        count_answer(request, Reader(tenant))
        chunks = export_csv(services.engine, tenant, wanted)
        headers = {"Content-Disposition": f'attachment; filename="{job or "all"}-annotations.csv"'}
        return Download(chunks, media_type=f"{CSV_TYPE}; charset=utf-8", headers=headers)
    begin = 0 if after is None else cursors.number(after)
    found = await read_annotations(services.engine, tenant, wanted, after=begin, limit=limit + 1)
    page = cursors.page(
        AnnotationList, found, limit, show_annotation, lambda each: cursors.encoded([each.id])
    )
    return JSONResponse(page.model_dump(mode="json"))


@router.post(
    "/labelling-rounds",
    operation_id="drawLabellingRound",
    status_code=201,
    responses=NOT_FOUND | CONFLICT,
    summary="Create a labelling round",
)
@needs(Scope.SUBMIT)
async def draw(
    body: LabellingRoundIn, services: ServicesDep, tenant: TenantDep, response: Response
) -> LabellingRound:
    """Draws sentences, or pairs of sentences with different scores, as evenly over the scores as possible, or by `allocation`.

    For whole responses, draws personas at random and, for each, one response per task and model, with all models answering the same
    question; then a second one of each, as far as `size` allows.

    People label at `links.page`, which shows neither scores nor model names. The same body always gives the same round.
    """
    job_id_of(body.job)  # another text is no job's id
    made = await draw_wanted(services, tenant, body)
    response.headers["Location"] = f"/v1/labelling-rounds/{made.id}"
    return made


async def draw_wanted(services: Services, tenant: str, wanted: LabellingRoundIn) -> LabellingRound:
    """Draws a round, with what it needs of earlier labels."""
    pilot = NO_PILOT
    if wanted.allocation is Allocation.NEYMAN:
        job = await find_job(services.engine, tenant, wanted.job)
        pilot = await read_pilot(services.engine, services.contexts, job, wanted.dimension)
    return await draw_round(services.engine, services.contexts, tenant, wanted, pilot)


@router.get(
    "/labelling-rounds/{round_id}",
    operation_id="getLabellingRound",
    responses=NOT_FOUND,
    summary="Get a labelling round",
)
@needs(Scope.READ)
async def get(round_id: RoundId, services: ServicesDep, tenant: TenantDep) -> LabellingRound:
    """What was drawn from how much, and how much each annotator has answered."""
    return await show_round(services.engine, tenant, round_id)


@router.get(
    "/jobs/{job_id}/calibration",
    operation_id="getCalibration",
    responses=NOT_FOUND | CONFLICT,
    summary="Get human scores estimated for all texts",
)
@needs(Scope.READ)
async def calibration(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    half_width: Annotated[
        float, Query(gt=0, le=1, description="How narrow an interval labels are counted for.")
    ] = HALF_WIDTH,
) -> JobCalibration:
    """Estimates what MEAN, ACC_atom and acc_atom_corrected would be if people scored every sentence, beside the judges' values.

    Prediction-powered inference from the labels of sentences that labelling rounds drew; other labels do not count.
    """
    job = await find_job(services.engine, tenant, job_id)
    return await services.results.calibration.read(job, half_width)


@router.get(
    "/jobs/{job_id}/human-study",
    operation_id="getHumanStudy",
    dependencies=[TAKES_A_TURN],
    responses=NOT_FOUND,
    summary="Get the agreement of people and judges by model and task",
)
@needs(Scope.READ)
async def human_study(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> HumanStudy:
    """How far human labels of a job's texts agree with each judge, with the mean of the judges, and with each other.

    By model and task and, for grades, also over personas (PersonaScore), with intervals and p-values.
    """
    return await services.results.read_study(await find_job(services.engine, tenant, job_id))
