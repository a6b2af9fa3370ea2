"""The material of an HTML report: gathered in one process, rendered in another."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from app.domain.judging.judged_response import JudgedResponse
from app.domain.labels.human_agreement import HumanStudy
from app.domain.personagym.environments import Environments
from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.baselines import Baselines
from app.domain.results.by_instruction import ByInstruction
from app.domain.results.contract import Results
from app.domain.results.gate import Held
from app.domain.results.model_groups import Attributes, ModelGroup
from app.reports.views.accuracy import Scatter, scatters
from app.reports.views.cards import make_card
from app.reports.views.groups import shown_groups
from app.reports.views.in_words import InWords
from app.reports.views.leaderboard import Leaderboard, leaderboards
from app.reports.views.lengths import LengthTable, length_table
from app.reports.views.level_bounds import LevelBounds
from app.reports.views.response_sample import ResponseSample

Json = Mapping[str, Any]

RESPONSES_A_STEP = 50
"""After so many responses, some 5 ms, whoever else uses the event loop gets a turn."""


@dataclass(frozen=True, slots=True)
class Published:
    """A job's figures beside published ones. Those take 30 MB: the process that renders does without.

    Attributes:
        among: The job's figures among published ones.
        accuracy: ACC against ACC_atom of its cells and of published ones.
        lengths: How long its responses and published ones are.
        groups: Its models, alone and by their attributes, where there is something to group.
        published_groups: Those of published models.
    """

    among: Sequence[Leaderboard]
    accuracy: Sequence[Scatter]
    lengths: LengthTable | None
    groups: Sequence[ModelGroup]
    published_groups: Sequence[ModelGroup]

    @classmethod
    def beside(
        cls,
        results: Results,
        baselines: Baselines | None,
        named: Sequence[BaselineFigures] = (),
        attributes: Attributes = MappingProxyType({}),
    ) -> "Published":
        """Find them.

        Args:
            results: The job's.
            baselines: All published figures.
            named: Baselines of one's own, for the job's figures to stand among too.
            attributes: What is known of its models.
        """
        return cls(
            [] if baselines is None else leaderboards(results, baselines, named),
            scatters(results, baselines),
            length_table(results, baselines),
            *shown_groups(results, attributes, baselines),
        )


@dataclass(frozen=True, slots=True)
class Material:
    """What a page is made of, small enough to be sent to the process that renders it.

    Attributes:
        results: The results as JSON text, which another process is handed faster than their model.
        sample: The responses that may be shown.
        published: The job's figures beside published ones.
        distances: Run-by-run distances of :func:`~app.reports.views.run_matrices.varying_cells`, for them to be drawn.
        calibrated: Each model's figures as people would give them; see :mod:`app.services.results.calibration`.
        error: What stopped the job, if anything did.
        study: How far people agree with the judges.
        by_instruction: The results by persona instruction.
        environments: Those of its personas.
        held: What the job's thresholds say of it.
        service: Where the service is reached, for links from a saved page.
        beside: How what judged it differs from what judged published figures, by the paper's id.
    """

    results: str
    sample: ResponseSample
    published: Published
    distances: Sequence[Json] = ()
    calibrated: Sequence[Json] = ()
    error: Json | None = None
    study: HumanStudy | None = None
    by_instruction: ByInstruction | None = None
    environments: Environments | None = None
    held: Held | None = None
    service: str = ""
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)


async def sample_of(results: Results, responses: AsyncIterator[JudgedResponse]) -> ResponseSample:
    """Choose a bounded number of all responses of a job."""
    level_bounds, words = LevelBounds.of(results.cells), InWords.of(results)
    worst = results.worst_sentence
    sample = ResponseSample(_texts(results), None if worst is None else worst.response)
    async for response in responses:
        sample.add(make_card(response, level_bounds, words))
        if sample.seen % RESPONSES_A_STEP == 0:
            await asyncio.sleep(0)
    return sample


def _texts(results: Results) -> int:
    """How many model × persona × task there are; a PersonaGym task need not have cells."""
    judged = {(cell.model, cell.persona, cell.task) for cell in results.cells}
    graded = {(row.model, row.persona, task) for row in results.persona_scores for task in row.tasks}
    return len(judged | graded)
