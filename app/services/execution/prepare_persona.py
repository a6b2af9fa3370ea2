"""Prepares a persona for PersonaGym, once for all models: environments, then questions, then exemplars.

Every ask of the reasoner leaves a durable row with all that its step has so far, before anything depends on it. So a
worker that dies repeats at most the calls that were in flight. A step that the reasoner can't do is given up after
some asks and recorded as failed, with what depended on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.db.execution.result_rows import PreparationRow
from app.db.execution.shards import PreparationClaim
from app.db.jobs import preparations
from app.db.jobs.preparations import StoredStep
from app.domain.judging.hardening import MAX_REPLY_CHARACTERS
from app.domain.personagym.checks import exemplar_fault
from app.domain.personagym.prompts import (
    environment_prompt,
    question_prompt,
    rubric_outline,
    score_examples_prompt,
)
from app.domain.personagym.replies import (
    QuestionsRead,
    read_exemplars,
    read_questions,
    select_environments,
)
from app.domain.personagym.specification import GymTaskSpec
from app.domain.providers.model import ChatReply, Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.result_writer import StaleClaimError
from app.services.execution.retries import CallFailedError
from app.services.execution.shard_work import REFUSING, ShardDependencies, finish_all
from app.services.execution.stop_signal import StopSignal
from app.services.job_context import JobContext
from app.services.long_texts import read_text

MAX_ASKS = 5
"""How often the reasoner is asked for the same thing."""

KEPT_CHARACTERS = 4_000
"""Length of the beginning of an unusable reply that is kept."""

_NEEDED = {
    Stage.ENVIRONMENTS: "list of environments",
    Stage.QUESTIONS: "list of questions",
    Stage.EXEMPLARS: "example for each score",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply gave.

    Attributes:
        content: All that the step has with it.
        dropped: What the reply gave and was not used.
        problem: What is still missing, and why; ``None`` where the step is complete.
        fulfilled: Whether the reply gave all that was asked for, also where the step goes on.
        reply: The beginning of the reply, unless it is fulfilled.
    """

    content: Sequence[str]
    dropped: int
    problem: str | None
    fulfilled: bool = False
    reply: str | None = None


Prompt = Callable[[Sequence[str]], str]
"""What to ask, given what the step has."""
Reader = Callable[[ChatReply, Sequence[str]], Reading]
"""What a reply adds to what the step has."""

_Key = tuple[str, str, int]
"""Kind, task and question of a step."""


