"""Share links: whoever has one reads one job, without a key, until it ends.

A link's token has the form of an API key, so what finds keys in logs and repositories finds it too. Only a hash of it is
kept: of 262 random bits no secret beside it is needed.
"""

import hashlib
from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from app.domain.contract import Answer, Body, Line
from app.domain.keys.api_key import is_over

SHARED = "/shared/"
"""What the paths of shared pages begin with; a token follows."""
USUAL_DAYS, MOST_DAYS = 30, 365


class ShareLinkIn(Body):
    """A share link to be created."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"days": 14, "responses": True, "description": "reviewers"}]},
    )

    days: int = Field(USUAL_DAYS, ge=1, le=MOST_DAYS, description="How long it works, unless it is revoked.")
    responses: bool = Field(
        False, description="Whether it also gives all responses, with every verdict; a report has a sample."
    )
    description: Line | None = Field(None, description="For people: whom it is for.")


class ShareLink(Answer):
    """A share link, without what would let anybody use it."""

    id: str = Field(examples=["shr_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["share_link"] = "share_link"
    job: str
    description: str | None
    responses: bool
    status: Literal["live", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


class NewShareLink(ShareLink):
    """A share link that was just created."""

    path: str = Field(
        description="The link, behind the service's address. Shown only once.",
        examples=["/shared/assay_4fT9zQ2mWb1Xq7Yp0cRkLs8dVn3HgJ6aEuKtZoBxMiPw5S1CyFDr"],
    )


class ShareLinkList(Answer):
    """A job's share links, newest first."""

    data: list[ShareLink]


def digest(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(b"share link\0" + token.encode()).digest()


def status(
    expires_at: datetime, revoked_at: datetime | None, now: datetime
) -> Literal["live", "expired", "revoked"]:
    """Whether a link works, or why not."""
    if revoked_at is not None:
        return "revoked"
    return "expired" if is_over(expires_at, now) else "live"
