"""Results and published figures as clients are shown them, and as they are stored."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    create_model,
)
from pydantic.config import JsonDict
from pydantic_core import to_json

from app.domain.contract import Answer, Completeness
from app.domain.instruments.contract import DimensionInWords, PersonaInWords
from app.domain.instruments.dimension import Scale
from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.stepwise_json import SHORT_CHARACTERS, parse_document
from app.domain.labels.human_agreement import HumanAgreement
from app.domain.metrics.cell import MeasuredMetrics, UnitCounts
from app.domain.metrics.definition import Family, MetricDefinition
from app.domain.metrics.interval import DIGITS
from app.domain.metrics.metric import INTERVALS, NOT_COMPUTED, Metric, MetricSet
from app.domain.metrics.registry import METRICS, names
from app.domain.personagym.agreement import GradeAgreement
from app.domain.personagym.diversity import Diversity
from app.domain.personagym.scores import PersonaResult
from app.domain.providers.usage import Cost, FailedCalls, JobUsage, ReuseAnswer
from app.domain.results.control import ControlArm
from app.domain.results.coverage import COMPOSITE, GRADES, VERDICTS, Coverage
from app.domain.results.grouping_check import JudgingCheck
from app.domain.results.missing import Corrected
from app.domain.results.opposite import OppositeControl
from app.domain.results.order_check import OrderCheckResult
from app.domain.results.personagym_results import PersonaScoreTotal
from app.domain.results.repairs import JudgeRepairs, Repairs
from app.domain.results.results import (
    Correlation,
    JudgeResult,
    LengthEffect,
    Measured,
    MeasuredCell,
    ResponseStatuses,
    Total,
)
from app.domain.results.verdict_agreement import VerdictAgreement
from app.domain.results.warnings import ResultWarning
from app.domain.statistics.cells import fewest_wordings
from app.domain.statistics.design import FEWEST_WORDINGS


def _model_of(metric: MetricDefinition) -> type[Metric]:
    """A metric's model: of one with parts these beside it, each with all that a metric has but ``left_out``."""
    if not metric.parts:
        return Metric
    fields: dict[str, Any] = {}
    for part in metric.parts:
        fields |= {part: (float | None, ...), f"{part}_n": (int, ...), f"{part}_reason": (str | None, None)}
        for interval in INTERVALS:
            fields[f"{part}_{interval}"] = (tuple[float, float] | None, None)
            fields[f"{part}_{interval}_reason"] = (str | None, None)
    name = metric.name.title().replace("_", "")
    words = f"{metric.label}, and its parts: {', '.join(metric.parts)}."
    return create_model(name, __base__=Metric, __doc__=words, **fields)


def _not_computed(metric: MetricDefinition) -> Callable[[], Metric]:
    parts = {f"{part}{name}": value for part in metric.parts for name, value in (("", None), ("_n", 0))}
    missing = _MODELS[metric.name](**NOT_COMPUTED.to_json(), **parts)
    return lambda: missing


def _require_papers(schema: JsonDict) -> None:
    """Require the papers' metrics; results from before a later metric lack it."""
    schema["required"] = [metric.name for metric in METRICS if metric.family is not Family.CORRECTED]


_MODELS = {metric.name: _model_of(metric) for metric in METRICS}
globals().update({model.__name__: model for model in _MODELS.values()})  # where pickle looks for them
_ALL: dict[str, Any] = {
    metric.name: (
        _MODELS[metric.name],
        Field(
            default_factory=_not_computed(metric),
            description=f"{metric.label}. {metric.definition} {metric.source}.",
        ),
    )
    for metric in METRICS
}
_Metrics: type[BaseModel] = create_model("_Metrics", **_ALL)


class CellMetrics(_Metrics):
    """The metrics of a cell or total."""

    model_config = ConfigDict(json_schema_extra=_require_papers)

    def __getitem__(self, name: str) -> Metric:
        found: Metric = getattr(self, name)
        return found

    def part(self, name: str, part: str) -> float | None:
        """A part of a metric."""
        found: float | None = getattr(self[name], part)
        return found

    def __contains__(self, name: str) -> bool:
        """Whether the results know the metric: they may be from before it."""
        return name in self.model_fields_set

    @classmethod
    def of(cls, metrics: MetricSet, cells: int | None = None) -> Self:
        """All metrics by name, each with its parts.

        Args:
            metrics: The metrics.
            cells: For a total, how many cells it has: each metric then says how many of them it left out.
        """
        found: dict[str, Metric] = {}
        for metric in METRICS:
            own = metrics[metric.name]
            if cells is not None:
                own = own.model_copy(update={"left_out": cells - own.n})
            if metric.parts:
                fields = _known(own)
                for part, name in zip(metric.parts, metric.names[1:], strict=True):
                    fields |= {_PART_FIELDS[part][key]: value for key, value in _known(metrics[name]).items()}
                own = _MODELS[metric.name](**fields)
            found[metric.name] = own
        return cls(**found)