class Preparation:
    """The work of one claim on a persona's preparation."""

    def __init__(
        self, deps: ShardDependencies, claim: PreparationClaim, stop: StopSignal, context: JobContext
    ) -> None:
        self.deps = deps
        self.claim = claim
        self.stop = stop
        self.gym = context.gym
        self.answered = context.spec.provided
        self.graded = context.spec.prepared
        self.persona = context.spec.personas[claim.persona]
        self.steps: dict[_Key, StoredStep] = {}

    async def run(self) -> None:
        """Does everything that is missing and waits until it is durable."""
        async with self.deps.engine.connect() as connection:
            found = await preparations.steps_of_persona(
                connection, self.claim.tenant, self.claim.job_id, self.claim.persona
            )
        self.steps = {(step.kind, step.task, step.item): step for step in found}
        environments = await self._environments() if self.gym.needs_environments(self.persona) else None
        places = () if environments is None else environments.content
        counts = {t.id: self.gym.questions_for(self.persona, t, max(1, len(places))) for t in self.gym.tasks}
        if not self.answered:  # of existing answers all is known
            async with self.deps.engine.begin() as connection:
                if not await preparations.fix_plan(connection, self.claim, counts):
                    raise StaleClaimError
        await finish_all(
            [self._task(task, environments, counts[task.id]) for task in self.gym.tasks], self.stop
        )

    # -- the steps ------------------------------------------------------------------------------------------------

    async def _environments(self) -> StoredStep:
        text = environment_prompt(self.gym.prompts, self.persona.description, self.gym.pool)

        def read(reply: ChatReply, _: Sequence[str]) -> Reading:
            selection = select_environments(reply.text, self.gym.pool, cut=_is_cut(reply))
            problem = None if selection.ok else "the reply is no complete list of environments of the pool"
            return Reading(selection.chosen, selection.unknown_count, problem)

        return await self._step((Stage.ENVIRONMENTS, "", 0), lambda _: text, read)

    async def _task(self, task: GymTaskSpec, environments: StoredStep | None, count: int) -> None:
        if not count:  # no existing answer is to a question of this task
            return
        questions = await self._questions(task, environments, count)
        if not self.graded:
            return
        await finish_all([self._exemplars(task, questions, n) for n in range(count)], self.stop)

    async def _questions(self, task: GymTaskSpec, environments: StoredStep | None, count: int) -> StoredStep:
        key = (Stage.QUESTIONS, task.id, 0)
        if key not in self.steps and environments is not None and environments.status == "failed":
            return await self._give_up(key, f"there are no environments: {environments.error}")
        places = () if environments is None else environments.content
        portion = task.questions if task.per_environment else count

        def environment_and_missing(content: Sequence[str]) -> tuple[Sequence[str], int]:
            """Where the next questions are to be set, and how many they are: portion after portion."""
            done, begun = divmod(len(content), portion)
            return (places[done : done + 1] if task.per_environment else places), portion - begun

        def ask(content: Sequence[str]) -> str:
            where, missing = environment_and_missing(content)
            prompts, description = self.gym.prompts, self.persona.description
            return question_prompt(prompts, task.task, description, where, missing, content)

        def read(reply: ChatReply, content: Sequence[str]) -> Reading:
            missing = environment_and_missing(content)[1]
            found = read_questions(reply.text, missing, content, cut=_is_cut(reply))
            has = (*content, *found.accepted)
            problem = None if len(has) == count else _missing(found, len(has), count)
            dropped = found.duplicates + found.near_duplicates + found.unusable + found.surplus
            return Reading(has, dropped, problem, fulfilled=not found.missing)

        return await self._step(key, ask, read, MAX_ASKS * (count // portion))

    async def _exemplars(self, task: GymTaskSpec, questions: StoredStep, number: int) -> None:
        key = (Stage.EXEMPLARS, task.id, number)
        if number >= len(questions.content):
            if key not in self.steps:
                await self._give_up(key, f"there is no question: {questions.error}")
            return
        question = questions.content[number]
        text = score_examples_prompt(self.gym.prompts, task.task, self.persona.description, question)
        rubric = rubric_outline(self.gym.prompts, task.task)

        def read(reply: ChatReply, _: Sequence[str]) -> Reading:
            found = read_exemplars(reply.text, cut=_is_cut(reply))
            if found is None:
                return Reading((), 0, "the reply has no example for each score, each another text")
            if fault := exemplar_fault(found, rubric, question):
                return Reading((), 0, fault)
            return Reading([found[score] for score in sorted(found)], 0, None)

        await self._step(key, lambda _: text, read)

    # -- asking ---------------------------------------------------------------------------------------------------

    async def _step(self, key: _Key, prompt: Prompt, read: Reader, most: int = MAX_ASKS) -> StoredStep:
        """Asks until a step is complete, or as often as allowed; a retry allows as much again."""
        step = self.steps.get(key) or self._begun(key)
        most *= 1 + self.claim.retries
        while step.status == "incomplete":
            step = replace(step, ask=step.ask + 1)
            try:
                reply = await self._ask(key, prompt(step.content), step.ask)
            except CallFailedError as error:
                step = replace(step, status="failed", error=str(error), reply=None)
            else:
                step = _advanced(step, await self._reading(reply, read, step.content), most)
            if step.status == "failed":
                step = replace(step, error=self._blame(step))
            await self._store(step)
        return step

    def _blame(self, step: StoredStep) -> str:
        times = "once" if step.ask == 1 else f"{step.ask} times"
        needed = _NEEDED[Stage(step.kind)]
        return f"the reasoner {self.gym.reasoner.label}, asked {times}, gave no usable {needed}: {step.error}"

    def _begun(self, key: _Key) -> StoredStep:
        kind, task, item = key
        return StoredStep(self.claim.persona, kind, task, item, 0, "incomplete", (), 0, None)

    async def _ask(self, key: _Key, prompt: str, ask: int) -> ChatReply:
        kind, task, item = key
        stage = Stage(kind)
        place = CallKey(stage, task=task or None, item=item if stage is Stage.EXEMPLARS else None, ask=ask)
        return await self.deps.caller.call(
            self.gym.reasoner, None, prompt, key=place, claim=self.claim, stop=self.stop
        )

    async def _reading(self, reply: ChatReply, read: Reader, content: Sequence[str]) -> Reading:
        kept = reply.text[:KEPT_CHARACTERS]
        if len(reply.text) > MAX_REPLY_CHARACTERS:
            reply = reply._replace(text="")
        reading = await read_text(self.claim.tenant, reply.text, lambda _: read(reply, content))
        if reading.problem is None or reading.fulfilled:
            return reading
        refused = "; the reasoner refused" if reply.finish_reason in REFUSING else ""
        return replace(reading, problem=f"{reading.problem}{refused}", reply=kept)

    async def _give_up(self, key: _Key, reason: str) -> StoredStep:
        step = replace(self._begun(key), status="failed", error=reason)
        await self._store(step)
        return step

    async def _store(self, step: StoredStep) -> None:
        await self.deps.writer.add(self.claim, preparation_row(self.claim, step)).durable(self.claim)


def preparation_row(claim: PreparationClaim, step: StoredStep) -> PreparationRow:
    """The row that keeps where a step stands."""
    return PreparationRow(
        job_id=claim.job_id,
        persona=step.persona,
        kind=step.kind,
        task=step.task,
        item=step.item,
        ask=step.ask,
        tenant=claim.tenant,
        status=step.status,
        content=preparations.encoded(step.content),
        dropped=step.dropped,
        error=step.error,
        dropped_by=preparations.encoded(step.dropped_by),
        reply=step.reply,
    )


def _missing(found: QuestionsRead, has: int, count: int) -> str:
    """For example ``7 of 10 questions; a text in the list repeats an earlier question``."""
    faults = list(found.faults)
    if found.duplicates or found.near_duplicates:
        faults.append("repeats an earlier question")
    why = "the reply is no list" if not found.readable else ""
    if faults:
        why = f"a text in the list {', another '.join(faults)}"
    return f"{has} of {count} questions" + (f"; {why}" if why else "")


def _is_cut(reply: ChatReply) -> bool:
    return reply.finish_reason.cuts_off


def _advanced(step: StoredStep, reading: Reading, most: int) -> StoredStep:
    """A step after one more reply."""
    status = "ready"
    if reading.problem is not None:
        status = "failed" if step.ask >= most else "incomplete"
    return replace(
        step,
        status=status,
        content=tuple(reading.content),
        dropped=step.dropped + reading.dropped,
        error=reading.problem,
        reply=reading.reply,
    )
