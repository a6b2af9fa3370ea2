"""What handlers are given."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, cast

from fastapi import Depends, Request
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.problems import ProblemError
from app.domain.errors import FieldError
from app.instruments.loader import AtomicInstrument
from app.llm.connections import Connections
from app.services.control_job import ControlDependencies
from app.services.job_context import JobContexts
from app.services.plan_job import PlanDependencies
from app.services.read_results import ResultsReader
from app.services.submit_job import SubmissionDependencies

DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the routers use; built once, in ``app.main``."""

    engine: AsyncEngine
    redis: Redis
    instrument: AtomicInstrument
    connections: Connections
    submission: SubmissionDependencies
    planning: PlanDependencies
    control: ControlDependencies
    contexts: JobContexts
    results: ResultsReader


def _services(request: Request) -> Services:
    return cast("Services", request.app.state.services)


def _tenant() -> str:
    """Whose request it is. There is one tenant until API keys say otherwise."""
    return DEFAULT_TENANT


JOB_ID = re.compile(r"job_[0-9a-hjkmnp-tv-z]{26}")


def no_unknown_parameters(request: Request) -> None:
    """Refuses misspelt query parameters, which would otherwise silently filter nothing."""
    route = request.scope["route"]
    known = {parameter.alias for parameter in route.dependant.query_params}
    unknown = [
        name for name in request.query_params if name not in known and not name.startswith("metadata[")
    ]
    if unknown:
        listed = ", ".join(sorted(known)) or "none"
        errors = [
            FieldError(f"/query/{name}", f"no such parameter; known: {listed}")
            for name in sorted(set(unknown))
        ]
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "unknown query parameters", errors=errors
        )


ServicesDep = Annotated[Services, Depends(_services)]
TenantDep = Annotated[str, Depends(_tenant)]
