"""Schemas of answers about connections that were made over the API."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.domain.contract import Answer
from app.llm.connections.connections import ConnectionKind


class KeptLimits(Answer):
    """How fast a model may be called; `null` for no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_in_flight: int | None = None


class KeptConnectionLimits(KeptLimits):
    """Limits for each model by itself, and those of single models."""

    models: dict[str, KeptLimits]


class KeptPrices(Answer):
    """US dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None
    batch_share: float = Field(description="What a call in a batch costs, as a share of these.")


class KeptConnection(Answer):
    """A connection to a model provider, without its key."""

    name: str = Field(examples=["lab-vllm"])
    object: Literal["connection"]
    version: str = Field(
        description="Another one after each change of URL, limits or prices. Jobs keep the one with which they were submitted.",
        examples=["3f9c2a7104d8be65"],
    )
    kind: ConnectionKind
    base_url: str
    key_set: bool
    key_hint: str | None = Field(
        description="The key's last four characters; `null` without a key, or with one of less than 20 characters.",
        examples=["x7Qa"],
    )
    limits: KeptConnectionLimits
    prices: dict[str, KeptPrices]
    models: list[str] | None = Field(description="`null` for all.")
    batches: bool
    families: dict[str, str] = Field(
        description="By model: the name by which the model table knows its family."
    )
    description: str | None
    created_at: datetime = Field(description="Of this version.")
    updated_at: datetime


class KeptConnectionList(Answer):
    """All connections of the tenant, by name."""

    data: list[KeptConnection]
