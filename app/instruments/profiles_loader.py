"""Loads the profiles of judge models."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field, model_validator

from app.domain.judging.profiles import JudgeProfile
from app.instruments.forms import Form, Text, placeholders, require_placeholders
from app.instruments.loader import Source

_CRITERIA = {"trait": {"dimension"}, "persona": {"persona"}, "grade": {"description", "persona"}}


class ProfileForm(Form):
    """One profile."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    models: tuple[Annotated[str, Field(pattern=r"^[a-z0-9.-]+$")], ...]
    sources: Annotated[tuple[Annotated[str, Field(pattern=r"^https://")], ...], Field(min_length=1)]
    prompt: Text
    score: Text
    result: Text

    @model_validator(mode="after")
    def _check(self) -> "ProfileForm":
        wanted = {"prompt": {"instruction", "response", "criterion", "rubric"}, "score": {"score", "words"}}
        for name, expected in wanted.items():
            require_placeholders(getattr(self, name), expected, name)
        if re.compile(self.result).groups != 1:
            raise ValueError("result must have one group, the score")
        return self


class ProfilesFile(Form):
    """``profiles.yaml``."""

    criteria: dict[str, Text]
    profiles: tuple[ProfileForm, ...]

    @model_validator(mode="after")
    def _check(self) -> "ProfilesFile":
        found = {name: set(placeholders(text)) for name, text in self.criteria.items()}
        if found != _CRITERIA:
            raise ValueError(f"criteria must be those with these placeholders: {_CRITERIA}")
        return self


@cache
def load_profiles(version: str | None = None) -> Mapping[str, JudgeProfile]:
    """The profiles that come with the package by their ids, read once per process.

    Raises:
        InstrumentError: If there is no such version or its data are not valid.
    """
    source = Source(files("app.instruments"), "profiles", version)
    read = source.read("profiles.yaml", ProfilesFile)
    content_hash = source.content_hash()
    return {
        each.id: JudgeProfile(
            each.id,
            source.version,
            content_hash,
            each.models,
            each.prompt,
            each.score,
            each.result,
            read.criteria,
        )
        for each in read.profiles
    }
