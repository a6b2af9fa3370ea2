"""Checks the words of a rubric set, and puts them in place of the instruments' own for a job that names the set."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.domain.errors import FieldError, escape_pointer
from app.domain.instruments.task import AtomicTask, ItemSource
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.request import JobIn
from app.domain.jobs.rubrics import RubricContent, RubricSetIn, RubricTaskIn
from app.domain.personagym.task import GymTask, task_named

ATOMIC_FIELDS = ("items", "prompt", "scoring_prompt")
GYM_FIELDS = ("description", "guidelines", "question_criteria", "rubric")
_PLACEHOLDER = re.compile(r"\{( *[^\W\d][\w .-]*)\}")
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_FILE_NAME = re.compile(r"(?:\S*[/\\])?([^/\\]+)\.txt", re.IGNORECASE)
_OF_ITEM = {
    ItemSource.QUESTIONS: frozenset({"question"}),
    ItemSource.ESSAY_CONTEXT: frozenset({"context"}),
    ItemSource.COMMON: frozenset[str](),
}
_OF_RESPONSE = frozenset({"persona", "question", "response", "score_example"})
_OF_TASK = frozenset({"task", "task_description", "guidelines"})


@dataclass(frozen=True, slots=True)
class RubricsRead:
    """A rubric set's words by task id, or everything that is wrong with them."""

    content: RubricContent
    errors: tuple[FieldError, ...]


def read_rubrics(given: RubricSetIn, catalog: Catalog) -> RubricsRead:
    """The content of a rubric set: tasks by their ids, so that the same words are the same set however they are named.

    Args:
        given: The set as it was sent.
        catalog: The built-in tasks.
    """
    errors = [
        *_template("/rubric", given.rubric, _OF_RESPONSE | _OF_TASK),
        *_template("/score_examples", given.score_examples, frozenset({"persona", "question", "rubric"})),
    ]
    tasks: dict[str, dict[str, Any]] = {}
    for name, words in given.tasks.items():
        pointer = f"/tasks/{escape_pointer(name)}"
        task = RubricTaskIn(rubric=words) if isinstance(words, str) else words
        id_ = _task_id(name, catalog)
        if id_ in tasks:
            errors.append(FieldError(pointer, f"task {id_!r} is given more than once"))
        if _TASK_ID.fullmatch(id_) is None:
            message = "is no built-in task, and the ID of a new one has letters, digits and . _ : - only"
            errors.append(FieldError(pointer, message))
        else:
            errors += _task_errors(pointer, id_, task, catalog, text=isinstance(words, str))
        tasks[id_] = task.model_dump(mode="json", exclude_none=True)
    return RubricsRead(RubricContent(tasks, given.rubric, given.score_examples), tuple(errors))


def _task_id(name: str, catalog: Catalog) -> str:
    if name in catalog.tasks:
        return name
    file = _FILE_NAME.fullmatch(name.strip())
    plain = file[1] if file else name.strip()
    known = task_named(catalog.gym.tasks.values(), plain)
    return plain if known is None else known.id


def _task_errors(
    pointer: str, id_: str, task: RubricTaskIn, catalog: Catalog, *, text: bool
) -> Iterator[FieldError]:
    given = task.model_fields_set & {name for name, value in task if value is not None}
    own, wrong, kind = (
        (ATOMIC_FIELDS, GYM_FIELDS, "an atomic task")
        if id_ in catalog.tasks or (id_ not in catalog.gym.tasks and given & set(ATOMIC_FIELDS))
        else (GYM_FIELDS, ATOMIC_FIELDS, "a PersonaGym task")
    )
    if not given:
        yield FieldError(pointer, "give at least one field")
        return
    for name in sorted(given & set(wrong)):
        yield FieldError(pointer if text else f"{pointer}/{name}", f"is not for {kind}, and {id_!r} is one")
    if own is ATOMIC_FIELDS:
        yield from _atomic_errors(pointer, id_, task, catalog)
    else:
        yield from _gym_errors(pointer, id_, task, catalog, text=text)


def _atomic_errors(pointer: str, id_: str, task: RubricTaskIn, catalog: Catalog) -> Iterator[FieldError]:
    built_in = catalog.tasks.get(id_)
    if built_in is None:
        yield from _required(pointer, task, ("title", *ATOMIC_FIELDS))
    items = task.items if built_in is None else built_in.item_source
    if built_in is not None and task.items not in {None, items}:
        yield FieldError(f"{pointer}/items", f"the items of {id_!r} are {built_in.item_source.value!r}")
    if items is not None:
        yield from _template(f"{pointer}/prompt", task.prompt, _OF_ITEM[items])
    optional = frozenset({"dimension", "question"} if items is ItemSource.QUESTIONS else {"dimension"})
    wanted = frozenset({"atomic unit", "options"})
    yield from _template(f"{pointer}/scoring_prompt", task.scoring_prompt, wanted, optional)


