"""Bodies that are jobs: what is wrong with their form and with the names in them is told at once."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError

from app.api.http.access import caller_of
from app.api.http.dependencies import services_of
from app.api.http.problems import invalid_fields, validated
from app.api.http.strict_json import StrictRoute
from app.db.row_level_security import act_for
from app.domain.errors import InvalidJobError
from app.domain.jobs.request import JobIn
from app.services.jobs.submit import SubmissionDependencies
from app.services.jobs.wrong_names import with_wrong_names
from app.services.long_texts import on_a_thread

J = TypeVar("J", bound=JobIn)


class JobRoute(StrictRoute):
    """Tells what is wrong with the form of a job and with the names in it at once."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, whose validation errors are followed by those of names."""
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                if any(each["type"] == "json_invalid" for each in error.errors()):
                    raise
                model = self.body_field.field_info.annotation if self.body_field is not None else None
                if not (isinstance(model, type) and issubclass(model, JobIn)):
                    raise
                tenant, submission = caller_of(request).tenant, services_of(request).submission
                act_for(tenant)
                wrong = invalid_fields(error, model)
                raise InvalidJobError(
                    await with_wrong_names(submission, tenant, model, error.body, wrong)
                ) from error

        return told


async def job_of(deps: SubmissionDependencies, tenant: str, model: type[J], body: Any) -> J:
    """A body as a job.

    Raises:
        InvalidJobError: If its form is wrong; with what is wrong with its names besides.
    """
    try:
        return await on_a_thread(tenant, lambda: validated(model, body))
    except InvalidJobError as error:
        found = await with_wrong_names(deps, tenant, model, body, error.errors)
        raise InvalidJobError(found) from error
