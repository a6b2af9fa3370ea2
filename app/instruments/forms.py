"""The forms of the instruments' data files: what each file must hold, and the domain values that it becomes."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.persona import Persona, Trait
from app.domain.instruments.refusal import LanguageRules, RefusalRules
from app.domain.instruments.segmentation import PunktRules
from app.domain.instruments.task import AtomicTask, ItemSource

_ITEM_PLACEHOLDERS: Mapping[ItemSource, frozenset[str]] = {
    ItemSource.QUESTIONS: frozenset({"question"}),
    ItemSource.ESSAY_CONTEXT: frozenset({"context"}),
    ItemSource.COMMON: frozenset(),
}
_SCORING_PLACEHOLDERS = frozenset({"dimension", "question", "atomic unit", "options"})
CRITERION_PLACEHOLDERS = frozenset({"dimension", "question"})


def placeholders(template: str) -> frozenset[str]:
    """The names in braces in a template."""
    return frozenset(re.findall(r"\{([^{}]*)\}", template))


def require_placeholders(template: str, wanted: Collection[str], name: str) -> None:
    """Check that a template has exactly these names in braces.

    Raises:
        ValueError: If it lacks one or has another; the message begins with ``name``.
    """
    if placeholders(template) != frozenset(wanted):
        raise ValueError(f"{name} must contain exactly the placeholders {sorted(wanted)}")


def _instruction(template: str) -> str:
    if placeholders(template) != {"persona"}:
        raise ValueError("must contain {persona} and no other placeholder")
    return template


def _lines(value: object) -> object:
    return tuple(value.splitlines()) if isinstance(value, str) else value


def distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    """The values, if none stands twice, also in another case.

    Raises:
        ValueError: If any does.
    """
    folded = [value.casefold() for value in values]
    repeated = sorted({value for value in values if folded.count(value.casefold()) > 1})
    if repeated:
        raise ValueError(f"given twice: {', '.join(repeated)}")
    return values


def require_distinct(values: Iterable[str]) -> None:
    """Refuses what stands twice, also in another case.

    Raises:
        ValueError: If anything does.
    """
    distinct(tuple(values))


Text = Annotated[str, StringConstraints(strict=True, min_length=1, pattern=r"^\S(?s:.*\S)?$")]
Id = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Texts = Annotated[tuple[Text, ...], Field(min_length=1), AfterValidator(distinct)]
_Lines = Annotated[Texts, BeforeValidator(_lines)]
_Words = Annotated[
    tuple[Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z.']*[a-z]$|^[a-z]$")], ...],
    Field(min_length=1),
    AfterValidator(distinct),
]


class Form(BaseModel):
    """Base of all forms: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DimensionForm(Form):
    """One dimension, but for the scale that all share."""

    id: Id
    name: Text
    options: Text
    questions: Texts
    essay_context: Text


