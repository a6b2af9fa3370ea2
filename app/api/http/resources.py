"""What the API's resources have in common: strict bodies, no unknown parameters, and problems as answers."""

from enum import Enum

from fastapi import APIRouter, Depends

from app.api.http.dependencies import no_unknown_parameters
from app.api.http.openapi import PROBLEMS
from app.api.http.strict_json import StrictRoute


def resource(path: str, *tags: str | Enum, route_class: type[StrictRoute] = StrictRoute) -> APIRouter:
    """A router of what is below a path of the API; tags group its operations in the document."""
    return APIRouter(
        prefix=f"/v1{path}",
        tags=list(tags),
        route_class=route_class,
        dependencies=[Depends(no_unknown_parameters)],
        responses=PROBLEMS,
    )
