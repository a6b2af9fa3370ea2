"""`/v1/question-sets`: immutable sets of PersonaGym questions, named by their content."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.openapi import NOT_FOUND, PROBLEMS
from app.api.http.path_ids import id_check
from app.api.http.strict_json import StrictRoute
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import QuestionSet, QuestionSetIn, QuestionSetList, QuestionSetSummary
from app.services.sets.question_sets import find_question_set, keep_questions
from app.services.sets.sets import list_sets

router = APIRouter(
    prefix="/v1/question-sets",
    tags=["question sets"],
    route_class=StrictRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

SetId = Annotated[
    str, Path(description="A set's id."), AfterValidator(id_check("question set", r"qset_[0-9a-f]{32}"))
]


@router.post(
    "",
    operation_id="createQuestionSet",
    status_code=201,
    summary="Create a question set",
)
@needs(Scope.SUBMIT)
async def create(
    body: QuestionSetIn, services: ServicesDep, tenant: TenantDep, response: Response
) -> QuestionSet:
    """Stores questions by persona description and task. The same questions always give the same set, whoever sends them."""
    found = await keep_questions(services.engine, tenant, body, services.submission.catalog)
    response.headers["Location"] = f"/v1/question-sets/{found.id}"
    return found


@router.get("", operation_id="listQuestionSets", summary="List question sets")
@needs(Scope.READ)
async def list_(
    services: ServicesDep,
    tenant: TenantDep,
    limit: PageLimit = 20,
    after: After = None,
) -> QuestionSetList:
    """Sets, newest first, without their questions: those sent and those frozen by jobs."""
    begin = cursors.beginning(after)
    found = await list_sets(services.engine, "question_sets", tenant, limit=limit + 1, after=begin)
    return cursors.newest_first(QuestionSetList, found, limit, QuestionSetSummary.of_row)


@router.get("/{set_id}", operation_id="getQuestionSet", responses=NOT_FOUND, summary="Get a question set")
@needs(Scope.READ)
async def get(set_id: SetId, services: ServicesDep, tenant: TenantDep) -> QuestionSet:
    """A set with its questions. A finished job names its set in the manifest."""
    return await find_question_set(services.engine, tenant, set_id)
