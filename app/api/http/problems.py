"""Every error as RFC 9457 ``application/problem+json``."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.api.http.pages import problem_page, wants_page
from app.db.health import is_away
from app.db.reasons import reason
from app.db.revision import SchemaState, lacks_tables, schema_state
from app.domain.errors import FieldError, InvalidJobError
from app.domain.providers.failure import TENANT_PAUSED
from app.domain.validation import field_error
from app.readers.pool import ReaderLostError
from app.services.errors import (
    AbandonedError,
    BeyondOwnLimitsError,
    BusyError,
    CallNotAllowedError,
    IdempotencyConflictError,
    NameTakenError,
    NotFoundError,
    NotUnderCapError,
    SpendingCapError,
    TooManyJobsError,
    TooOftenError,
    WrongStateError,
)

log = structlog.get_logger(__name__)

M = TypeVar("M", bound=BaseModel)

RETRY_SECONDS, BUSY_SECONDS, MANY_JOBS_SECONDS = "2", "10", "60"
MOST_FIELDS = 100
CHECKSUM_MISMATCH = 460
"""A status of the tus protocol."""


class ProblemField(BaseModel):
    """An invalid field."""

    pointer: str = Field(
        description="JSON pointer into the body; `/query/…`, `/path/…` or `/header/…` for other parts of the request.",
        examples=["/personas/2/traits/E"],
    )
    message: str = Field(description="What is wrong with it.", examples=["dimension 'E' has no level 'hgih'"])


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(description="URI of the kind of problem.", examples=["urn:assay:problem:invalid"])
    title: str = Field(description="The HTTP status's name.", examples=["Unprocessable Content"])
    status: int = Field(description="The HTTP status.", examples=[422])
    detail: str = Field(description="What went wrong, for people.", examples=["1 field is invalid"])
    code: str = Field(description="What went wrong, for programs.", examples=["invalid"])
    errors: list[ProblemField] = Field(description="The invalid fields, up to 100.")
    request_id: str = Field(description="Identifies this request in the service's logs.")


class ProblemError(HTTPException):
    """An error that a handler or a dependency of ours answers with."""

    def __init__(
        self,
        status: HTTPStatus | int,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status_code=int(status), detail=detail, headers=headers)
        self.code = code
        self.errors = tuple(errors)


class BrokenOffError(Exception):
    """An answer goes no further though it has begun: whoever reads it is to see that it is not whole.

    It goes all the way up to the server, which closes the connection.
    """


def wrong_field(pointer: str, message: str) -> ProblemError:
    """The error that one field of a request is wrong."""
    return ProblemError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid",
        "1 field is invalid",
        errors=[FieldError(pointer, message)],
    )


def problem_response(
    request: Request,
    status: int,
    code: str,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem as a response: in the API's form, or as a page of the console."""
    content = {
        "type": f"urn:assay:problem:{code}",
        "title": "Checksum Mismatch" if status == CHECKSUM_MISMATCH else HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "errors": [{"pointer": error.pointer, "message": error.message} for error in errors],
        "request_id": getattr(request.state, "request_id", ""),
    }
    if wants_page(request):
        return problem_page(content, headers)
    return JSONResponse(content, status, headers, media_type="application/problem+json")


def install(app: FastAPI) -> None:
    """Makes every error of an application a problem."""
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(InvalidJobError, _invalid_job)
    app.add_exception_handler(NotFoundError, _not_found)
    app.add_exception_handler(WrongStateError, _wrong_state)
    app.add_exception_handler(TooOftenError, _too_often)
    app.add_exception_handler(BusyError, _busy)
    app.add_exception_handler(ReaderLostError, _busy)
    app.add_exception_handler(NameTakenError, _name_taken)
    app.add_exception_handler(IdempotencyConflictError, _idempotency)
    app.add_exception_handler(SpendingCapError, _spending_cap)
    app.add_exception_handler(BeyondOwnLimitsError, _beyond_own_limits)
    app.add_exception_handler(NotUnderCapError, _not_under_cap)
    app.add_exception_handler(CallNotAllowedError, _call_not_allowed)
    app.add_exception_handler(TooManyJobsError, _too_many_jobs)
    app.add_exception_handler(DBAPIError, _database)
    app.add_exception_handler(PoolTimeoutError, _database)
    app.add_exception_handler(ClientDisconnect, _vanished)
    app.add_exception_handler(AbandonedError, _vanished)
    app.add_exception_handler(Exception, _unexpected)
    logging.getLogger("uvicorn.error").addFilter(_is_no_break)


