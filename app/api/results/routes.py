"""`/v1/comparisons` and `/v1/jobs/{id}/gate`: comparisons and gates."""

from typing import Annotated, Literal

from fastapi import Query, Response
from fastapi.responses import JSONResponse

from app.api.http.access import needs
from app.api.http.dependencies import (
    TAKES_A_TURN,
    JobId,
    Services,
    ServicesDep,
    TenantDep,
    job_id_of,
)
from app.api.http.openapi import CONFLICT, NOT_FOUND, Responses
from app.api.http.resources import resource
from app.domain.keys.api_key import Scope
from app.domain.results.bridge import Bridge
from app.domain.results.comparison import Comparison
from app.domain.results.gate import Gate, IntervalKind
from app.domain.results.ranking import ComparisonOfModels
from app.domain.results.request import BridgeIn, ComparisonRequest, ModelsIn, SideIn
from app.reports.junit import junit
from app.services.jobs.view import find_job
from app.services.results.bridge import bridge
from app.services.results.compare import Comparer
from app.services.results.compare_models import compare_models
from app.services.results.gate import MAX_THRESHOLDS, gate_of

router = resource("", "decisions")

JUNIT_TYPE = "application/xml"
GATE: Responses = {200: {"model": Gate, "content": {"application/json": {}, JUNIT_TYPE: {}}}}


@router.post(
    "/comparisons",
    operation_id="compareModels",
    dependencies=[TAKES_A_TURN],
    responses=NOT_FOUND | CONFLICT,
    summary="Compare models",
)
@needs(Scope.READ)
async def compare(
    body: ComparisonRequest, services: ServicesDep, tenant: TenantDep
) -> Comparison | ComparisonOfModels:
    """Paired differences a − b over the personas, tasks and dimensions that both have. Nothing is stored.

    Each persona is resampled with all of its pairs; p-values are from a sign-flip permutation test over personas. With pairing by
    items, `over_items` has the same for exactly these personas' questions.

    With `models`, compares every pair of several models on what all of them have; intervals, p-values and ranks hold for all pairs at once.
    """
    if isinstance(body, ModelsIn):
        models = [_side(each) for each in body.models]
        return await compare_models(comparer_of(services), tenant, models, body.pairing)
    return await comparer_of(services).compare(tenant, _side(body.a), _side(body.b), body.pairing)


@router.post(
    "/bridges",
    operation_id="bridgeJudges",
    dependencies=[TAKES_A_TURN],
    responses=NOT_FOUND | CONFLICT,
    summary="Bridge from one judge to another",
)
@needs(Scope.READ)
async def bridge_judges(body: BridgeIn, services: ServicesDep, tenant: TenantDep) -> Bridge:
    """How far two judges agree on the same texts, and the old judge's totals as the new one would give them. Nothing is stored.

    The new judge need have judged a sample only: a job on the texts of the old one, with `sample`.
    """
    sides = {
        name: side.model_copy(update={"job": job_id_of(side.job)})
        for name, side in (("old", body.old), ("new", body.new))
    }
    return await bridge(services.engine, services.contexts, tenant, body.model_copy(update=sides))


@router.get(
    "/jobs/{job_id}/gate",
    operation_id="checkGate",
    dependencies=[TAKES_A_TURN],
    responses=GATE | NOT_FOUND,
    summary="Check results against thresholds",
)
@needs(Scope.READ)
async def gate(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    threshold: Annotated[
        list[Annotated[str, Query(max_length=500)]] | None,
        Query(
            max_length=MAX_THRESHOLDS,
            description="`acc_atom>=0.8`, `acc_atom@task=essay,level=low>=0.6`, `refusal_rate<=0.02`; `:gte:` and `:lte:`"
            " mean the same as the signs. ` over personas like these`, ` over these personas`, ` over wordings like these` or"
            " ` over personas and wordings like these` chooses the interval of one, ` calibrated` before that the figure as people"
            " would give it. `acc_atom"
            " not worse than job_…:model by 0.03` compares with another job by its paired difference. Without any, the job's own `thresholds`.",
            examples=[["acc_atom>=0.8"]],
        ),
    ] = None,
    interval: Annotated[
        IntervalKind,
        Query(
            description="Whose interval decides: over personas like these (`ci95`), over the runs of these very cells"
            " (`ci95_runs`), over wordings like these (`ci95_wordings`), or over personas and wordings like these (`ci95_both`)."
        ),
    ] = "personas",
    minimum_coverage: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="A figure of a smaller share of what was planned is inconclusive. [the job's own `minimum_coverage`]",
        ),
    ] = None,
    format_: Annotated[Literal["json", "junit"], Query(alias="format")] = "json",
) -> Response:
    """`pass` if the whole interval of every value meets its threshold, `fail` if the whole interval of any value misses it, else `inconclusive`."""
    job = await find_job(services.engine, tenant, job_id)
    found = await gate_of(comparer_of(services), job, threshold, interval, minimum_coverage)
    if format_ == "junit":
        return junit_answer(job_id, found)
    return JSONResponse(found.model_dump())


def junit_answer(job_id: str, gate: Gate) -> Response:
    """A gate as JUnit XML."""
    return Response(junit(job_id, gate), media_type=JUNIT_TYPE)


def comparer_of(services: Services) -> Comparer:
    """What comparisons and gates read from."""
    return Comparer(services.engine, services.contexts, services.results)


def _side(side: SideIn) -> SideIn:
    return side if side.job is None else side.model_copy(update={"job": job_id_of(side.job)})
