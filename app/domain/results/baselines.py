"""Published figures as clients are shown them."""

from typing import Literal

from pydantic import BaseModel, Field

from app.domain.contract import Answer
from app.domain.personagym.scores import PersonaResult, Spread
from app.domain.results.contract import CellMetrics, GroupKeys, ScaleAnswer
from app.domain.results.model_groups import ModelGroup
from app.domain.results.named_baselines import NamedBaseline
from app.domain.results.results import Correlation, ResponseStatuses


class BaselineSource(Answer):
    """A paper whose results these are."""

    id: Literal["atomic", "personagym"]
    title: str
    year: int = Field(description="Of the paper.")
    tables: str
    judges: list[str] | None = Field(description="The judges, as the paper names them.")


class BaselineCell(BaseModel):
    """One published cell: model × persona × task × dimension."""

    source: Literal["atomic"]
    model: str = Field(examples=["GPT-4o"])
    persona: str = Field(examples=["E-neutral"])
    task: str = Field(examples=["essay"])
    dimension: str
    level: str
    simulated: bool
    scale: ScaleAnswer
    runs: int
    metrics: CellMetrics
    coverage: None = Field(None, description="Not published, nor is anything that follows from it.")
    corrected: None = None


class _By(BaseModel):
    source: Literal["atomic"]
    by: list[str]


class BaselineTotal(GroupKeys, _By):
    """Unweighted means over published cells; the group's keys stand beside `by`."""

    simulated: bool
    cells: int
    generation: ResponseStatuses = Field(description="Zeros: not published.")
    metrics: CellMetrics
    matched: CellMetrics | None = Field(None, description="As of results.")
    coverage: None = Field(None, description="Not published, nor is anything that follows from it.")
    corrected: None = None


class BaselineScores(BaseModel):
    """A row of PersonaGym's Table 1: mean, standard deviation and interval over 200 personas."""

    source: Literal["personagym"]
    model: str
    simulated: bool
    tasks_in_paper: int
    persona_score: Spread | None = Field(None, description="Absent if one task was requested.")
    tasks: dict[str, Spread]


class BaselineLength(BaseModel):
    """How long a model's responses to a task are (atomic paper, Table 15)."""

    source: Literal["atomic"]
    model: str
    task: str
    sentences: float = Field(description="Of a response, on average.")
    scored: float = Field(description="The share of them that has a score, 0 to 1.")


class Baselines(Answer):
    """Published results in the form of a job's."""

    object: Literal["baselines"]
    published: Literal[True]
    note: str = Field(description="What these figures can and cannot show.")
    sources: list[BaselineSource]
    cells: list[BaselineCell]
    totals: list[BaselineTotal]
    correlations: list[Correlation] = Field(description="Over the cells that pass the filters.")
    persona_scores: list[PersonaResult] = Field(description="Empty: not published by persona.")
    persona_score_totals: list[BaselineScores]
    groups: list[ModelGroup] = Field(
        default_factory=list,
        description="The atomic paper's models, alone and by their attributes, over the cells that pass the filters.",
    )
    lengths: list[BaselineLength] = Field(
        default_factory=list,
        description="Empty where one persona was asked for: no paper tells them by persona.",
    )
    own: list[NamedBaseline] = Field(
        default_factory=list,
        description="Models of your own jobs that are named as baselines; left out if there are none, or one of the papers was"
        " asked for.",
    )
