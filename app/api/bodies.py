"""What all request bodies share."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """Base of all bodies: unknown fields and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)
