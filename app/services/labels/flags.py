"""Sets, lists and removes flags on sentences and responses."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.labels import annotations, flags
from app.db.labels.tables import FlagRow
from app.db.locks import lock
from app.domain.errors import FieldError, InvalidJobError
from app.domain.labels.flags import MOST_FLAGS, Flag, FlagIn
from app.services.errors import NotFoundError
from app.services.identifiers import new_id, response_id
from app.services.job_context import JobContexts
from app.services.labels.check import AnnotationError, flagged, job_of, place_of


async def keep_flag(engine: AsyncEngine, contexts: JobContexts, tenant: str, wanted: FlagIn) -> Flag:
    """Keeps a flag, in place of the same annotator's earlier one on the same sentence.

    Raises:
        NotFoundError: If the job is deleted meanwhile.
        InvalidJobError: If it does not fit a job of the tenant, or the job has too many.
    """
    draft = wanted.to_draft()
    try:
        job_id = job_of(draft)
        place = place_of(draft.response, draft.unit)
        async with engine.connect() as connection:
            known = await annotations.known_responses(connection, tenant, job_id, [place.response])
        if not known:
            raise InvalidJobError([FieldError("/response", "response not found")])
        dimension, score = flagged(draft, await contexts.get(tenant, job_id), known)
        async with engine.begin() as connection:
            await lock(connection, f"flags of {job_id}")
            if await flags.count(connection, tenant, job_id) >= MOST_FLAGS:
                raise InvalidJobError([FieldError("", f"limit of {MOST_FLAGS:,} flags of a job reached")])
            row = await flags.keep(
                connection,
                {
                    "id": new_id("flag"),
                    "tenant": tenant,
                    "job_id": job_id,
                    "annotator": draft.annotator,
                    **place._asdict(),
                    "dimension": dimension,
                    "score": score if isinstance(score, int) else None,
                    "not_applicable": isinstance(score, str),
                    "note": wanted.note or None,
                },
            )
    except AnnotationError as error:
        raise InvalidJobError([error.field]) from error
    except (IntegrityError, LookupError) as error:  # deleted meanwhile
        raise NotFoundError("job not found") from error
    return _shown(row)


async def list_flags(
    engine: AsyncEngine, tenant: str, job_id: str | None, *, after: tuple[datetime, str] | None, limit: int
) -> list[Flag]:
    """A page of flags, newest first."""
    async with engine.connect() as connection:
        found = await flags.read_page(connection, tenant, job_id, after=after, limit=limit)
    return [_shown(row) for row in found]


async def flags_of(
    engine: AsyncEngine, tenant: str, job_id: str, responses: Sequence[str]
) -> list[list[Flag]]:
    """The flags on each of a job's responses, named by id, and on their sentences."""
    places = [place_of(each, None).response for each in responses]
    async with engine.connect() as connection:
        found = await flags.at(connection, tenant, job_id, places)
    shown = [_shown(row) for row in found]
    return [[flag for flag in shown if flag.response == response] for response in responses]


async def remove_flag(engine: AsyncEngine, tenant: str, id_: str) -> Flag:
    """Removes a flag.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.begin() as connection:
        row = await flags.remove(connection, tenant, id_)
    if row is None:
        raise NotFoundError("flag not found")
    return _shown(row)


def _shown(row: FlagRow) -> Flag:
    return Flag(
        id=row.id,
        job=row.job_id,
        annotator=row.annotator,
        response=response_id(row.job_id, row.cell, row.run, row.item),
        unit=row.unit,
        dimension=row.dimension,
        score="not_applicable" if row.not_applicable else row.score,
        note=row.note,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
