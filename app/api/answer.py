"""What all answers' schemas have in common."""

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(extra="forbid")
