"""Comparisons as clients ask for them."""

from typing import Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from app.domain.contract import Body, Line


class SideIn(Body):
    """One of the two that are compared: a job's model, or a published one."""

    job: Line | None = Field(None, description="A job that is over.")
    model: Line | None = Field(None, description="One of its models; not needed if it has only one.")
    baseline: Line | None = Field(
        None, description="A model of the atomic paper, as `/v1/baselines` names it."
    )

    @model_validator(mode="after")
    def _one(self) -> "SideIn":
        if (self.job is None) == (self.baseline is None):
            raise ValueError("give either a job or a baseline")
        if self.baseline is not None and self.model is not None:
            raise ValueError("a baseline is a single model: leave model out")
        return self


COMPARISON_EXAMPLE: JsonDict = {
    "a": {"job": "job_01kxyz0abcdefghjkmnpqrstvw", "model": "openai/gpt-6-luna"},
    "b": {"baseline": "GPT-4o"},
}


class ComparisonIn(Body):
    """Two models of one job, of two jobs, or a job's model and a published one."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [COMPARISON_EXAMPLE]}
    )

    a: SideIn
    b: SideIn
    pairing: Literal["cells", "items"] = Field(
        "cells",
        description="What makes a pair: the figures of a cell, or those of one item (a question, an essay's context) that both"
        " have answered as the same persona. Items are the same if they have the same words; published figures have none.",
    )
