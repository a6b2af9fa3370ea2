"""`/new`: builds a job, says what it would take and cost, and submits it."""

import hashlib
import json
import re
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from app.api.console.forms import typed_by
from app.api.console.job_form import JobForm, Typed, field, form_of, form_of_source
from app.api.http.access import Caller, needs
from app.api.http.dependencies import (
    CallerDep,
    Services,
    ServicesDep,
    TenantDep,
    job_id_of,
    no_unknown_parameters,
)
from app.api.http.pages import page
from app.api.http.problems import ProblemError
from app.api.jobs.job_route import job_of
from app.api.providers.model_routes import keep_check_rate
from app.db.jobs.jobs import JobRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.request import JobIn, ModelIn, PlanIn
from app.domain.jobs.source_request import DrawnBy, SampleIn
from app.domain.keys.api_key import Scope
from app.domain.providers.contract import CheckedRole
from app.domain.sets.kinds import PERSONA_SET, RUBRIC_SET
from app.domain.validation import field_error
from app.llm.connections.connections import Connections
from app.services.errors import CallNotAllowedError, SpendingCapError
from app.services.identifiers import new_id
from app.services.jobs.check_model import Check, check_model
from app.services.jobs.clone import changed_body
from app.services.jobs.plan import plan_job
from app.services.jobs.submit import Submission, submit_job
from app.services.jobs.view import find_job
from app.services.sets.rubric_sets import catalog_with_rubrics
from app.services.sets.sets import list_sets

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

SMALLEST_PRICE = 0.0001
KEPT_SETS = 50
"""Kept sets of a kind that can be chosen, the newest."""

Json = dict[str, Any]


@router.get("/new")
@needs(Scope.READ)
async def new(
    services: ServicesDep,
    tenant: TenantDep,
    from_: Annotated[
        str | None, Query(alias="from", description="A job whose body fills in the form.")
    ] = None,
    judge: Annotated[str | None, Query(description="A job whose texts are to be judged again.")] = None,
    anchors: Annotated[
        int | None, Query(ge=1, le=200_000, description="A sample of so many of them.")
    ] = None,
    by: Annotated[DrawnBy, Query(description="What is drawn.")] = "responses",
    personas: Annotated[str, Query(description="A persona set that is chosen already.", max_length=100)] = "",
) -> Response:
    """An empty form, or one that is filled in as a job was described."""
    if from_ is not None:
        return await _again(services, tenant, job_id_of(from_))
    if judge is not None:
        sample = None if anchors is None else SampleIn(responses=anchors, by=by)
        return await _judged_again(services, tenant, job_id_of(judge), sample)
    tasks = list(services.instrument.tasks)
    typed = Typed(
        {
            "persona": [personas] if personas else list(services.instrument.persona_sets),
            "task": tasks,
            "instruction": [str(n) for n in range(len(services.instrument.instructions))],
            "iterations": ["1"],
        }
    )
    return await _shown(services, tenant, typed)


async def _again(services: Services, tenant: str, job_id: str) -> Response:
    """The form that makes a job again; what the job was given, but its body does not have, is asked for."""
    job, missing = await find_job(services.engine, tenant, job_id), []
    try:
        await changed_body(services.engine, tenant, job_id, {})
    except InvalidJobError as error:
        missing = list(error.errors)
    catalog, instrument = services.submission.catalog, services.instrument
    kept = await list_sets(services.engine, PERSONA_SET, tenant, limit=KEPT_SETS, after=None)
    names = [*catalog.persona_sets, *instrument.personas, *(each.id for each in kept)]
    typed = form_of(job.request, names, len(instrument.instructions))
    errors = JobForm(typed, len(instrument.instructions)).errors(missing)
    return await _shown(services, tenant, typed, errors=errors, again=job)


