"""Draws figures and HTML reports in child processes, so that the API's own process never loads matplotlib."""

import asyncio
import gzip
import pickle
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO

from app.domain.personagym.environments import Environments
from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.contract import Results
from app.domain.results.model_groups import Attributes
from app.domain.watching.contract import Schedule, ScheduleRun
from app.readers.pool import BeyondLimitError, BytesSource, Kind, ReaderLostError, ReaderPool
from app.reports.material import Material, Published
from app.reports.views.accuracy import Scatter
from app.reports.views.leaderboard import Leaderboard
from app.services.errors import BusyError
from app.services.results.baselines import BaselineFilter, baselines
from app.services.results.single_option import only

PREPARE = f"{__name__}:prepare"
FIGURE = Kind(1, 120 * 1024 * 1024, 10, PREPARE)
"""A figure of 2,000 cells takes 143 MiB for results of 23 MB."""
PAGE = Kind(1, 240 * 1024 * 1024, 10, PREPARE)
"""A report of 4,000 cells takes 351 MiB for results of 46 MB."""

Json = dict[str, Any]


class DrawingError(RuntimeError):
    """Our own code failed; the log has the place."""


async def draw(
    readers: ReaderPool, kind: Kind, tenant: str, make: Callable[..., bytes], *arguments: Any
) -> bytes:
    """Return what a function of a module makes of its arguments in a child process.

    Raises:
        InvalidJobError: If the function raises it.
        BusyError: If the child takes too much memory or time, crashes, or is ended by something else.
    """
    packed = await asyncio.to_thread(pickle.dumps, (make, arguments))
    try:
        return await readers.whole(tenant, BytesSource(packed), _draw, kind=kind)
    except BeyondLimitError as error:
        if error.limit == "failure":
            raise DrawingError(make.__name__) from error
        raise BusyError(f"the process that draws was ended ({error.limit}); try again later") from error
    except ReaderLostError as error:
        raise BusyError("the process that draws was ended; try again later") from error


def beside_published(
    results: Results, named: Sequence[BaselineFigures], attributes: Attributes = MappingProxyType({})
) -> Published:
    """Return a job's figures beside published ones and a tenant's own."""
    return Published.beside(results, baselines(BaselineFilter()), named, attributes)


def page(material: Material) -> bytes:
    """Return an HTML report, packed by gzip."""
    from app.reports import html  # noqa: PLC0415 - see prepare

    return gzip.compress(html.html_report(material), 6, mtime=0)


def figure(
    results: str,
    name: str,
    model: str | None,
    of_one: bool,
    distances: Sequence[Json],
    environments: Environments | None,
    among: Sequence[Leaderboard],
    accuracy: Sequence[Scatter],
    file_format: str,
    theme: str | None,
) -> bytes:
    """Return a figure as a file; nothing if the job has no data for it.

    Raises:
        InvalidJobError: If the model is missing or unknown.
    """
    from app.reports.figures.files import figure_file  # noqa: PLC0415 - see prepare

    found = Results.read(results)
    drawn = figure_file(
        found,
        name,
        model=only("model", model, [cell.model for cell in found.cells]) if of_one else "",
        distances=distances,
        among=among,
        accuracy=accuracy,
        environments=environments,
        file_format=file_format,
        theme=theme,
    )
    return drawn or b""


def timeline(schedule: Schedule, runs: Sequence[ScheduleRun], file_format: str, theme: str | None) -> bytes:
    """Return the figure of a schedule as a file."""
    from app.reports.figures.schedule import schedule_file  # noqa: PLC0415 - see prepare

    return schedule_file(schedule, runs, file_format, theme)


def prepare() -> None:
    """Load what every child that draws needs; the API's own process does without."""
    from app.reports import html  # noqa: PLC0415 - matplotlib takes a second and 40 MB
    from app.reports.figures import files, schedule  # noqa: F401, PLC0415

    html.prepare()


def _draw(packed: BinaryIO) -> Iterator[bytes]:
    make, arguments = pickle.load(packed)  # noqa: S301 - our own parent packed it
    yield make(*arguments)
