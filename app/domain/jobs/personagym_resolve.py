"""From a job's request to its PersonaGym part: looks every name up and says everything that is wrong, field by field."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.domain.errors import escape_pointer
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.persona import Persona
from app.domain.jobs.imports import persona_of_file, read_question_file
from app.domain.jobs.request import JobIn, TaskIn
from app.domain.personagym.exemplars import exemplar_key, given_key
from app.domain.personagym.released import hash_of_questions
from app.domain.personagym.specification import QUESTIONS, GymSpec, GymTaskSpec, with_sampling
from app.domain.personagym.task import Environment, GymPrompts, GymTask
from app.domain.providers.model import Model

Asked = Mapping[str, Mapping[str, Sequence[str]]]
"""Questions by task by persona."""
KeptQuestions = Mapping[str, Asked]
"""Those of the tenant's question sets, by their ids."""
BroughtQuestions = dict[str, dict[str, tuple[str, ...]]]
"""Those that existing answers are to, by persona id and task id."""
Fail = Callable[[str, str], None]
"""Notes what is wrong: JSON pointer and message."""


@dataclass(frozen=True, slots=True)
class GymCatalog:
    """What a request's PersonaGym names can refer to.

    Attributes:
        instrument: The version of the words below.
        tasks: Tasks by id.
        prompts: The templates.
        environments: The built-in pool.
        dimension: Persona consistency of single sentences.
        target_level: Its level that is in character.
        released_questions: Hashes of the questions that PersonaGym's authors released.
    """

    instrument: InstrumentRef
    tasks: Mapping[str, GymTask]
    prompts: GymPrompts
    environments: tuple[Environment, ...]
    dimension: Dimension
    target_level: str
    released_questions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GivenStep:
    """Environments or questions that need not be made, because they were given.

    Attributes:
        person: Index of the persona.
        kind: ``"environments"``, ``"questions"`` or ``"exemplars"``.
        task: The task's id; empty for environments.
        content: The names or the questions.
        item: The question's index, of exemplars.
        kept: Key of the exemplars in the question set, whose content it is.
    """

    person: int
    kind: str
    task: str
    content: tuple[str, ...]
    item: int = 0
    kept: str = ""


@dataclass(frozen=True, slots=True)
class GymResolution:
    """A PersonaGym part and what was given with it."""

    spec: GymSpec
    given: tuple[GivenStep, ...]


OWN_INSTRUCTION = "own"
"""Id of a persona instruction that the job wrote itself."""

OPTIONS = ("atomic", "questions", "questions_per_environment", "runs")
"""What only PersonaGym's tasks take: fields of ``TaskIn``."""

FIELDS = ("reasoner", "questions", "environments", "environment_pool", "gym_instruction")
"""Likewise, fields of ``JobIn``."""


def options_given(task: str | TaskIn) -> list[str]:
    """The options that a task was given."""
    return [] if isinstance(task, str) else [name for name in OPTIONS if getattr(task, name) is not None]


def fields_given(request: JobIn) -> list[str]:
    """The fields of a job that have an effect on PersonaGym's tasks only."""
    return [name for name in FIELDS if getattr(request, name) is not None]


def resolve_gym(
    request: JobIn,
    catalog: GymCatalog,
    kept: KeptQuestions,
    *,
    known_exemplars: Collection[str],
    tasks: Sequence[tuple[int, GymTask]],
    personas: Sequence[Persona],
    reasoner: Model | None,
    brought: BroughtQuestions | None,
    pointer_of: Callable[[str], str],
    fail: Fail,
) -> GymResolution | None:
    """The PersonaGym part of a job that has such tasks.

    Args:
        request: The job.
        catalog: What its names can refer to.
        kept: The question sets that it may name.
        known_exemplars: Keys of the exemplars that the named question set has.
        tasks: The PersonaGym tasks, each with its position in the request.
        personas: The personas, looked up.
        reasoner: The reasoner, looked up.
        brought: The questions of existing answers, of all personas and tasks; ``None`` if the models still have to answer.
        pointer_of: Where a persona stands in the job's body.
        fail: Notes what is wrong.

    Returns:
        ``None`` if the job has no reasoner; wrong fields are noted.
    """
    _check_personas(personas, pointer_of, fail)
    if brought is None:
        questions = _Questions(request, catalog, kept, tasks, personas, fail).given()
    else:
        questions = brought
        _refuse_asking(request, [n for n, _ in tasks], fail)
    specs = tuple(_task(request.tasks[n], task) for n, task in tasks)
    environments = _environments(request, personas, fail)
    numbers = {id_: {task: len(found) for task, found in of.items()} for id_, of in questions.items()}
    if reasoner is None:
        writes = "questions and exemplars" if brought is None else "exemplars"
        fail("/reasoner", f"PersonaGym's tasks need a reasoner, which writes their {writes}")
        return None
    instruction, prompts = _instruction(request, catalog.prompts, fail)
    spec = GymSpec(
        tasks=specs,
        prompts=prompts,
        instruction=instruction,
        pool=_pool(request, catalog, fail),
        own_pool=request.environment_pool is not None,
        dimension=catalog.dimension,
        target_level=catalog.target_level,
        reasoner=with_sampling(reasoner),
        instrument=catalog.instrument,
        environments=environments,
        questions=numbers,
        released_questions=_released(personas, questions, catalog.released_questions),
    )
    if brought is None:
        _check_effects(request, spec, personas, [n for n, _ in tasks], fail)
    exemplars = list(_kept_exemplars(spec, personas, questions, known_exemplars))
    spec = _with_exemplars(spec, personas, exemplars)
    return GymResolution(spec, (*_given(spec, personas, questions), *(step for step, _ in exemplars)))


