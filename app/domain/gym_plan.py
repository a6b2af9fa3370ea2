"""What PersonaGym's stages will take, before anything is spent."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.gym import EXPECTED_ENVIRONMENTS, GymSpec, GymTaskSpec
from app.domain.model import Model, Stage, Usage
from app.domain.persona import Persona
from app.domain.personagym.prompts import (
    environment_prompt,
    question_prompt,
    rubric_prompt,
    score_examples_prompt,
    sentence_prompt,
)
from app.domain.plan import (
    CHARACTERS_PER_TOKEN,
    EXPECTED_UNIT_CHARACTERS,
    VERDICT_OUTPUT_TOKENS,
    GymCell,
    StageEstimate,
)
from app.domain.prompts import system_prompt
from app.domain.spec import JobSpec

ENVIRONMENT_TOKENS, QUESTION_TOKENS, EXEMPLAR_TOKENS, ANSWER_TOKENS, GRADE_TOKENS = 5, 50, 70, 220, 150
"""Output for one environment, question, exemplar, answer and grade; used for estimates only."""

_QUESTION = "x" * round(QUESTION_TOKENS * CHARACTERS_PER_TOKEN)
_ANSWER = "x" * round(ANSWER_TOKENS * CHARACTERS_PER_TOKEN)
_EXEMPLARS = dict.fromkeys(range(1, 6), "x" * round(EXEMPLAR_TOKENS * CHARACTERS_PER_TOKEN))
_ENVIRONMENTS = ("x" * 20,) * EXPECTED_ENVIRONMENTS
_UNIT = "x" * EXPECTED_UNIT_CHARACTERS


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
                exemplars=sum(count for count, _ in counts),
                exact=all(exact for _, exact in counts),
            )
        )
    return found


class _Sum:
    """Calls, characters of prompts and tokens of answers, added up."""

    def __init__(self) -> None:
        self.calls = self.characters = self.output = 0.0

    def add(self, calls: float, prompt: str, tokens: float) -> None:
        self.calls += calls
        self.characters += calls * len(prompt)
        self.output += calls * tokens

    def estimate(self, stage: Stage, model: Model) -> StageEstimate:
        usage = Usage(round(self.characters / CHARACTERS_PER_TOKEN), round(self.output))
        return StageEstimate(stage, model, round(self.calls), usage)


def estimate_gym(spec: JobSpec, gym: GymSpec, cells: Sequence[GymCell]) -> list[StageEstimate]:
    """Calls and tokens of a job's PersonaGym part by stage and model."""
    return [
        *_reasoning(spec, gym),
        *(_answers(gym, model, [c for c in cells if c.model == n]) for n, model in enumerate(spec.models)),
        *(_judgements(gym, judge, cells) for judge in spec.judges),
    ]


def _reasoning(spec: JobSpec, gym: GymSpec) -> list[StageEstimate]:
    environments, questions, exemplars = _Sum(), _Sum(), _Sum()
    for persona in spec.personas:
        text = persona.description
        if gym.needs_environments(persona) and persona.id not in gym.environments:
            tokens = EXPECTED_ENVIRONMENTS * ENVIRONMENT_TOKENS
            environments.add(1, environment_prompt(gym.prompts, text, gym.pool), tokens)
        for task in gym.tasks:
            count, _ = gym.question_count(persona, task)
            if not gym.is_given(persona, task):
                questions.add(1, _asking(gym, persona, task, count), count * QUESTION_TOKENS)
            prompt = score_examples_prompt(gym.prompts, task.task, text, _QUESTION)
            exemplars.add(count, prompt, len(_EXEMPLARS) * EXEMPLAR_TOKENS)
    return [
        environments.estimate(Stage.ENVIRONMENTS, gym.reasoner),
        questions.estimate(Stage.QUESTIONS, gym.reasoner),
        exemplars.estimate(Stage.EXEMPLARS, gym.reasoner),
    ]


def _asking(gym: GymSpec, persona: Persona, task: GymTaskSpec, count: int) -> str:
    environments = gym.environments.get(persona.id, _ENVIRONMENTS)
    return question_prompt(gym.prompts, task.task, persona.description, environments, count)


def _answers(gym: GymSpec, model: Model, cells: Sequence[GymCell]) -> StageEstimate:
    total = _Sum()
    for cell in cells:
        prompt = system_prompt(gym.template, cell.persona) + _QUESTION
        total.add(cell.runs * cell.questions, prompt, ANSWER_TOKENS)
    return total.estimate(Stage.GENERATION, model)


def _judgements(gym: GymSpec, judge: Model, cells: Sequence[GymCell]) -> StageEstimate:
    total = _Sum()
    for cell in cells:
        answers, persona = cell.runs * cell.questions, cell.persona.description
        rubric = rubric_prompt(
            gym.prompts,
            cell.task.task,
            persona=persona,
            question=_QUESTION,
            exemplars=_EXEMPLARS,
            response=_ANSWER,
        )
        total.add(answers, rubric, GRADE_TOKENS)
        if cell.task.atomic:
            prompt = sentence_prompt(
                gym.prompts, gym.dimension, persona=persona, question=_QUESTION, unit_text=_UNIT
            )
            total.add(answers * cell.task.expected_units, prompt, VERDICT_OUTPUT_TOKENS)
    return total.estimate(Stage.JUDGING, judge)


def merged(estimates: Sequence[StageEstimate]) -> list[StageEstimate]:
    """One estimate for each stage and model, stage by stage."""
    groups: dict[tuple[Stage, str], list[StageEstimate]] = {}
    for each in estimates:
        groups.setdefault((each.stage, each.model.label), []).append(each)
    order = list(Stage)
    return [_summed(groups[key]) for key in sorted(groups, key=lambda key: order.index(key[0]))]


def _summed(estimates: Sequence[StageEstimate]) -> StageEstimate:
    usage = Usage(sum(e.usage.input_tokens for e in estimates), sum(e.usage.output_tokens for e in estimates))
    return StageEstimate(estimates[0].stage, estimates[0].model, sum(e.calls for e in estimates), usage)
