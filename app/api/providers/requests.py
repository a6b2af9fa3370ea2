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
    """How fast a model may be called, by all workers together; no limit where none is given."""

    requests_per_minute: Rate | None = None
    tokens_per_minute: Rate | None = None
    max_in_flight: Annotated[int, Field(ge=1, le=MOST_IN_FLIGHT)] | None = None


class ConnectionLimitsIn(LimitsIn):
    """Limits for each model by itself."""

    models: dict[ModelName, LimitsIn] = Field(
        default_factory=dict,
        max_length=MOST_MODELS,
        description="Of single models; what one leaves out is taken from the connection.",
    )

    def kept(self) -> dict[str, Any]:
        """The limits as they are kept."""
        own = self.model_dump(exclude={"models"})
        return own | {"models": {name: of.model_dump(exclude_unset=True) for name, of in self.models.items()}}


class PricesIn(Body):
    """US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = Field(None, description="As `input` if left out.")
    batch_share: Dollars = Field(
        BATCH_SHARE, description="What a call in a batch costs, as a share of these."
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

    name: Name = Field(description="How jobs name it: a model is `name/model`.")
    kind: ConnectionKind = Field(
        description="The wire format that its server speaks; `completions` is OpenAI's older one for base models, which know no roles."
    )
    base_url: Url = Field(
        description="What the format's paths are appended to. `https` and a public address, unless the operator allows its network."
    )
    api_key: Key | None = Field(
        None,
        description="Kept encrypted, sent to the URL's scheme, host and port alone, and never shown again.",
    )
    limits: ConnectionLimitsIn = Field(
        default_factory=ConnectionLimitsIn, description="For each model by itself."
    )
    prices: Prices = Field(
        default_factory=dict, description="US dollars per million tokens, by the model's name."
    )
    models: Models | None = Field(None, description="What jobs may use; all if left out.")
    batches: bool = Field(False, description="Whether it has the batch endpoints of its wire format.")
    families: Families = Field(
        default_factory=dict,
        description="Which model stands behind a name that does not say so, such as a deployment's: what its family refuses is not sent.",
    )
    description: Line | None = Field(None, description="For people.")

    def values(self) -> dict[str, Any]:
        """What is kept of it, but for the key."""
        return _columns(self, set(type(self).model_fields))


class ConnectionChangeIn(ChangeBody):
    """What to change of a connection; what is left out stays."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"api_key": "…"}]})

    base_url: Url = Field(
        "",
        validate_default=False,
        description="With another scheme, host or port the key has to be given anew.",
    )
    api_key: Key | None = Field(None, description="`null` takes it away.")
    limits: ConnectionLimitsIn = Field(default_factory=ConnectionLimitsIn, validate_default=False)
    prices: Prices = Field(default_factory=dict, validate_default=False)
    models: Models | None = None
    batches: bool = False
    families: Families = Field(default_factory=dict, validate_default=False)
    description: Line | None = None

    def changes(self) -> dict[str, Any]:
        """What was named."""
        key = {"api_key": self.api_key} if "api_key" in self.model_fields_set else {}
        return _columns(self, self.model_fields_set) | key


def _columns(body: "ConnectionIn | ConnectionChangeIn", fields: set[str]) -> dict[str, Any]:
    values = body.model_dump(include=fields - {"api_key", "limits"})
    return values | ({"limits": body.limits.kept()} if "limits" in fields else {})
