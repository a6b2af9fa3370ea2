"""`/sign-in`, `/sign-out`: a key is shown once, and the browser then stays known by a cookie that does not hold it."""

from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.api.console.forms import typed_by
from app.api.http import sessions
from app.api.http.access import SIGN_IN, needs, no_pepper, note_refused
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.domain.keys.api_key import Scope
from app.services.keys.api_keys import NoPepperError, end_sessions
from app.services.keys.authenticator import KeyRefusedError

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

Following = Annotated[str, Query(alias="next", max_length=2000)]


@router.get(SIGN_IN)
async def form(services: ServicesDep, following: Following = "/") -> Response:
    """Asks for a key, if the service asks for keys."""
    if not await services.keyring.any_exist():
        return RedirectResponse(_here(following), HTTPStatus.SEE_OTHER)
    return page("sign_in.html.j2", following=_here(following), problem="")


@router.post(SIGN_IN)
async def sign_in(request: Request, services: ServicesDep) -> Response:
    """Takes a key, and goes on to what was asked for before."""
    typed = await typed_by(request)
    following = _here(typed.text("next"))
    try:
        holder = await services.keyring.holder_of(typed.text("key"), anew=True)
    except KeyRefusedError as error:
        note_refused(request, error)
        said = str(error)
        problem = f"{said[:1].upper()}{said[1:]}."
        return page("sign_in.html.j2", HTTPStatus.UNAUTHORIZED, following=following, problem=problem)
    except NoPepperError as error:
        raise no_pepper(error) from error
    response = RedirectResponse(following, HTTPStatus.SEE_OTHER)
    sessions.begin(request, response, holder)
    return response


@router.post("/sign-out")
@needs(Scope.READ)
async def sign_out(request: Request, services: ServicesDep, caller: CallerDep, tenant: TenantDep) -> Response:
    """Ends all sessions of the key, wherever their cookies are, and has the browser forget it."""
    if caller.holder is not None:
        await end_sessions(services.engine, tenant, caller.holder.key_id, caller.holder.sign_outs)
        services.keyring.forget()
    response = RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER)
    sessions.end(request, response)
    return response


def _here(address: str) -> str:
    """An address of the console; any other, which could be another site's, is the list of jobs."""
    parts = urlsplit(address)
    is_path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_path and not parts.netloc and address.isprintable() else "/"
