"""`/v1/persona-sets`: immutable sets of personas, named by their content; brought along, or made up by a reasoner."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, ValidationError

from app.api.http.access import Caller, needs
from app.api.http.dependencies import CallerDep, Services, ServicesDep, TenantDep
from app.api.http.media import CSV_TYPE, JSONL_TYPES, BodyForm, form_of, json_of, text_of
from app.api.http.openapi import answers_with, described_body
from app.api.http.path_ids import id_check
from app.api.http.problems import invalid_body, wrong_field
from app.api.http.resources import resource
from app.api.http.strict_json import StrictRequest
from app.api.jobs.routes import POLL_SECONDS, IdempotencyKey
from app.api.sets.reading import add_reading
from app.domain.contract import Line
from app.domain.jobs.contract import JobDetail
from app.domain.jobs.imports import PersonaFormat
from app.domain.jobs.request import GenerateIn
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import PersonaSet, PersonaSetIn
from app.domain.sets.kinds import PERSONA_SET
from app.services.jobs.submit import Submission, submit_job
from app.services.jobs.view import view_job
from app.services.sets.persona_sets import find_persona_set, keep_file, keep_personas

router = resource(f"/{PERSONA_SET.folder}", f"{PERSONA_SET.noun}s")

TEXT_EXAMPLES = {
    **dict.fromkeys(JSONL_TYPES, '{"description": "A retired nurse from Italy", "traits": {"E": "low"}}\n'),
    CSV_TYPE: "description,traits\r\nA retired nurse from Italy,E=low\r\n",
}
SET_NAME = AfterValidator(id_check(PERSONA_SET.noun, r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}"))


@router.post(
    "",
    operation_id="createPersonaSet",
    status_code=201,
    responses=answers_with(PersonaSet, 201) | answers_with(JobDetail, 202),
    openapi_extra=described_body(PersonaSetIn, TEXT_EXAMPLES),
    summary="Create or generate a persona set",
)
@needs(Scope.SUBMIT)
async def create(
    request: StrictRequest,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
    name: Annotated[
        Line | None, Query(description="The set's name, where the body is JSON Lines or CSV.")
    ] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Stores a set of personas. The same personas always give the same set, whoever sends them.

    Takes JSON; JSON Lines with one description or object per line; or CSV with a column `description` and optionally `id` and
    `traits` (such as `E=low; A=high`). Pointers into JSON Lines and CSV begin with `/lines/<number>`.

    With `generate`, a reasoner writes personas until there are `count` distinct ones. The answer is the job that does so (202);
    when it has ended, its `links.persona_set` is the set, and its results list what was dropped and why.
    """
    form = form_of(request, BodyForm.JSONL, BodyForm.CSV)
    catalog = services.submission.catalog
    if form is not BodyForm.JSON:
        text, persona_format = text_of(await request.body()), PersonaFormat(form.value)
        found = await keep_file(services.engine, catalog, tenant, name, text, persona_format)
        return _kept(found)
    if name is not None:
        raise wrong_field("/query/name", "not allowed with a JSON body, which has its own name")
    sent = await json_of(request)
    body = _body(sent)
    if body.generate is not None:
        return await _generate(services, caller, body, body.generate, sent, idempotency_key)
    start = "" if isinstance(sent, list) else "/personas"
    found = await keep_personas(services.engine, catalog, tenant, body.name, body.personas, start)
    return _kept(found)


async def _find(services: Services, tenant: str, name: str) -> PersonaSet:
    return await find_persona_set(services.engine, services.submission.catalog, tenant, name)


add_reading(
    router,
    PERSONA_SET,
    listed="Stored sets, newest first, without their personas. `GET /v1/personas` lists the built-in sets.",
    shown="A stored or built-in set with its personas.",
    names="A set's id, or the name of a built-in one.",
    check=SET_NAME,
    find=_find,
)


async def _generate(
    services: Services, caller: Caller, body: PersonaSetIn, wanted: GenerateIn, request: Any, key: str | None
) -> Response:
    submission = Submission(wanted, request, body.name, key, caller.capped_key)
    job = await submit_job(services.submission, caller.tenant, submission)
    headers = {"Location": f"/v1/jobs/{job.id}", "Retry-After": POLL_SECONDS}
    view = await view_job(services.engine, caller.tenant, job.id)
    return JSONResponse(view.model_dump(mode="json"), HTTPStatus.ACCEPTED, headers)


def _kept(found: PersonaSet) -> Response:
    location = {"Location": f"{PERSONA_SET.path}/{found.id}"}
    return JSONResponse(found.model_dump(mode="json"), HTTPStatus.CREATED, location)


def _body(value: Any) -> PersonaSetIn:
    """The JSON body; a bare list is one of personas."""
    try:
        return PersonaSetIn.model_validate({"personas": value} if isinstance(value, list) else value)
    except ValidationError as error:
        raise invalid_body(error, value) from error
