"""API keys as clients ask for them and are shown them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field
from pydantic.config import JsonDict

from app.domain.contract import Answer, Body, ChangeBody, Line, Page
from app.domain.keys.api_key import Scope

OVERLAP_SECONDS = 24 * 3600
"""How long the key before a rotation is taken, unless said otherwise: time to change it where it is used."""
MOST_REQUESTS = 1_000_000
MOST_USD = 1e9
LONGEST_OVERLAP_SECONDS = 90 * 24 * 3600

KEY_EXAMPLE: JsonDict = {
    "name": "nightly runs",
    "scopes": ["submit"],
    "expires_at": "2027-06-30T00:00:00Z",
    "requests_per_minute": 600,
    "spending": {"usd_limit": 50},
}


class SpendingIn(Body):
    """A cap on the total spending of a key's jobs."""

    usd_limit: float = Field(gt=0, le=MOST_USD, description="US dollars at list prices.")


class ApiKeyIn(Body):
    """A key to create."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [KEY_EXAMPLE]})

    name: Line = Field(min_length=1, description="Who or what uses the key.")
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field(
        min_length=1,
        max_length=len(Scope),
        description="`read` reads; `submit` also spends money and stores or deletes things; `admin` also "
        "manages keys, webhooks and connections.",
    )
    expires_at: Annotated[AwareDatetime, Field(strict=False)] | None = Field(
        None, description="When the key expires; `null` for never."
    )
    requests_per_minute: int | None = Field(
        None, ge=1, le=MOST_REQUESTS, description="Rate limit; `null` for none."
    )
    spending: SpendingIn | None = Field(
        None, description="A cap on the total spending of all jobs that the key submits; `null` for none."
    )


class ApiKeyChangeIn(ChangeBody):
    """Changes to a key; omitted fields stay as they are."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"spending": {"usd_limit": 100}}]}
    )

    name: Line = Field("", validate_default=False)
    requests_per_minute: int | None = Field(None, ge=1, le=MOST_REQUESTS, description="`null` for no limit.")
    spending: SpendingIn = Field(
        default_factory=lambda: SpendingIn(usd_limit=1),
        description="Only for a key that was created with a cap: without one, its jobs' spending was not "
        "counted.",
    )


class RotationIn(Body):
    """How a key is rotated."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"overlap_seconds": 3600}]}
    )

    overlap_seconds: int = Field(
        OVERLAP_SECONDS,
        ge=0,
        le=LONGEST_OVERLAP_SECONDS,
        description="How long the replaced key stays valid; 0 revokes it at once.",
    )


class FormerKey(Answer):
    """The key before the last rotation, while still valid."""

    prefix: str
    expires_at: datetime


class Spending(Answer):
    """A cap on the total spending of a key's jobs, and the amount spent."""

    usd_limit: float
    usd_spent: float = Field(
        description="Recorded calls, plus the worst case of calls in flight or of unknown cost; includes "
        "deleted jobs."
    )


class ApiKey(Answer):
    """An API key, without the secret."""

    id: str = Field(examples=["key_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["api_key"] = "api_key"
    name: str
    prefix: str = Field(
        description="The key's first characters, which are not secret.", examples=["assay_4fT9zQ2mWb1X"]
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
    """A new key."""

    key: str = Field(
        description="Shown only once.",
        examples=["assay_4fT9zQ2mWb1Xq7Yp0cRkLs8dVn3HgJ6aEuKtZoBxMiPw5S1CyFDr"],
    )


class ApiKeyList(Page[ApiKey]):
    """A page of keys, newest first."""


class LimitsOfTenant(Answer):
    """What all keys of a tenant may do together, as the operator's command line shows it."""

    tenant: str
    models: list[str] | None = Field(description="`null` for all.")
    spending: Spending | None = Field(description="`null` without a cap.")
    paused: bool = Field(False, description="Whether the operator has paused the tenant.")
    uncapped_jobs: int = Field(
        0, description="Unfinished jobs from before the cap; told when limits are changed."
    )


class LimitInUse(Answer):
    """A limit and its current use."""

    limit: int
    used: int


class Limits(Answer):
    """A tenant's limits and their current use."""

    object: Literal["limits"] = "limits"
    paused: bool = Field(
        description="Whether the operator has paused the tenant: its jobs make no calls, and new ones are refused."
    )
    models: list[str] | None = Field(
        description="The models that jobs may call, as `connection/model` or `connection/*`; `null` for all."
    )
    spending: Spending | None = Field(description="The tenant's spending cap; `null` without one.")
    unfinished_jobs: LimitInUse = Field(
        description="Jobs that have not ended. A job beyond the limit is refused (429)."
    )
    streams: LimitInUse = Field(description="Open event streams and imports at the API process that answers.")
    upload_bytes: LimitInUse = Field(description="Bytes of all uploads together, unpacked.")
    planned_calls: int = Field(description="Largest number of calls that one job may plan.")
