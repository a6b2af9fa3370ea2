"""Baselines of one's own as clients name and are shown them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from app.domain.contract import Answer, Body, Identifier, Line

NAME_FORM = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
BaselineName = Annotated[str, Field(pattern=f"^{NAME_FORM}$", max_length=100, examples=["release-3"])]
PREFIX = "baseline:"
"""What names a baseline in place of a job."""


class NamedBaselineIn(Body):
    """A model of a finished job that is to be compared with."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [{"job": "job_01kxyz0abcdefghjkmnpqrstvw", "model": "openai/gpt-6-luna"}]
        },
    )

    job: Identifier = Field(description="A finished job.")
    model: Line | None = Field(None, description="One of its models; required if it has several.")


class BaselineRenameIn(Body):
    """Another name for a baseline."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"name": "release-4"}]}
    )

    name: BaselineName


class NamedBaseline(Answer):
    """A model of a job under a name of your own."""

    name: BaselineName
    object: Literal["baseline"] = "baseline"
    job: str
    job_name: str | None
    model: str
    created_at: datetime = Field(description="When it was named.")
