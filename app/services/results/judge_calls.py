"""Reads what judges were asked about a sentence or a response, and what they answered.

Prompts are not stored: they are made again, by the functions that made them for the calls.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.jobs import JobRow
from app.db.results import judge_replies
from app.db.results.judge_replies import SecondReply
from app.db.results.response_pages import Position
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import Item
from app.domain.jobs.judge_prompts import (
    JudgePrompt,
    about_response,
    about_sentence,
    about_sentences,
    judge_model,
)
from app.domain.jobs.plan import Cell, GymCell
from app.domain.jobs.specification import JobSpec
from app.domain.judging import order_check
from app.domain.judging.constrained import with_constraint
from app.domain.judging.grouping import groups_of
from app.domain.judging.judge_call import JudgeCall, JudgeCalls
from app.domain.judging.judged_response import JudgedResponse, JudgedUnit, ResponseGrade, UnitVerdict
from app.domain.judging.verdict import Unread, VerdictStatus
from app.domain.providers.model import FinishReason, Model, Stage, Takes
from app.domain.providers.parameters import sent_parameters
from app.services.job_context import JobContext
from app.services.results.manifest import RELEASE
from app.services.results.responses import read_response

NOT_ASKED = "no judge was asked: the response is a refusal, whose sentences get verdicts that say so"
IMPORTED = "the verdict was imported: {source}"
NO_PROMPT = "no judge was asked: {error}"
PART = "a call about several sentences: of its reply the part about this one is stored"
NOTHING = "the reply gave nothing usable for this sentence, which was then asked about alone"
REUSED = "no call was made: the reply is one to an identical request"
ORDER = "the score is shown by the dimension's own numbers, the reply by those of this order"


async def read_judge_calls(
    engine: AsyncEngine, job: JobRow, context: JobContext, place: Position, unit: int | None
) -> JudgeCalls:
    """What judges were asked about a sentence of the response at a place, or about the response as a whole.

    Raises:
        NotFoundError: If there is no such response.
        InvalidJobError: If it has no such sentence.
    """
    response = await read_response(engine, job, context, place)
    if unit is not None and not unit < len(response.units):
        raise InvalidJobError(
            [FieldError("/query/unit", f"the response has {len(response.units)} sentences")]
        )
    second: list[SecondReply] = []
    exemplars: Sequence[str] = ()
    async with engine.connect() as connection:
        release = await judge_replies.release_of_results(connection, job.tenant, job.id)
        if unit is not None:
            second = await judge_replies.second_replies(connection, job.tenant, job.id, place, unit)
        elif response.grades:
            exemplars = await _exemplars(connection, job, context, place)
    asked = _Asked(context, response, place)
    calls = asked.grades(exemplars) if unit is None else asked.verdicts(response.units[unit], second)
    return JudgeCalls(
        response=response.id,
        unit=unit,
        text=response.text if unit is None else response.units[unit].text,
        certain=release == RELEASE,
        release=release,
        data=list(calls),
    )


async def _exemplars(connection: Any, job: JobRow, context: JobContext, place: Position) -> Sequence[str]:
    cell = context.cell(place[0])
    steps = await preparations.steps_of_persona(connection, job.tenant, job.id, cell.person, cell.task.id)
    found = [step for step in steps if step.kind == Stage.EXEMPLARS and step.item == place[2]]
    return found[0].content if found and found[0].status == "ready" else ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked about one response."""

    context: JobContext
    response: JudgedResponse
    place: Position

    @property
    def cell(self) -> Cell:
        return self.context.cell(self.place[0])

    @property
    def item(self) -> Item:
        item = self.response.item
        return Item(self.place[2], item.id, item.text, tuple(self.response.levels))

    def grades(self, exemplars: Sequence[str]) -> Iterator[JudgeCall]:
        """The calls about the response as a whole."""
        cell = self.cell
        for grade in self.response.grades:
            prompt = None
            imported = grade.judge in self.response.imported_judges
            if isinstance(cell, GymCell) and exemplars and not imported:
                judge, text = self._judge(grade.judge), self.response.text or ""
                prompt = about_response(self.context.spec, judge, cell, self.item, exemplars, text)
            yield _call(self.context.spec, self._judge(grade.judge), prompt, grade, purpose="grade")

    def verdicts(self, unit: JudgedUnit, second: Sequence[SecondReply]) -> Iterator[JudgeCall]:
        """The calls about a sentence: those that count, then the others."""
        for verdict in unit.verdicts:
            unasked = self.response.refusal or verdict.judge in self.response.imported_judges
            group = self._group(unit) if verdict.group_size > 1 else [unit]
            judge = self._judge(verdict.judge)
            prompt = None if unasked else self._about(judge, self._dimension(verdict.dimension), group)
            yield _call(self.context.spec,
                judge, prompt, verdict, purpose="verdict",
                dimension=verdict.dimension, units=group,
            )  # fmt: skip
        for reply in second:
            yield self._second(unit, reply)

    def _second(self, unit: JudgedUnit, reply: SecondReply) -> JudgeCall:
        judges, check = self.context.spec.judges, self.context.spec.order_check
        dimension = shown = self.cell.dimensions[reply.trait]
        purpose, group, note = "alone", [unit], ""
        if not reply.alone:
            purpose, group, note = "group", self._group(unit), NOTHING
        elif reply.judge >= len(judges) and check is not None:
            order = order_check.order_of(reply.judge, len(judges))
            asked = order_check.asked(dimension, order, check.seed, *self.place, unit.index)
            purpose, shown, note = order.value, asked.dimension, ORDER if asked.scores else ""
        said = UnitVerdict(
            judge=judges[reply.judge % len(judges)].label,
            dimension=dimension.id,
            status=VerdictStatus(reply.status),
            score=reply.score,
            raw=reply.raw,
            error=reply.error,
            in_character=None,
            group_size=len(group),
            reused=None,
            suspicion=None,
            finish_reason=None if reply.finish_reason is None else FinishReason(reply.finish_reason),
            thoughts=reply.thoughts,
            unread=None if reply.unread is None else Unread(reply.unread),
            repair_raw=reply.repair_raw,
        )
        judge = judges[reply.judge % len(judges)]
        prompt = self._about(judge, shown, group)
        return _call(
            self.context.spec,
            judge,
            prompt,
            said,
            purpose=purpose,
            dimension=dimension.id,
            units=group,
            note=note,
        )

    def _about(self, judge: Model, dimension: Dimension, group: Sequence[JudgedUnit]) -> JudgePrompt:
        spec = self.context.spec
        if len(group) == 1 or spec.grouping is None:
            return about_sentence(spec, judge, self.cell, self.item, dimension, group[0].text)
        units = [Unit(each.index, *each.span, each.text) for each in group]
        return about_sentences(spec, self.cell, self.item, dimension, units, spec.grouping.words)

    def _group(self, unit: JudgedUnit) -> list[JudgedUnit]:
        """The sentences that a judge was asked about together with one."""
        grouping = self.context.spec.grouping
        groups = groups_of(self.response.units, 1 if grouping is None else grouping.sentences)
        (found,) = [group for group in groups if group[0].index <= unit.index <= group[-1].index]
        return list(found)

    def _judge(self, label: str) -> Model:
        return next(judge for judge in self.context.spec.judges if judge.label == label)

    def _dimension(self, id_: str) -> Dimension:
        return next(each for each in self.cell.dimensions if each.id == id_)


