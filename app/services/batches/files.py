"""Deletes batch files at providers once they are no longer needed, even if the worker that made them died."""

from datetime import timedelta
from uuid import UUID

import structlog

from app.db.batches import files as batch_files
from app.db.batches.files import UnneededFile
from app.ports import ModelCallError
from app.services.execution.retries import longest_wait
from app.services.execution.shard_work import ShardDependencies

log = structlog.get_logger(__name__)

LONGEST_UPLOAD_SECONDS = 3600.0
"""How long after its beginning an upload may still bring forth a file."""

LONGEST_BACKOFF_SECONDS = 600.0
MOST_FAILURES = 30
"""Failed requests to delete a file, after which it is left with the provider."""

CLOCK_SKEW = timedelta(minutes=5)
"""How far the provider's clock may be behind the database's."""


def file_name(id_: UUID) -> str:
    """What a file is called at its provider: like no other one."""
    return f"persona-assay-{id_}.jsonl"


async def delete_batch_file(deps: ShardDependencies, id_: UUID) -> None:
    """Deletes a file; does nothing if that has been done. Two at once do no harm."""
    async with deps.engine.connect() as connection:
        file = await batch_files.unneeded(connection, id_)
    if file is None:
        return
    try:
        gone = await _delete(deps, file)
    except ModelCallError as error:
        gone = file.failures >= MOST_FAILURES
        log.warning("file of a batch not deleted", file=file.file_id, code=error.code, left_there=gone)
    async with deps.engine.begin() as connection:
        if gone:
            await batch_files.forget(connection, id_)
        else:
            seconds = longest_wait(deps.batching.poll_seconds, LONGEST_BACKOFF_SECONDS, file.failures)
            await batch_files.put_off(connection, id_, seconds)


async def _delete(deps: ShardDependencies, file: UnneededFile) -> bool:
    """Whether nothing is left of a file, nor will be."""
    chat = deps.batching.chat
    await chat.prepare(file.connection, file.tenant)
    since = file.made_at - CLOCK_SKEW
    gone = await chat.delete_file(file.connection, file_name(file.id), file.file_id, since)
    return gone or file.age > LONGEST_UPLOAD_SECONDS
