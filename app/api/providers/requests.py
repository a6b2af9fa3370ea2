"""Schemas of the bodies that make and change connections."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, SecretStr
from pydantic.config import JsonDict

from app.domain.contract import Body, ChangeBody, Line, Text
from app.domain.providers.model import ConnectionKind
from app.llm.connections.connections import BATCH_SHARE, base_url_of, key_of

LONGEST_KEY = 500
MOST_MODELS = 500
MOST_IN_FLIGHT = 1_000_000

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Url = Annotated[
    Text, Field(min_length=1, max_length=2000, pattern=r"^[\x21-\x7e]+$"), AfterValidator(base_url_of)
]
Key = Annotated[SecretStr, Field(min_length=1, max_length=LONGEST_KEY), AfterValidator(key_of)]
ModelName = Annotated[Line, Field(min_length=1)]


Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class LimitsIn(Body):
    """Rate limits of a model, for all workers together; default: none."""

    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None
    max_in_flight: Annotated[int, Field(ge=1, le=MOST_IN_FLIGHT)] | None = None


class ConnectionLimitsIn(LimitsIn):
    """Limits for each model separately."""

    models: dict[ModelName, LimitsIn] = Field(
        default_factory=dict,
        max_length=MOST_MODELS,
        description="For single models; omitted limits are the connection's.",
    )

    def kept(self) -> dict[str, Any]:
        """The limits as they are kept."""
        own = self.model_dump(exclude={"models"})
        return own | {"models": {name: of.model_dump(exclude_unset=True) for name, of in self.models.items()}}


class PricesIn(Body):
    """US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = Field(None, description="Default: as `input`.")
    batch_share: Dollars = Field(
        BATCH_SHARE, description="The price of a batch call as a share of these prices."
    )


Prices = Annotated[dict[ModelName, PricesIn], Field(max_length=MOST_MODELS)]
Families = Annotated[dict[ModelName, ModelName], Field(max_length=MOST_MODELS)]
Models = Annotated[list[ModelName], Field(min_length=1, max_length=MOST_MODELS)]

CONNECTION_EXAMPLE: JsonDict = {
    "name": "lab-vllm",
    "kind": "openai",
    "base_url": "https://vllm.example.com/v1",
    "api_key": "…",
    "limits": {"requests_per_minute": 600, "max_in_flight": 64},
    "prices": {"llama-3.1-70b": {"input": 0.4, "output": 0.4}},
    "models": ["llama-3.1-70b"],
}


class ConnectionIn(Body):
    """A connection to a model provider."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [CONNECTION_EXAMPLE]}
    )

    name: Name = Field(description="Its name in jobs: a model is `name/model`.")
    kind: ConnectionKind = Field(
        description="The server's wire format; `completions` is OpenAI's older one for base models, which "
        "have no roles."
    )
    base_url: Url = Field(
        description="The base of the format's paths. `https` and a public address, unless the operator allows "
        "its network."
    )
    api_key: Key | None = Field(
        None,
        description="Stored encrypted, sent only to the URL's scheme, host and port, and never shown again.",
    )
    limits: ConnectionLimitsIn = Field(
        default_factory=ConnectionLimitsIn, description="For each model separately."
    )
    prices: Prices = Field(
        default_factory=dict, description="US dollars per million tokens, by the model's name."
    )
    models: Models | None = Field(None, description="Models that jobs may use; default: all.")
    batches: bool = Field(False, description="Whether the server has its wire format's batch endpoints.")
    stream: bool = Field(
        False, description="Whether calls ask for event streams, for a server that answers no other way."
    )
    families: Families = Field(
        default_factory=dict,
        description="By name: the model behind a name that does not tell, such as a deployment's. Parameters "
        "that its family refuses are not sent.",
    )
    description: Line | None = Field(None, description="A description, for people.")

    def values(self) -> dict[str, Any]:
        """What is kept of it, but for the key."""
        return _columns(self, set(type(self).model_fields))


class ConnectionChangeIn(ChangeBody):
    """Changes to a connection; omitted fields stay as they are."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"api_key": "…"}]})

    base_url: Url = Field(
        "",
        validate_default=False,
        description="If the scheme, host or port changes, the key must be given again.",
    )
    api_key: Key | None = Field(None, description="`null` removes it.")
    limits: ConnectionLimitsIn = Field(default_factory=ConnectionLimitsIn, validate_default=False)
    prices: Prices = Field(default_factory=dict, validate_default=False)
    models: Models | None = None
    batches: bool = False
    stream: bool = False
    families: Families = Field(default_factory=dict, validate_default=False)
    description: Line | None = None

    def changes(self) -> dict[str, Any]:
        """What was named."""
        key = {"api_key": self.api_key} if "api_key" in self.model_fields_set else {}
        return _columns(self, self.model_fields_set) | key


def _columns(body: "ConnectionIn | ConnectionChangeIn", fields: set[str]) -> dict[str, Any]:
    values = body.model_dump(include=fields - {"api_key", "limits"})
    return values | ({"limits": body.limits.kept()} if "limits" in fields else {})
