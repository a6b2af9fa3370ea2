"""Reads another tool's file by what a person chose beside it."""

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.sets import sets
from app.domain.instruments.persona import Persona, traits_of
from app.domain.jobs.catalog import Catalog
from app.domain.sets.kinds import QUESTION_SET
from app.readers.pool import BytesSource, ReaderPool, twice
from app.services.errors import NotFoundError
from app.services.jobs.import_reader import (
    ImportChoices,
    Questions,
    Wanted,
    read_body,
    read_records,
    wrong_choice,
)
from app.services.sets.persona_sets import find_persona_set
from app.services.uploads.stored_file import StoredFile
from app.services.uploads.tool_files import make_records
from app.services.uploads.upload_reader import PREVIEW
from app.services.uploads.uploads import TOOL_FILE_BYTES, UploadDependencies

WAIT_SECONDS = 10.0
"""So long a request waits for a file that was uploaded."""


async def read_file(
    engine: AsyncEngine,
    readers: ReaderPool,
    catalog: Catalog,
    tenant: str,
    data: bytes,
    chosen: ImportChoices,
) -> list[bytes]:
    """Return the :class:`ImportPreview` of a file as JSON, in pieces.

    Raises:
        InvalidJobError: If it can't be read, or a choice is wrong; the pointers of choices begin with ``/query``.
    """
    wanted = await _wanted(engine, catalog, tenant, chosen)
    place = secrets.token_hex()

    async def read() -> list[bytes]:
        responses: list[bytes] = []
        preview = b""
        async with aclosing(readers.run(tenant, BytesSource(data), read_body, wanted, place)) as results:
            async for each in results:
                if each.startswith(PREVIEW):
                    preview = each[1:]
                else:
                    responses += (b"," if responses else b"", each[1:])
        before, is_there, after = preview.partition(f'"{place}"'.encode())
        return [before, b"[", *responses, b"]", after] if is_there else [preview]

    return await twice(read)


async def read_upload(
    deps: UploadDependencies, catalog: Catalog, tenant: str, upload_id: str, chosen: ImportChoices
) -> list[bytes] | None:
    """Return the same of a file that was uploaded: its texts become the upload's records, which the job's body names.

    Returns:
        ``None`` if that takes long. It goes on; the same request waits for it.

    Raises:
        InvalidJobError: As above, or if there is no such upload.
    """
    wanted = await _wanted(deps.engine, catalog, tenant, chosen)

    def results(file: StoredFile, name: str) -> AsyncGenerator[bytes, bytes | None]:
        arguments = (name, wanted, upload_id, dict(deps.rules.current), TOOL_FILE_BYTES)
        return deps.readers.run(tenant, file, read_records, *arguments)

    work = partial(make_records, deps, tenant, upload_id, results)
    reading = await deps.tool_files.read(tenant, upload_id, chosen, work, WAIT_SECONDS)
    return None if reading is None else [reading.result()]


async def _wanted(engine: AsyncEngine, catalog: Catalog, tenant: str, chosen: ImportChoices) -> Wanted:
    """Return the choices with the sets that they name.

    Raises:
        InvalidJobError: If there is no such set.
    """
    questions = None if chosen.questions is None else await _questions(engine, tenant, chosen.questions)
    people = () if chosen.personas is None else await _people(engine, catalog, tenant, chosen.personas)
    return Wanted(chosen, people, questions)


async def _people(engine: AsyncEngine, catalog: Catalog, tenant: str, id_: str) -> Sequence[Persona]:
    try:
        found = await find_persona_set(engine, catalog, tenant, id_)
    except NotFoundError as error:
        raise wrong_choice("personas", f"there is no persona set {id_!r}") from error
    return [Persona(each.id, each.description, traits_of(each.traits)) for each in found.personas]


async def _questions(engine: AsyncEngine, tenant: str, id_: str) -> Questions:
    async with engine.connect() as connection:
        found = await sets.find_set(connection, QUESTION_SET, tenant, id_)
    if found is None:
        raise wrong_choice("questions", f"there is no question set {id_!r}")
    content: Questions = found.content
    return content
