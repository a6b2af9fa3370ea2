"""Has a persona agent answer PersonaGym's questions, and every answer graded by its question's rubric.

Each judge grades each answer in a call of its own (the released code put five questions into one). What could not be
prepared fails visibly: an answer without a question, a grade without exemplars.
"""

from collections.abc import Mapping

from app.db.engine import single_statements
from app.db.execution import stored_rows
from app.db.execution.result_rows import GradeRow, ResponseRow
from app.db.execution.shards import Claim
from app.db.jobs import preparations
from app.db.jobs.preparations import StoredStep
from app.domain.instruments.prompts import system_prompt
from app.domain.instruments.task import Item
from app.domain.jobs.judge_prompts import about_response
from app.domain.jobs.plan import GymCell
from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.personagym.specification import GymSpec, question_item, with_sampling
from app.domain.providers.model import Model, Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.grouped_responses import GroupedResponses
from app.services.execution.responses import JUDGED, Judgement, without_reply
from app.services.execution.retries import CallFailedError
from app.services.execution.shard_work import ShardDependencies, finish_all
from app.services.execution.stop_signal import StopSignal
from app.services.job_context import JobContext
from app.services.long_texts import read_text


class GymAnswers(GroupedResponses):
    """The work of one claim on a PersonaGym cell."""

    def __init__(
        self, deps: ShardDependencies, claim: Claim, stop: StopSignal, context: JobContext, cell: GymCell
    ) -> None:
        super().__init__(deps, claim, stop, context, cell)
        self.gym: GymSpec = context.gym
        self.of_gym, self.task = cell, cell.task
        self.exemplars: Mapping[int, StoredStep] = {}
        self.graded: set[tuple[int, int, int]] = set()

    async def run(self) -> None:
        """Does everything that is missing and waits until it is durable."""
        stored = await self._read_stored()
        async with single_statements(self.deps.engine) as connection:
            self.graded = await stored_rows.stored_grades(connection, self.claim)
            steps = await preparations.steps_of_persona(
                connection, self.claim.tenant, self.claim.job_id, self.cell.person, self.task.id
            )
        self.exemplars = {step.item: step for step in steps if step.kind == Stage.EXEMPLARS}
        (questions,) = (step for step in steps if step.kind == Stage.QUESTIONS)
        if self.spec.provided:
            work = [self._answer(*place, questions, row) for place, row in stored.items()]
        else:
            work = [
                self._answer(run, item, questions, stored.get((run, item)))
                for run in range(self.claim.run_start, self.claim.run_stop)
                for item in self.exemplars  # one for each question that was planned, found or not
            ]
        await finish_all(work, self.stop)
        await self._all_durable()

    async def _answer(self, run: int, number: int, questions: StoredStep, stored: ResponseRow | None) -> None:
        item = question_item(number, questions.content, self.cell.dimensions)
        if stored is not None:
            await self._judge(run, item, stored)
        elif item.text:
            await self._as_one_of_the_first(self._write_and_judge(run, item))
        else:
            error = f"there is no question: {questions.error}"
            await self._store(self._response_row(run, item, "failed", None, (), error=error))

    async def _write_and_judge(self, run: int, item: Item) -> None:
        await self._judge(run, item, await self._generate(run, item))

    async def _judge(self, run: int, item: Item, stored: ResponseRow) -> None:
        """Has a response graded, and its sentences judged where the task asks for it."""
        if stored.text is not None and stored.status in JUDGED:
            grades = [
                self._grade(stored, stored.text, item, judge)
                for judge in self.spec.asked_judges
                if (run, item.index, judge) not in self.graded
            ]
            await finish_all([*grades, self._judge_units(stored, item)], self.stop)

    def _model(self) -> Model:
        return with_sampling(self.spec.models[self.cell.model])

    def _prompts(self, run: int, item: Item) -> tuple[str | None, str]:  # noqa: ARG002 - all runs are prompted alike
        told = None if self.cell.control else system_prompt(self.gym.template, self.cell.persona)
        return told, item.text

    def _instruction(self, run: int) -> int | None:  # noqa: ARG002 - there is one
        return None if self.cell.control else 0

    def _repetition(self, run: int) -> tuple[str | int, ...]:
        return (run, "control") if self.cell.control else (run,)

    def _verdicts_due(self, run: int, item: Item, status: str, units: int) -> int:
        return len(self.spec.judges) + super()._verdicts_due(run, item, status, units)

    async def _grade(self, response: ResponseRow, text: str, item: Item, judge: int) -> None:
        exemplars = self.exemplars[item.index]
        if exemplars.status == "failed":
            self._record_failure(response, judge, f"there are no exemplars: {exemplars.error}")
            return
        model = self.spec.judges[judge]
        asked = about_response(self.spec, model, self.of_gym, item, exemplars.content, text)
        key = CallKey(Stage.JUDGING, response.run, response.item, judge=judge)
        try:
            answer = await self._ask_judge(judge, asked, key, asked.read)
        except CallFailedError as error:
            self._warn_of_failure(key, error)
            self._record_failure(response, judge, str(error), without_reply(error).status)
            return
        doubtful = await read_text(self.claim.tenant, text, self.rules.addresses_judge)
        self._add_grade(response, judge, answer.judgement(doubtful=doubtful))

    def _record_failure(
        self,
        response: ResponseRow,
        judge: int,
        error: str,
        status: VerdictStatus = VerdictStatus.FAILED,
    ) -> None:
        self._add_grade(response, judge, Judgement(Verdict(status), error=error))

    def _add_grade(self, response: ResponseRow, judge: int, said: Judgement) -> None:
        row = GradeRow(
            cell_id=self.claim.cell_id,
            run=response.run,
            item=response.item,
            judge=judge,
            tenant=self.claim.tenant,
            status=said.verdict.status.value,
            score=said.verdict.score,
            raw=said.raw,
            error=said.error,
            suspicion=said.suspicion,
            finish_reason=said.finish_reason,
            thoughts=said.thoughts,
            unread=said.verdict.unread,
            repair_raw=said.repair_raw,
        )
        self.last_batch = self.deps.writer.add(self.claim, row)