_PART_FIELDS = {
    part: {key: part if key == "value" else f"{part}_{key}" for key in Metric.model_fields}
    for metric in METRICS
    for part in metric.parts
}
"""What a part's fields are called beside the metric's own."""


def _known(metric: Metric) -> dict[str, Any]:
    """What is set of a metric."""
    known = metric.model_fields_set
    return {name: value for name, value in metric.__dict__.items() if name in known}


class ScaleAnswer(Answer):
    """Integer scores from `minimum` to `maximum`, divided into equal levels."""

    minimum: int
    maximum: int
    levels: list[str] = Field(description="Lowest first.", examples=[["low", "neutral", "high"]])

    @classmethod
    def of(cls, scale: Scale) -> Self:
        """A dimension's."""
        return cls(minimum=scale.minimum, maximum=scale.maximum, levels=list(scale.levels))


class JudgedCell(BaseModel):
    """A cell's values, for all judges together or for one."""

    metrics: CellMetrics
    units: UnitCounts
    responses: dict[str, int]
    runs_used: int = Field(description="Runs with a scored sentence, for the judge with the fewest.")
    scores: dict[str, int] = Field(
        {},
        description="Number of sentences with each score.",
        examples=[{"1": 0, "2": 3, "3": 9, "4": 20, "5": 8}],
    )


def _judged(found: MeasuredMetrics, scale: Scale) -> dict[str, Any]:
    return {
        "metrics": CellMetrics.of(found.metrics),
        "units": found.units,
        "responses": asdict(found.responses),
        "runs_used": found.runs.used,
        "scores": {str(scale.minimum + n): count for n, count in enumerate(found.scores)},
    }


class _CellKeys(BaseModel):
    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool


class _CellRuns(_CellKeys):
    scale: ScaleAnswer
    runs: int
    generation: ResponseStatuses


class CellResult(JudgedCell, _CellRuns):
    """One cell: model × persona × task × dimension."""

    coverage: Coverage
    corrected: Corrected
    by_judge: dict[str, JudgedCell]
    wording_effects: dict[str, dict[int, float]] | None = Field(
        None,
        description="By metric and instruction number: how much the metric would drop without that persona "
        "instruction. Used by comparisons. Missing if fewer than three instructions are "
        "known.",
    )

    @classmethod
    def of(cls, cell: MeasuredCell) -> Self:
        """A cell that was measured."""
        effects = _wording_effects(cell)
        return cls(
            model=cell.model,
            persona=cell.persona,
            task=cell.task,
            dimension=cell.dimension,
            level=cell.level,
            simulated=cell.simulated,
            scale=ScaleAnswer.of(cell.scale),
            runs=cell.runs,
            generation=cell.statuses,
            **_judged(cell.metrics, cell.scale),
            coverage=cell.coverage,
            corrected=cell.corrected,
            by_judge={
                judge: JudgedCell(**_judged(own, cell.scale)) for judge, own in sorted(cell.by_judge.items())
            },
            **({"wording_effects": effects} if effects else {}),
        )


def _wording_effects(cell: MeasuredCell) -> dict[str, dict[int, float]]:
    """Of the metrics that are compared and of which few wordings tell how others like them would change them."""
    return {
        name: {wording: round(effect, DIGITS) for wording, effect in sorted(dropped.items())}
        for name in names(Family.SCORE, Family.RESPONSE, Family.ATOMIC)
        if fewest_wordings(name) == FEWEST_WORDINGS
        and name in cell.varied
        and (dropped := cell.varied[name].dropped) is not None
        and len(dropped) >= FEWEST_WORDINGS
    }


