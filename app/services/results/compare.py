"""Compares two models: of one job, of two, or of a job and a paper."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import combinations, starmap
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.contract import PersonaInWords
from app.domain.labels.contract import CalibratedFigure
from app.domain.personagym.scores import Spread
from app.domain.results.baselines import BaselineScores
from app.domain.results.comparison import (
    ComparedSide,
    Comparison,
    Figure,
    Figures,
    Pairing,
    Place,
    UnpairedFigure,
    attainable_p_value,
    compare,
    figures_of,
    lengths_differ,
    populations,
    primary_of,
    sentences_of,
)
from app.domain.results.contract import Results
from app.domain.results.coverage import MINIMUM_COVERAGE
from app.domain.results.personagym_results import PersonaScoreTotal
from app.domain.results.request import SideIn
from app.domain.results.unpaired import Scores, unpaired_differences
from app.domain.results.warnings import TURNS
from app.instruments.loader import load_atomic
from app.instruments.published import published_cells, published_lengths, published_scores
from app.services.errors import WrongStateError
from app.services.job_context import JobContexts
from app.services.jobs.view import find_job
from app.services.results.baselines import NOTE, BaselineFilter, baselines
from app.services.results.comparison_notes import Judged, judged, notes_on_judging
from app.services.results.comparison_notes import published as judged_for_paper
from app.services.results.item_figures import read_item_figures
from app.services.results.named_baselines import find_baseline
from app.services.results.rarefied_figures import ModelOfJob, read_rarefied
from app.services.results.read import ResultsReader

OTHER_PERSONAS = (
    "PersonaGym’s paper tells means and standard deviations over its own 200 personas: the differences are between different"
    " personas, questions and judges, so only a large one means anything."
)

CONVERSATIONS = "its texts are turns of conversations, which depend on each other"


@dataclass(frozen=True, slots=True)
class Side:
    """What was found for one side.

    Attributes:
        about: Job, model and so on.
        figures: By metric and place.
        personas: Who the personas are, by id; empty for published figures, whose personas are built in.
        source: Where its verdicts are; ``None`` for published figures.
        scores: PersonaGym's, over personas.
        only_scores: Whether these are all that it has, as of a paper that tells none by persona.
        ended_at: When its job ended; ``None`` for published figures.
        judged: How it was asked and judged.
    """

    about: ComparedSide
    figures: dict[tuple[str, Place], Figure]
    personas: dict[str, PersonaInWords]
    judged: Judged
    source: ModelOfJob | None = None
    scores: Scores = field(default_factory=dict)
    only_scores: bool = False
    ended_at: datetime | None = None

    @property
    def of_turns(self) -> bool:
        """Whether texts of it are turns of conversations."""
        return any(warning.code == TURNS for warning in self.about.warnings)


@dataclass(frozen=True, slots=True)
class Comparer:
    """What comparisons read from."""

    engine: AsyncEngine
    contexts: JobContexts
    results: ResultsReader

    async def compare(self, tenant: str, a: SideIn, b: SideIn, pairing: Pairing = "cells") -> Comparison:
        """The paired differences a − b.

        Args:
            tenant: Whose jobs.
            a: The first.
            b: The second.
            pairing: What makes a pair: a cell of each, or an item that both have answered as the same persona.

        Raises:
            NotFoundError: If a job does not exist.
            WrongStateError: If a job is not over.
            InvalidJobError: If a side names no model or has no items, or the two have nothing in common.
        """
        read: dict[str, Results] = {}
        one = await self.side(tenant, "/a", a, pairing, read)
        other = await self.side(tenant, "/b", b, pairing, read)
        if same_model(one, other):
            raise InvalidJobError([FieldError("/b", "must differ from a")])
        if one.only_scores or other.only_scores:
            return _unpaired(one, other)
        if pairing == "cells":
            one, other = await self.rarefied([one, other])
        found = await asyncio.to_thread(_compared, one, other, pairing)
        if pairing == "cells":
            found.calibrated = await self.calibrated([one.about.model, other.about.model], [one, other])
        return found

    async def rarefied(self, sides: Sequence[Side]) -> Sequence[Side]:
        """These, with further figures at the same number of sentences where the texts of some differ in length."""
        sources = [side.source for side in sides if side.source]
        pairs = combinations([side.figures for side in sides], 2)
        if (
            len(sources) < len(sides)
            or any(side.of_turns for side in sides)
            or not await asyncio.to_thread(lambda: any(starmap(lengths_differ, pairs)))
        ):
            return sides
        further = await read_rarefied(self.engine, sources)
        return [replace(side, figures=side.figures | own) for side, own in zip(sides, further, strict=True)]

    async def calibrated(self, names: Sequence[str], sides: Sequence[Side]) -> list[CalibratedFigure]:
        """The differences as people would give them; none with published models, of whom nothing is labelled.

        Args:
            names: What the sides are called.
            sides: The sides.
        """
        sources = [side.source for side in sides if side.source]
        if len(sources) < len(sides) or any(side.of_turns for side in sides):
            return []
        named = list(zip(names, sources, strict=True))
        return await self.results.calibration.differences(named, reworded_personas(sides))

    async def side(
        self, tenant: str, pointer: str, wanted: SideIn, pairing: Pairing, read: dict[str, Results]
    ) -> Side:
        """A side; two of one job share its results, in ``read`` by the job's id."""
        own = None if wanted.baseline is None else await find_baseline(self.engine, tenant, wanted.baseline)
        if own is not None:
            wanted = SideIn.model_construct(job=own.job_id, model=own.model)
        if wanted.job is None:
            if pairing == "items":
                message = "published results have no values per item; use pairing cells"
                raise InvalidJobError([FieldError(f"{pointer}/baseline", message)])
            return await asyncio.to_thread(_baseline, pointer, wanted.baseline or "")
        job = await find_job(self.engine, tenant, wanted.job)
        if not job.status.is_terminal:
            raise WrongStateError(f"{job.id} is {job.status}; only finished jobs can be compared", job.status)
        context = await self.contexts.get(tenant, job.id)
        if job.id not in read:
            read[job.id] = await self.results.read_model(job)
        results = read[job.id]
        if pairing == "items" and any(warning.code == TURNS for warning in results.warnings):
            raise InvalidJobError([FieldError(pointer, f"{CONVERSATIONS}; use pairing cells")])
        model = _model(pointer, wanted.model, [model.label for model in context.spec.models])
        return Side(
            about=ComparedSide(
                job=job.id,
                baseline=None,
                **({} if own is None else {"named": own.name}),
                model=model,
                completeness=results.completeness,
                coverage=results.coverage_of(model),
                simulated=results.simulated,
                warnings=results.warnings_about(model),
            ),
            figures=await asyncio.to_thread(figures_of, results, model)
            if pairing == "cells"
            else await read_item_figures(self.engine, job, context, model),
            personas={
                persona.id: PersonaInWords.of(persona, context.dimensions)
                for persona in context.spec.personas
            },
            source=ModelOfJob(job, context, model),
            judged=judged(context.spec, results.manifest, job.finished_at, model),
            scores=_scores(results.persona_score_totals, model),
            ended_at=job.finished_at,
        )


