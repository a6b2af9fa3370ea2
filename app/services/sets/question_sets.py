"""Question sets: immutable, named by their content, so that other models or later jobs answer the same questions."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.preparations import StoredStep
from app.db.sets import exemplars, sets
from app.db.sets.exemplars import KeptExemplars
from app.domain.errors import FieldError, InvalidJobError, escape_pointer
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.imports import persona_of_file, read_question_file
from app.domain.jobs.resolve_rubrics import unknown_rubrics, with_rubrics
from app.domain.jobs.rubrics import RubricContent
from app.domain.jobs.specification import JobSpec
from app.domain.personagym.exemplars import given_key, persona_order, place_of
from app.domain.personagym.task import GymTask, task_named
from app.domain.sets.contract import ExemplarsByPersona, QuestionSet, QuestionSetIn
from app.domain.sets.kinds import QUESTION_SET, RUBRIC_SET, set_id
from app.services.long_texts import on_a_thread
from app.services.sets.sets import find_set

Questions = dict[str, dict[str, list[str]]]
"""Questions by task by persona description."""


def question_set_id(content: Questions) -> str:
    """The id of a question set."""
    return set_id(QUESTION_SET, content)


def questions_of(spec: JobSpec, steps: Mapping[tuple[int, str], StoredStep]) -> Questions:
    """The content of a job's question set: what was prepared completely."""
    found: Questions = {}
    for (person, task), step in sorted(steps.items(), key=lambda entry: entry[0]):
        if step.status == "ready" and step.content:
            found.setdefault(spec.personas[person].description.strip(), {})[task] = list(step.content)
    return found


async def keep_questions(
    engine: AsyncEngine, tenant: str, given: QuestionSetIn, catalog: Catalog
) -> QuestionSet:
    """Keeps questions as a set and returns it; the first name that it got stays.

    Raises:
        InvalidJobError: If a task or the rubric set is unknown, a task is named twice, or a list is empty.
    """
    tasks = await _tasks(engine, tenant, given.rubrics, catalog)
    content, brought, id_ = await on_a_thread(tenant, partial(_read, given, tasks))
    async with engine.begin() as connection:
        await sets.keep_set(connection, QUESTION_SET, tenant, id_, content, name=given.name, posted=True)
        if brought:
            await exemplars.keep_given(connection, tenant, id_, brought)
    return await find_set(engine, QUESTION_SET, tenant, id_)


async def _tasks(
    engine: AsyncEngine, tenant: str, rubrics: str | None, catalog: Catalog
) -> Mapping[str, GymTask]:
    """PersonaGym's tasks, and those that a rubric set adds."""
    if rubrics is None:
        return catalog.gym.tasks
    async with engine.connect() as connection:
        words = await sets.find_set(connection, RUBRIC_SET, tenant, rubrics)
    if words is None:
        raise InvalidJobError([FieldError("/rubrics", unknown_rubrics(rubrics))])
    return with_rubrics(catalog, RubricContent(**words.content)).gym.tasks


def _read(given: QuestionSetIn, tasks: Mapping[str, GymTask]) -> tuple[Questions, list[KeptExemplars], str]:
    """A set's questions, exemplars and id; CPU only."""
    content = _normalised(given.questions, tasks)
    if given.exemplars is None:
        return content, [], question_set_id(content)
    brought = _exemplars(given.exemplars, content, tasks)
    by_place = {each.place: list(each.content) for each in brought}
    return content, brought, set_id(QUESTION_SET, {"questions": content, "exemplars": by_place})


def _exemplars(
    given: ExemplarsByPersona, content: Questions, tasks: Mapping[str, GymTask]
) -> list[KeptExemplars]:
    """The exemplars that came with questions, each where its question stands."""
    errors: list[FieldError] = []
    found: dict[str, KeptExemplars] = {}
    numbers = {who: n for n, who in enumerate(persona_order(content))}
    for name, by_task in given.items():
        who = persona_of_file(name)
        for task_name, of_questions in by_task.items():
            pointer = f"/exemplars/{escape_pointer(name)}/{escape_pointer(task_name)}"
            task = task_named(tasks.values(), task_name)
            asked = [] if task is None else content.get(who, {}).get(task.id, [])
            errors += _wrong_exemplars(pointer, asked, of_questions)
            for n, (question, texts) in enumerate(zip(asked, of_questions, strict=False)):
                place = place_of(numbers[who], task.id if task else "", n)
                if texts is not None and place in found:
                    errors.append(FieldError(f"{pointer}/{n}", "the question has exemplars already"))
                elif texts is not None:
                    key = given_key(who, task.id if task else "", question)
                    found[place] = KeptExemplars(place, key, None, texts)
    if not found and not errors:
        errors.append(FieldError("/exemplars", "has exemplars for no question"))
    if errors:
        raise InvalidJobError(errors)
    return [found[place] for place in sorted(found)]


def _wrong_exemplars(
    pointer: str, asked: Sequence[str], given: Sequence[Sequence[str] | None]
) -> Iterator[FieldError]:
    if not asked:
        yield FieldError(pointer, "the set has no questions for this persona and task")
    elif len(given) != len(asked):
        yield FieldError(pointer, f"must have {len(asked)} entries, one for each question, not {len(given)}")
    for n, texts in enumerate(given):
        if texts is not None and len({" ".join(text.split()) for text in texts}) != len(texts):
            yield FieldError(f"{pointer}/{n}", "must be five different texts")


def _normalised(questions: Mapping[str, Mapping[str, list[str]]], tasks: Mapping[str, GymTask]) -> Questions:
    """The questions by description and task id, so that the same questions are the same set whatever they are named by."""
    errors: list[FieldError] = []
    found: Questions = {}
    for name, by_task in questions.items():
        pointer = f"/questions/{escape_pointer(name)}"
        who = persona_of_file(name)
        file = read_question_file(by_task, tasks.values())
        errors += [FieldError(f"{pointer}{error.pointer}", error.message) for error in file.errors]
        if not who:
            errors.append(FieldError(pointer, "must use the persona's description as the key"))
        elif who in found:
            errors.append(FieldError(pointer, f"duplicate persona {who!r}"))
        found[who] = {task: list(asked) for task, asked in file.questions.items()}
    if errors:
        raise InvalidJobError(errors)
    return found
