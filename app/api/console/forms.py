"""What a browser sends from one of the console's forms."""

from http import HTTPStatus

from fastapi import Request

from app.api.console.job_form import Typed
from app.api.http.problems import ProblemError
from app.api.http.strict_json import StrictRequest

FORM_TYPE = "application/x-www-form-urlencoded"


async def typed_by(request: Request) -> Typed:
    """What a browser sent.

    Raises:
        ProblemError: If it is no form.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        detail = f"send the form as {FORM_TYPE}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    try:
        return Typed.parse(await StrictRequest(request.scope, request.receive).body())
    except ValueError as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "malformed_form", "the body is not a valid form"
        ) from error