def same_model(one: Side, other: Side) -> bool:
    """Whether two sides are one model of one job, whatever they are called, or one published model."""
    a, b = one.about, other.about
    return (a.job, a.baseline, a.model) == (b.job, b.baseline, b.model)


def _model(pointer: str, wanted: str | None, models: list[str]) -> str:
    if wanted is None and len(models) == 1:
        return models[0]
    if wanted not in models:
        known = ", ".join(models)
        message = (
            f"is required: one of {known}" if wanted is None else f"must be one of the job's models: {known}"
        )
        raise InvalidJobError([FieldError(f"{pointer}/model", message)])
    return wanted


def _baseline(pointer: str, model: str) -> Side:
    published = baselines(BaselineFilter(model=model))
    if not published.cells and not published.persona_score_totals:
        models = [*{cell.model for cell in published_cells()}, *(row.model for row in published_scores())]
        known = ", ".join(sorted(models))
        message = f"you have no baseline of that name, and no published model has it; published: {known}"
        raise InvalidJobError([FieldError(f"{pointer}/baseline", message)])
    about = ComparedSide(
        job=None, baseline=model, model=model, completeness="full", coverage=None, simulated=False
    )
    if not published.cells:
        scores = _scores(published.persona_score_totals, model)
        made = judged_for_paper(scores_only=True)
        return Side(about, {}, {}, made, scores=scores, only_scores=True)
    figures = _with_lengths(figures_of(published, model), model)
    return Side(about, figures, {}, judged_for_paper(scores_only=False))


def _scores(totals: Sequence[PersonaScoreTotal | BaselineScores], model: str) -> Scores:
    """A model's scores over personas; PersonaScore only where it is over the paper's tasks, as over others it is another measure."""
    for total in totals:
        if total.model == model:
            tasks: dict[str | None, Spread] = dict(total.tasks.items())
            whole = total.persona_score
            comparable = tasks.keys() == published_scores()[0].tasks.keys()
            return {None: whole, **tasks} if whole is not None and comparable else tasks
    return {}