async def answer_to(request: Request, error: Exception) -> Response:
    """The answer to a problem that arose before any handler was chosen, or to a database that is away."""
    answer = _problem if isinstance(error, ProblemError) else _database
    return await answer(request, error)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)  # noqa: S101 - registered for this type
    return problem_response(
        request, error.status_code, error.code, str(error.detail), error.errors, error.headers
    )


async def _http(request: Request, error: Exception) -> Response:
    """What the framework itself raises: unknown routes, wrong methods, unreadable or too long bodies."""
    assert isinstance(error, HTTPException)  # noqa: S101
    status = HTTPStatus(error.status_code)
    code = status.name.lower()
    headers = error.headers
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers = {"Allow": ", ".join(sorted(_methods(request)))}  # the framework names those of one route
    return problem_response(request, status.value, code, str(error.detail), headers=headers)


def _methods(request: Request) -> set[str]:
    """What may be done at a path, by whichever route. One that is just this path goes before those that would take a part of it for an id."""
    path = request.scope["path"]
    routes = [
        route
        for route in iter_route_contexts(request.app.routes)
        if route.path_regex is not None and route.path_regex.match(path)
    ]
    own = [route for route in routes if route.path_format == path]
    return {method for route in own or routes for method in route.methods or ()}


async def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        reason = found[0].get("ctx", {}).get("error", "unreadable")
        place = found[0]["loc"][-1]
        return problem_response(
            request, HTTPStatus.BAD_REQUEST, "malformed_json", f"the body is not JSON: {reason} at {place}"
        )
    body = getattr(request.scope.get("route"), "body_field", None)
    model = None if body is None else body.field_info.annotation
    return _invalid(request, invalid_fields(error, model))


def invalid_fields(error: RequestValidationError, model: Any) -> list[FieldError]:
    """The invalid fields of a request with a body that is validated as a model, each once."""
    fields = [
        field_error(each, error.body, model if n < MOST_FIELDS else None)  # a suggestion takes 0.5 ms
        for n, each in enumerate(error.errors())
    ]
    return list(dict.fromkeys(fields))


