"""A schedule's runs as a figure."""

from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.watching.contract import Schedule
from app.readers.pool import ReaderPool
from app.services.results.drawing import FIGURE, draw, timeline
from app.services.results.figures import FigureFormat, Theme
from app.services.watching.schedules import list_runs

RUNS_DRAWN = 400
"""The last ones."""


async def draw_timeline(
    engine: AsyncEngine,
    readers: ReaderPool,
    schedule: Schedule,
    tenant: str,
    file_format: FigureFormat = "svg",
    theme: Theme | None = None,
) -> bytes | None:
    """The figure of the last runs; ``None`` while none of them has a value.

    Args:
        engine: Where the runs are.
        readers: Child processes that draw.
        schedule: The schedule.
        tenant: Whose it is.
        file_format: Of the file.
        theme: ``None`` for light, and in an SVG for whichever the reader prefers.

    Raises:
        NotFoundError: If the schedule was deleted meanwhile.
        BusyError: If the figure can't be drawn now.
    """
    runs = (await list_runs(engine, tenant, schedule.id, limit=RUNS_DRAWN))[::-1]
    if not any(run.value is not None for run in runs):
        return None
    return await draw(readers, FIGURE, tenant, timeline, schedule, runs, file_format, theme)
