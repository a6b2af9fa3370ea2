"""`/v1/jobs/{id}/responses`: responses with their verdicts, side by side, and what judges were asked."""

from typing import Annotated

from fastapi import Query, Response

from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import TAKES_A_TURN, JobId, ResponsePlace, ServicesDep, TenantDep, job_id_of
from app.api.http.openapi import NOT_FOUND, answers_with
from app.api.http.problems import wrong_field
from app.api.http.resources import resource
from app.api.jobs.response_lists import SearchedText, read_list, source_of
from app.db.results.sorted_responses import Sort as ResponseSort
from app.domain.judging.judge_call import JudgeCalls
from app.domain.judging.judged_response import ResponseList
from app.domain.judging.text_notes import TextNote
from app.domain.keys.api_key import Scope
from app.services.jobs.view import find_job
from app.services.results.judge_calls import read_judge_calls
from app.services.results.responses import APART, Arm, ResponseFilter
from app.services.results.side_by_side import Source, read_side_by_side

router = resource("/jobs", "jobs")


@router.get(
    "/{job_id}/responses",
    operation_id="listResponses",
    dependencies=[TAKES_A_TURN],
    responses=answers_with(ResponseList) | NOT_FOUND,
    summary="List responses",
)
@needs(Scope.READ)
async def responses(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    model: Annotated[str | None, Query(max_length=300)] = None,
    persona: Annotated[str | None, Query(max_length=100)] = None,
    task: Annotated[str | None, Query(max_length=100)] = None,
    out_of_character: Annotated[
        bool, Query(description="Only those with a sentence out of character.")
    ] = False,
    judges_disagree: Annotated[
        bool,
        Query(
            description="Only those of which one judge finds a sentence in character and another finds it out of"
            " character, on the same dimension, or to which two judges gave grades two or more points apart."
        ),
    ] = False,
    suspicious: Annotated[
        bool, Query(description="Only those with a verdict or grade whose `suspicion` is not `null`.")
    ] = False,
    people_against_judges: Annotated[
        bool,
        Query(
            description="Only those to which, or to a sentence of which, people gave a mean score that lies `min_gap` or more points from the"
            " mean of the judges'."
        ),
    ] = False,
    min_gap: Annotated[
        float | None, Query(gt=0, le=10_000, description=f"Of `people_against_judges`; {APART} unless given.")
    ] = None,
    flagged: Annotated[bool, Query(description="Only those with a flag, or with one on a sentence.")] = False,
    note: Annotated[TextNote | None, Query(description="Only those with this note on their text.")] = None,
    arm: Annotated[
        Arm, Query(description="`control` for those without a persona, of a job with `control`.")
    ] = "persona",
    q: SearchedText = None,
    sort: Annotated[
        ResponseSort | None,
        Query(
            description="By `score` (the share of its scores in the persona's level, or its grade), by `gap` (the farthest that two judges are"
            " apart on a sentence and dimension, or in grades), or by `length` (sentences); from the least to the greatest, with `-` the other"
            " way round. Those without such a value come last."
        ),
    ] = None,
    after: After = None,
    limit: PageLimit = 50,
) -> Response:
    """Responses with their sentences, verdicts and the judges' replies. A page that would be too large ends early.

    With `out_of_character`, `judges_disagree`, `suspicious`, `people_against_judges` or `flagged`, a page searches 2,000 responses, so
    it can be short or empty although more follow; `has_more` tells.
    """
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    if min_gap is not None and not people_against_judges:
        raise wrong_field("/min_gap", "is for people_against_judges=true")
    gap = (min_gap or APART) if people_against_judges else None
    wanted = ResponseFilter(
        model,
        persona,
        task,
        out_of_character,
        judges_disagree,
        suspicious,
        gap,
        arm,
        q or None,
        flagged,
        note,
    )
    page, cursor = await read_list(services, job, context, wanted, sort, after=after, limit=limit)
    shown = ResponseList(data=page, has_more=cursor is not None, next_cursor=cursor)
    return Response(shown.model_dump_json(), media_type="application/json")


@router.get(
    "/{job_id}/responses/{response_id}/side-by-side",
    operation_id="listSideBySide",
    dependencies=[TAKES_A_TURN],
    responses=answers_with(ResponseList) | NOT_FOUND,
    summary="Read what several models answered to the same",
)
@needs(Scope.READ)
async def side_by_side(
    named: ResponsePlace,
    services: ServicesDep,
    tenant: TenantDep,
    with_: Annotated[
        str | None,
        Query(
            alias="with",
            max_length=100,
            description="Another job, whose models' responses are read instead of this job's.",
        ),
    ] = None,
) -> Response:
    """The response, then those of the other models to the same persona, task, item and run, as far as they make a page."""
    job, context, place = named
    other = None if with_ is None else await source_of(services, tenant, job_id_of(with_))
    found, more = await read_side_by_side(services.engine, Source(job, context), place, other)
    shown = ResponseList(data=found, has_more=more, next_cursor=None)
    return Response(shown.model_dump_json(), media_type="application/json")


@router.get(
    "/{job_id}/responses/{response_id}/judge-calls",
    operation_id="listJudgeCalls",
    responses=NOT_FOUND,
    summary="Read what judges were asked",
)
@needs(Scope.READ)
async def judge_calls(
    named: ResponsePlace,
    services: ServicesDep,
    unit: Annotated[
        int | None,
        Query(
            ge=0, le=32_767, description="The sentence, from 0; without it, the grades of the whole response."
        ),
    ] = None,
) -> JudgeCalls:
    """Each judge's prompt, word for word, and its reply as it came.

    Prompts are not stored: the code that made them for the calls makes them again from the stored job. `certain` says whether it is
    known to be the same code.
    """
    return await read_judge_calls(services.engine, *named, unit)
