"""`/label/{round}`: people say what they think of sentences, without seeing scores or names."""

from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.api.access import needs
from app.api.annotations import RoundId
from app.api.console.forms import typed_by
from app.api.dependencies import ServicesDep, TenantDep, no_unknown_parameters
from app.api.pages import page
from app.api.problems import wrong_field
from app.domain.api_key import Scope
from app.services.check_annotations import ANNOTATOR
from app.services.label import NotAnAnswerError, look, say
from app.services.labelling import show_round

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])


@router.get("/label/{round_id}")
@needs(Scope.READ)
async def label(
    round_id: RoundId,
    services: ServicesDep,
    tenant: TenantDep,
    annotator: Annotated[str | None, Query(max_length=100)] = None,
    at: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> Response:
    """Asks who it is, then shows what he has not answered yet, or what stands at a place of his order."""
    name = "" if annotator is None else annotator.strip()
    if not name or ANNOTATOR.fullmatch(name) is None:
        shown = await show_round(services.engine, tenant, round_id)
        return page("label_name.html.j2", round=shown, name=name)
    way = await look(services.engine, services.contexts, tenant, round_id, name, at)
    return page("label.html.j2", way=way, name=name, round_id=round_id, path=_path(round_id, name))


@router.post("/label/{round_id}")
@needs(Scope.SUBMIT)
async def answer(round_id: RoundId, request: Request, services: ServicesDep, tenant: TenantDep) -> Response:
    """Keeps an answer, and goes on to what has none yet."""
    typed = await typed_by(request)
    name, at = typed.text("annotator"), typed.text("at")
    if ANNOTATOR.fullmatch(name) is None:
        raise wrong_field("/annotator", "is no name")
    if not (at.isascii() and at.isdigit() and len(at) < 10):  # noqa: PLR2004 - no number that is too long to be read
        raise wrong_field("/at", "is no place")
    try:
        await say(services.engine, services.contexts, tenant, round_id, name, int(at), typed.text("answer"))
    except NotAnAnswerError as error:
        raise wrong_field("/answer", str(error)) from error
    return RedirectResponse(_path(round_id, name), HTTPStatus.SEE_OTHER)


def _path(round_id: str, name: str) -> str:
    return f"/label/{round_id}?{urlencode({'annotator': name})}"
