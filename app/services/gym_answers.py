"""Has a persona agent answer PersonaGym's questions, and every answer graded by its question's rubric.

Each judge grades each answer in a call of its own (the released code put five questions into one). What could not be
prepared fails visibly: an answer without a question, a grade without exemplars.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from app.db import preparations, shards
from app.db.engine import single_statements
from app.db.preparations import StoredStep
from app.db.shards import Claim, StoredResponse
from app.db.writer import GradeRow
from app.domain.dimension import Dimension
from app.domain.grouping import GroupedWords, grouped_sentence_prompt
from app.domain.gym import GymSpec, question_item, with_sampling
from app.domain.hardening import Showing, showing
from app.domain.injection import Suspicion, addresses_judge, suspicion
from app.domain.model import ChatReply, Model, Stage
from app.domain.personagym.grades import read_final_score
from app.domain.personagym.prompts import rubric_prompt, sentence_prompt
from app.domain.personagym.task import GRADE_SCALE
from app.domain.plan import GymCell
from app.domain.prompts import system_prompt
from app.domain.segmentation import Unit
from app.domain.task import Item
from app.domain.verdict import VerdictStatus
from app.services.call_rows import CallKey
from app.services.grouped_responses import GroupedResponses
from app.services.job_context import JobContext
from app.services.model_caller import CallFailedError
from app.services.shard_work import REFUSING, ShardDependencies, finish_all
from app.services.stop_signal import StopSignal


class GymAnswers(GroupedResponses):
    """The work of one claim on a PersonaGym cell."""

    def __init__(
        self, deps: ShardDependencies, claim: Claim, stop: StopSignal, context: JobContext, cell: GymCell
    ) -> None:
        super().__init__(deps, claim, stop, context, cell)
        self.gym: GymSpec = context.gym
        self.task = cell.task
        self.exemplars: Mapping[int, StoredStep] = {}
        self.graded: set[tuple[int, int, int]] = set()

    async def run(self) -> None:
        """Does everything that is missing and waits until it is durable."""
        stored = await self._read_stored()
        async with single_statements(self.deps.engine) as connection:
            self.graded = await shards.stored_grades(connection, self.claim)
            steps = await preparations.steps_of_persona(
                connection, self.claim.tenant, self.claim.job_id, self.cell.person, self.task.id
            )
        self.exemplars = {step.item: step for step in steps if step.kind == Stage.EXEMPLARS}
        (questions,) = (step for step in steps if step.kind == Stage.QUESTIONS)
        await finish_all(
            [
                self._answer(run, item, questions, stored.get((run, item)))
                for run in range(self.claim.run_start, self.claim.run_stop)
                for item in self.exemplars  # one for each question that was planned, found or not
            ],
            self.stop,
        )
        await self._all_durable()

    async def _answer(
        self, run: int, number: int, questions: StoredStep, stored: StoredResponse | None
    ) -> None:
        item = question_item(number, questions.content, self.cell.dimensions)
        if stored is None and item.text:
            stored = await self._generate(run, item)
        elif stored is None:
            error = f"there is no question: {questions.error}"
            stored = await self._store(self._response_row(run, item, "failed", None, (), error=error))
        if stored.text is not None:
            judges = range(len(self.spec.judges))
            grades = [
                self._grade(stored, stored.text, item, judge)
                for judge in judges
                if (run, number, judge) not in self.graded
            ]
            await finish_all([*grades, self._judge_units(stored, item)], self.stop)

    def _model(self) -> Model:
        return with_sampling(self.spec.models[self.cell.model])

    def _prompts(self, run: int, item: Item) -> tuple[str, str]:  # noqa: ARG002 - all runs are prompted alike
        return system_prompt(self.gym.template, self.cell.persona), item.text

    def _instruction(self, run: int) -> int:  # noqa: ARG002 - there is one
        return 0

    def _repetition(self, run: int) -> tuple[str | int, ...]:
        return (run,)

    def _verdicts_due(self, run: int, item: Item, status: str, units: int) -> int:
        return len(self.spec.judges) + super()._verdicts_due(run, item, status, units)

    def _unit_prompt(self, item: Item, dimension: Dimension, sentence: str) -> str:
        return sentence_prompt(
            self.gym.prompts,
            dimension,
            persona=self.cell.persona.description,
            question=item.text,
            unit_text=sentence,
        )

    def _group_prompt(
        self, words: GroupedWords, item: Item, dimension: Dimension, units: Sequence[Unit]
    ) -> str:
        return grouped_sentence_prompt(
            words, dimension, persona=self.cell.persona.description, question=item.text, units=units
        )

    async def _grade(self, response: StoredResponse, text: str, item: Item, judge: int) -> None:
        exemplars = self.exemplars[item.index]
        if exemplars.status == "failed":
            self._record_failure(response, judge, f"there are no exemplars: {exemplars.error}")
            return
        shown = showing(self.spec.hardening, [text])
        prompt = rubric_prompt(
            self.gym.prompts,
            self.task.task,
            persona=self.cell.persona.description,
            question=item.text,
            exemplars=dict(enumerate(exemplars.content, GRADE_SCALE.minimum)),
            response=shown.shown(text),
        )
        key = CallKey(Stage.JUDGING, response.run, response.item, judge=judge)
        try:
            reply = await self._ask(
                self.spec.judges[judge], shown.system, prompt, key=key, usable=partial(_is_graded, shown)
            )
        except CallFailedError as error:
            self._warn_of_failure(key, error)
            self._record_failure(response, judge, str(error))
            return
        self._record_grade(response, judge, reply, shown, doubtful=addresses_judge(text))

    def _record_grade(
        self, response: StoredResponse, judge: int, reply: ChatReply, shown: Showing, *, doubtful: bool
    ) -> None:
        read = shown.read(reply.text)
        verdict = read_final_score(read.text).verdict
        status, score = verdict.status, verdict.score
        if reply.finish_reason in REFUSING:
            status, score = VerdictStatus.REFUSED, None
        swayed = read.key_missing and status is not VerdictStatus.REFUSED
        found = suspicion(of_text=doubtful, of_reply=swayed)
        self._add_grade(response, judge, status, score, reply.text, None, found)

    def _record_failure(self, response: StoredResponse, judge: int, error: str) -> None:
        self._add_grade(response, judge, VerdictStatus.FAILED, None, None, error)

    def _add_grade(
        self,
        response: StoredResponse,
        judge: int,
        status: VerdictStatus,
        score: int | None,
        raw: str | None,
        error: str | None,
        found: Suspicion | None = None,
    ) -> None:
        row = GradeRow(
            cell_id=self.claim.cell_id,
            run=response.run,
            item=response.item,
            judge=judge,
            tenant=self.claim.tenant,
            status=status.value,
            score=score,
            raw=raw,
            error=error,
            suspicion=found,
        )
        self.last_batch = self.deps.writer.add(self.claim, row)


def _is_graded(shown: Showing, reply: ChatReply) -> bool:
    """Whether a judge's reply says what it was asked for."""
    return read_final_score(shown.read(reply.text).text).verdict.status is VerdictStatus.SCORED
