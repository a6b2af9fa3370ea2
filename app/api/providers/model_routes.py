"""`POST /v1/models/check`: one short call to a model, before a job makes thousands."""

import math
from http import HTTPStatus

from pydantic import ConfigDict, Field

from app.api.http.access import needs
from app.api.http.dependencies import CallerDep, Services, ServicesDep, TenantDep
from app.api.http.problems import ProblemError
from app.api.http.resources import resource
from app.domain.jobs.request import ModelIn
from app.domain.keys.api_key import Scope
from app.domain.providers.contract import CheckedRole, ModelCheck
from app.services.jobs.check_model import Check, check_model

CHECKS_PER_MINUTE = 30
"""Of one tenant, all its keys together."""

router = resource("/models", "catalog")


class CheckIn(ModelIn):
    """A model to check, as a job names it."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"model": "simulated/sim-judge", "role": "judge"}]},
    )

    role: CheckedRole = Field(
        "judge", description="The model's role in a job, which decides the parameters sent."
    )
    call: bool = Field(True, description="`false`: only shows what a job would send; no call is made.")


@router.post("/check", operation_id="checkModel", summary="Check a model")
@needs(Scope.SUBMIT)
async def check(body: CheckIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> ModelCheck:
    """Makes one short call (to a judge several, for verdicts on sample sentences and for each form of constrained replies) and reports whether the model is reachable, whether the key is valid, and its limits, parameters, thoughts, latency and price.

    If the provider refuses a parameter, the call is repeated without it. If the model fails, the answer is still 200, with
    `works: false`, the provider's message and a remedy. The call's cost counts against the API key's cap.
    """
    if body.call:
        await keep_check_rate(services, tenant)
    asked = Check(body, body.role, body.call, caller.capped_key)
    return await check_model(services.checking, tenant, asked)


async def keep_check_rate(services: Services, tenant: str) -> None:
    """Counts a check.

    Raises:
        ProblemError: If the tenant has made too many.
    """
    seconds = await services.request_rates.wait_for(f"checks of {tenant}", CHECKS_PER_MINUTE)
    if seconds:
        detail = f"at most {CHECKS_PER_MINUTE} model checks per minute"
        headers = {"Retry-After": str(math.ceil(seconds))}
        raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "rate_limited", detail, headers=headers)
