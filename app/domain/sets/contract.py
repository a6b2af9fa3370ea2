"""Question sets, persona sets and rubric sets as clients ask for them and are shown them."""

from abc import abstractmethod
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from app.domain.contract import Answer, Body, Identifier, Line, Page, Prose, Text, in_parts
from app.domain.instruments.persona import MAX_PERSONAS
from app.domain.jobs.request import GenerateIn, QuestionsByPersona
from app.domain.personagym.diversity import Diversity
from app.domain.personagym.task import GRADE_SCALE

QUESTIONS_EXAMPLE: JsonDict = {
    "name": "frontier life",
    "questions": {"a cowboy": {"Expected Action": ["A storm comes up on the range. What do you do?"]}},
}


FiveTexts = Annotated[list[Prose], Field(min_length=GRADE_SCALE.size, max_length=GRADE_SCALE.size)]
ExemplarsByTask = Annotated[
    dict[Text, Annotated[list[FiveTexts | None], Field(max_length=1000), in_parts(20, 1000)]],
    in_parts(10, 10_000),
]
ExemplarsByPersona = Annotated[dict[Text, ExemplarsByTask], Field(max_length=10_000), in_parts(10, 10_000)]


class QuestionSetIn(Body):
    """Questions to store as a set; PersonaGym's published files are accepted unchanged, by persona description."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [QUESTIONS_EXAMPLE]}
    )

    name: Line | None = Field(None, description="A name, for people.")
    questions: QuestionsByPersona = Field(
        min_length=1,
        description="Questions by task (id, title or alias) by persona: its description, or its published "
        "file's name (the description with `.json`, optionally in a directory `questions`).",
    )
    rubrics: Identifier | None = Field(
        None, description="A rubric set, if the questions are for tasks that it adds."
    )
    exemplars: ExemplarsByPersona | None = Field(
        None,
        description="Exemplars to grade by, in the same order as the questions of a persona and task: for each question "
        "five texts, which deserve the scores 1 to 5, or `null` for those that a reasoner shall write.",
        examples=[
            {"a cowboy": {"Expected Action": [["I flee.", "I wait.", "I look.", "I help.", "I lead."]]}}
        ],
    )


PERSONAS_SCHEMA: JsonDict = {
    "description": "Personas: descriptions, ids of built-in ones, or objects; or descriptions or objects by id.",
    "anyOf": [
        {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_PERSONAS,
            "items": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "required": ["description"],
                        "additionalProperties": False,
                        "properties": {
                            "id": {
                                "type": "string",
                                "description": "`persona-<position>` unless given. Sets of one job need different ids.",
                            },
                            "description": {"type": "string"},
                            "traits": {"type": "object", "additionalProperties": {"type": "string"}},
                        },
                    },
                ]
            },
        },
        {"type": "object"},
    ],
}
PERSONAS_EXAMPLE: JsonDict = {
    "name": "critics",
    "personas": ["a blunt critic", {"id": "kind", "description": "a kind critic", "traits": {"A": "high"}}],
}


class PersonaSetIn(Body):
    """Personas to be kept as a set, or how many a reasoner shall make up."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [PERSONAS_EXAMPLE]})

    name: Line | None = Field(None, description="A name, for people.")
    personas: Annotated[object, WithJsonSchema(PERSONAS_SCHEMA)] = None
    generate: GenerateIn | None = Field(None, description="Instead of `personas`; the answer is a job.")

    @model_validator(mode="after")
    def _one_of_them(self) -> "PersonaSetIn":
        if (self.personas is None) == (self.generate is None):
            raise ValueError("give either personas or generate")
        return self


class KeptSet(Answer):
    """Base of sets as they are shown."""

    id: str

    @classmethod
    @abstractmethod
    def of(cls, id_: str, name: str | None, content: Any) -> Self:
        """The set of this content.

        Raises:
            ValidationError: If no such set has it.
            TypeError: If it is of another type altogether.
        """


class QuestionSet(KeptSet):
    """An immutable set of questions."""

    id: str = Field(examples=["qset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["question_set"] = "question_set"
    name: str | None
    questions: dict[str, dict[str, list[str]]] = Field(
        description="Questions by task id by persona description."
    )

    @classmethod
    def of(cls, id_: str, name: str | None, content: Any) -> Self:
        """See :meth:`KeptSet.of`."""
        return cls(id=id_, name=name, questions=content)


class SetExemplars(Answer):
    """A question's exemplars, as a question set keeps them."""

    persona: str = Field(description="The persona's description.")
    task: str
    question: str
    exemplars: list[str] = Field(description="Five texts, which deserve the scores 1 to 5.")
    reasoner: str | None = Field(description="The model that wrote them; `null` if they came with the set.")
    key: str = Field(
        description="A hash of what the reasoner was asked, which includes the rubric, and of its parameters."
    )


class SetExemplarList(Page[SetExemplars]):
    """A page of a question set's exemplars."""


class JobExemplars(Answer):
    """A question's exemplars, as a job grades by them."""

    persona: str = Field(description="The persona's ID.")
    task: str
    item: str = Field(description="The question's item, such as `Q-1`.")
    question: str
    exemplars: list[str] = Field(description="Five texts, which deserve the scores 1 to 5.")
    reused: bool = Field(description="Whether they came with the question set instead of a call of this job.")


class JobExemplarList(Page[JobExemplars]):
    """A page of a job's exemplars."""


class QuestionSetSummary(Answer):
    """A question set in a list."""

    id: str = Field(examples=["qset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["question_set"] = "question_set"
    name: str | None
    created_at: datetime
    personas: int
    questions: int


class QuestionSetList(Page[QuestionSetSummary]):
    """A page of question sets, newest first."""


class SetMember(Answer):
    """A persona of a set."""

    id: str
    description: str
    traits: dict[str, str] = Field(description="Level by dimension.")


class PersonaSet(KeptSet):
    """An immutable list of personas."""

    id: str = Field(examples=["pset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["persona_set"] = "persona_set"
    name: str | None
    built_in: bool
    diversity: Diversity | None = Field(description="`null` unless the personas were generated.")
    personas: list[SetMember]

    @classmethod
    def of(
        cls, id_: str, name: str | None, content: Any, *, measured: Any = None, built_in: bool = False
    ) -> Self:
        """See :meth:`KeptSet.of`; and how alike its personas are, if that was measured."""
        return cls(id=id_, name=name, built_in=built_in, diversity=measured, personas=content)


class PersonaSetSummary(Answer):
    """A persona set in a list."""

    id: str = Field(examples=["pset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["persona_set"] = "persona_set"
    name: str | None
    created_at: datetime
    personas: int


class PersonaSetList(Page[PersonaSetSummary]):
    """A page of persona sets, newest first."""


class RubricSet(KeptSet):
    """An immutable set of rubrics and prompts."""

    id: str = Field(examples=["rset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["rubric_set"] = "rubric_set"
    name: str | None
    tasks: dict[str, dict[str, str | list[str]]] = Field(description="The given words by field by task ID.")
    rubric: str | None
    score_examples: str | None

    @classmethod
    def of(cls, id_: str, name: str | None, content: Any) -> Self:
        """See :meth:`KeptSet.of`."""
        return cls.model_validate({**content, "id": id_, "name": name})


class RubricSetSummary(Answer):
    """A rubric set in a list."""

    id: str = Field(examples=["rset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["rubric_set"] = "rubric_set"
    name: str | None
    created_at: datetime
    tasks: int


class RubricSetList(Page[RubricSetSummary]):
    """A page of rubric sets, newest first."""
