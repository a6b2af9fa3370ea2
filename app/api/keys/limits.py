"""`/v1/limits`: the tenant's limits and their current use."""

from app.api.http.access import needs
from app.api.http.dependencies import ServicesDep, TenantDep
from app.api.http.resources import resource
from app.db.keys import tenant_limits
from app.db.uploads import uploads
from app.domain.keys.api_key import Scope
from app.domain.keys.contract import LimitInUse, Limits
from app.services.keys.tenant_limits import show_limits

router = resource("/limits", "keys")


@router.get("", operation_id="getLimits", summary="Show the tenant's limits and their use")
@needs(Scope.READ)
async def read(services: ServicesDep, tenant: TenantDep) -> Limits:
    """Shows the limits that the operator and the settings set for the tenant, and their current use."""
    async with services.engine.connect() as connection:
        row = await tenant_limits.read_limits(connection, tenant)
        unfinished = await tenant_limits.count_unfinished(connection, tenant)
        stored = await uploads.held(connection, tenant)
    own = None if row is None else show_limits(row)
    return Limits(
        paused=own is not None and own.paused,
        models=None if own is None else own.models,
        spending=None if own is None else own.spending,
        unfinished_jobs=LimitInUse(limit=services.submission.max_unfinished_jobs, used=unfinished),
        streams=services.answers.streams_in_use(tenant),
        upload_bytes=LimitInUse(limit=services.uploads.tenant_bytes, used=stored.size),
        planned_calls=services.submission.max_planned_calls,
    )
