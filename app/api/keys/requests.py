"""Schemas of the bodies that make and rotate API keys."""

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from app.domain.contract import Body, Line
from app.domain.keys.api_key import Scope
from app.services.keys.api_keys import OVERLAP_SECONDS, KeyChanges, KeyDraft

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


class ApiKeyChangeIn(Body):
    """What to change of a key; what is left out stays."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"spending": {"usd_limit": 100}}]}
    )

    name: Line = Field("", validate_default=False)
    requests_per_minute: int | None = Field(None, ge=1, le=MOST_REQUESTS, description="`null` for no limit.")
    spending: SpendingIn = Field(
        default_factory=lambda: SpendingIn(usd_limit=1),
        description="Of a key that was made with a cap: what its jobs took so far was not counted otherwise.",
    )

    @model_validator(mode="after")
    def _something(self) -> "ApiKeyChangeIn":
        if not self.model_fields_set:
            raise ValueError("name at least one of name, requests_per_minute, spending")
        return self

    def to_changes(self) -> KeyChanges:
        """What was named."""
        named = self.model_fields_set
        return KeyChanges(
            name=self.name if "name" in named else None,
            requests_per_minute=self.requests_per_minute,
            changes_requests="requests_per_minute" in named,
            usd=self.spending.usd_limit if "spending" in named else None,
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
        description="For how long the former key is still taken; 0 ends it at once.",
    )