def _invalid(request: Request, fields: Sequence[FieldError]) -> Response:
    detail = f"{len(fields)} fields are invalid" if len(fields) != 1 else "1 field is invalid"
    if len(fields) > MOST_FIELDS:
        detail += f"; the first {MOST_FIELDS} are listed"
    return problem_response(request, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", detail, fields[:MOST_FIELDS])


def invalid_body(error: ValidationError, body: Any, *within: str) -> RequestValidationError:
    """What the framework raises where it validates a body itself; ``within`` is the member that was validated."""
    found = [{**each, "loc": ("body", *within, *each["loc"])} for each in error.errors(include_url=False)]
    return RequestValidationError(found, body=body)


def validated(model: type[M], body: Any) -> M:
    """A body as a model.

    Raises:
        InvalidJobError: With the invalid fields, each once.
    """
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise InvalidJobError(invalid_fields(invalid_body(error, body), model)) from error


async def _invalid_job(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidJobError)  # noqa: S101
    return _invalid(request, error.errors)


async def _not_found(request: Request, error: Exception) -> Response:
    return problem_response(request, HTTPStatus.NOT_FOUND, "not_found", str(error))


async def _wrong_state(request: Request, error: Exception) -> Response:
    return problem_response(request, HTTPStatus.CONFLICT, "wrong_state", str(error))


async def _too_often(request: Request, error: Exception) -> Response:
    assert isinstance(error, TooOftenError)  # noqa: S101
    headers = {"Retry-After": str(error.seconds)}
    return problem_response(request, HTTPStatus.TOO_MANY_REQUESTS, "too_often", str(error), headers=headers)


async def _busy(request: Request, error: Exception) -> Response:
    headers = {"Retry-After": BUSY_SECONDS}
    return problem_response(request, HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(error), headers=headers)


async def _name_taken(request: Request, error: Exception) -> Response:
    field = FieldError("/name", "the name is taken")
    return problem_response(request, HTTPStatus.CONFLICT, "name_taken", f"{error} already exists", [field])


async def _beyond_own_limits(request: Request, error: Exception) -> Response:
    assert isinstance(error, BeyondOwnLimitsError)  # noqa: S101
    detail = "an API key cannot grant scopes that it does not have"
    return problem_response(request, HTTPStatus.FORBIDDEN, "beyond_own_limits", detail, error.errors)


async def _idempotency(request: Request, _: Exception) -> Response:
    detail = "this Idempotency-Key was used with a different body within the last 24 hours"
    field = FieldError("/header/Idempotency-Key", detail)
    return problem_response(request, HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_conflict", detail, [field])


async def _spending_cap(request: Request, error: Exception) -> Response:
    return problem_response(request, HTTPStatus.FORBIDDEN, "spending_cap_reached", str(error))


async def _not_under_cap(request: Request, error: Exception) -> Response:
    return problem_response(request, HTTPStatus.FORBIDDEN, "not_under_cap", str(error))


async def _call_not_allowed(request: Request, error: Exception) -> Response:
    assert isinstance(error, CallNotAllowedError)  # noqa: S101
    status = HTTPStatus.FORBIDDEN if error.code == TENANT_PAUSED else HTTPStatus.CONFLICT
    return problem_response(request, status, error.code, f"{error}. {error.remedy}")


async def _too_many_jobs(request: Request, error: Exception) -> Response:
    headers = {"Retry-After": MANY_JOBS_SECONDS}
    return problem_response(
        request, HTTPStatus.TOO_MANY_REQUESTS, "too_many_jobs", str(error), headers=headers
    )


async def _database(request: Request, error: Exception) -> Response:
    if not is_away(error):
        state = await _other_tables(request, error)
        return _internal_error(request, error) if state is None else _tables_refused(request, state)
    log.error("database away", reason=reason(error), request=_id_of(request))
    return database_unavailable(request, reason(error))


async def _other_tables(request: Request, error: Exception) -> SchemaState | None:
    """How the tables stand to this release, where that explains an error: they lack what was asked for."""
    if not isinstance(error, DBAPIError) or not lacks_tables(error):
        return None
    try:
        state = await schema_state(request.app.state.services.probe)
    except (DBAPIError, PoolTimeoutError):
        return None
    return None if state.usable else state


def _tables_refused(request: Request, state: SchemaState) -> Response:
    log.error("database has other tables", state=state.value, request=_id_of(request))
    headers = {"Retry-After": RETRY_SECONDS}
    detail = f"the database is {state.value}"
    return problem_response(
        request, HTTPStatus.SERVICE_UNAVAILABLE, "schema_outdated", detail, headers=headers
    )


def database_unavailable(request: Request, why: str = "no answer in time") -> Response:
    """The answer while the database is away.

    Args:
        request: What is answered.
        why: As :func:`app.db.reasons.reason` says it.
    """
    headers = {"Retry-After": RETRY_SECONDS}
    detail = f"the database is unavailable ({why}); try again"
    return problem_response(
        request, HTTPStatus.SERVICE_UNAVAILABLE, "database_unavailable", detail, headers=headers
    )


async def _vanished(request: Request, _: Exception) -> Response:
    """What nobody receives: the client has gone in the middle of its body, or while its job was planned."""
    return problem_response(
        request, HTTPStatus.BAD_REQUEST, "client_gone", "the client closed the connection"
    )


def _is_no_break(record: logging.LogRecord) -> bool:
    """Whether the server writes it down; to the server, an answer that was broken off is an application that failed."""
    return record.exc_info is None or not isinstance(record.exc_info[1], BrokenOffError)


async def _unexpected(request: Request, error: Exception) -> Response:
    if isinstance(error, BrokenOffError):
        return _broken_off(request, error)
    response = _internal_error(request, error)
    response.headers["X-Request-Id"] = _id_of(request)  # answered outside of RequestContext
    return response


def _broken_off(request: Request, error: BrokenOffError) -> Response:
    """What nobody receives: another answer has begun."""
    log.info("answer broken off", path=request.url.path, request=_id_of(request), reason=str(error))
    return problem_response(request, HTTPStatus.BAD_REQUEST, "broken_off", str(error))


def _internal_error(request: Request, error: Exception) -> Response:
    log.error("unexpected error", path=request.url.path, request=_id_of(request), exc_info=error)
    detail = "internal error; search the service's logs for the request ID"
    return problem_response(request, HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail)


def _id_of(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))
