"""A response with its units and everybody's verdicts on them: what readers of a report look at."""

from dataclasses import dataclass
from statistics import fmean

from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.verdict import VerdictStatus
from app.domain.providers.model import Usage
from app.domain.providers.reuse import ReplyOrigin


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """One judge's verdict on one unit for one dimension.

    Attributes:
        judge: The judge's label.
        dimension: The dimension's id.
        status: What became of the judgement.
        score: Where ``status`` is ``scored``.
        raw: The judge's reply; ``None`` where it was not asked or never answered. Untrusted text.
        error: Code and words of the last attempt, where no call succeeded. Untrusted text.
        in_character: Whether the score lies in the persona's level; ``None`` without a score.
        group_size: Sentences that the judge was asked about in the same call; 1 where alone.
        reused: Whose reply it is, if no call was made for it.
        suspicion: What makes the verdict doubtful, if anything does.
        finish_reason: Why the judge's reply ended; ``None`` where it was not asked or never answered, or if that was not kept.
        thoughts: What the judge thought before; ``None`` where nothing is known of that. Untrusted text.
    """

    judge: str
    dimension: str
    status: VerdictStatus
    score: int | None
    raw: str | None
    in_character: bool | None
    group_size: int = 1
    error: str | None = None
    reused: ReplyOrigin | None = None
    suspicion: Suspicion | None = None
    finish_reason: str | None = None
    thoughts: str | None = None


@dataclass(slots=True)
class JudgedUnit:
    """One sentence of a response. Not frozen, as a big export makes hundreds of thousands; nobody changes one.

    Attributes:
        index: Position in the response, from 0.
        start: Offset of its first character in the response's text.
        end: Offset after its last character.
        text: The sentence as the judge read it. Untrusted text.
        verdicts: Ordered by dimension and judge; not all may be there yet.
    """

    index: int
    start: int
    end: int
    text: str
    verdicts: tuple[UnitVerdict, ...]

    @property
    def out_of_character(self) -> bool:
        """Whether any judge's score lies outside the persona's level."""
        return any(verdict.in_character is False for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class ResponseGrade:
    """One judge's grade of a whole PersonaGym response.

    Attributes:
        judge: The judge's label.
        status: What became of the grading; never ``not_applicable``.
        score: Where ``status`` is ``scored``: 1 to 5.
        justification: The judge's reasons; ``None`` without a reply. Untrusted text.
        raw: The judge's reply; ``None`` where it was not asked or never answered. Untrusted text.
        error: Why there is no reply.
        reused: As of a verdict.
        suspicion: As of a verdict, like the next two.
        finish_reason: See there.
        thoughts: See there.
    """

    judge: str
    status: VerdictStatus
    score: int | None
    justification: str | None
    raw: str | None
    error: str | None = None
    reused: ReplyOrigin | None = None
    suspicion: Suspicion | None = None
    finish_reason: str | None = None
    thoughts: str | None = None


@dataclass(slots=True)
class JudgedResponse:
    """A response and all that was found about it. Not frozen, for the same reason as its sentences.

    Attributes:
        id: Unique; stable over retries.
        model: The model's label.
        persona: The persona's id.
        levels: The persona's level by dimension, for the dimensions on which this response is judged.
        task: The task's id.
        item: The item's id.
        item_text: The question or context; empty where the task has none.
        run: Repetition, from 0.
        instruction: Number of the persona instruction, from 0, in the order of the manifest; ``None`` if unknown.
        iteration: Repetition under that instruction, from 0; ``None`` if unknown.
        status: ``answered``, ``refused``, ``filtered``, ``no_answer`` or ``failed``.
        text: ``None`` where the call failed. Untrusted text.
        error: Why there is no text, or none to be judged.
        finish_reason: Why the model stopped; ``None`` for existing texts.
        usage: Tokens, if the provider counted them.
        units: The sentences.
        question: What a PersonaGym task asked; ``None`` for other tasks.
        grades: Grades of a PersonaGym response, ordered by judge; not all may be there yet.
        reused: Whose text it is, if no call was made for it.
        thoughts: What the model thought before it wrote the text, which nobody judges; empty where its provider keeps that to
            itself. Untrusted text.
    """

    id: str
    model: str
    persona: str
    levels: dict[str, str]
    task: str
    item: str
    item_text: str
    run: int
    instruction: int | None
    iteration: int | None
    status: str
    text: str | None
    error: str | None
    finish_reason: str | None
    usage: Usage | None
    units: tuple[JudgedUnit, ...]
    question: str | None = None
    grades: tuple[ResponseGrade, ...] = ()
    reused: ReplyOrigin | None = None
    thoughts: str | None = None

    @property
    def score(self) -> float | None:
        """The mean over the judges that gave a score; ``None`` where none did."""
        scores = [grade.score for grade in self.grades if grade.score is not None]
        return fmean(scores) if scores else None

    def to_json(self) -> dict[str, object]:
        """The response in the HTTP contract's form."""
        return {
            "id": self.id,
            "model": self.model,
            "persona": self.persona,
            "levels": self.levels,
            "task": self.task,
            "item": {"id": self.item, "text": self.item_text},
            "run": self.run,
            "instruction": self.instruction,
            "iteration": self.iteration,
            "status": self.status,
            "text": self.text,
            "refusal": self.status == "refused",
            "error": self.error,
            "finish_reason": self.finish_reason,
            "usage": None
            if self.usage is None
            else {
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
                "reasoning_tokens": self.usage.reasoning_tokens,
            },
            "thoughts": self.thoughts,
            "units": [_unit_json(unit) for unit in self.units],
            "question": self.question,
            "grades": [_grade_json(grade) for grade in self.grades],
            "score": self.score,
            "reused": self.reused,
        }


def _grade_json(grade: ResponseGrade) -> dict[str, object]:
    return {
        "judge": grade.judge,
        "status": grade.status.value,
        "score": grade.score,
        "justification": grade.justification,
        "raw": grade.raw,
        "error": grade.error,
        "reused": grade.reused,
        "suspicion": grade.suspicion,
        "finish_reason": grade.finish_reason,
        "thoughts": grade.thoughts,
    }


def _unit_json(unit: JudgedUnit) -> dict[str, object]:
    return {
        "index": unit.index,
        "span": [unit.start, unit.end],
        "text": unit.text,
        "verdicts": [
            {
                "judge": verdict.judge,
                "dimension": verdict.dimension,
                "status": verdict.status.value,
                "score": verdict.score,
                "raw": verdict.raw,
                "error": verdict.error,
                "in_character": verdict.in_character,
                "group_size": verdict.group_size,
                "reused": verdict.reused,
                "suspicion": verdict.suspicion,
                "finish_reason": verdict.finish_reason,
                "thoughts": verdict.thoughts,
            }
            for verdict in unit.verdicts
        ],
    }
