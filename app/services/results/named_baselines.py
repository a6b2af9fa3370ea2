"""Baselines of one's own: models of finished jobs by name, for comparisons and gates."""

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs, named_baselines
from app.db.jobs.named_baselines import NamedBaselineRow
from app.db.locks import lock
from app.domain.errors import FieldError, InvalidJobError
from app.domain.results.named_baselines import NamedBaseline, NamedBaselineIn
from app.instruments.published import published_cells, published_scores
from app.services.errors import NotFoundError, WrongStateError
from app.services.job_context import JobContexts

MOST = 200
"""Of one tenant."""


async def name_baseline(
    engine: AsyncEngine, contexts: JobContexts, tenant: str, name: str, wanted: NamedBaselineIn
) -> NamedBaseline:
    """Gives a model of a finished job a name; what had the name before loses it.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job has not ended.
        InvalidJobError: If the name is a published model's, the model is none of the job's, or there are too many.
    """
    _refuse_published(name)
    async with engine.begin() as connection:
        await lock(connection, f"baselines of {tenant}")
        status = await jobs.lock_job(connection, wanted.job, tenant=tenant)
        if status is None:
            raise NotFoundError("job not found")
        if not status.is_terminal:
            raise WrongStateError(f"{wanted.job} is {status}; only finished jobs can be baselines", status)
        context = await contexts.get(tenant, wanted.job)
        model = _model(wanted, list(dict.fromkeys(model.label for model in context.spec.models)))
        there = await named_baselines.find(connection, tenant, name)
        if there is None and await named_baselines.count(connection, tenant) >= MOST:
            raise InvalidJobError([FieldError("", f"limit of {MOST} baselines reached")])
        await named_baselines.keep(connection, tenant, name, wanted.job, model)
    return await read_baseline(engine, tenant, name)


def _model(wanted: NamedBaselineIn, models: list[str]) -> str:
    if wanted.model is None and len(models) == 1:
        return models[0]
    if wanted.model not in models:
        known = ", ".join(models)
        message = f"must be one of the job's models: {known}" if models else "the job has no models"
        raise InvalidJobError([FieldError("/model", message)])
    return wanted.model


def _refuse_published(name: str) -> None:
    published = {cell.model for cell in published_cells()} | {row.model for row in published_scores()}
    if name.casefold() in {model.casefold() for model in published}:
        raise InvalidJobError([FieldError("/name", f"{name!r} is a published model; choose another name")])


async def list_baselines(engine: AsyncEngine, tenant: str) -> list[NamedBaseline]:
    """All of a tenant's, by name."""
    async with engine.connect() as connection:
        rows = await named_baselines.list_all(connection, tenant)
    return [
        NamedBaseline(
            object="baseline",
            name=row.name,
            job=row.job_id,
            job_name=job_name,
            model=row.model,
            created_at=row.created_at,
        )
        for row, job_name in rows
    ]


async def read_baseline(engine: AsyncEngine, tenant: str, name: str) -> NamedBaseline:
    """One of a tenant's.

    Raises:
        NotFoundError: If the tenant has none of that name.
    """
    for found in await list_baselines(engine, tenant):
        if found.name == name:
            return found
    raise NotFoundError(f"baseline {name} not found")


async def find_baseline(engine: AsyncEngine, tenant: str, name: str) -> NamedBaselineRow | None:
    """What a tenant gave a name."""
    async with engine.connect() as connection:
        return await named_baselines.find(connection, tenant, name)


async def rename_baseline(engine: AsyncEngine, tenant: str, name: str, new: str) -> NamedBaseline:
    """Gives a baseline another name.

    Raises:
        NotFoundError: If the tenant has none of that name.
        InvalidJobError: If another one, or a published model, has the new name.
    """
    _refuse_published(new)
    async with engine.begin() as connection:
        await lock(connection, f"baselines of {tenant}")
        if new != name and await named_baselines.find(connection, tenant, new) is not None:
            raise InvalidJobError([FieldError("/name", f"there is a baseline {new!r} already")])
        if not await named_baselines.rename(connection, tenant, name, new):
            raise NotFoundError(f"baseline {name} not found")
    return await read_baseline(engine, tenant, new)


async def forget_baseline(engine: AsyncEngine, tenant: str, name: str) -> None:
    """Takes a name away; the job stays, and may be deleted again.

    Raises:
        NotFoundError: If the tenant has none of that name.
    """
    async with engine.begin() as connection:
        if not await named_baselines.remove(connection, tenant, name):
            raise NotFoundError(f"baseline {name} not found")
