"""`/import`: shows what another tool's file has and how it maps, and makes a job or sets of it; nothing is stored before."""

import base64
import binascii
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.api.console.forms import SentFile, typed_with_file
from app.api.console.job_form import Typed, field
from app.api.console.new_job import KEPT_SETS, planned_or_submitted, proposed_models
from app.api.http.abandoned import while_connected
from app.api.http.access import Caller, needs
from app.api.http.dependencies import CallerDep, Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.http.problems import ProblemError, validated
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.import_preview import ImportPreview
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import PersonaSetIn, QuestionSetIn
from app.domain.sets.kinds import PERSONA_SET, QUESTION_SET
from app.importers.names import COLUMNS
from app.importers.registry import NAMES
from app.services.jobs.import_reader import ImportChoices
from app.services.jobs.read_import import read_file
from app.services.long_texts import on_a_thread
from app.services.sets.persona_sets import keep_personas
from app.services.sets.question_sets import keep_questions
from app.services.sets.sets import list_sets
from app.services.uploads.uploads import TOOL_FILE_BYTES

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

JUDGES = 5
"""Fields for judges."""
REFUSED_SHOWN = 200
KEPT_SHARE = 0.9
"""How much of a body the file may be that the page brings back."""
FIELDS_BYTES = 64 * 1024
"""What of a body is left to the form's other fields."""

Json = dict[str, Any]


@router.get("/import")
@needs(Scope.READ)
async def choose(services: ServicesDep, tenant: TenantDep) -> Response:
    """Where a file is chosen."""
    return await _shown(services, tenant, Typed({}))


