"""`/metrics`, for Prometheus."""

from fastapi import APIRouter, Response

from app.api.http.access import METRICS, needs
from app.api.http.dependencies import ServicesDep
from app.api.http.openapi import PROBLEMS
from app.domain.keys.api_key import Scope
from app.telemetry.exposition import CONTENT_TYPE

router = APIRouter(tags=["health"])

_EXAMPLE = """# HELP assay_jobs Jobs by status.
# TYPE assay_jobs gauge
assay_jobs{status="running"} 2.0
"""


@router.get(
    METRICS,
    operation_id="getMetrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses=PROBLEMS
    | {
        200: {
            "description": "Metrics of all processes in Prometheus's text format; docs/operations.md explains them.",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
)
@needs(Scope.READ, operator=True)
async def metrics(services: ServicesDep) -> Response:
    """Metrics of this process, the workers, the sweeper and the databases, at most five seconds old.

    Labels name connections, models and the ids of active jobs, but never a tenant's texts.
    """
    return Response(await services.metrics.text(), media_type=CONTENT_TYPE)
