"""From a job's request to its specification: looks every name up and says everything that is wrong, field by field."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.instrument import splits_alike
from app.domain.instruments.persona import Persona
from app.domain.instruments.task import AtomicTask, item_count, lacking
from app.domain.jobs.brought_answers import AskedQuestions, qa_responses
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.execution import Execution
from app.domain.jobs.personagym_resolve import (
    GivenStep,
    GymResolution,
    fields_given,
    options_given,
    resolve_gym,
)
from app.domain.jobs.plan import Cell, cells_of, control_cells_of, count_calls
from app.domain.jobs.problems import Problems
from app.domain.jobs.qa_request import QaIn
from app.domain.jobs.request import JobIn, ModelIn, ResponseIn, TaskIn, as_model
from app.domain.jobs.resolve_execution import check_execution
from app.domain.jobs.resolve_grouping import resolve_grouping
from app.domain.jobs.resolve_order_check import resolve_order_check
from app.domain.jobs.resolve_personas import PersonaResolver
from app.domain.jobs.resolve_responses import MAX_RUN, ResponsesPlacer, unanswered
from app.domain.jobs.resolve_rubrics import unknown_rubrics, unused_rubrics, with_rubrics
from app.domain.jobs.resolve_source import beside
from app.domain.jobs.resolve_verdicts import VerdictsPlacer, check_imported, imported_judge
from app.domain.jobs.source_request import UploadTextsIn
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.jobs.stored_texts import Chosen, choose, place
from app.domain.jobs.text_source import UploadedText
from app.domain.jobs.uneven_runs import uneven_runs
from app.domain.jobs.verdicts_request import ImportedJudgeIn
from app.domain.judging.constrained import check_reply_form
from app.domain.judging.hardening import key_problems
from app.domain.judging.imported import GivenUnits
from app.domain.judging.profiles import check_profiles
from app.domain.judging.refusal_check import RefusalCheck
from app.domain.personagym.task import GymTask
from app.domain.providers.model import Model, ModelParameters
from app.domain.providers.parameters import parameter_problems
from app.domain.providers.reuse import reuse_problems

T = TypeVar("T")

JUDGE_TEMPERATURE = 0.0
"""Atomic paper, appendix A.4."""

MAX_ITEMS = 200_000
"""Questions and contexts of all personas, each asked once in a run; a bound on what planning takes."""

NO_REASONER = Model("none", "", "none")
"""Of a job in which nothing has to be prepared."""

MAX_WRITERS = 50
"""Different authors of existing texts: as many as models."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A specification with its cells, the control arm's at the end, with where each existing text belongs, and with what else exists already."""

    spec: JobSpec
    cells: tuple[Cell, ...]
    provided: tuple[ProvidedResponse, ...]
    given: tuple[GivenStep, ...] = ()


def resolve(request: JobIn, catalog: Catalog, most_calls: int | None = None) -> Resolution:
    """Looks up every name of a request.

    Args:
        request: The job.
        catalog: What there is.
        most_calls: Calls that a job may plan; more are refused before its cells are made, which would take minutes.

    Raises:
        InvalidJobError: With one entry for each thing wrong.
    """
    return _Resolver(request, catalog, most_calls).resolve()


def beyond(calls: int, allowed: int) -> str:
    """What is said of a job that plans too many calls."""
    return f"the job plans about {calls:,} calls; this service allows {allowed:,}"


def look_up_model(given: ModelIn, catalog: Catalog) -> tuple[Model, str | None]:
    """The model that a request names, and what is wrong with it, if anything is."""
    connection, _, name = given.model.partition("/")
    problem = catalog.model_problem(connection, name)
    simulated = problem is None and catalog.is_simulated(connection)
    if not name:
        problem = f"{given.model!r} must have the form connection/model"
    id_, takes = catalog.connection_id(connection), catalog.takes(connection, name, given.family)
    if given.system == "in_user_turn" and takes.format == "completions":
        problem = "the connection's wire format has no system message; leave out `system`"
    label = given.label or given.model
    model = Model(label, id_, name, given.parameters, simulated, takes)
    return replace(model, system=given.system, profile=given.profile), problem


