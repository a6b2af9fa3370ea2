"""`/v1/jobs/{id}/figures`: a report's figures as files."""

from typing import Annotated

from fastapi import Query, Response

from app.api.http.access import needs
from app.api.http.answer_headers import FRAMED_BY_NOBODY
from app.api.http.answers import Party
from app.api.http.dependencies import JobId, ServicesDep, TenantDep
from app.api.http.openapi import NOT_FOUND, Responses
from app.api.http.resources import resource
from app.api.results.routes import comparer_of
from app.domain.keys.api_key import Scope
from app.services.jobs.view import find_job
from app.services.results.baseline_figures import beside_job
from app.services.results.figures import (
    AMONG_PUBLISHED,
    FigureFormat,
    FigureName,
    FigureRequest,
    Theme,
    draw_figure,
)

router = resource("/jobs", "jobs")

MEDIA_TYPES = {"svg": "image/svg+xml", "png": "image/png"}
FIGURES: Responses = {
    200: {
        "description": "The figure.",
        "content": {
            media: {"schema": {"type": "string", "format": "binary"}} for media in MEDIA_TYPES.values()
        },
    }
}

ThemeQuery = Annotated[
    Theme | None, Query(description="Without it light, but in an SVG whichever the reader prefers.")
]


@router.get(
    "/{job_id}/figures/{name}.{file_format}",
    operation_id="getFigure",
    response_class=Response,
    responses=FIGURES | NOT_FOUND,
    summary="Download a figure",
)
@needs(Scope.READ)
async def figure(
    job_id: JobId,
    name: FigureName,
    file_format: FigureFormat,
    services: ServicesDep,
    tenant: TenantDep,
    model: Annotated[
        str | None,
        Query(
            max_length=300,
            description="Whose, for `heat_map` and `cells`; may be left out if the job has only one.",
        ),
    ] = None,
    theme: ThemeQuery = None,
) -> Response:
    """A figure of the HTML report, or its heat map, as SVG or PNG. Also available while the job runs.

    With very many personas, a figure shows the weakest and says so; the results have all. If too many figures are waiting to be
    drawn, the answer is 503 with `Retry-After`.
    """
    job = await find_job(services.engine, tenant, job_id)
    wanted = FigureRequest(name, file_format, model, theme)
    async with services.figure_turns.place(Party(tenant)):
        context = await services.contexts.get(tenant, job_id)
        results = await services.results.read(job)
        named = await beside_job(comparer_of(services), job) if name in AMONG_PUBLISHED else []
        content = await draw_figure(services.engine, services.readers, job, context, results, wanted, named)
    return figure_answer(content, f"{job_id}-{name}", file_format)


def figure_answer(content: bytes, name: str, file_format: FigureFormat) -> Response:
    """A figure as a file of this name."""
    headers = {
        "Content-Disposition": f'inline; filename="{name}.{file_format}"',
        # An SVG may be opened by itself, and what models are called is in it.
        "Content-Security-Policy": f"default-src 'none'; style-src 'unsafe-inline'; {FRAMED_BY_NOBODY}",
    }
    return Response(content, media_type=MEDIA_TYPES[file_format], headers=headers)
