"""PersonaGym's answers in the form in which its released code saves them: `results/<model>/<persona>_qa.json`."""

from typing import Annotated

from pydantic import Field, Strict

from app.domain.contract import Body, Line, Prose, Text, in_parts
from app.domain.instruments.persona import MAX_PERSONAS

MOST_ANSWERS = 200_000
LONGEST_ANSWER = 200_000

QuestionAndAnswer = Annotated[
    tuple[Prose, Annotated[Text, Field(max_length=LONGEST_ANSWER)]],
    Strict(False),  # JSON has lists only
]
QaFile = Annotated[
    dict[
        Text,
        Annotated[
            list[QuestionAndAnswer],
            Field(min_length=1, max_length=MOST_ANSWERS),
            in_parts(100, MOST_ANSWERS),
        ],
    ],
    Field(min_length=1, max_length=50),
]
QaFiles = Annotated[
    dict[Text, QaFile], Field(min_length=1, max_length=MAX_PERSONAS), in_parts(10, MAX_PERSONAS)
]


class QaIn(Body):
    """Answers to PersonaGym's questions as its released code saves them."""

    qa: Annotated[dict[Line, QaFiles], Field(min_length=1, max_length=50)] = Field(
        description="By model and persona (id, description, or the file's name) the content of a `_qa.json` file: by"
        " task a list of `[question, answer]`.",
        examples=[
            {"our-bot v3": {"a cowboy_qa.json": {"Expected Action": [["A storm comes up?", "I ride on."]]}}}
        ],
    )
