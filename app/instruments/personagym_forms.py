"""The forms of PersonaGym's data files: what each file must hold, and the domain values that it becomes."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.persona import Persona
from app.domain.personagym.task import GRADE_SCALE, Environment, GymPrompts, GymTask
from app.instruments.forms import Form, Id, Text, Texts, require_distinct, require_placeholders

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


class PromptsFile(Form):
    """``prompts.yaml``."""

    instructions: Annotated[dict[Id, Text], Field(min_length=1)]
    default_instruction: Id
    environment_selection: Text
    question_generation: Text
    further_questions: Text
    rubric: Text
    score_examples: Text
    persona_generation: Text
    sentence_scoring: Text

    @model_validator(mode="after")
    def _check(self) -> "PromptsFile":
        for name, wanted in _PLACEHOLDERS.items():
            require_placeholders(getattr(self, name), wanted, name)
        for name, instruction in self.instructions.items():
            require_placeholders(instruction, frozenset({"persona"}), f"instructions.{name}")
        if self.default_instruction not in self.instructions:
            raise ValueError("default_instruction must be one of the instructions")
        return self

    def to_domain(self) -> GymPrompts:
        """The templates."""
        return GymPrompts(**self.model_dump())


class TaskForm(Form):
    """One evaluation task."""

    id: Id
    title: Text
    aliases: Texts
    from_paper: tuple[Literal["description", "guidelines", "question_criteria"], ...]
    description: Text
    guidelines: Annotated[Texts, Field(min_length=GRADE_SCALE.size, max_length=GRADE_SCALE.size)]
    question_criteria: Text


class TasksFile(Form):
    """``tasks.yaml``."""

    tasks: Annotated[tuple[TaskForm, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "TasksFile":
        require_distinct(task.id for task in self.tasks)
        require_distinct(name for task in self.tasks for name in (task.title, *task.aliases))
        return self

    def to_domain(self) -> dict[str, GymTask]:
        """The tasks by id, in the file's order."""
        return {form.id: GymTask(**form.model_dump()) for form in self.tasks}


class EnvironmentsFile(Form):
    """``environments.yaml``: names by category."""

    environments: Annotated[dict[Id, Texts], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "EnvironmentsFile":
        require_distinct(name for names in self.environments.values() for name in names)
        return self

    def to_domain(self) -> tuple[Environment, ...]:
        """The environments in the file's order."""
        return tuple(
            Environment(name, category) for category, names in self.environments.items() for name in names
        )


class PersonaForm(Form):
    """One persona."""

    id: Id
    description: Text


class PersonasFile(Form):
    """``personas.yaml``."""

    personas: Annotated[tuple[PersonaForm, ...], Field(min_length=1)]
    persona_sets: dict[Id, Texts]

    @model_validator(mode="after")
    def _check(self) -> "PersonasFile":
        ids = [persona.id for persona in self.personas]
        require_distinct([*ids, *self.persona_sets])
        require_distinct(persona.description for persona in self.personas)
        for name, members in self.persona_sets.items():
            unknown = [member for member in members if member not in ids]
            if unknown:
                raise ValueError(f"persona_sets.{name} names unknown personas: {', '.join(unknown)}")
        return self

    def to_domain(self) -> dict[str, Persona]:
        """The personas by id, in the file's order; they have no traits."""
        return {form.id: Persona(form.id, form.description) for form in self.personas}


class ConsistencyFile(Form):
    """``consistency.yaml``."""

    id: Id
    name: Text
    scale: Scale
    target_level: Id
    options: Text

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