def _call(
    spec: JobSpec,
    judge: Model,
    prompt: JudgePrompt | None,
    said: UnitVerdict | ResponseGrade,
    *,
    purpose: Any,
    dimension: str | None = None,
    units: Sequence[JudgedUnit] = (),
    note: str = "",
) -> JudgeCall:
    return JudgeCall(
        purpose=purpose,
        judge=judge.label,
        dimension=dimension,
        units=[unit.index for unit in units],
        system=None if prompt is None else prompt.shown.system,
        prompt=None if prompt is None else prompt.user,
        parameters=_parameters(
            judge if prompt is None else judge_model(spec, judge, prompt, max(1, len(units)))
        ),
        status=said.status,
        score=said.score,
        raw=said.raw,
        error=said.error,
        finish_reason=said.finish_reason,
        thoughts=said.thoughts,
        unread=said.unread,
        repair_raw=said.repair_raw,
        suspicion=said.suspicion,
        reused=said.reused,
        notes=list(_notes(judge, prompt, said, len(units), note)),
    )


def _parameters(judge: Model) -> Mapping[str, object]:
    takes = judge.takes or Takes()
    return with_constraint(sent_parameters(judge.parameters, takes).body(takes), judge)


def _notes(
    judge: Model, prompt: JudgePrompt | None, said: UnitVerdict | ResponseGrade, units: int, note: str
) -> Iterator[str]:
    if judge.imported is not None:
        yield IMPORTED.format(source=judge.imported.source)
    elif prompt is None:
        yield NOT_ASKED if said.error is None else NO_PROMPT.format(error=said.error)
    if note:
        yield note
    elif units > 1:
        yield PART
    if said.reused is not None:
        yield REUSED
