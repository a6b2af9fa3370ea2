"""Schemas of the bodies that make and rotate API keys."""

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field
from pydantic.config import JsonDict

from app.api.bodies import Body
from app.api.requests import Line
from app.domain.api_key import Scope
from app.services.api_keys import OVERLAP_SECONDS, KeyDraft

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
    """What a key's jobs may spend together."""

    usd_limit: float = Field(gt=0, le=MOST_USD, description="US dollars at list prices.")


class ApiKeyIn(Body):
    """A key that is to be made."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [KEY_EXAMPLE]})

    name: Line = Field(min_length=1, description="For people: who or what uses it.")
    scopes: list[Annotated[Scope, Field(strict=False)]] = Field(
        min_length=1,
        max_length=len(Scope),
        description="`read` sees; `submit` also spends money and keeps or deletes things; `admin` also manages keys,"
        " webhooks and connections.",
    )
    expires_at: Annotated[AwareDatetime, Field(strict=False)] | None = Field(
        None, description="When it ends; `null` for never."
    )
    requests_per_minute: int | None = Field(
        None, ge=1, le=MOST_REQUESTS, description="How often it may ask; `null` for no limit."
    )
    spending: SpendingIn | None = Field(
        None, description="A cap on what all jobs that it submits spend together; `null` for none."
    )

    def to_draft(self) -> KeyDraft:
        """What the services take."""
        ends: datetime | None = self.expires_at
        usd = None if self.spending is None else self.spending.usd_limit
        return KeyDraft(self.name, self.scopes, ends, self.requests_per_minute, usd)


class RotationIn(Body):
    """How a key is rotated."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"overlap_seconds": 3600}]}
    )

    overlap_seconds: int = Field(
        OVERLAP_SECONDS,
        ge=0,
        le=LONGEST_OVERLAP_SECONDS,
        description="For how long the former key is still taken; 0 ends it at once.",
    )
