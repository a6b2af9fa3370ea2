"""Builds the prompts of a job's judges, for the calls of workers and again for whoever reads them later."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.prompts import scoring_prompt, user_prompt
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import Item
from app.domain.jobs.plan import AtomicCell, Cell, GymCell
from app.domain.jobs.specification import JobSpec
from app.domain.judging.constrained import constrained, number_of, options_of
from app.domain.judging.grouping import GroupedWords, grouped_scoring_prompt, grouped_sentence_prompt
from app.domain.judging.hardening import AS_IN_THE_PAPERS, Showing, showing
from app.domain.judging.profiles import JudgeProfile
from app.domain.judging.verdict import Verdict, parse_verdict
from app.domain.personagym.grades import read_final_score
from app.domain.personagym.prompts import rubric_prompt, sentence_prompt
from app.domain.personagym.specification import GymSpec
from app.domain.personagym.task import GRADE_SCALE
from app.domain.providers.model import FinishReason, Model, ReplyForm


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """One call to a judge.

    Attributes:
        shown: How it shows what is judged, with the system prompt.
        user: The user prompt.
        dimension: What is scored, with the options in the order in which they are given; ``None`` for a grade.
        profile: The profile by which the judge is asked, if it has one.
        form: Form of the reply.
    """

    shown: Showing
    user: str
    dimension: Dimension | None
    profile: JudgeProfile | None = None
    form: ReplyForm = "text"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers that the judge may answer."""
        scale = GRADE_SCALE if self.dimension is None else self.dimension.scale
        return options_of(scale, filtering=self.dimension is not None and self.profile is None)

    def read(self, finish_reason: FinishReason, reply: str) -> tuple[Verdict, bool]:
        """Read a reply about one sentence or response; also return whether it lacks its key word.

        Args:
            finish_reason: Why the reply ended.
            reply: The reply. Untrusted.
        """
        text, key_missing = self.shown.read(reply)
        verdict = read_reply(text, self.dimension, self.profile, self.form, cut_off=finish_reason.cuts_off)
        return verdict, key_missing


def read_reply(
    text: str,
    asked: Dimension | Scale | None,
    profile: JudgeProfile | None,
    form: ReplyForm,
    *,
    cut_off: bool,
) -> Verdict:
    """Read a judge's reply about one sentence or response.

    Args:
        text: The reply without its key word. Untrusted.
        asked: What was scored; ``None`` for a grade.
        profile: The profile by which the judge was asked, if it has one.
        form: Form of the reply.
        cut_off: Whether the reply may lack its end.
    """
    if form == "json_schema":
        scale = GRADE_SCALE if asked is None else asked.scale if isinstance(asked, Dimension) else asked
        number = number_of(text, options_of(scale), cut_off=cut_off)
        if number is not None:
            text, cut_off = str(number), False
    if profile is not None:
        return profile.read(text, cut_off=cut_off)
    if asked is None:
        return read_final_score(text, cut_off=cut_off).verdict
    return parse_verdict(text, asked, cut_off=cut_off)


def judge_model(spec: JobSpec, judge: Model, asked: JudgePrompt, sentences: int = 1) -> Model:
    """Return a judge as it is called: with the constraint on its reply that the job asks for.

    Args:
        spec: The job's.
        judge: The judge.
        asked: The prompt.
        sentences: Number of sentences that the prompt is about.
    """
    return constrained(judge, spec.reply, asked.numbers, sentences)


def about_sentence(
    spec: JobSpec, judge: Model, cell: Cell, item: Item, dimension: Dimension, sentence: str
) -> JudgePrompt:
    """Build the prompt about a sentence by itself.

    Args:
        spec: The job's.
        judge: Who is asked.
        cell: Whose response it is of.
        item: What the response answers.
        dimension: What is scored, with its options in the order in which they are given.
        sentence: The normalised sentence. Untrusted.
    """
    profile = spec.profile_of(judge)
    persona = cell.persona.description
    if profile is not None:
        prompt = (
            profile.about_trait(dimension, user_prompt(cell.task, item), sentence)
            if isinstance(cell, AtomicCell)
            else profile.about_consistency(dimension, persona, item.text, sentence)
        )
        return JudgePrompt(AS_IN_THE_PAPERS, prompt, dimension, profile)
    shown = showing(spec.hardening, [sentence])
    text = shown.shown(sentence)
    if isinstance(cell, AtomicCell):
        return JudgePrompt(
            shown, scoring_prompt(cell.task, dimension, item, text), dimension, form=spec.reply
        )
    prompts = _gym(spec).prompts
    prompt = sentence_prompt(prompts, dimension, persona=persona, question=item.text, unit_text=text)
    return JudgePrompt(shown, prompt, dimension, form=spec.reply)


def about_sentences(
    spec: JobSpec, cell: Cell, item: Item, dimension: Dimension, units: Sequence[Unit], words: GroupedWords
) -> JudgePrompt:
    """Build the prompt about several sentences at once; see :func:`about_sentence`."""
    shown = showing(spec.hardening, [unit.text for unit in units])
    enclosed = [replace(unit, text=shown.shown(unit.text)) for unit in units]
    if isinstance(cell, AtomicCell):
        prompt = grouped_scoring_prompt(words, cell.task, dimension, item, enclosed)
        return JudgePrompt(shown, prompt, dimension)
    persona = cell.persona.description
    prompt = grouped_sentence_prompt(words, dimension, persona=persona, question=item.text, units=enclosed)
    return JudgePrompt(shown, prompt, dimension)


def about_response(
    spec: JobSpec, judge: Model, cell: GymCell, item: Item, exemplars: Sequence[str], text: str
) -> JudgePrompt:
    """Build the prompt that asks to grade a PersonaGym response.

    Args:
        spec: The job's.
        judge: Who is asked.
        cell: Whose response it is.
        item: The question.
        exemplars: An example response for each score, from the lowest.
        text: The response. Untrusted.
    """
    profile, task = spec.profile_of(judge), cell.task.task
    persona, question = cell.persona.description, item.text
    if profile is not None:
        prompt = profile.about_answer(
            task.description, task.guidelines, exemplars, persona=persona, question=question, response=text
        )
        return JudgePrompt(AS_IN_THE_PAPERS, prompt, None, profile)
    shown = showing(spec.hardening, [text])
    prompt = rubric_prompt(
        _gym(spec).prompts,
        task,
        persona=persona,
        question=question,
        exemplars=dict(enumerate(exemplars, GRADE_SCALE.minimum)),
        response=shown.shown(text),
    )
    return JudgePrompt(shown, prompt, None, form=spec.reply)


def _gym(spec: JobSpec) -> GymSpec:
    if spec.gym is None:
        raise ValueError("the job has no PersonaGym task")
    return spec.gym