def _refuse_asking(request: JobIn, positions: Sequence[int], fail: Fail) -> None:
    """Refuses what only matters where models still have to be asked: existing answers bring their questions along."""
    message = "has no effect on existing texts"
    for field in fields_given(request):
        if field != "reasoner":
            fail(f"/{field}", message)
    for n in positions:
        for option in options_given(request.tasks[n]):
            if option != "atomic":
                fail(f"/tasks/{n}/{option}", message)


def _task(given: str | TaskIn, task: GymTask) -> GymTaskSpec:
    if isinstance(given, str):
        return GymTaskSpec(task)
    return GymTaskSpec(
        task,
        questions=QUESTIONS if given.questions is None else given.questions,
        per_environment=bool(given.questions_per_environment),
        runs=1 if given.runs is None else given.runs,
        atomic=bool(given.atomic),
    )


def _check_personas(personas: Sequence[Persona], pointer_of: Callable[[str], str], fail: Fail) -> None:
    """Questions belong to a description, so two personas must not share one."""
    seen: dict[str, str] = {}
    for persona in personas:
        description = persona.description.strip()
        if description in seen:
            fail(
                pointer_of(persona.id),
                f"persona {persona.id!r} has the same description as {seen[description]!r}; PersonaGym's questions"
                " are made for a description",
            )
        seen[description] = persona.id


def _instruction(request: JobIn, prompts: GymPrompts, fail: Fail) -> tuple[str, GymPrompts]:
    """The instruction's id, and the templates with it among them if it is the job's own."""
    chosen = request.gym_instruction
    if chosen is None or chosen in prompts.instructions:
        return chosen or prompts.default_instruction, prompts
    if "{persona}" not in chosen:
        known = ", ".join(prompts.instructions)
        fail(
            "/gym_instruction",
            f"unknown instruction {chosen[:100]!r}; known: {known}; a text of your own must contain {{persona}}"
            " (control asks without a persona)",
        )
    return OWN_INSTRUCTION, replace(prompts, instructions={**prompts.instructions, OWN_INSTRUCTION: chosen})


def _pool(request: JobIn, catalog: GymCatalog, fail: Fail) -> tuple[str, ...]:
    if request.environment_pool is None:
        return tuple(environment.name for environment in catalog.environments)
    _check_names(request.environment_pool, "/environment_pool", fail)
    return tuple(request.environment_pool)


def _environments(request: JobIn, personas: Sequence[Persona], fail: Fail) -> dict[str, tuple[str, ...]]:
    given = request.environments
    if given is None:
        return {}
    if isinstance(given, list):
        _check_names(given, "/environments", fail)
        return {persona.id: tuple(given) for persona in personas}
    known = {persona.id for persona in personas}
    for id_, names in given.items():
        pointer = f"/environments/{escape_pointer(id_)}"
        if id_ not in known:
            fail(pointer, f"the job has no persona {id_!r}")
        _check_names(names, pointer, fail)
    return {id_: tuple(names) for id_, names in given.items()}


def _check_names(names: Sequence[str], pointer: str, fail: Fail) -> None:
    if not names:
        fail(pointer, "add at least one environment")
    seen: set[str] = set()
    for n, name in enumerate(names):
        plain = " ".join(name.casefold().split())
        if plain in seen:
            fail(f"{pointer}/{n}", f"environment {name!r} is named more than once")
        seen.add(plain)


def _check_effects(
    request: JobIn, spec: GymSpec, personas: Sequence[Persona], positions: Sequence[int], fail: Fail
) -> None:
    """Refuses what would silently have no effect, because something else was given."""
    selecting = [p for p in personas if spec.needs_environments(p)]
    if not selecting:
        for name in ("environments", "environment_pool"):
            if getattr(request, name) is not None:
                fail(f"/{name}", "all questions are given, so environments have no effect")
    elif spec.own_pool and all(p.id in spec.environments for p in selecting):
        fail("/environment_pool", "all environments are given, so nothing is selected from the pool")
    for n, task in zip(positions, spec.tasks, strict=True):
        given = [len_ for p in personas if (len_ := spec.questions.get(p.id, {}).get(task.id)) is not None]
        options = options_given(request.tasks[n])
        if "questions" in options and any(number != task.questions for number in given):
            numbers = " or ".join(map(str, sorted(set(given))))
            fail(f"/tasks/{n}/questions", f"{numbers} questions are given for task {task.id!r}")
        elif task.per_environment and len(given) == len(personas):
            fail(f"/tasks/{n}/questions_per_environment", f"all questions of task {task.id!r} are given")


