"""`/v1/question-sets`: immutable sets of PersonaGym questions, named by their content."""

from typing import Annotated

from fastapi import Path, Response

from app.api.http.access import needs
from app.api.http.dependencies import ServicesDep, TenantDep
from app.api.http.resources import resource
from app.api.sets.reading import AN_ID, add_reading, id_of
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import QuestionSet, QuestionSetIn
from app.domain.sets.kinds import QUESTION_SET
from app.services.sets.question_sets import keep_questions

router = resource(f"/{QUESTION_SET.folder}", f"{QUESTION_SET.noun}s")
SetId = Annotated[str, Path(description=AN_ID), id_of(QUESTION_SET)]


@router.post("", operation_id="createQuestionSet", status_code=201, summary="Create a question set")
@needs(Scope.SUBMIT)
async def create(
    body: QuestionSetIn, services: ServicesDep, tenant: TenantDep, response: Response
) -> QuestionSet:
    """Stores questions by persona description and task. The same questions always give the same set, whoever sends them."""
    found = await keep_questions(services.engine, tenant, body, services.submission.catalog)
    response.headers["Location"] = f"{QUESTION_SET.path}/{found.id}"
    return found


add_reading(
    router,
    QUESTION_SET,
    listed="Sets, newest first, without their questions: those sent and those frozen by jobs.",
    shown="A set with its questions. A finished job names its set in the manifest.",
)
