"""A job's specification and plan, read once and cached because they never change."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.domain.instruments.dimension import Dimension
from app.domain.jobs.plan import Cell, cells_of, control_cells_of
from app.domain.jobs.specification import JobSpec, decode_spec
from app.domain.personagym.specification import GymSpec

REMEMBERED_JOBS = 64


@dataclass(frozen=True, slots=True)
class JobContext:
    """A job's specification and its cells, and the trace that its shards go on with.

    Attributes:
        spec: The specification.
        cells: The cells of its personas, which all figures are made of but for those of ``control``.
        traceparent: The trace.
        control: The cells of the control arm, numbered after these.
    """

    spec: JobSpec
    cells: tuple[Cell, ...]
    traceparent: str | None = None
    control: tuple[Cell, ...] = ()

    def cell(self, ordinal: int) -> Cell:
        """A cell of either arm."""
        own = len(self.cells)
        return self.cells[ordinal] if ordinal < own else self.control[ordinal - own]

    @property
    def dimensions(self) -> Sequence[Dimension]:
        """Those on which its responses are judged."""
        return list({each.id: each for cell in self.cells for each in cell.dimensions}.values())

    @property
    def gym(self) -> GymSpec:
        """The PersonaGym part of a job that has one.

        Raises:
            ValueError: If it has none.
        """
        if self.spec.gym is None:
            raise ValueError("the job has no PersonaGym task")
        return self.spec.gym


class JobContexts:
    """The contexts of the jobs last worked on."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._known: OrderedDict[tuple[str, str], JobContext] = OrderedDict()

    async def get(self, tenant: str, job_id: str) -> JobContext:
        """A job's context.

        Raises:
            LookupError: If the job is gone.
        """
        name = (tenant, job_id)
        if name in self._known:
            self._known.move_to_end(name)
            return self._known[name]
        async with self._engine.connect() as connection:
            found = await jobs.get_spec_and_trace(connection, tenant, job_id)
        if found is None:
            raise LookupError(job_id)
        encoded, traceparent = found
        spec = decode_spec(encoded)
        cells = cells_of(spec)
        context = JobContext(spec, cells, traceparent, control_cells_of(spec, len(cells)))
        self._known[name] = context
        while len(self._known) > REMEMBERED_JOBS:
            self._known.popitem(last=False)
        return context
