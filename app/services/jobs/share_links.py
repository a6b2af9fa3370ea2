"""Share links: create, list, revoke; and whose job a token shows."""

import asyncio
import secrets

from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.jobs import share_links
from app.db.jobs.share_links import ShareLinkRow
from app.db.locks import lock
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.share_links import SHARED, NewShareLink, ShareLink, ShareLinkIn, digest, status
from app.domain.keys.api_key import POSSIBLE, MalformedKeyError, compose, prefix_of
from app.services.errors import NotFoundError
from app.services.identifiers import new_id
from app.services.jobs.view import find_job

MOST_LIVE = 50
"""Of one job."""
MOST_SHOWN = 200
_NO_LINK = "this link does not exist, has expired or was revoked"


class ShareLinkFinder:
    """Finds links by their tokens, whosever they are; one a process.

    One look-up at a time: a flood of guesses takes one connection of those by which keys are looked up, too.
    """

    def __init__(self, every_tenant: AsyncEngine) -> None:
        self._engine = every_tenant
        self._turn = asyncio.Lock()

    async def find(self, token: str) -> ShareLinkRow:
        """The link of a token.

        Raises:
            NotFoundError: If there is none, or none any more; which of these is not said.
        """
        try:
            prefix_of(token)
        except MalformedKeyError as error:
            raise NotFoundError(_NO_LINK) from error
        async with self._turn, self._engine.connect() as connection:
            found = await share_links.find_link(connection, digest(token))
        if found is None:
            raise NotFoundError(_NO_LINK)
        return found


async def create_link(engine: AsyncEngine, tenant: str, job_id: str, wanted: ShareLinkIn) -> NewShareLink:
    """Creates a link to a job; the answer is the only one that has its token.

    Raises:
        NotFoundError: If the tenant has no such job.
        InvalidJobError: If it has too many links already.
    """
    await find_job(engine, tenant, job_id)
    token = compose(secrets.randbelow(POSSIBLE))
    values = {
        "id": new_id("shr"),
        "tenant": tenant,
        "job_id": job_id,
        "digest": digest(token),
        "description": wanted.description,
        "responses": wanted.responses,
    }
    async with engine.begin() as connection:
        await lock(connection, f"share links of {job_id}")
        if await share_links.count_live(connection, tenant, job_id) >= MOST_LIVE:
            raise InvalidJobError([FieldError("", f"limit of {MOST_LIVE} live share links of a job reached")])
        row = await share_links.insert_link(connection, values, wanted.days)
    return NewShareLink(**vars(_shown(row)), path=f"{SHARED}{token}")


async def list_links(engine: AsyncEngine, tenant: str, job_id: str) -> list[ShareLink]:
    """A job's links, the newest first, ended ones too.

    Raises:
        NotFoundError: If the tenant has no such job.
    """
    await find_job(engine, tenant, job_id)
    async with engine.connect() as connection:
        return [_shown(row) for row in await share_links.list_links(connection, tenant, job_id, MOST_SHOWN)]


async def revoke_link(engine: AsyncEngine, tenant: str, job_id: str, link_id: str) -> ShareLink:
    """Ends a link for good; a revoked one stays as it is.

    Raises:
        NotFoundError: If the tenant's job has none of that id.
    """
    async with engine.begin() as connection:
        row = await share_links.revoke_link(connection, tenant, job_id, link_id)
    if row is None:
        raise NotFoundError("share link not found")
    return _shown(row)


def _shown(row: ShareLinkRow) -> ShareLink:
    return ShareLink(
        id=row.id,
        job=row.job_id,
        description=row.description,
        responses=row.responses,
        status=status(row.expires_at, row.revoked_at, clock.now()),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
