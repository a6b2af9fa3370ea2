"""A job as its user describes it: well-formed, but with names that nothing has looked up yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain.jobs.budget import Budget
from app.domain.jobs.execution import Execution
from app.domain.jobs.priority import Priority
from app.domain.judging.grouping import CHECK_MINIMUM, CHECK_SHARE
from app.domain.providers.model import ModelParameters
from app.domain.providers.reuse import NO_REUSE, Reuse


@dataclass(frozen=True, slots=True)
class PersonaDraft:
    """A persona written out in the job itself."""

    id: str
    description: str
    traits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScaleDraft:
    """A user-defined dimension's scale; see :class:`app.domain.instruments.dimension.Scale`."""

    minimum: int = 1
    maximum: int = 5
    not_applicable: int = 9


@dataclass(frozen=True, slots=True)
class DimensionDraft:
    """A dimension defined in the job itself; see :class:`app.domain.instruments.dimension.Dimension`."""

    id: str
    name: str
    options: str
    scale: ScaleDraft = field(default_factory=ScaleDraft)
    levels: tuple[str, ...] = ("low", "neutral", "high")
    questions: tuple[str, ...] = ()
    essay_context: str | None = None


@dataclass(frozen=True, slots=True)
class ModelDraft:
    """A model by its ``connection/name``, with its parameters.

    Attributes:
        model: ``connection/name``.
        label: How results shall name it; the same as ``model`` unless given.
        parameters: How it is sampled.
        family: A name by which its family is known, where its own says nothing.
    """

    model: str
    label: str | None = None
    parameters: ModelParameters = field(default_factory=ModelParameters)
    family: str | None = None


@dataclass(slots=True)
class ResponseDraft:
    """A text that already exists and is only to be judged. Not frozen, as a job may bring 200,000; nobody changes one.

    Attributes:
        persona: Id of one of the job's personas.
        task: Id of one of the job's tasks.
        text: The response. Untrusted text.
        item: The item's id, for example ``"E-3"``; may be left out where the cell has a single item.
        run: The repetition to which it belongs, from 0; numbered in the order given when left out.
        instruction: Number of the persona instruction (from 0) under which it was written, if known: pairs of runs that
            share one are compared apart in RC_atom.
        model: Who wrote it, as results shall name it.
    """

    persona: str
    task: str
    text: str
    item: str | None = None
    run: int | None = None
    instruction: int | None = None
    model: str = "provided"


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """A task with options that only PersonaGym's tasks take; ``None`` where an option was not given.

    Attributes:
        task: The task's id.
        atomic: Whether the answers' sentences are judged too.
        questions: How many questions are made up.
        questions_per_environment: Whether that many for each environment.
        runs: How often each question is answered.
    """

    task: str
    atomic: bool | None = None
    questions: int | None = None
    questions_per_environment: bool | None = None
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class GroupingDraft:
    """How sentences shall be grouped in judge calls; see :class:`app.domain.judging.grouping.Grouping`."""

    sentences: int
    check_share: float = CHECK_SHARE
    check_minimum: int = CHECK_MINIMUM


@dataclass(frozen=True, slots=True)
class QuestionsDraft:
    """Questions that exist already.

    Attributes:
        by_persona: Questions by task by persona. A persona goes by its id or its description, a task by its id or
            any of its names. ``None`` for a set that was not found.
        set_id: The question set from which they come, where they do; it may cover more than the job.
    """

    by_persona: Mapping[str, Mapping[str, tuple[str, ...]]] | None
    set_id: str | None = None


@dataclass(frozen=True, slots=True)
class JobDraft:
    """A job as it was asked for.

    Attributes:
        personas: Ids of personas or persona sets, or personas written out.
        tasks: Task ids, or tasks with options.
        judges: Who judges; if none is named, the installation's own.
        models: Models under test; empty where ``responses`` are given.
        responses: Existing texts to be judged; ``None`` where models generate them.
        dimensions: Dimensions beyond the built-in ones.
        instructions: ``None`` for all built-in instructions; else numbers of built-in ones (from 0) or texts that
            contain ``{persona}``.
        iterations: Repetitions under each instruction.
        seed: Seed of everything random on our side.
        reasoner: Who makes up what PersonaGym's tasks ask.
        questions: Questions that exist already.
        environments: Names of environments, for all personas or by persona id; ``None`` where they are selected.
        environment_pool: Names of the environments to select from; ``None`` for the built-in ones.
        gym_instruction: Id of PersonaGym's persona instruction; ``None`` for the usual one.
        persona_sets: The kept persona sets that ``personas`` names, as far as there are any, by their ids.
        reuse: Which calls are not made where there is a reply already.
        budget: What it may spend; ``None`` for no limit.
        priority: How it ranks among the other jobs of its tenant.
        grouping: How sentences are grouped in judge calls; ``None`` for one by one.
        execution: How its calls are made.
        hardened: Whether judges are told what of their prompts is data; else the prompts are the papers'.
        versions: The versions that it chose of the rules by which texts are read, by kind; of others the latest.
        confirmed_calls: How many planned calls are known to whoever submits it; ``None`` if none were named.
    """

    personas: tuple[str | PersonaDraft, ...]
    tasks: tuple[str | TaskDraft, ...]
    judges: tuple[ModelDraft, ...]
    models: tuple[ModelDraft, ...] = ()
    responses: tuple[ResponseDraft, ...] | None = None
    dimensions: tuple[DimensionDraft, ...] = ()
    instructions: tuple[int | str, ...] | None = None
    iterations: int = 5
    seed: int = 0
    reasoner: ModelDraft | None = None
    questions: QuestionsDraft | None = None
    environments: tuple[str, ...] | Mapping[str, tuple[str, ...]] | None = None
    environment_pool: tuple[str, ...] | None = None
    gym_instruction: str | None = None
    budget: Budget | None = None
    priority: Priority = Priority.NORMAL
    grouping: GroupingDraft | None = None
    execution: Execution = Execution.DIRECT
    persona_sets: Mapping[str, tuple[PersonaDraft, ...]] = field(default_factory=dict)
    reuse: Reuse = NO_REUSE
    hardened: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    confirmed_calls: int | None = None


@dataclass(frozen=True, slots=True)
class PersonaGenerationDraft:
    """A request for personas.

    Attributes:
        count: How many distinct ones.
        reasoner: Who makes them up.
    """

    count: int
    reasoner: ModelDraft