def _given(
    spec: GymSpec, personas: Sequence[Persona], questions: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> Iterator[GivenStep]:
    for n, persona in enumerate(personas):
        if persona.id in spec.environments and spec.needs_environments(persona):
            yield GivenStep(n, "environments", "", spec.environments[persona.id])
        for task, found in questions.get(persona.id, {}).items():
            yield GivenStep(n, "questions", task, found)


def _released(
    personas: Sequence[Persona], questions: Mapping[str, Mapping[str, Sequence[str]]], known: Collection[str]
) -> int:
    """For how many pairs of persona and task the questions are released ones."""
    return sum(
        hash_of_questions(persona.description.strip(), task, asked) in known
        for persona in personas
        for task, asked in questions.get(persona.id, {}).items()
    )


def _kept_exemplars(
    spec: GymSpec,
    personas: Sequence[Persona],
    questions: Mapping[str, Mapping[str, Sequence[str]]],
    known: Collection[str],
) -> Iterator[tuple[GivenStep, bool]]:
    """The exemplars that the question set has for this job, each with whether somebody brought them."""
    if not known:
        return
    for person, persona in enumerate(personas):
        who = persona.description.strip()
        for task in spec.tasks:
            for n, question in enumerate(questions.get(persona.id, {}).get(task.id, ())):
                given = given_key(who, task.id, question)
                made = exemplar_key(spec.prompts, task.task, who, question, spec.reasoner)
                key = next((each for each in (given, made) if each in known), None)
                if key is not None:
                    yield GivenStep(person, "exemplars", task.id, (), n, key), key == given


def _with_exemplars(
    spec: GymSpec, personas: Sequence[Persona], exemplars: Iterable[tuple[GivenStep, bool]]
) -> GymSpec:
    """The specification that says how many exemplars there are already."""
    counts: dict[str, Counter[str]] = {}
    brought = 0
    for step, given in exemplars:
        counts.setdefault(personas[step.person].id, Counter())[step.task] += 1
        brought += given
    plain = {persona: dict(of_task) for persona, of_task in counts.items()}
    return replace(spec, exemplars=plain, given_exemplars=brought)


class _Questions:
    """Places given questions at the job's personas and tasks."""

    def __init__(
        self,
        request: JobIn,
        catalog: GymCatalog,
        kept: KeptQuestions,
        tasks: Sequence[tuple[int, GymTask]],
        personas: Sequence[Persona],
        fail: Fail,
    ) -> None:
        self._asked = request.questions
        self._kept = kept
        self._all_tasks = tuple(catalog.tasks.values())
        self._tasks = {task.id for _, task in tasks}
        self._by_description = {persona.description.strip(): persona.id for persona in personas}
        self._by_name = self._by_description | {persona.id: persona.id for persona in personas}
        self._note = fail
        self._failed = False

    def given(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Questions by task id by persona id, of the job's personas and tasks."""
        asked = self._asked
        if asked is None:
            return {}
        by_persona = self._kept.get(asked) if isinstance(asked, str) else asked
        if by_persona is None:
            self._fail("/questions", f"unknown question set {asked!r}")
            return {}
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for name, by_task in by_persona.items():
            id_ = self._persona(name)
            pointer = f"/questions/{escape_pointer(name)}"
            if id_ is None:
                self._unknown(pointer, f"the job has no persona of that id or description: {name!r}")
            elif id_ in found:
                self._fail(pointer, f"duplicate persona {id_!r}")
            else:
                found[id_] = self._by_task(by_task, pointer)
        if not any(found.values()) and not self._failed:
            self._fail("/questions", "no question belongs to a persona and a task of this job")
        return found

    def _persona(self, name: str) -> str | None:
        """Whom questions are for. A stored set knows descriptions only, which may read like another persona's id."""
        if isinstance(self._asked, str):
            return self._by_description.get(name)
        return self._by_name.get(name.strip()) or self._by_name.get(persona_of_file(name))

    def _fail(self, pointer: str, message: str) -> None:
        self._failed = True
        self._note(pointer, message)

    def _unknown(self, pointer: str, message: str) -> None:
        if not isinstance(self._asked, str):  # a stored set may cover more than one job
            self._fail(pointer, message)

    def _by_task(self, by_task: Mapping[str, Sequence[str]], pointer: str) -> dict[str, tuple[str, ...]]:
        if isinstance(self._asked, str):  # it may have tasks of a rubric set that this job does not name
            known = {task.id for task in self._all_tasks}
            by_task = {task: asked for task, asked in by_task.items() if task in known}
            if not by_task:
                return {}
        file = read_question_file(by_task, self._all_tasks)
        for error in file.errors:
            self._fail(f"{pointer}{error.pointer}", error.message)
        return {task: asked for task, asked in file.questions.items() if task in self._tasks}
