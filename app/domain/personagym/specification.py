"""What a job does of PersonaGym, with every name looked up (PersonaGym paper, sections 3 and 4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.persona import Persona, Trait
from app.domain.instruments.task import Item
from app.domain.personagym.task import GymPrompts, GymTask
from app.domain.providers.model import Model

QUESTIONS = 10
"""Questions for each persona and task (section 4.1: 200 personas, 10,000 questions, five tasks)."""

SAMPLING = 0.9
"""Temperature and nucleus of the reasoner and of the persona agent, unless the model's own parameters say otherwise:
the paper's for environments and questions (section 4.1), ours for exemplars and answers, of which it says nothing."""

EXPECTED_ENVIRONMENTS = 5
"""Environments that a reasoner selects for a persona; used for estimates only."""

EXPECTED_UNITS = 8.0
"""Sentences of an answer; used for estimates only."""


@dataclass(frozen=True, slots=True)
class GymTaskSpec:
    """One of a job's PersonaGym tasks.

    Attributes:
        task: What it asks and how it grades.
        questions: How many questions, for each persona or, ``per_environment``, for each of its environments.
        per_environment: See ``questions``.
        runs: How often each question is answered.
        atomic: Whether the answers' sentences are judged too, for their consistency with the persona.
    """

    task: GymTask
    questions: int = QUESTIONS
    per_environment: bool = False
    runs: int = 1
    atomic: bool = False

    @property
    def id(self) -> str:
        """The task's id."""
        return self.task.id

    @property
    def expected_units(self) -> float:
        """Sentences of an average answer."""
        return EXPECTED_UNITS


@dataclass(frozen=True, slots=True)
class GymSpec:
    """A job's PersonaGym part.

    Attributes:
        tasks: The tasks.
        prompts: The templates.
        instruction: Id of the persona instruction among those of ``prompts``.
        pool: Names of the environments that the reasoner chooses from.
        own_pool: Whether the user gave the pool.
        dimension: Persona consistency, on which sentences are judged.
        target_level: The level of ``dimension`` that is in character.
        reasoner: Who selects environments and makes up questions and exemplars.
        instrument: Which version of the words.
        environments: Environments that the user gave, by persona id; the other personas' are selected.
        questions: How many questions the user gave, by persona id and task id; the others are made up. Of existing answers all
            are given, also where there are none.
        exemplars: Of how many questions the question set has the exemplars, likewise; the others are made up.
        given_exemplars: How many of these somebody brought; the others a reasoner made for an earlier job.
        released_questions: For how many pairs of persona and task the given questions are those that PersonaGym's authors released.
    """

    tasks: tuple[GymTaskSpec, ...]
    prompts: GymPrompts
    instruction: str
    pool: tuple[str, ...]
    own_pool: bool
    dimension: Dimension
    target_level: str
    reasoner: Model
    instrument: InstrumentRef
    environments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    questions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    exemplars: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    given_exemplars: int = 0
    released_questions: int = 0

    @property
    def template(self) -> str:
        """The persona instruction's template."""
        return self.prompts.instructions[self.instruction]

    def judged_as(self, persona: Persona, task: GymTaskSpec) -> Persona:
        """A persona with the traits on which its answers' sentences are judged: consistency, or none."""
        traits = (Trait(self.dimension.id, self.target_level),) if task.atomic else ()
        return replace(persona, traits=traits)

    def is_given(self, persona: Persona, task: GymTaskSpec) -> bool:
        """Whether the user gave the questions."""
        return task.id in self.questions.get(persona.id, {})

    def given_pairs(self, personas: Iterable[Persona]) -> int:
        """For how many pairs of persona and task the user gave the questions."""
        counts = (self.questions.get(persona.id, {}) for persona in personas)
        return sum(of_persona.get(task.id, 0) > 0 for of_persona in counts for task in self.tasks)

    def needs_environments(self, persona: Persona) -> bool:
        """Whether any of the persona's questions is still to be made up."""
        return not all(self.is_given(persona, task) for task in self.tasks)

    def question_count(self, persona: Persona, task: GymTaskSpec) -> tuple[int, bool]:
        """How many questions a task has for a persona, and whether that is known or estimated."""
        if self.is_given(persona, task):
            return self.questions[persona.id][task.id], True
        if not task.per_environment:
            return task.questions, True
        given = self.environments.get(persona.id)
        return task.questions * (len(given) if given else EXPECTED_ENVIRONMENTS), given is not None

    def questions_for(self, persona: Persona, task: GymTaskSpec, environments: int) -> int:
        """How many questions a task has for a persona that has so many environments."""
        if task.per_environment and not self.is_given(persona, task):
            return task.questions * environments
        return self.question_count(persona, task)[0]


def with_sampling(model: Model) -> Model:
    """The model, sampled as the paper's unless its own parameters say otherwise."""
    own = model.parameters
    parameters = replace(
        own,
        temperature=SAMPLING
        if own.temperature is None and "temperature" not in own.unset
        else own.temperature,
        top_p=SAMPLING if own.top_p is None and "top_p" not in own.unset else own.top_p,
    )
    return replace(model, parameters=parameters)


def question_item(number: int, questions: Sequence[str], dimensions: Sequence[Dimension]) -> Item:
    """A question as an item of its cell; its text is empty where the reasoner made up fewer.

    Args:
        number: Which question, from 0.
        questions: Those that there are.
        dimensions: The dimensions on which the answer's sentences are judged.
    """
    text = questions[number] if number < len(questions) else ""
    return Item(number, f"Q-{number + 1}", text, tuple(dimension.id for dimension in dimensions))
