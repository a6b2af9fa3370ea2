"""Schemas of answers about API keys."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.domain.contract import Answer, Page


class FormerKey(Answer):
    """The key before the last rotation, while it is still taken."""

    prefix: str
    expires_at: datetime


class Spending(Answer):
    """What a key's jobs may spend together, and what they have."""

    usd_limit: float
    usd_spent: float = Field(
        description="Recorded calls, and the worst case of those on their way or of unknown cost; of deleted jobs too."
    )


class ApiKey(Answer):
    """An API key, without what would let anybody use it."""

    id: str = Field(examples=["key_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["api_key"]
    name: str
    prefix: str = Field(
        description="How the key begins, which is no secret.", examples=["assay_4fT9zQ2mWb1X"]
    )
    scopes: list[Literal["read", "submit", "admin"]]
    status: Literal["live", "expired", "revoked"]
    former: FormerKey | None
    requests_per_minute: int | None
    spending: Spending | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")


class NewApiKey(ApiKey):
    """A key that was just made or rotated."""

    key: str = Field(
        description="Shown now and never again.",
        examples=["assay_4fT9zQ2mWb1Xq7Yp0cRkLs8dVn3HgJ6aEuKtZoBxMiPw5S1CyFDr"],
    )


class ApiKeyList(Page[ApiKey]):
    """A page of keys, newest first."""
