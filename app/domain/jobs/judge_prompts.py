"""What a job's judges are asked: made here for the calls of workers, and again for whoever wants to read it later."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.prompts import scoring_prompt
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import Item
from app.domain.jobs.plan import AtomicCell, Cell, GymCell
from app.domain.jobs.specification import JobSpec
from app.domain.judging.grouping import GroupedWords, grouped_scoring_prompt, grouped_sentence_prompt
from app.domain.judging.hardening import Showing, showing
from app.domain.personagym.prompts import rubric_prompt, sentence_prompt
from app.domain.personagym.specification import GymSpec
from app.domain.personagym.task import GRADE_SCALE


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """What one call asks a judge.

    Attributes:
        shown: How it shows what is judged, with the system prompt; it reads the reply, too.
        user: The user prompt.
    """

    shown: Showing
    user: str


def about_sentence(spec: JobSpec, cell: Cell, item: Item, dimension: Dimension, sentence: str) -> JudgePrompt:
    """Asks about a sentence by itself.

    Args:
        spec: The job's.
        cell: Whose response it is of.
        item: What the response answers.
        dimension: What is scored, with its options in the order in which they are given.
        sentence: The normalised sentence. Untrusted.
    """
    shown = showing(spec.hardening, [sentence])
    text = shown.shown(sentence)
    if isinstance(cell, AtomicCell):
        return JudgePrompt(shown, scoring_prompt(cell.task, dimension, item, text))
    persona = cell.persona.description
    prompts = _gym(spec).prompts
    return JudgePrompt(
        shown, sentence_prompt(prompts, dimension, persona=persona, question=item.text, unit_text=text)
    )


def about_sentences(
    spec: JobSpec, cell: Cell, item: Item, dimension: Dimension, units: Sequence[Unit], words: GroupedWords
) -> JudgePrompt:
    """Asks about several sentences at once; see :func:`about_sentence`."""
    shown = showing(spec.hardening, [unit.text for unit in units])
    enclosed = [replace(unit, text=shown.shown(unit.text)) for unit in units]
    if isinstance(cell, AtomicCell):
        return JudgePrompt(shown, grouped_scoring_prompt(words, cell.task, dimension, item, enclosed))
    persona = cell.persona.description
    return JudgePrompt(
        shown, grouped_sentence_prompt(words, dimension, persona=persona, question=item.text, units=enclosed)
    )


def about_response(
    spec: JobSpec, cell: GymCell, item: Item, exemplars: Sequence[str], text: str
) -> JudgePrompt:
    """Asks to grade a PersonaGym response.

    Args:
        spec: The job's.
        cell: Whose response it is.
        item: The question.
        exemplars: An example response for each score, from the lowest.
        text: The response. Untrusted.
    """
    shown = showing(spec.hardening, [text])
    prompt = rubric_prompt(
        _gym(spec).prompts,
        cell.task.task,
        persona=cell.persona.description,
        question=item.text,
        exemplars=dict(enumerate(exemplars, GRADE_SCALE.minimum)),
        response=shown.shown(text),
    )
    return JudgePrompt(shown, prompt)


def _gym(spec: JobSpec) -> GymSpec:
    if spec.gym is None:
        raise ValueError("the job has no PersonaGym task")
    return spec.gym
