"""What all answers' schemas have in common.

They are for the OpenAPI document: the services make these shapes, and tests hold the two together.
"""

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(extra="forbid")


class Page(Answer):
    """Base of lists that are read page by page; what is listed is its ``data``."""

    has_more: bool
    next_cursor: str | None
