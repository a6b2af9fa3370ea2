"""What the routes of all kinds of sets share: where they are, lists, and one set."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import Services, ServicesDep, TenantDep
from app.api.http.openapi import NOT_FOUND
from app.api.http.path_ids import id_check
from app.db.sets.sets import SetSummary
from app.domain.contract import Answer, Page
from app.domain.keys.api_key import Scope
from app.domain.sets.contract import KeptSet
from app.domain.sets.kinds import SetKind
from app.services.sets.sets import find_set, list_sets

Finder = Callable[[Services, str, str], Awaitable[Answer]]
"""Finds a tenant's set of an id."""


AN_ID = "A set's id."


def id_of(kind: SetKind[KeptSet]) -> AfterValidator:
    """Checks that a text may be an id of a kind's sets."""
    return AfterValidator(id_check(kind.noun, kind.id_form))


def add_reading(
    router: APIRouter,
    kind: SetKind[KeptSet],
    *,
    listed: str,
    shown: str,
    names: str = AN_ID,
    check: AfterValidator | None = None,
    find: Finder | None = None,
) -> None:
    """Adds the routes that list sets of a kind and show one.

    Args:
        router: Where.
        kind: Of which kind.
        listed: What a list is, for the documentation.
        shown: What one is.
        names: What names one.
        check: Whether a text may name one; whether it may be an id of the kind unless given.
        find: How one is found; among the kept ones unless given.
    """
    of_kind = "".join(map(str.capitalize, kind.noun.split()))

    def summed_up(row: SetSummary) -> Answer:
        return kind.summary.model_validate(
            {"id": row.id, "name": row.name, "created_at": row.created_at, **row.sizes}
        )

    @router.get(
        "",
        operation_id=f"list{of_kind}s",
        response_model=kind.page,
        summary=f"List {kind.noun}s",
        description=listed,
    )
    @needs(Scope.READ)
    async def list_(
        services: ServicesDep, tenant: TenantDep, limit: PageLimit = 20, after: After = None
    ) -> Page[Any]:
        begin = cursors.beginning(after)
        found = await list_sets(services.engine, kind, tenant, limit=limit + 1, after=begin)
        return cursors.newest_first(kind.page, found, limit, summed_up)

    @router.get(
        "/{set_id}",
        operation_id=f"get{of_kind}",
        response_model=kind.model,
        responses=NOT_FOUND,
        summary=f"Get a {kind.noun}",
        description=shown,
    )
    @needs(Scope.READ)
    async def get(
        set_id: Annotated[str, Path(description=names), check or id_of(kind)],
        services: ServicesDep,
        tenant: TenantDep,
    ) -> Answer:
        if find is not None:
            return await find(services, tenant, set_id)
        return await find_set(services.engine, kind, tenant, set_id)