@router.post("/import")
@needs(Scope.SUBMIT)
async def read(request: Request, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """What the chosen file has; or what was made of it on request."""
    try:
        typed, sent = await typed_with_file(request)
    except ProblemError as error:
        if error.status_code != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise
        too_large = [FieldError("/file", _too_large(services))]
        return await _shown(services, tenant, Typed({}), errors=too_large, status=error.status_code)
    file, data, most_bytes = _Found(), b"", services.body_bytes
    try:
        data = await on_a_thread(tenant, partial(_data, sent, typed, most_bytes))
        name = sent.name if sent.data else typed.text("kept_name")
        file = _Found(name, await on_a_thread(tenant, partial(_packed, data, most_bytes)))
        chosen = _choices(typed, name)
        file.preview = await _preview(request, services, tenant, data, chosen)
        made = await _made(request, services, caller, typed, file.preview)
    except InvalidJobError as error:
        if (
            data and file.preview is None
        ):  # a choice is wrong, or the file: then it is shown without choices, if it can be
            with suppress(InvalidJobError):
                plain = ImportChoices(name=file.name)
                file.preview = await _preview(request, services, tenant, data, plain)
        return await _shown(services, tenant, typed, file, errors=_of_choices(error.errors))
    if isinstance(made, Response):
        return made
    return await _shown(services, tenant, typed, file, planned=made)


@dataclass(slots=True)
class _Found:
    """A file that was read.

    Attributes:
        name: Its name.
        kept: Its bytes as the page brings them back, so that it need not be chosen again; empty if they are too many.
        preview: What it has, if it could be read.
    """

    name: str = ""
    kept: str = ""
    preview: ImportPreview | None = None


async def _preview(
    request: Request, services: Services, tenant: str, data: bytes, chosen: ImportChoices
) -> ImportPreview:
    work = read_file(services.engine, services.readers, services.submission.catalog, tenant, data, chosen)
    found = await while_connected(request, work)
    return await on_a_thread(tenant, lambda: ImportPreview.model_validate_json(b"".join(found)))


def _too_large(services: Services) -> str:
    """Says of a file that it is longer than a body, and where it can be imported."""
    return (
        f"too large for this page, which takes {(services.body_bytes - FIELDS_BYTES) / 2**20:.3g} MiB;"
        f" the command `assay import FILE` takes {TOOL_FILE_BYTES // 2**20} MiB"
    )


def _data(sent: SentFile, typed: Typed, most_bytes: int) -> bytes:
    """The chosen file's bytes, or those that the page brought back."""
    if sent.data or sent.name:
        return sent.data
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(base64.b64decode(typed.text("kept"), validate=True), most_bytes)
    except (binascii.Error, ValueError, zlib.error):
        data = b""
    if not data or not unpacking.eof:
        raise InvalidJobError([FieldError("/file", "choose a file")])
    return data


def _packed(data: bytes, most_bytes: int) -> str:
    packed = base64.b64encode(zlib.compress(data)).decode()
    return packed if len(packed) <= most_bytes * KEPT_SHARE else ""


def _choices(typed: Typed, name: str) -> ImportChoices:
    named = ("kind", "persona", "personas", "task", "model", "score", "scale", "questions")
    return ImportChoices(
        name=name,
        trait=tuple(each for each in typed.all("trait") if each),
        column=tuple(f"{what}={column}" for what in COLUMNS if (column := typed.text(f"column_{what}"))),
        **{each: typed.text(each) or None for each in named},
    )


def _of_choices(errors: Iterable[FieldError]) -> list[FieldError]:
    """Errors with the places of the form's fields."""
    return [FieldError(each.pointer.removeprefix("/query"), each.message) for each in errors]


async def _made(
    request: Request, services: Services, caller: Caller, typed: Typed, preview: ImportPreview
) -> Response | Json | None:
    """The page of what was made of a file, or a job's plan; ``None`` if only reading was asked for."""
    action, name = typed.text("action"), typed.text("name") or None
    catalog = services.submission.catalog
    if action == "personas" and preview.persona_set is not None:
        people = validated(PersonaSetIn, preview.persona_set | {"name": name})
        kept = await keep_personas(
            services.engine, catalog, caller.tenant, people.name, people.personas, "/personas"
        )
        return RedirectResponse(f"/persona-sets/{kept.id}", HTTPStatus.SEE_OTHER)
    if action == "questions" and preview.question_set is not None:
        asked = validated(QuestionSetIn, preview.question_set | {"name": name})
        made = await keep_questions(services.engine, caller.tenant, asked, catalog)
        return RedirectResponse(f"/question-sets/{made.id}", HTTPStatus.SEE_OTHER)
    if action not in {"plan", "submit"} or preview.job is None:
        return None
    called = [one for n in range(JUDGES) if (one := typed.text(field("judge", "model", n)))]
    own = {"name": name, "reasoner": typed.text("reasoner") or None}
    judges = [*preview.job.get("judges", ()), *called]
    body = (
        preview.job
        | {key: value for key, value in own.items() if value}
        | ({"judges": judges} if judges else {})
    )
    return await planned_or_submitted(request, services, caller, typed, body)


async def _shown(
    services: Services,
    tenant: str,
    typed: Typed,
    file: _Found | None = None,
    *,
    errors: list[FieldError] | None = None,
    planned: Json | None = None,
    status: int | None = None,
) -> Response:
    """The form, with what its file has or what is wrong with it."""
    catalog, found = services.submission.catalog, None if file is None else file.preview
    people, questions = [
        await list_sets(services.engine, kind, tenant, limit=KEPT_SETS, after=None)
        for kind in (PERSONA_SET, QUESTION_SET)
    ]
    return page(
        "import.html.j2",
        status or (HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK),
        here="/new",
        typed=typed,
        field=field,
        file=file or _Found(),
        found=found,
        errors=errors or [],
        planned=planned,
        most_bytes=services.body_bytes - FIELDS_BYTES,
        too_large=_too_large(services),
        kinds=_alike(NAMES),
        columns=[(f"column_{what}", f"Column of the {what}") for what in COLUMNS],
        scores=[] if found is None else _alike(each.name for each in found.scores),
        parts=[] if found is None else _parts(found),
        judges=JUDGES,
        refused_shown=REFUSED_SHOWN,
        persona_sets=[*_alike(catalog.persona_sets), *_named(people)],
        question_sets=_named(questions),
        dimensions=list(catalog.dimensions.values()),
        tasks=[
            *((each.id, each.title) for each in catalog.tasks.values()),
            *((each.id, each.title) for each in catalog.gym.tasks.values()),
        ],
        usual_judges=[judge.model for judge in catalog.judges],
        models=proposed_models(await services.book.of_tenant(tenant)),
    )


def _named(sets: Iterable[Any]) -> list[tuple[str, str]]:
    return [(each.id, each.name or f"{each.id[:13]}…") for each in sets]


def _alike(values: Iterable[str]) -> list[tuple[str, str]]:
    """Choices that are called what they are."""
    return [(each, each) for each in values]


def _parts(found: ImportPreview) -> list[str]:
    """What any of the first records has."""
    names = ("persona", "model", "task", "prompt", "text")
    return [name for name in names if any(getattr(each, name) for each in found.samples)]
