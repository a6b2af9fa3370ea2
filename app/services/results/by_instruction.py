"""A job's results by the wording of the persona instruction; computed on request from its rows."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.jobs.jobs import JobRow
from app.db.results import result_queries
from app.db.results.result_queries import ScoreRow
from app.domain.metrics.cell import combine_judges, measure
from app.domain.metrics.registry import BY_NAME
from app.domain.results.by_instruction import (
    INSTRUCTION_METRICS,
    ByInstruction,
    OfInstruction,
    instruction_totals,
)
from app.domain.results.results import MeasuredCell
from app.services.job_context import JobContext
from app.services.results.cell_rows import TURN_SECONDS, cell_scores

Rows = Mapping[tuple[int, int], Mapping[int, Sequence[ScoreRow]]]
"""Rows under one instruction: by cell and trait, then by judge."""

_METRICS = [BY_NAME[name] for name in INSTRUCTION_METRICS]


async def read_by_instruction(engine: AsyncEngine, job: JobRow, context: JobContext) -> ByInstruction:
    """A job's results by instruction, as they stand; runs of an unknown instruction are left out."""
    rows: dict[int, dict[tuple[int, int], dict[int, list[ScoreRow]]]] = {}
    async with engine.connect() as connection:
        async for row in result_queries.scores(connection, job.tenant, job.id):
            if row.instruction is not None and row.cell < len(context.cells):
                of_cells = rows.setdefault(row.instruction, defaultdict(lambda: defaultdict(list)))
                of_cells[row.cell, row.trait][row.judge].append(row)
    return await asyncio.to_thread(by_instruction, job, context, rows)


def by_instruction(job: JobRow, context: JobContext, rows: Mapping[int, Rows]) -> ByInstruction:
    """See :func:`read_by_instruction`; CPU only.

    Args:
        job: The job.
        context: Its specification and cells.
        rows: By instruction, in any order.
    """
    words = context.spec.instructions
    return ByInstruction(
        job=job.id,
        simulated=job.simulated,
        instructions=[
            OfInstruction(
                instruction=number,
                words=words[number] if number < len(words) else None,
                totals=instruction_totals(_measured(context, own)),
            )
            for number, own in sorted(rows.items())
        ],
    )


def _measured(context: JobContext, rows: Rows) -> list[MeasuredCell]:
    found = []
    for (ordinal, trait), by_judge in sorted(rows.items()):
        cell = context.cells[ordinal]
        dimension = cell.dimensions[trait]
        own = [measure(cell_scores(cell, trait, each), _METRICS) for _, each in sorted(by_judge.items())]
        found.append(
            MeasuredCell(
                model=context.spec.models[cell.model].label,
                persona=cell.persona.id,
                task=cell.task.id,
                dimension=dimension.id,
                level=cell.persona.traits[trait].level,
                runs=0,
                metrics=combine_judges(own),
                scale=dimension.scale,
            )
        )
        clock.sleep(TURN_SECONDS)
    return found
