"""Comparisons as clients ask for them."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.config import JsonDict

from app.domain.contract import Body, Line


class SideIn(Body):
    """A model to compare: a job's or a published one."""

    job: Line | None = Field(None, description="A finished job.")
    model: Line | None = Field(None, description="One of its models; required if it has several.")
    baseline: Line | None = Field(
        None,
        description="A baseline of your own by its name, or a published model, as `/v1/baselines` names them; one of PersonaGym's paper only beside one other, unpaired.",
    )

    @model_validator(mode="after")
    def _one(self) -> "SideIn":
        if (self.job is None) == (self.baseline is None):
            raise ValueError("give either a job or a baseline")
        if self.baseline is not None and self.model is not None:
            raise ValueError("a baseline is a single model: leave model out")
        return self


PairingIn = Annotated[
    Literal["cells", "items"],
    Field(
        description="What is paired: the values of a cell, or of one item (a question, an essay's context) that all"
        " answered as the same persona. Items are the same if their words are; published results have no items."
    ),
]
MOST_MODELS = 20
"""Models that are compared at a time: 190 pairs."""
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
    pairing: PairingIn = "cells"


class ModelsIn(Body):
    """Several models to compare pairwise."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"models": [{"job": "job_01kxyz0abcdefghjkmnpqrstvw"}]}]},
    )

    models: list[SideIn] = Field(
        min_length=1,
        max_length=MOST_MODELS,
        description=f"A job without `model` stands for all of its models; 2 to {MOST_MODELS} in all.",
    )
    pairing: PairingIn = "cells"


def _kind(value: object) -> str:
    return "several" if isinstance(value, dict) and "models" in value else "two"


ComparisonRequest = Annotated[
    Annotated[ComparisonIn, Tag("two")] | Annotated[ModelsIn, Tag("several")], Discriminator(_kind)
]


class JudgeIn(Body):
    """A judge of a finished job."""

    job: Line
    judge: Line | None = Field(None, description="Its label; required if the job has several.")


BRIDGE_EXAMPLE: JsonDict = {
    "old": {"job": "job_01kxyz0abcdefghjkmnpqrstvw", "judge": "openai/gpt-4o"},
    "new": {"job": "job_01kxyz0abcdefghjkmnpqrstvx"},
}


class BridgeIn(Body):
    """Two judges of the same texts: of one job, or of two jobs of which the new one judged texts of the old one again."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [BRIDGE_EXAMPLE]})

    old: JudgeIn
    new: JudgeIn
    within: float = Field(
        0.05,
        gt=0,
        lt=1,
        allow_inf_nan=False,
        description="The margin within which the judges count as interchangeable, as a share of a figure's range.",
    )
