"""Lists of kept sets, which are the same whatever the sets hold."""

from typing import Literal

from fastapi import Response
from fastapi.responses import JSONResponse

from app.api.http import cursors
from app.api.http.dependencies import Services
from app.services.sets.sets import list_sets, summary_json


async def list_kept(
    services: Services,
    tenant: str,
    kind: Literal["question_set", "persona_set"],
    limit: int,
    after: str | None,
) -> Response:
    """A page of a tenant's sets of a kind, newest first.

    Raises:
        ProblemError: If ``after`` is no cursor.
    """
    table: Literal["question_sets", "persona_sets"] = (
        "question_sets" if kind == "question_set" else "persona_sets"
    )
    found = await list_sets(services.engine, table, tenant, limit=limit + 1, after=cursors.beginning(after))
    return JSONResponse(cursors.page(found, limit, lambda one: summary_json(kind, one), cursors.behind))