def _gym_errors(
    pointer: str, id_: str, task: RubricTaskIn, catalog: Catalog, *, text: bool
) -> Iterator[FieldError]:
    yield from _template(pointer if text else f"{pointer}/rubric", task.rubric, _OF_RESPONSE, _OF_TASK)
    found = set(_PLACEHOLDER.findall(task.rubric or ""))
    for name, placeholder in (("description", "task_description"), ("guidelines", "guidelines")):
        if task.rubric is not None and getattr(task, name) is not None and placeholder not in found:
            message = f"has no effect: the task's rubric is a whole text without {{{placeholder}}}"
            yield FieldError(f"{pointer}/{name}", message)
    if id_ in catalog.gym.tasks:
        return
    whole = task.rubric is not None and not found & _OF_TASK
    texts = () if whole else ("description", "guidelines")
    if text:
        known = ", ".join(each.title for each in catalog.gym.tasks.values())
        message = (
            f"is no task of PersonaGym ({known}); a new task is an object with title and question_criteria"
        )
        yield FieldError(pointer, message)
    else:
        yield from _required(pointer, task, ("title", "question_criteria", *texts))


def _required(pointer: str, task: RubricTaskIn, names: tuple[str, ...]) -> Iterator[FieldError]:
    for name in names:
        if getattr(task, name) is None:
            yield FieldError(f"{pointer}/{name}", "is required for a new task")


def _template(
    pointer: str, template: str | None, wanted: frozenset[str], optional: frozenset[str] = frozenset()
) -> Iterator[FieldError]:
    """What is wrong with a template's placeholders."""
    if template is None:
        return
    found = set(_PLACEHOLDER.findall(template))
    if missing := sorted(wanted - found):
        yield FieldError(pointer, f"must contain {_listed(missing)}")
    if unknown := sorted(found - wanted - optional):
        known = _listed(sorted(wanted | optional)) or "none"
        yield FieldError(pointer, f"unknown placeholder {_listed(unknown)}; known: {known}")


def _listed(names: list[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def with_rubrics(catalog: Catalog, content: RubricContent) -> Catalog:
    """The catalog with the words of a rubric set in place of the instruments' own."""
    tasks, of_gym = dict(catalog.tasks), dict(catalog.gym.tasks)
    for id_, words in content.tasks.items():
        if id_ in tasks or words.keys() & set(ATOMIC_FIELDS):
            tasks[id_] = _atomic_task(id_, words, catalog)
        else:
            of_gym[id_] = _gym_task(of_gym.get(id_, GymTask(id_, "", (), "", (), "")), words)
    prompts = catalog.gym.prompts
    prompts = replace(
        prompts,
        rubric=content.rubric or prompts.rubric,
        score_examples=content.score_examples or prompts.score_examples,
    )
    return replace(catalog, tasks=tasks, gym=replace(catalog.gym, tasks=of_gym, prompts=prompts))


def _gym_task(task: GymTask, words: Mapping[str, Any]) -> GymTask:
    own: dict[str, Any] = {
        **words,
        "from_paper": tuple(each for each in task.from_paper if each not in words),
    }
    if "guidelines" in words:
        own["guidelines"] = tuple(words["guidelines"])
    return replace(task, **own)


def _atomic_task(id_: str, words: Mapping[str, Any], catalog: Catalog) -> AtomicTask:
    """A task of a set; of a new one, the lengths of the built-in task with the same items serve for plans."""
    items = words.get("items")
    alike = next(
        t
        for t in catalog.tasks.values()
        if t.id == id_ or (id_ not in catalog.tasks and t.item_source == items)
    )
    own = {name: words[name] for name in ("title", "prompt", "scoring_prompt") if name in words}
    return replace(alike, id=id_, **own)


def unknown_rubrics(named: str) -> str:
    """What is said of a rubric set that there is not."""
    return f"unknown rubric set {named!r}; GET /v1/rubric-sets lists yours"


def unused_rubrics(
    request: JobIn, ids: Collection[str], content: RubricContent, catalog: Catalog
) -> Iterator[FieldError]:
    """What a job asks for that its rubric set can't take part in.

    Args:
        request: The job.
        ids: Its tasks.
        content: The set's words.
        catalog: The catalog with them.
    """
    if content.tasks.keys().isdisjoint(ids) and not (
        not catalog.gym.tasks.keys().isdisjoint(ids) and (content.rubric or content.score_examples)
    ):
        yield FieldError("/rubrics", "has no words for any task of this job")
    atomic = [id_ for id_, words in content.tasks.items() if id_ in ids and "scoring_prompt" in words]
    if atomic and request.judging.sentences_per_call > 1:
        message = f"must be 1: several sentences are judged by other prompts than the rubric set's of {', '.join(atomic)}"
        yield FieldError("/judging/sentences_per_call", message)
