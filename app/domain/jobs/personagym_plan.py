"""What PersonaGym's stages will take, before anything is spent."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from app.domain.instruments.persona import Persona
from app.domain.instruments.prompts import system_prompt
from app.domain.instruments.segmentation import Unit
from app.domain.jobs.plan import GymCell, share_checked
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.stage_estimate import (
    CHARACTERS_PER_TOKEN,
    EXPECTED_UNIT,
    JudgingSum,
    StageEstimate,
    StageSum,
    expected_refusal_checks,
)
from app.domain.judging.grouping import grouped_sentence_prompt
from app.domain.personagym.prompts import (
    environment_prompt,
    question_prompt,
    rubric_prompt,
    score_examples_prompt,
    sentence_prompt,
)
from app.domain.personagym.specification import EXPECTED_ENVIRONMENTS, GymSpec, GymTaskSpec
from app.domain.providers.model import Model, Stage, Usage
from app.domain.providers.parameters import share_written

ENVIRONMENT_TOKENS, QUESTION_TOKENS, EXEMPLAR_TOKENS, ANSWER_TOKENS, GRADE_TOKENS = 5, 50, 70, 220, 150
"""Output for one environment, question, exemplar, answer and grade; used for estimates only."""

_QUESTION = "x" * round(QUESTION_TOKENS * CHARACTERS_PER_TOKEN)
_ANSWER = "x" * round(ANSWER_TOKENS * CHARACTERS_PER_TOKEN)
_EXEMPLARS = dict.fromkeys(range(1, 6), "x" * round(EXEMPLAR_TOKENS * CHARACTERS_PER_TOKEN))
_ENVIRONMENTS = ("x" * 20,) * EXPECTED_ENVIRONMENTS


@dataclass(frozen=True, slots=True)
class PreparationPlan:
    """The steps that prepare a persona.

    Attributes:
        person: Index of the persona.
        environments: 1, or 0 where all questions are given.
        questions: Sets of questions, one for each task; given ones included.
        exemplars: Sets of exemplars, one for each question.
        exact: Whether these are exact.
    """

    person: int
    environments: int
    questions: int
    exemplars: int
    exact: bool


def preparations_of(spec: JobSpec, gym: GymSpec) -> list[PreparationPlan]:
    """The preparation of each persona."""
    found = []
    for person, persona in enumerate(spec.personas):
        counts = [gym.question_count(persona, task) for task in gym.tasks]
        found.append(
            PreparationPlan(
                person,
                environments=int(gym.needs_environments(persona)),
                questions=len(gym.tasks),
                exemplars=sum(count for count, _ in counts) if spec.prepared else 0,
                exact=all(exact for _, exact in counts),
            )
        )
    return found


def asks_reasoner(spec: JobSpec) -> bool:
    """Return whether a reasoner has anything to write for a job's PersonaGym part."""
    gym = spec.gym
    return gym is not None and any(
        (gym.needs_environments(persona) and persona.id not in gym.environments)
        or any(
            not gym.is_given(persona, task)
            or gym.question_count(persona, task)[0] > gym.exemplars.get(persona.id, {}).get(task.id, 0)
            for task in gym.tasks
        )
        for persona in spec.personas
    )


def estimate_gym(spec: JobSpec, gym: GymSpec, cells: Sequence[GymCell]) -> list[StageEstimate]:
    """Calls and tokens of a job's PersonaGym part by stage and model."""
    of_first = [cell for cell in cells if cell.model == 0]  # every model has the same cells
    answers = [_answers(gym, model, of_first) for model in spec.models]
    return [
        *_reasoning(spec, gym),
        *answers,
        *(each for judge in spec.judges for each in _judgements(spec, gym, judge, of_first)),
        *expected_refusal_checks(spec, answers),
    ]


@dataclass(frozen=True, slots=True)
class BroughtAnswer:
    """An existing answer that is to be graded.

    Attributes:
        cell: Ordinal of its cell.
        run: Its run.
        item: Its question.
        characters: Length of its text.
        sentences: How many of its sentences are judged, if its task has them judged.
    """

    cell: int
    run: int
    item: int
    characters: int
    sentences: int


def estimate_brought(
    spec: JobSpec, gym: GymSpec, cells: Sequence[GymCell], answers: Sequence[BroughtAnswer]
) -> list[StageEstimate]:
    """Calls and tokens of grading existing answers, and of the exemplars that this takes."""
    by_ordinal = {cell.ordinal: cell for cell in cells}
    rubrics = {cell.ordinal: len(_rubric(gym, cell, "")) for cell in cells}
    found = _reasoning(spec, gym) if answers and spec.prepared else []
    for judge in (spec.judges[n] for n in spec.asked_judges):
        total = JudgingSum(judge, spec)
        for answer in answers:
            cell, persona = by_ordinal[answer.cell], by_ordinal[answer.cell].persona.description
            prompt = rubrics[answer.cell] + answer.characters
            total.judging.add(1, prompt, GRADE_TOKENS, verdicts=1)
            if cell.dimensions and answer.sentences:
                place = answer.cell, answer.run, answer.item
                checked = share_checked(spec, *place, answer.sentences)
                alone, together = _alone(gym, persona), partial(_together, spec, gym, persona)
                total.add(1, answer.sentences, alone, together, checked)
        found += total.estimates()
    return found