class GroupKeys(BaseModel):
    """What the cells of a total have in common; of these keys those that its `by` names."""

    model: str = Field(description="Present in every group.")
    persona: str | None = None
    task: str | None = None
    level: str | None = None
    dimension: str | None = None


class _By(BaseModel):
    by: list[str] = Field(description="Names of the keys that make the group.", examples=[["model", "task"]])


class GroupResult(GroupKeys, _By):
    """Unweighted means over the cells of one group; the group's keys stand beside `by`."""

    simulated: bool
    cells: int
    generation: ResponseStatuses = Field(
        description="The cells' responses; those shared by several cells count once."
    )
    metrics: CellMetrics
    matched: CellMetrics | None = Field(
        None,
        description="For models: the same over the cells for which every model has the metric; `null` if no "
        "model lacks what another has.",
    )
    units: UnitCounts

    @classmethod
    def of(cls, total: Total) -> Self:
        """Show a group's; ``left_out`` counts the cells that lack a metric."""
        return cls(**_of_group(total))


def _of_group(total: Total) -> dict[str, Any]:
    return {
        "by": list(total.by),
        **total.keys,
        "simulated": total.simulated,
        "cells": total.cells,
        "generation": total.statuses,
        "metrics": CellMetrics.of(total.metrics, total.cells),
        "matched": None if total.matched is None else CellMetrics.of(total.matched, total.cells),
        "units": total.units,
    }


class TotalResult(GroupResult):
    """A group's means, and how much of what was planned they are based on."""

    coverage: Coverage
    corrected: Corrected

    @property
    def group(self) -> dict[str, str]:
        """What the cells have in common, by the names in `by`."""
        return {name: getattr(self, name) for name in self.by}

    def figure(self, name: str) -> Metric:
        """A metric, or ``acc_atom_composite``."""
        if name == COMPOSITE:
            return self.corrected.acc_atom_composite
        return self.metrics[name]

    def covered(self, name: str = "acc_atom") -> float | None:
        """The share of what was planned that a figure is of: the smaller of that of verdicts and that of cells.

        Args:
            name: As for :meth:`figure`; in ``acc_atom_composite`` refusals count.

        Returns:
            0–1; ``None`` if nothing is planned.
        """
        counts = self.coverage
        if not counts.planned or (name != COMPOSITE and name not in self.metrics):
            return None
        counted = counts.counted + (counts.refused if name == COMPOSITE else 0)
        return min(counted / counts.planned, self.figure(name).n / self.cells)

    @classmethod
    def of(cls, total: Total) -> Self:
        """Show a group's; ``left_out`` counts the cells that lack a metric."""
        return cls(**_of_group(total), coverage=total.coverage, corrected=total.corrected)


def shown(found: Measured) -> dict[str, Any]:
    """What results show of what was measured, by the names of their fields."""
    return {
        "cells": [CellResult.of(cell) for cell in found.cells],
        "totals": [TotalResult.of(total) for total in found.totals],
        "judges": list(found.judges),
        "correlations": list(found.correlations),
        "length_effects": list(found.length_effects),
    }


class PersonaGenerationResult(Answer):
    """The outcome of a job that generates personas."""

    id: str | None = Field(description="The set's id; `null` until it exists.")
    wanted: int
    found: int
    asks: int
    dropped: dict[str, int] = Field(description="`duplicate`, `alike`, `unusable`, `surplus`.")
    error: str | None = Field(description="What is missing, and why.")
    diversity: Diversity | None


class SuspicionCounts(Answer):
    """Uncertain judgements by cause."""

    total: int
    of: int = Field(description="All judgements.")
    text: int
    reply: int
    both: int

    @classmethod
    def of_kinds(cls, found: Counter[Suspicion], of: int) -> Self:
        """The counts by kind, of so many judgements."""
        return cls(
            total=found.total(),
            of=of,
            text=found[Suspicion.TEXT],
            reply=found[Suspicion.REPLY],
            both=found[Suspicion.BOTH],
        )


class SuspicionOfModel(Answer):
    """Uncertain judgements of one model's texts by one judge."""

    model: str
    judge: str
    verdicts: int = Field(description="On sentences.")
    grades: int = Field(description="On PersonaGym responses.")


class WithoutSuspicion(Answer):
    """The values without uncertain judgements."""

    totals: list[GroupResult] = Field(description="By model, and by model and task.")
    persona_score_totals: list[PersonaScoreTotal]


