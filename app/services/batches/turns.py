"""Work on batches and their files in a worker: tenants take turns."""

from functools import partial
from uuid import UUID

from app.db.batches import batches, files
from app.db.engine import single_statements
from app.services.batches.advance import advance_batch
from app.services.batches.files import delete_batch_file
from app.services.execution.shard_work import ShardDependencies
from app.services.tenant_turns import TenantTurns, TurnedWork

PLACES = 16
"""Batches, and files, under way at a time; an upload may take half an hour."""


def batch_work(deps: ShardDependencies) -> tuple[TurnedWork[int], TurnedWork[UUID]]:
    """Return what advances batches, and what deletes files at providers."""

    async def tenant_of_batch(batch_id: int) -> str | None:
        async with single_statements(deps.engine) as connection:
            return await batches.tenant_of_unended(connection, batch_id)

    async def tenant_of_file(file_id: UUID) -> str | None:
        async with single_statements(deps.engine) as connection:
            return await files.tenant_of(connection, file_id)

    return (
        TurnedWork(TenantTurns(PLACES), tenant_of_batch, partial(advance_batch, deps)),
        TurnedWork(TenantTurns(PLACES), tenant_of_file, partial(delete_batch_file, deps)),
    )