def _reasoning(spec: JobSpec, gym: GymSpec) -> list[StageEstimate]:
    environments, questions, exemplars = (
        StageSum(stage, gym.reasoner) for stage in (Stage.ENVIRONMENTS, Stage.QUESTIONS, Stage.EXEMPLARS)
    )
    for persona in spec.personas:
        text = persona.description
        if gym.needs_environments(persona) and persona.id not in gym.environments:
            tokens = EXPECTED_ENVIRONMENTS * ENVIRONMENT_TOKENS
            environments.add(1, len(environment_prompt(gym.prompts, text, gym.pool)), tokens)
        for task in gym.tasks:
            count, _ = gym.question_count(persona, task)
            if not gym.is_given(persona, task):
                questions.add(1, len(_asking(gym, persona, task, count)), count * QUESTION_TOKENS)
            prompt = score_examples_prompt(gym.prompts, task.task, text, _QUESTION)
            missing = count - gym.exemplars.get(persona.id, {}).get(task.id, 0)
            exemplars.add(missing, len(prompt), len(_EXEMPLARS) * EXEMPLAR_TOKENS)
    return [environments.estimate(), questions.estimate(), exemplars.estimate()]


def _asking(gym: GymSpec, persona: Persona, task: GymTaskSpec, count: int) -> str:
    environments = gym.environments.get(persona.id, _ENVIRONMENTS)
    return question_prompt(gym.prompts, task.task, persona.description, environments, count)


def _answers(gym: GymSpec, model: Model, cells: Sequence[GymCell]) -> StageEstimate:
    total = StageSum(Stage.GENERATION, model)
    for cell in cells:
        told = "" if cell.control else system_prompt(gym.template, cell.persona)
        total.add(cell.runs * cell.questions, len(told + _QUESTION), ANSWER_TOKENS)
    return total.estimate()


def _judgements(spec: JobSpec, gym: GymSpec, judge: Model, cells: Sequence[GymCell]) -> list[StageEstimate]:
    """What a judge is asked, from the cells of one model."""
    total = JudgingSum(judge, spec)
    written = share_written(spec.models, ANSWER_TOKENS)
    for cell in cells:
        answers, persona = len(spec.models) * cell.runs * cell.questions, cell.persona.description
        total.judging.add(answers, len(_rubric(gym, cell, _ANSWER)), GRADE_TOKENS, verdicts=answers)
        if cell.dimensions:
            alone, together = _alone(gym, persona), partial(_together, spec, gym, persona)
            total.add(answers, cell.task.expected_units * written, alone, together)
    return total.estimates()


def _rubric(gym: GymSpec, cell: GymCell, answer: str) -> str:
    return rubric_prompt(
        gym.prompts,
        cell.task.task,
        persona=cell.persona.description,
        question=_QUESTION,
        exemplars=_EXEMPLARS,
        response=answer,
    )


def _alone(gym: GymSpec, persona: str) -> str:
    return sentence_prompt(
        gym.prompts, gym.dimension, persona=persona, question=_QUESTION, unit_text=EXPECTED_UNIT.text
    )


def _together(spec: JobSpec, gym: GymSpec, persona: str, units: Sequence[Unit]) -> str:
    if spec.grouping is None:
        raise ValueError("the job's sentences are judged one by one")
    words = spec.grouping.words
    return grouped_sentence_prompt(words, gym.dimension, persona=persona, question=_QUESTION, units=units)


def merged(estimates: Sequence[StageEstimate]) -> list[StageEstimate]:
    """One estimate for each stage and model, stage by stage."""
    groups: dict[tuple[Stage, str], list[StageEstimate]] = {}
    for each in estimates:
        groups.setdefault((each.stage, each.model.label), []).append(each)
    order = list(Stage)
    return [_summed(groups[key]) for key in sorted(groups, key=lambda key: order.index(key[0]))]


def _summed(estimates: Sequence[StageEstimate]) -> StageEstimate:
    usage = Usage(sum(e.usage.input_tokens for e in estimates), sum(e.usage.output_tokens for e in estimates))
    first, calls = estimates[0], sum(e.calls for e in estimates)
    return StageEstimate(first.stage, first.model, calls, usage, sum(e.verdicts for e in estimates))
