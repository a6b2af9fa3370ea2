"""Baselines of one's own as clients name and are shown them."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from app.domain.contract import Answer, Body, Identifier, Line

NAME_FORM = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_NAME_WORDS = "must be 1 to 100 letters (A to Z, a to z), digits, dots, hyphens and underscores, and begin with a letter or digit"


def _check_name(name: str) -> str:
    if re.fullmatch(NAME_FORM, name) is None:
        raise ValueError(_NAME_WORDS)
    return name


BaselineName = Annotated[
    str,
    AfterValidator(_check_name),
    WithJsonSchema(
        {"type": "string", "maxLength": 100, "pattern": f"^{NAME_FORM}$", "examples": ["release-3"]}
    ),
]
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
