"""Makes, or only reads, the responses of an atomic task, and has every sentence judged."""

from app.db.execution.result_rows import ResponseRow
from app.db.execution.shards import Claim
from app.domain.instruments.prompts import system_prompt, user_prompt
from app.domain.instruments.task import Item
from app.domain.jobs.plan import AtomicCell
from app.domain.providers.model import Model
from app.services.execution.grouped_responses import GroupedResponses
from app.services.execution.shard_work import ShardDependencies, finish_all
from app.services.execution.stop_signal import StopSignal
from app.services.job_context import JobContext


class AtomicResponses(GroupedResponses):
    """The work of one claim on an atomic cell."""

    def __init__(
        self, deps: ShardDependencies, claim: Claim, stop: StopSignal, context: JobContext, cell: AtomicCell
    ) -> None:
        super().__init__(deps, claim, stop, context, cell)
        self.atomic = cell

    async def run(self) -> None:
        """Does everything that is missing and waits until it is durable."""
        stored = await self._read_stored()
        if self.spec.provided:
            work = [self._judge_units(r, self.atomic.items[r.item]) for r in stored.values()]
        else:
            work = [
                self._respond(run, item, stored.get((run, item.index)))
                for run in range(self.claim.run_start, self.claim.run_stop)
                for item in self.atomic.items
            ]
        await finish_all(work, self.stop)
        await self._all_durable()

    async def _respond(self, run: int, item: Item, stored: ResponseRow | None) -> None:
        if stored is None:
            await self._as_one_of_the_first(self._write_and_judge(run, item))
        else:
            await self._judge_units(stored, item)

    async def _write_and_judge(self, run: int, item: Item) -> None:
        await self._judge_units(await self._generate(run, item), item)

    def _model(self) -> Model:
        return self.spec.models[self.cell.model]

    def _prompts(self, run: int, item: Item) -> tuple[str | None, str]:
        instruction = self._instruction(run)
        asked = user_prompt(self.atomic.task, item)
        if instruction is None:
            return None, asked
        return system_prompt(self.spec.instructions[instruction], self.cell.persona), asked

    def _instruction(self, run: int) -> int | None:
        return None if self.cell.control else self.spec.instruction_of(run)

    def _repetition(self, run: int) -> tuple[str | int, ...]:
        instruction = self._instruction(run)
        if instruction is None:
            return (run,)
        # The instruction by its words: jobs with others beside it have it in another place.
        return self.spec.instructions[instruction], run % self.spec.iterations