def _unpaired(one: Side, other: Side) -> Comparison:
    """A comparison with a side that tells nothing by persona."""
    differences = unpaired_differences(one.scores, other.scores)
    if not differences:
        raise InvalidJobError(
            [FieldError("", "a and b have no PersonaGym task in common for which both have a score")]
        )
    return Comparison(
        a=one.about,
        b=other.about,
        pairing="cells",
        primary=None,
        simulated=one.about.simulated or other.about.simulated,
        differences=[],
        calibrated=[],
        unpaired=differences,
        personas=[],
        left_out=[],
        notes=[*notes_on({"a": one, "b": other}, "both"), OTHER_PERSONAS],
    )


def _with_lengths(figures: Figures, model: str) -> dict[tuple[str, Place], Figure]:
    """Published figures, with the numbers of sentences that the paper tells."""
    lengths = published_lengths()
    return {
        (metric, place): replace(
            figure,
            sentences=sentences_of(
                metric,
                scored=lengths[model, place.task].sentences_of_run,
                runs=1,
                responses=lengths[model, place.task].responses,
            ),
        )
        for (metric, place), figure in figures.items()
    }


def _compared(one: Side, other: Side, pairing: Pairing) -> Comparison:
    reworded = reworded_personas([one, other])
    found = compare(without(one, reworded), without(other, reworded))
    if not found.differences:
        item = "" if pairing == "cells" else ", item"
        message = f"a and b have no persona, task{item} and dimension in common for which both have a value"
        raise InvalidJobError([FieldError("", message)])
    kept = {place for _, place in one.figures.keys() & other.figures.keys() if place.persona in reworded}
    words = "other_wording: the two jobs describe this persona differently"
    return Comparison(
        a=one.about,
        b=other.about,
        pairing=pairing,
        primary=primary_of([each.metric for each in found.differences if each.task is None]),
        simulated=one.about.simulated or other.about.simulated,
        differences=found.differences,
        calibrated=[],
        left_out=[*found.left_out, *(UnpairedFigure.at(place, "all", words) for place in sorted(kept))],
        personas=personas_of([one, other]),
        notes=[
            *notes_on({"a": one, "b": other}, "both"),
            *filter(None, [populations(found.differences), attainable_p_value(found.differences)]),
        ],
    )


def reworded_personas(sides: Iterable[Side]) -> set[str]:
    """Personas that two of these describe differently."""
    found: dict[str, set[str]] = {}
    for side in sides:
        for id_, persona in side.personas.items():
            found.setdefault(id_, set()).add(persona.description)
    return {id_ for id_, words in found.items() if len(words) > 1}


def personas_of(sides: Sequence[Side]) -> list[PersonaInWords]:
    """Who the personas are that these have figures of, by the first that says so; else they are the papers' own."""
    told = {id_: persona for side in reversed(sides) for id_, persona in side.personas.items()}
    named = list(dict.fromkeys(place.persona for side in sides for _, place in side.figures))
    if not told.keys() >= set(named):
        told = _built_in() | told
    return [told[id_] for id_ in named if id_ in told]


@cache
def _built_in() -> dict[str, PersonaInWords]:
    atomic = load_atomic()
    return {
        id_: PersonaInWords.of(persona, atomic.dimensions.values())
        for id_, persona in atomic.personas.items()
    }


def without(side: Side, personas: set[str]) -> dict[tuple[str, Place], Figure]:
    """A side's figures but for some personas'."""
    return {key: figure for key, figure in side.figures.items() if key[1].persona not in personas}


def notes_on(sides: Mapping[str, Side], all_: Literal["both", "all"]) -> list[str]:
    """What a reader must know to judge the differences of these.

    Args:
        sides: By the names that they have in the answer.
        all_: What they are called together.
    """
    notes = []
    if any(side.about.simulated for side in sides.values()):
        notes.append("Simulated: these values describe no real model.")
    for name, side in sides.items():
        if side.about.completeness != "full":
            notes.append(f"{name} is partial: missing data is excluded from all values.")
        share = side.about.coverage
        if share is not None and share < MINIMUM_COVERAGE:
            notes.append(
                f"{name}: {100 * share:.1f} % of the planned verdicts count. Only what {all_} have"
                " is compared; missing data could change the difference."
            )
        notes += _notes_on_baseline(name, side)
    return [*notes, *notes_on_judging({name: side.judged for name, side in sides.items()})]


def _notes_on_baseline(name: str, side: Side) -> Iterator[str]:
    """Where the figures of a side are from that is a published model, or a baseline of one's own."""
    if side.about.baseline is not None:
        yield f"{name}: {NOTE}"
    if side.about.named is not None and side.ended_at is not None:
        yield (
            f"{name} is the baseline {side.about.named!r}, {side.about.model} of {side.about.job}, judged by"
            f" {', '.join(side.judged.judges or [])}; its job ended on {side.ended_at:%Y-%m-%d}."
        )
