"""The forms of PersonaGym's data files: what each file must hold, and the domain values that it becomes."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.domain.dimension import Dimension, Scale
from app.domain.persona import Persona
from app.domain.personagym.task import GRADE_SCALE, Environment, GymPrompts, GymTask

_QUESTIONS = frozenset({"count", "persona", "environments", "task", "question_quality_criteria"})
_PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "environment_selection": frozenset({"persona", "environments_list"}),
    "question_generation": _QUESTIONS,
    "further_questions": _QUESTIONS | {"existing_questions"},
    "rubric": frozenset(
        {"task", "task_description", "guidelines", "score_example", "persona", "question", "response"}
    ),
    "score_examples": frozenset({"persona", "question", "rubric"}),
    "persona_generation": frozenset({"count", "existing_personas"}),
    "sentence_scoring": frozenset({"persona", "question", "atomic unit", "options"}),
}


def _require(template: str, wanted: frozenset[str], name: str) -> None:
    if set(re.findall(r"\{([^{}]*)\}", template)) != wanted:
        raise ValueError(f"{name} must contain exactly the placeholders {sorted(wanted)}")


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    folded = [value.casefold() for value in values]
    repeated = sorted({value for value in values if folded.count(value.casefold()) > 1})
    if repeated:
        raise ValueError(f"given twice: {', '.join(repeated)}")
    return values


def _require_distinct(values: Iterable[str]) -> None:
    _distinct(tuple(values))


_Text = Annotated[str, StringConstraints(strict=True, min_length=1, pattern=r"^\S(?s:.*\S)?$")]
_Id = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
_Texts = Annotated[tuple[_Text, ...], Field(min_length=1), AfterValidator(_distinct)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PromptsFile(_Form):
    """``prompts.yaml``."""

    instructions: Annotated[dict[_Id, _Text], Field(min_length=1)]
    default_instruction: _Id
    environment_selection: _Text
    question_generation: _Text
    further_questions: _Text
    rubric: _Text
    score_examples: _Text
    persona_generation: _Text
    sentence_scoring: _Text

    @model_validator(mode="after")
    def _check(self) -> "PromptsFile":
        for name, wanted in _PLACEHOLDERS.items():
            _require(getattr(self, name), wanted, name)
        for name, instruction in self.instructions.items():
            _require(instruction, frozenset({"persona"}), f"instructions.{name}")
        if self.default_instruction not in self.instructions:
            raise ValueError("default_instruction must be one of the instructions")
        return self

    def to_domain(self) -> GymPrompts:
        """The templates."""
        return GymPrompts(**self.model_dump())


class TaskForm(_Form):
    """One evaluation task."""

    id: _Id
    title: _Text
    aliases: _Texts
    from_paper: frozenset[Literal["description", "guidelines", "question_criteria"]]
    description: _Text
    guidelines: Annotated[_Texts, Field(min_length=GRADE_SCALE.size, max_length=GRADE_SCALE.size)]
    question_criteria: _Text


class TasksFile(_Form):
    """``tasks.yaml``."""

    tasks: Annotated[tuple[TaskForm, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "TasksFile":
        _require_distinct(task.id for task in self.tasks)
        _require_distinct(name for task in self.tasks for name in (task.title, *task.aliases))
        return self

    def to_domain(self) -> dict[str, GymTask]:
        """The tasks by id, in the file's order."""
        return {form.id: GymTask(**form.model_dump()) for form in self.tasks}


class EnvironmentsFile(_Form):
    """``environments.yaml``: names by category."""

    environments: Annotated[dict[_Id, _Texts], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "EnvironmentsFile":
        _require_distinct(name for names in self.environments.values() for name in names)
        return self

    def to_domain(self) -> tuple[Environment, ...]:
        """The environments in the file's order."""
        return tuple(
            Environment(name, category) for category, names in self.environments.items() for name in names
        )


class PersonaForm(_Form):
    """One persona."""

    id: _Id
    description: _Text


class PersonasFile(_Form):
    """``personas.yaml``."""

    personas: Annotated[tuple[PersonaForm, ...], Field(min_length=1)]
    persona_sets: dict[_Id, _Texts]

    @model_validator(mode="after")
    def _check(self) -> "PersonasFile":
        ids = [persona.id for persona in self.personas]
        _require_distinct([*ids, *self.persona_sets])
        _require_distinct(persona.description for persona in self.personas)
        for name, members in self.persona_sets.items():
            unknown = [member for member in members if member not in ids]
            if unknown:
                raise ValueError(f"persona_sets.{name} names unknown personas: {', '.join(unknown)}")
        return self

    def to_domain(self) -> dict[str, Persona]:
        """The personas by id, in the file's order; they have no traits."""
        return {form.id: Persona(form.id, form.description) for form in self.personas}


class ConsistencyFile(_Form):
    """``consistency.yaml``."""

    id: _Id
    name: _Text
    scale: Scale
    target_level: _Id
    options: _Text

    @model_validator(mode="after")
    def _check(self) -> "ConsistencyFile":
        scores = [*range(self.scale.minimum, self.scale.maximum + 1), self.scale.not_applicable]
        offered = [int(number) for number in re.findall(r"(\d+)\)", self.options)]
        if offered != scores:
            raise ValueError(f"the options must offer {scores}, not {offered}")
        if self.target_level not in self.scale.levels:
            raise ValueError("target_level must be one of the scale's levels")
        return self

    def to_domain(self) -> Dimension:
        """The dimension, without questions or a scenario of its own."""
        return Dimension(self.id, self.name, self.scale, self.options)