class SuspicionSummary(Answer):
    """Judgements possibly affected by prompt injection. All values include them."""

    verdicts: SuspicionCounts
    grades: SuspicionCounts
    by_model: list[SuspicionOfModel] = Field(description="Only those with any.")
    without: WithoutSuspicion | None = Field(description="`null` if there are none.")


class WorstSentence(Answer):
    """The sentence farthest out of character, by the mean distance of its scores from the persona's level."""

    text: str = Field(description="The sentence as the judges read it. Untrusted text.")
    model: str
    persona: str
    task: str
    dimension: str = Field(description="The dimension on which it is farthest from the persona's level.")
    level: str = Field(description="The persona's level.")
    scores: dict[str, int] = Field(description="By judge.", examples=[{"simulated/sim-judge": 1}])
    response: str = Field(description="The id of its response.")
    run: int
    unit: int = Field(description="Its position in the response, from 0.")


class PreparationAsks(Answer):
    """Requests to the reasoner in the steps of one kind and task."""

    kind: str = Field(description="`personas`, `environments`, `questions` or `exemplars`.")
    task: str = Field(description="Empty for personas and environments.")
    steps: int = Field(description="Finished steps, including failed ones.")
    failed: int = Field(description="Steps that failed.")
    asks: int
    dropped: int = Field(description="Items in replies that were not used.")


class SourceOfTexts(Answer):
    """Where the job's texts were copied from."""

    job: str = Field(description="The job that had them; it may be deleted since.")
    filter: dict[str, list[str | int]] = Field(description="Which of its texts; empty for all.")
    sample: dict[str, int | str] | None = Field(description="The sample drawn of them, if any.")
    responses: int
    left_out: int = Field(description="Failed responses among those asked for; they have no text.")
    attributes: dict[str, dict[str, str]] = Field(description="What is known of the models, by label.")
    other_personas: list[str] = Field(
        default_factory=list, description="Ids of personas for which that job has other words or traits."
    )


_LONG: dict[str, type[BaseModel]] = {
    "personas": PersonaInWords,
    "cells": CellResult,
    "totals": TotalResult,
    "persona_scores": PersonaResult,
}
"""The lists of results that may be long, and what they are of."""


