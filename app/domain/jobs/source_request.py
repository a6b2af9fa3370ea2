"""Where the existing texts of a job are taken from, as a client asks for it."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.domain.contract import Body, Identifier, Line, Text

Status = Literal["answered", "refused", "filtered", "no_answer"]
DrawnBy = Literal["responses", "run_pairs"]
Number = Annotated[int, Field(ge=0, le=32_766)]


class FilterIn(Body):
    """Which of the texts; all of them where nothing is named."""

    models: list[Line] = Field(default_factory=list, max_length=50, description="Labels of models.")
    personas: list[Identifier] = Field(default_factory=list, max_length=10_000)
    tasks: list[Annotated[Text, Field(max_length=100)]] = Field(default_factory=list, max_length=50)
    items: list[Annotated[Text, Field(max_length=200)]] = Field(
        default_factory=list, max_length=1000, examples=[["E-3"]]
    )
    instructions: list[Number] = Field(
        default_factory=list, max_length=1000, description="Numbers of persona instructions, from 0."
    )
    runs: list[Number] = Field(
        default_factory=list, max_length=1000, description="Numbers of repetitions, from 0."
    )
    status: list[Status] = Field(
        default_factory=list, max_length=4, description="Failed responses have no text: they are left out."
    )

    @property
    def chosen(self) -> dict[str, list[Any]]:
        """What is named, by field."""
        return {name: wanted for name, wanted in self.model_dump().items() if wanted}


class SampleIn(Body):
    """A sample of the texts in which each is as likely as any other, spread over models, tasks, personas' levels and personas."""

    responses: int = Field(
        ge=1, le=200_000, description="How many, of pairs of runs about how many; all if there are fewer."
    )
    seed: int = Field(0, ge=0, le=2**63 - 1)
    by: DrawnBy = Field(
        "responses",
        description="What is drawn: single responses; or pairs of runs of a cell with all of their responses, which a bridge"
        " needs for RC_atom.",
    )


class UploadTextsIn(Body):
    """The texts of an upload that is ready."""

    upload: Identifier = Field(examples=["upl_01kxyz0abcdefghjkmnpqrstvw"])


class JobTextsIn(Body):
    """The texts of another of your jobs, which has ended."""

    job: Identifier
    filter: FilterIn = Field(default_factory=FilterIn)
    sample: SampleIn | None = None