class _Resolver:
    """One resolution; collects errors so that the user mends them all at once."""

    def __init__(self, request: JobIn, catalog: Catalog, most_calls: int | None) -> None:
        self.most_calls = most_calls
        self.request = request
        self.catalog = catalog
        self.problems = Problems()
        self._fail = self.problems.fail
        self.texts: Iterable[tuple[str, ResponseIn | UploadedText]] = []
        self.asked = AskedQuestions((), ())

    def resolve(self) -> Resolution:
        self.chosen = self._chosen_texts()
        self._choose_versions()
        self._choose_rubrics()
        self.people = PersonaResolver(self.request, self.catalog, self.problems)
        dimensions = self.people.dimensions
        personas = self.people.personas(() if self.request.personas else self._of_source("personas"))
        tasks, gym_tasks = self._tasks()
        self._read_texts(personas, [task for _, task in gym_tasks])
        provided = self.request.responses is not None
        models = self._writers() if provided else self._models("models", self.request.models)
        if not provided and not self.request.models:
            self._fail("/models", "add at least one model, or give existing texts in responses")
        judges = self._judges()
        instructions = () if provided else self._instructions(needed=bool(tasks) or not gym_tasks)
        self._check_combinations(personas, tasks, dimensions, alone=not gym_tasks)
        gym = self._gym(gym_tasks, personas, graded=any(judge.imported is None for judge in judges))
        judged = bool(tasks) or (gym is not None and any(task.atomic for task in gym.spec.tasks))
        grouping = resolve_grouping(
            self.request.judging,
            self.request.seed,
            self.catalog.grouped,
            judges,
            judged=judged,
            fail=self._fail,
        )
        used = {trait.dimension for persona in personas for trait in persona.traits}
        of_traits = tuple(dimension for id_, dimension in dimensions.items() if id_ in used)
        order_check = resolve_order_check(
            self.request.judging, self.request.seed, of_traits, judged=judged, fail=self._fail
        )
        hardening = self.catalog.hardened if self.request.protocol == "hardened" else None
        self.problems.errors += key_problems(hardening, judges)
        if self.catalog.instrument.leave_out and any(judge.imported is not None for judge in judges):
            self._fail("/judging/leave_out", "imported verdicts are on all sentences: leave it out")
        self._check_control()
        called = [judge for judge in judges if judge.imported is None]
        check_reply_form(
            self.request.judging.reply,
            called,
            self._fail,
            grouped=grouping is not None,
            hardened=hardening is not None,
        )
        profiled = {
            n: self.catalog.profiles[judge.profile] for n, judge in enumerate(judges) if judge.profile
        }
        check_profiles(
            profiled,
            of_traits if tasks else (),
            [task.id for _, task in gym_tasks if task.rubric],
            self._fail,
            grouped=grouping is not None,
            hardened=hardening is not None,
            constrained=self.request.judging.reply != "text",
        )
        self.problems.errors += reuse_problems(self.request.wanted_reuse, called, provided=provided)
        self.problems.raise_if_any()

        spec = JobSpec(
            personas=tuple(personas),
            dimensions=of_traits,
            tasks=tuple(tasks),
            models=tuple(models),
            judges=tuple(judges),
            instructions=instructions,
            iterations=self.request.iterations,
            seed=self.request.seed,
            instrument=self.catalog.instrument,
            provided=provided,
            gym=None if gym is None else gym.spec,
            grouping=grouping,
            reuse=replace(self.request.wanted_reuse, max_age_days=self.catalog.reply_days),
            execution=Execution(self.request.execution),
            hardening=hardening,
            order_check=order_check,
            repair=self.catalog.repair if called and self.request.judging.repair else None,
            reply=self.request.judging.reply,
            profiles={profile.id: profile for profile in profiled.values()},
            refusal_check=self._refusal_check(called, provided=provided),
            checks_every_text=self.request.judging.refusals == "judge_all",
            control=self.request.controls.without_persona,
            opposite=self.request.controls.opposite_persona,
            source=None if self.chosen is None else self.chosen.source_for(personas),
        )
        check_execution(spec, self.catalog.batch_problem, self._fail)
        if spec.runs > MAX_RUN:
            self._fail("/iterations", f"instructions × iterations = {spec.runs} runs; at most {MAX_RUN}")
        calls = 0 if provided else count_calls(spec)
        if self.most_calls is not None and calls > self.most_calls:
            self._fail("", beyond(calls, self.most_calls))
            self.problems.raise_if_any()
        cells = cells_of(spec)
        spec, placed = self._placed(spec, cells)
        self.problems.raise_if_any()
        cells += control_cells_of(spec, len(cells))
        return Resolution(spec, cells, placed, () if gym is None else gym.given)

    def _chosen_texts(self) -> Chosen | None:
        """The stored texts that the request names; what they are of can then be named, or left out."""
        wanted, offered = self.request.source, self.catalog.kept.texts
        if wanted is None:
            return None
        if isinstance(offered, str):
            self._fail("/responses/job", offered)
            self.problems.raise_if_any()
            return None
        chosen = choose(offered, wanted, self._fail)
        self.problems.raise_if_any()
        self.catalog = beside(self.catalog, self.request, chosen)
        return chosen

    def _of_source(self, field: str) -> list[Any]:
        """The personas or tasks of the stored texts, for a request that leaves them out."""
        if self.chosen is None:
            self._fail(f"/{field}", "is required")
            return []
        found: list[Any] = getattr(self.chosen, field)
        return found

    def _check_control(self) -> None:
        if self.request.controls.without_persona and self.request.responses is not None:
            self._fail(
                "/control" if self.request.control is True else "/control/without_persona",
                "is only for models that the job asks: leave it out, or leave out responses",
            )

    def _refusal_check(self, called: Sequence[Model], *, provided: bool) -> RefusalCheck | None:
        wanted = self.request.judging.refusals
        if wanted == "rules":
            return None
        if provided or not called:
            self._fail(
                "/judging/refusals",
                f"{wanted} is only for texts that the job's models write, with a judge that is called: use rules",
            )
        return self.catalog.refusal_check

    def _choose_versions(self) -> None:
        """Has the catalog's instruments name the versions that the request chose, with which the specification freezes them."""
        chosen = self.request.chosen_versions
        if (
            self.chosen is not None
            and chosen.get("refusals", kept := self.chosen.of.instrument.refusals) != kept
        ):
            self._fail(
                "/versions/refusals", f"refusals of job {self.chosen.source.job} stay what they were: {kept}"
            )
        for kind, name in chosen.items():
            known = self.catalog.rules.known[kind]
            if name not in known:
                self._fail(f"/versions/{kind}", f"unknown version {name!r}; known: {', '.join(known)}")
        rules = self.request.chosen_rules
        self.catalog = replace(
            self.catalog,
            instrument=replace(self.catalog.instrument, **rules),
            gym=replace(self.catalog.gym, instrument=replace(self.catalog.gym.instrument, **rules)),
        )

    def _choose_rubrics(self) -> None:
        """Has a rubric set's words take the place of the instruments'."""
        named = self.request.rubrics
        if named is None:
            return
        words = self.catalog.kept.rubrics.get(named)
        if words is None:
            self._fail("/rubrics", unknown_rubrics(named))
            return
        self.catalog = with_rubrics(self.catalog, words)
        ids = {task.task if isinstance(task, TaskIn) else task for task in self.request.tasks}
        if not ids and self.chosen is not None:
            ids = {text.task for text in self.chosen.texts}
        self.problems.errors += unused_rubrics(self.request, ids, words, self.catalog)

    # -- tasks, models, instructions --------------------------------------------------------------------------

    def _tasks(self) -> tuple[list[AtomicTask], list[tuple[int, GymTask]]]:
        """The atomic tasks, and PersonaGym's with their positions in the request."""
        found: list[AtomicTask] = []
        of_gym: list[tuple[int, GymTask]] = []
        if not self.request.tasks:
            found = [self.catalog.tasks[task.id] for task in self._of_source("tasks")]
            if self.chosen is None:
                return found, of_gym
            # What is said of PersonaGym's tasks is said as a request would.
            self.request = self.request.model_copy(update={"tasks": self.chosen.gym_tasks})
            return found, [(n, task) for n, task in enumerate(self._source_gym_tasks()) if task is not None]
        ids = [task.task if isinstance(task, TaskIn) else task for task in self.request.tasks]
        for n, (id_, again) in enumerate(_with_repeats(ids)):
            pointer = f"/tasks/{n}/task" if isinstance(self.request.tasks[n], TaskIn) else f"/tasks/{n}"
            if again:
                self._fail(pointer, f"duplicate task {id_!r}")
            elif id_ in self.catalog.tasks:
                found.append(self.catalog.tasks[id_])
                for option in options_given(self.request.tasks[n]):
                    self._fail(
                        f"/tasks/{n}/{option}", f"is only for PersonaGym's tasks, and {id_!r} is not one"
                    )
            elif id_ in self.catalog.gym.tasks:
                of_gym.append((n, self.catalog.gym.tasks[id_]))
            else:
                known = [*self.catalog.tasks, *self.catalog.gym.tasks]
                meant = self.problems.suggestion(id_, known) or f"; known: {', '.join(known)}"
                self._fail(pointer, f"unknown task {id_!r}{meant}")
        return found, of_gym

    def _source_gym_tasks(self) -> Iterator[GymTask | None]:
        """PersonaGym's tasks of the stored texts, in the words of this job's rubrics; ``None`` for those that these lack."""
        for wanted in self.chosen.gym_tasks if self.chosen is not None else ():
            task = self.catalog.gym.tasks.get(wanted.task)
            if task is None:
                self._fail("/rubrics", f"name the rubric set that has the source's task {wanted.task!r}")
            yield task

    def _gym(
        self, tasks: list[tuple[int, GymTask]], personas: list[Persona], *, graded: bool
    ) -> GymResolution | None:
        """The PersonaGym part, if the job has one; ``graded`` if a judge is called, for whom a reasoner has to write exemplars."""
        reasoner = (
            self._model("/reasoner", self.request.reasoner) if self.request.reasoner is not None else None
        )
        if reasoner is None and self.chosen is not None and self.chosen.of.gym is not None:
            reasoner = self.chosen.of.gym.reasoner
            reasoner = reasoner if reasoner.connection else None  # of imported grades nobody was needed
        if tasks:
            brought = None
            if self.request.responses is not None:
                brought = self.asked.by_persona(personas, [task.id for _, task in tasks])
                reasoner = reasoner or (None if graded else NO_REASONER)
            return resolve_gym(
                self.request,
                self.catalog.gym,
                self.catalog.kept.questions,
                known_exemplars=self.catalog.kept.exemplars,
                tasks=tasks,
                personas=personas,
                reasoner=reasoner,
                brought=brought,
                pointer_of=self._pointer_of,
                fail=self._fail,
            )
        for field in fields_given(self.request):
            self._fail(f"/{field}", "is only for PersonaGym's tasks, and the job has none")
        return None

    def _models(self, field: str, given: Iterable[str | ModelIn | ImportedJudgeIn]) -> list[Model]:
        found: list[Model] = []
        labels: set[str] = set()
        for n, each in enumerate(given):
            if isinstance(each, ImportedJudgeIn):
                model = imported_judge(each)
            else:
                model = self._model(f"/{field}/{n}", each)
                model = at_temperature_zero(model) if field == "judges" else model
            if model.label in labels:
                message = f"{model.label!r} is named more than once; give one of them a label"
                self._fail(f"/{field}/{n}", message)
            labels.add(model.label)
            found.append(model)
        return found

    def _judges(self) -> list[Model]:
        named = self.request.judges or self.catalog.judges
        judges = self._models("judges", named)
        check_imported(self.request, judges, self._fail)
        if not named:
            self._fail("/judges", "add at least one judge: this installation has no default judges")
        return judges

    def _model(self, pointer: str, given: str | ModelIn) -> Model:
        model, problem = look_up_model(as_model(given), self.catalog)
        if problem is not None:
            self._fail(pointer, problem)
        elif model.takes is not None:
            for name, wrong in parameter_problems(model.parameters, model.takes):
                self._fail(f"{pointer}/{name}", wrong)
        known = self.catalog.profiles
        if model.profile is not None and not pointer.startswith("/judges/"):
            self._fail(f"{pointer}/profile", "is only for judges")
        elif model.profile is not None and model.profile not in known:
            self._fail(f"{pointer}/profile", f"unknown profile {model.profile!r}; known: {', '.join(known)}")
            model = replace(model, profile=None)
        return model

    def _writers(self) -> list[Model]:
        """Those who wrote the existing texts, in the order in which they first appear. They are never called."""
        if self.request.models:
            self._fail("/models", "give either models or responses, not both")
        if self.request.instructions != "all":
            self._fail("/instructions", "has no effect on existing texts")
        if self.chosen is not None:
            return self.chosen.models
        labels = dict.fromkeys(response.model for _, response in self.texts)
        if self.request.responses == []:
            self._fail("/responses", "give at least one response")
        if len(labels) > MAX_WRITERS:
            beyond_most = list(labels)[MAX_WRITERS]
            pointer = next(pointer for pointer, response in self.texts if response.model == beyond_most)
            self._fail(f"{pointer}/model", f"at most {MAX_WRITERS} different models can be compared")
        return [Model(label, "", label) for label in labels]

    def _instructions(self, *, needed: bool) -> tuple[str, ...]:
        if not needed:
            if self.request.instructions != "all":
                self._fail(
                    "/instructions", "is only for atomic tasks; PersonaGym's tasks use gym_instruction"
                )
            return ()
        if self.request.instructions == "all":
            return self.catalog.instructions
        found: list[str] = []
        for n, (chosen, again) in enumerate(_with_repeats(self.request.instructions)):
            pointer = f"/instructions/{n}"
            if again:
                self._fail(pointer, f"duplicate instruction {chosen!r}")
            elif isinstance(chosen, str):
                if "{persona}" not in chosen:
                    self._fail(pointer, "must contain {persona}; control also asks models without a persona")
                found.append(chosen)
            elif not 0 <= chosen < len(self.catalog.instructions):
                self._fail(pointer, f"instructions are numbered 0 to {len(self.catalog.instructions) - 1}")
            else:
                found.append(self.catalog.instructions[chosen])
        return tuple(found)

    def _check_combinations(
        self,
        personas: list[Persona],
        tasks: list[AtomicTask],
        dimensions: Mapping[str, Dimension],
        *,
        alone: bool,
    ) -> None:
        """Every persona must be measurable by every task, and all of it small enough to be laid out.

        Beside PersonaGym's tasks (not ``alone``), personas without traits are left to those.
        """
        items = 0
        for persona in personas:
            pointer = self._pointer_of(persona.id)
            if alone and tasks and not persona.traits:
                self._fail(
                    pointer,
                    f"persona {persona.id!r} has no traits, but {_listed(tasks)} measures traits: "
                    'add for example "traits": {"E": "low"}',
                )
            known = tuple(dimensions[t.dimension] for t in persona.traits if t.dimension in dimensions)
            for task in tasks if persona.traits else ():
                for dimension in known:
                    if needed := lacking(task, dimension):
                        self._fail(
                            pointer,
                            f"task {task.id!r} can't measure persona {persona.id!r} on dimension {dimension.id!r}: "
                            f"the dimension has no {needed}",
                        )
                items += item_count(task, known)
        if tasks and not alone and not any(persona.traits for persona in personas):
            self._fail("/personas", f"{_listed(tasks)} measures traits, but no persona has any")
        if items > MAX_ITEMS:
            self._fail("/personas", f"{items:,} questions and contexts per run; at most {MAX_ITEMS:,}")

    def _pointer_of(self, persona_id: str) -> str:
        return self.people.pointers[persona_id]

    # -- existing texts ---------------------------------------------------------------------------------------

    def _read_texts(self, personas: list[Persona], gym_tasks: list[GymTask]) -> None:
        """The existing texts of the body, each with where it stands, and the questions that they name."""
        sent = self.request.responses
        if isinstance(sent, QaIn):
            self.texts = qa_responses(sent, personas, gym_tasks, self._fail)
        elif isinstance(sent, list):
            self.texts = [(f"/responses/{n}", response) for n, response in enumerate(sent)]
        elif isinstance(sent, UploadTextsIn):
            self.texts = self._uploaded_texts()
        texts = (text for _, text in self.texts) if self.chosen is None else self.chosen.texts
        self.asked = AskedQuestions(texts, {task.id for task in gym_tasks})

    def _uploaded_texts(self) -> Iterable[tuple[str, UploadedText]]:
        found = self.catalog.kept.uploaded
        if isinstance(found, str):
            self._fail("/responses/upload", found)
            self.problems.raise_if_any()
            return []
        for pointer, problem in found.problems(self.catalog.instrument):
            self._fail(pointer, problem)
        return found

    def _placed(self, spec: JobSpec, cells: tuple[Cell, ...]) -> tuple[JobSpec, tuple[ProvidedResponse, ...]]:
        """The specification with what existing texts add to it, and where each of them belongs."""
        verdicts = VerdictsPlacer(spec.judges, self._fail)
        if self.chosen is None:
            placed = ResponsesPlacer(self.asked, verdicts, self._fail).place(self.texts, spec, cells)
            spec = replace(spec, uneven_runs=uneven_runs(placed))
            placed += unanswered(spec, cells, placed)
        else:
            placed = place(self.chosen.texts, spec, cells, self.asked, self._fail)
        return replace(spec, given_units=self._given_units(spec, verdicts)), placed

    def _given_units(self, spec: JobSpec, verdicts: VerdictsPlacer) -> GivenUnits | None:
        """What is judged that the segmenter did not find; stored texts that are not split anew keep what they had."""
        if self.chosen is None:
            return verdicts.given_units()
        source = self.chosen.of
        return source.given_units if splits_alike(source.instrument, spec.instrument) else None


def at_temperature_zero(judge: Model) -> Model:
    """Judges run at temperature 0 unless their user decided otherwise."""
    if judge.parameters.temperature is not None or "temperature" in judge.parameters.unset:
        return judge
    parameters: ModelParameters = replace(judge.parameters, temperature=JUDGE_TEMPERATURE)
    return replace(judge, parameters=parameters)


def _listed(tasks: list[AtomicTask]) -> str:
    return ", ".join(task.id for task in tasks)


def _with_repeats(values: Iterable[T]) -> Iterable[tuple[T, bool]]:
    """Each value, with whether it stood earlier."""
    seen: set[T] = set()
    for value in values:
        yield value, value in seen
        seen.add(value)
