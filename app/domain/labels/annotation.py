"""What people say of sentences, pairs of sentences and responses, and where it belongs."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

MOST_ROWS = 10_000
"""Of one request."""
ROWS_AT_ONCE = 500
"""Of one step, so that nobody else in the process is held up for more than some milliseconds."""


class Answer(StrEnum):
    """What an annotator said."""

    SCORED = "scored"
    NOT_APPLICABLE = "not_applicable"
    """The sentence carries no such trait: the judges' filtering option."""
    FIRST = "first"
    """Of a pair: the first sentence is nearer to the upper end of the scale; of the atomic paper's N, the stable one."""
    SECOND = "second"
    EQUAL = "equal"


CHOICES = (Answer.FIRST, Answer.SECOND, Answer.EQUAL)


class Kind(StrEnum):
    """What annotators look at."""

    SENTENCES = "sentences"
    RESPONSES = "responses"
    PAIRS = "pairs"


class Place(NamedTuple):
    """A response of a job, or one of its sentences.

    Attributes:
        cell: Ordinal of its cell.
        run: Its run.
        item: Its item.
        unit: The sentence's index; ``None`` for the response as a whole.
    """

    cell: int
    run: int
    item: int
    unit: int | None

    @property
    def response(self) -> tuple[int, int, int]:
        """Cell, run and item."""
        return self[:3]


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answer about one thing; there is one at most.

    Attributes:
        annotator: Who.
        dimension: On which; ``None`` for a grade by a PersonaGym task's rubric.
        place: Of what; of a pair, of its first sentence.
        other: The pair's second sentence; ``None`` where it is no pair.
        answer: What they said.
        score: On the dimension's scale, or the rubric's; only where ``answer`` says so.
    """

    annotator: str
    dimension: str | None
    place: Place
    other: Place | None
    answer: Answer
    score: int | None

    @property
    def kind(self) -> Kind:
        """What was looked at."""
        if self.other is not None:
            return Kind.PAIRS
        return Kind.RESPONSES if self.place.unit is None else Kind.SENTENCES

    @property
    def subject(self) -> tuple[str | None, Place, Place | None]:
        """What was asked, whoever answered it."""
        return self.dimension, self.place, self.other

    def ordered(self) -> "Annotation":
        """This one with a pair's sentences in the order of their places, in whichever they were shown."""
        if self.other is None or self.place < self.other:
            return self
        turned = {Answer.FIRST: Answer.SECOND, Answer.SECOND: Answer.FIRST}.get(self.answer, self.answer)
        return Annotation(self.annotator, self.dimension, self.other, self.place, turned, None)