async def _judged_again(services: Services, tenant: str, job_id: str, sample: SampleIn | None) -> Response:
    """The form of a job on the texts of another one, or on anchors drawn of them, with its judges to be replaced."""
    job = await find_job(services.engine, tenant, job_id)
    judges = job.request.get("judges") or [each.model for each in services.submission.catalog.judges]
    texts: Json = {"job": job.id}
    if sample is not None:
        texts |= {"filter": {"status": ["answered"]}, "sample": sample.model_dump()}
    body = {"responses": texts, "judges": judges, "protocol": job.request.get("protocol", "paper")}
    if sample is not None and "rubrics" in job.request:
        body["rubrics"] = job.request["rubrics"]
    return await _shown(services, tenant, form_of_source(job.id, body))


KEY = re.compile(r"form_[0-9a-z]{1,64}")
"""What we put into the form ourselves."""


CALLS = re.compile(r"[1-9][0-9]{0,11}")
"""How many calls the plan named that was seen, if they have to be confirmed."""


SIZE = re.compile(r"size_(?P<wordings>[1-9][0-9]?)_(?P<iterations>[1-9][0-9]{0,3})")
"""A button of a size that a plan named."""


@router.post("/new")
@needs(Scope.SUBMIT)
async def build(request: Request, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """The plan of what was typed, or what is wrong with it; or the job, if its plan was seen."""
    typed = _sized(await typed_by(request))
    form = JobForm(typed, len(services.instrument.instructions))
    if form.wrong:
        wrong = form.errors(form.wrong)
        return await _shown(services, tenant, typed, HTTPStatus.UNPROCESSABLE_ENTITY, errors=wrong)
    if typed.text("action") == "check":
        return await _shown(services, tenant, typed, checks=await _checked(services, caller, form.body))
    try:
        made = await planned_or_submitted(request, services, caller, typed, form.body, form.detect)
    except InvalidJobError as error:
        errors = form.errors(dict.fromkeys(error.errors))
        return await _shown(services, tenant, typed, HTTPStatus.UNPROCESSABLE_ENTITY, errors=errors)
    return made if isinstance(made, Response) else await _shown(services, tenant, typed, planned=made)


async def planned_or_submitted(
    request: Request, services: Services, caller: Caller, typed: Typed, body: Json, detect: Json | None = None
) -> Response | Json:
    """The plan of a body; or the page of its job, if it is submitted and its plan was seen.

    Raises:
        InvalidJobError: If the body is wrong.
    """
    version = _version(body)
    if typed.text("action") == "submit" and typed.text("planned") == version:
        if CALLS.fullmatch(typed.text("confirm_calls")):
            body["confirm_calls"] = int(typed.text("confirm_calls"))
        job, key = await job_of(services.submission, caller.tenant, JobIn, body), typed.text("key")
        return await _submitted(services, caller, job, body, key if KEY.fullmatch(key) else None)
    asked = body if detect is None else body | {"detect": detect}
    wanted = await job_of(services.submission, caller.tenant, PlanIn, asked)
    plan = await plan_job(services.planning, caller.tenant, wanted, request.is_disconnected, wanted.detect)
    confirmed = {} if plan.confirm_calls is None else {"confirm_calls": plan.confirm_calls}
    return {
        "plan": plan.model_dump(mode="json"),
        "version": version,
        "key": new_id("form"),
        "body": body | confirmed,
    }


async def _submitted(services: Services, caller: Caller, job: JobIn, body: Json, key: str | None) -> Response:
    """Submits a job once, however often its button is pressed."""
    submission = Submission(job, body, job.name, key, caller.capped_key)
    made = await submit_job(services.submission, caller.tenant, submission)
    return RedirectResponse(f"/jobs/{made.id}", HTTPStatus.SEE_OTHER)


async def _checked(services: Services, caller: Caller, body: Json) -> list[Json]:
    """What short calls to the models of a job find, or why one can't be called, by the model's name."""
    roles: tuple[tuple[str, CheckedRole], ...] = (("models", "model"), ("judges", "judge"))
    found: dict[str, list[Json]] = {}
    for name, role in roles:
        all_given = body.get(name) or []
        for given in all_given if isinstance(all_given, list) else [all_given]:  # whatever JSON was pasted
            described = {"model": given} if isinstance(given, str) else given
            called = described.get("model", "?") if isinstance(described, dict) else given
            heading = f"{called} as a {role}"
            if heading not in found:
                found[heading] = await model_findings(services, caller, role, described)
    if not found:
        found["No model"] = [{"good": False, "text": "Add at least one model or judge."}]
    return [{"name": name, "findings": findings} for name, findings in found.items()]


async def model_findings(
    services: Services, caller: Caller, role: CheckedRole, described: object
) -> list[Json]:
    """What one short call to a model finds, and what it cost, or why it can't be called."""
    try:
        model = ModelIn.model_validate(described)
        await keep_check_rate(services, caller.tenant)
        check = Check(model, role, call=True, capped_key=caller.capped_key)
        found = await check_model(services.checking, caller.tenant, check)
    except ValidationError as error:
        wrong = [field_error({**each, "loc": ("body", *each["loc"])}, described) for each in error.errors()]
        return [{"good": False, "text": f"{each.pointer[1:] or 'model'}: {each.message}."} for each in wrong]
    except InvalidJobError as error:
        return [{"good": False, "text": f"{each.message}."} for each in error.errors]
    except (ProblemError, SpendingCapError, CallNotAllowedError) as error:
        return [{"good": False, "text": f"{getattr(error, 'detail', error)}."}]
    paid = [] if not found.usd else [{"good": True, "text": f"This check cost {_small_price(found.usd)}."}]
    return [finding.model_dump() for finding in found.findings] + paid


def _small_price(usd: float) -> str:
    return f"${usd:.4f}" if usd >= SMALLEST_PRICE else f"less than ${SMALLEST_PRICE}"


def _sized(typed: Typed) -> Typed:
    """What was typed, with the numbers of instructions and iterations whose button was pressed, if one was."""
    size = SIZE.fullmatch(typed.text("action"))
    if size is None:
        return typed
    return typed.sized(int(size["wordings"]), int(size["iterations"]))


def _version(body: Json) -> str:
    """Names what was planned, so that nothing else is submitted by its button."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32]


async def _shown(
    services: Services,
    tenant: str,
    typed: Typed,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    errors: dict[str, list[FieldError]] | None = None,
    planned: Json | None = None,
    checks: list[Json] | None = None,
    again: JobRow | None = None,
) -> Response:
    """The form as it was filled in, with what is wrong or with its plan."""
    catalog = await catalog_with_rubrics(
        services.engine, services.submission.catalog, tenant, typed.text("rubrics")
    )
    kept = await list_sets(services.engine, PERSONA_SET, tenant, limit=KEPT_SETS, after=None)
    return page(
        "new.html.j2",
        status,
        here="/new",
        typed=typed,
        field=field,
        errors=errors or {},
        planned=planned,
        checks=checks or [],
        again=again,
        persona_sets={name: len(ids) for name, ids in catalog.persona_sets.items()},
        kept=kept,
        rubrics=await _rubrics(services, tenant, typed.text("rubrics")),
        personas=list(services.instrument.personas.values()),
        atomic=list(catalog.tasks.values()),
        gym=list(catalog.gym.tasks.values()),
        models=proposed_models(await services.book.of_tenant(tenant)),
        profiles=[("", "none"), *((id_, id_) for id_ in catalog.profiles)],
        usual_judges=[judge.model for judge in catalog.judges],
        instructions=catalog.instructions,
        dimensions=list(catalog.dimensions.values()),
    )


async def _rubrics(services: Services, tenant: str, chosen: str) -> list[tuple[str, str]]:
    """The rubric sets to choose from, also an older one that is chosen: id, and what it is called."""
    sets = await list_sets(services.engine, RUBRIC_SET, tenant, limit=KEPT_SETS, after=None)
    found = {each.id: each.name or f"{each.id[:13]}…" for each in sets}
    return [("", "built in"), *({chosen: f"{chosen[:13]}…"} | found if chosen else found).items()]


def proposed_models(connections: Connections) -> list[str]:
    """What can be proposed; a connection that allows every model is proposed by its name."""
    return [f"{own_name}/{name}" for own_name, models in connections.permitted() for name in models or ("",)]
