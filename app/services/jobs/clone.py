"""A job's body with other fields, to be submitted as a job of its own."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.preparations import has_given_questions
from app.domain.errors import FieldError, InvalidJobError
from app.services.errors import WrongStateError
from app.services.jobs.view import find_job

LEFT_OUT = "is required: the original value is not stored; give it again"


async def changed_body(
    engine: AsyncEngine, tenant: str, job_id: str, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of a job with changes.

    Args:
        engine: Where to look.
        tenant: Whose job it is.
        job_id: Which job.
        changes: Fields instead of the job's own; ``None`` for those that are to be left out.

    Raises:
        InvalidJobError: If the job had existing texts or questions that the changes do not replace; they are not in its body.
        NotFoundError: If there is no such job.
        WrongStateError: If the job only made up personas.
    """
    job = await find_job(engine, tenant, job_id)
    if "generate" in job.request:
        raise WrongStateError("the job generated personas; generate another persona set instead", job.status)
    missing = []
    if (
        not job.request.get("models")
        and "responses" not in job.request
        and not changes.keys() & {"models", "responses"}
    ):
        missing.append(FieldError("/responses", LEFT_OUT))
    answered = missing or "responses" in changes  # PersonaGym's answers bring their questions along
    replaced = answered or job.request.get("questions") is not None or "questions" in changes
    async with engine.connect() as connection:
        left_out = not replaced and await has_given_questions(connection, tenant, job_id)
    if left_out:
        missing.append(FieldError("/questions", f"{LEFT_OUT}, or null to generate new ones"))
    if missing:
        raise InvalidJobError(missing)
    kept = {name: value for name, value in job.request.items() if name not in changes}
    return kept | {name: value for name, value in changes.items() if value is not None}