class Results(BaseModel):
    """Every metric by cell and by total."""

    job: str
    name: str | None
    completeness: Completeness
    completeness_reasons: list[str] = Field(
        default_factory=list,
        description="Why it is `partial`, each as `code: message`: `calls_missing`, `cells_without_figure`, "
        "`personas_without_score`.",
    )
    simulated: bool
    headline: str | None = Field(
        None,
        description="The conclusion in one sentence if the figures must not be taken at face value, for "
        "example because a judge cannot be trusted; else `null`.",
    )
    warnings: list[ResultWarning] = Field(
        default_factory=list, description="Reasons to doubt the results, the gravest first."
    )
    personas: list[PersonaInWords] = Field(description="The job's personas, by the ids in cells.")
    dimensions: list[DimensionInWords] = Field(description="Display names of the cells' dimensions.")
    cells: list[CellResult]
    totals: list[TotalResult]
    judges: list[JudgeResult]
    correlations: list[Correlation] = Field(default_factory=list)
    length_effects: list[LengthEffect] = Field(default_factory=list)
    verdict_agreement: list[VerdictAgreement] = Field(
        default_factory=list,
        description="How well the judges' verdicts on the same sentences agree: overall, by task, by "
        "dimension.",
    )
    persona_scores: list[PersonaResult] = Field(
        description="PersonaScore and task scores of each persona and model."
    )
    persona_score_totals: list[PersonaScoreTotal] = Field(
        default_factory=list, description="By model; missing for a job without PersonaGym tasks."
    )
    judge_agreement: list[GradeAgreement] = Field(
        default_factory=list, description="How well each two judges' grades agree, by task."
    )
    persona_set: PersonaGenerationResult | None = Field(
        None, description="For a job that generates personas."
    )
    preparation: list[PreparationAsks] = Field(
        default_factory=list, description="Requests to the reasoner, by kind and task."
    )
    worst_sentence: WorstSentence | None = Field(
        None,
        description="`null` if every sentence is in character. Texts with possible prompt injections are "
        "excluded.",
    )
    suspicion: SuspicionSummary | None = Field(
        None,
        description="Verdicts possibly affected by prompt injection; `null` if nothing is judged.",
    )
    judging_check: JudgingCheck | None = Field(
        None,
        description="For a job with several sentences per judging call: how well its verdicts agree with one "
        "per call.",
    )
    order_check: OrderCheckResult | None = Field(
        None,
        description="If requested: how much the judges depend on the order of their options.",
    )
    repairs: list[JudgeRepairs] = Field(
        [], description="By judge: replies that could not be read and were followed by a second request."
    )
    repairs_total: Repairs | None = Field(
        None, description="Sum of `repairs`; `null` if judges were asked once."
    )
    control: ControlArm | None = Field(None, description="`null` for a job without `control`.")
    opposite: OppositeControl | None = Field(
        None, description="`null` for a job without `control.opposite_persona`."
    )
    source: SourceOfTexts | None = Field(None, description="For a job on the texts of another job.")
    started_at: datetime | None
    computed_at: datetime
    usage: JobUsage
    cost: Cost
    failures: list[FailedCalls] = Field(
        default_factory=list, description="Failed calls, as a job shows them."
    )
    reuse: ReuseAnswer | None = Field(None, description="`null` for a job without it.")
    manifest: dict[str, Any]
    human_agreement: list[HumanAgreement] = Field(
        default_factory=list,
        description="How far annotators agree with the judges; only where there are any.",
    )

    @classmethod
    def read(cls, document: str) -> Self:
        """Results as they are stored, to be called on a thread.

        Nothing else runs in the process while JSON is parsed or validated in one step: so a long document is read list by list,
        element by element, as it is written.
        """
        if len(document) <= SHORT_CHARACTERS:
            return cls.model_validate_json(document)
        parsed = parse_document(document)
        for name, model in _LONG.items():
            elements = parsed.get(name, [])
            # In place: the list as JSON and as models at once takes a third more.
            for index, element in enumerate(elements):
                elements[index] = model.model_validate(element)
        return cls.model_validate(parsed)

    @property
    def graded(self) -> bool:
        """Whether the job has PersonaGym tasks."""
        return "persona_score_totals" in self.model_fields_set

    def coverage_of(self, model: str, of: Sequence[str] = (VERDICTS, GRADES)) -> float | None:
        """The share of what was planned that a model's figures are of.

        Args:
            model: Its label.
            of: Which figures: those of :data:`VERDICTS`, of :data:`GRADES`, or both.

        Returns:
            0–1, of both the smaller; ``None`` where it is not known.
        """
        shares = []
        if VERDICTS in of:
            shares += [
                total.covered() for total in self.totals if total.by == ["model"] and total.model == model
            ]
        if GRADES in of:
            shares += [total.coverage.share for total in self.persona_score_totals if total.model == model]
        return min((share for share in shares if share is not None), default=None)

    def warnings_about(self, model: str) -> list[ResultWarning]:
        """Return the warnings that concern a model's figures: its own, and those about judges."""
        return [warning for warning in self.warnings if warning.model in {None, model}]

    def document(self) -> str:
        """The results as JSON text: what is known of them, missing values ``null``.

        List by list, element by element: nothing else runs in the process while one is encoded.
        """
        known = {name: value for name, value in self if name in self.model_fields_set}
        fields = ",".join(f'"{name}":{json_text(value)}' for name, value in known.items())
        return f"{{{fields}}}"


def json_text(value: object) -> str:
    """A field of results as JSON; of models what is set of them."""
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, BaseModel):
        return value.model_dump_json(exclude_unset=True)
    return to_json(value).decode()


class RunOfCell(Answer):
    """One run of a cell."""

    run: int
    instruction: int | None = Field(
        description="Number of the persona instruction, from 0; `null` if unknown."
    )


class JudgesDistances(Answer):
    """Distances between runs by one judge's scores."""

    judge: str
    distances: list[list[float | None]] = Field(
        description="Each run with each other, in the order of `runs`; `null` if either has no scored "
        "sentence.",
        examples=[[[0, 0.5], [0.5, 0]]],
    )


class RunDistances(Answer):
    """Wasserstein distances between the scores of a cell's runs, 0 to the scale's width."""

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool
    width: int = Field(description="The greatest possible distance.")
    runs: list[RunOfCell] = Field(description="The first 100 at most.")
    runs_in_all: int = Field(description="Runs that have verdicts.")
    by_judge: list[JudgesDistances]