class DimensionsFile(Form):
    """``dimensions.yaml``."""

    scale: Scale
    dimensions: Annotated[tuple[DimensionForm, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "DimensionsFile":
        require_distinct(dimension.id for dimension in self.dimensions)
        scores = [*range(self.scale.minimum, self.scale.maximum + 1), self.scale.not_applicable]
        for dimension in self.dimensions:
            offered = [int(number) for number in re.findall(r"(\d+)\)", dimension.options)]
            if offered != scores:
                raise ValueError(f"the options of {dimension.id} must offer {scores}, not {offered}")
        return self

    def to_domain(self) -> dict[str, Dimension]:
        """The dimensions by id, in the file's order."""
        return {form.id: Dimension(scale=self.scale, **form.model_dump()) for form in self.dimensions}


class PersonaForm(Form):
    """One built-in persona; ``traits`` maps a dimension's id to a level."""

    id: Id
    description: Text
    traits: Annotated[dict[str, str], Field(min_length=1)]


class PersonasFile(Form):
    """``personas.yaml``; validated with the dimensions by id as context."""

    personas: Annotated[tuple[PersonaForm, ...], Field(min_length=1)]
    persona_sets: dict[Id, Texts]

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> "PersonasFile":
        dimensions: Mapping[str, Dimension] = info.context or {}
        ids = [persona.id for persona in self.personas]
        require_distinct([*ids, *self.persona_sets])
        for persona in self.personas:
            for dimension, level in persona.traits.items():
                if dimension not in dimensions or level not in dimensions[dimension].scale.levels:
                    raise ValueError(
                        f"the traits of {persona.id} name no known dimension and level: {dimension} {level}"
                    )
        for name, members in self.persona_sets.items():
            unknown = [member for member in members if member not in ids]
            if unknown:
                raise ValueError(f"persona_sets.{name} names unknown personas: {', '.join(unknown)}")
        return self

    def to_domain(self) -> dict[str, Persona]:
        """The personas by id, in the file's order."""
        return {
            form.id: Persona(form.id, form.description, tuple(Trait(*trait) for trait in form.traits.items()))
            for form in self.personas
        }


class InstructionsFile(Form):
    """``instructions.yaml``."""

    instructions: Annotated[
        tuple[Annotated[Text, AfterValidator(_instruction)], ...],
        Field(min_length=1),
        AfterValidator(distinct),
    ]


class TaskForm(Form):
    """One generation task; ``grouped_criterion`` is what is asked of several sentences in one judge call."""

    id: Id
    title: Text
    item_source: ItemSource
    expected_units: Annotated[float, Field(gt=0)]
    expected_output_tokens: Annotated[int, Field(gt=0)]
    prompt: Text
    scoring_prompt: Text
    grouped_criterion: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> "TaskForm":
        require_placeholders(self.prompt, _ITEM_PLACEHOLDERS[self.item_source], "prompt")
        found = placeholders(self.scoring_prompt)
        if not {"atomic unit", "options"} <= found or not found <= _SCORING_PLACEHOLDERS:
            raise ValueError(
                "scoring_prompt must contain {atomic unit} and {options}, and besides only {dimension} and {question}"
            )
        if not placeholders(self.grouped_criterion or "") <= CRITERION_PLACEHOLDERS:
            raise ValueError("grouped_criterion may contain only {dimension} and {question}")
        return self


class TasksFile(Form):
    """``tasks.yaml``."""

    tasks: Annotated[tuple[TaskForm, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> "TasksFile":
        require_distinct(task.id for task in self.tasks)
        return self

    def to_domain(self) -> dict[str, AtomicTask]:
        """The tasks by id, in the file's order."""
        return {form.id: AtomicTask(**form.model_dump(exclude={"grouped_criterion"})) for form in self.tasks}

    def criteria(self) -> dict[str, str]:
        """What is asked of several sentences in one judge call, by the id of the task that says so."""
        return {form.id: form.grouped_criterion for form in self.tasks if form.grouped_criterion}


class RefusalLanguage(Form):
    """One language of ``refusal.yaml``."""

    script: str | None = None
    alone: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    refusal_signs: tuple[str, ...]
    declining_signs: tuple[str, ...] = ("",)
    meta_signs: tuple[str, ...] = ("",)
    preface_signs: tuple[str, ...]
    terms: dict[Id, _Lines]
    lead_ins: _Lines
    model: _Lines
    either: _Lines
    likely: _Lines
    whole: _Lines
    doubt: _Lines
    making: _Lines
    charged: _Lines
    aside: _Lines
    declining: _Lines
    meta: _Lines
    disclosure: _Lines
    named: _Lines
    leaving: _Lines
    preface: _Lines


class ModelNamesForm(Form):
    """A maker's models in ``refusal.yaml``; regular expressions in lower case."""

    model: tuple[Text, ...] = ()
    namesake: tuple[Text, ...] = ()
    maker: tuple[Text, ...]
    source: Text


class RefusalFile(Form):
    """``refusal.yaml``; where several alternatives are possible, one a line."""

    window: Annotated[int, Field(gt=0)]
    sentences: Annotated[int, Field(gt=0)]
    out_of_character: _Lines
    in_story: _Lines
    hearsay: _Lines
    models: tuple[ModelNamesForm, ...]
    languages: dict[Id, RefusalLanguage]

    @model_validator(mode="after")
    def _check(self) -> "RefusalFile":
        self.to_domain()
        return self

    def to_domain(self) -> RefusalRules:
        """Return the rules.

        Raises:
            ValueError: If a pattern names an unknown term.
        """
        return RefusalRules(
            self.window,
            self.sentences,
            {name: LanguageRules(**each.model_dump()) for name, each in self.languages.items()},
            self.out_of_character,
            self.in_story,
            self.hearsay,
            {
                kind: tuple(name for each in self.models for name in getattr(each, kind))
                for kind in ("model", "namesake", "maker")
            },
        )


class SegmentationFile(Form):
    """``segmentation/punkt-….yaml``."""

    name: Text
    never_final: _Words
    sometimes_final: _Words
    sentence_starters: _Words

    def to_domain(self) -> PunktRules:
        """The parameters of the sentence splitter."""
        return PunktRules(
            self.name,
            frozenset(self.never_final),
            frozenset(self.sometimes_final),
            frozenset(self.sentence_starters),
        )
