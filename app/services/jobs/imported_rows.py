"""What is written of existing texts that come with their sentences, or with what imported judges said of them."""

from collections.abc import Sequence

from app.db.jobs.new_verdicts import NewGrade, NewVerdicts
from app.domain.errors import FieldError
from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import texts_at
from app.domain.jobs.plan import Cell, traits_at
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.judging.imported import GivenText, ImportedScores, Span, given_text, readings, whole


def given_spans(
    spec: JobSpec, response: ProvidedResponse, answer: str, pointer: str
) -> GivenText | FieldError:
    """What is to be stored of a response's text, or what is wrong with its sentences.

    Args:
        spec: The job.
        response: As it was placed.
        answer: Its text without thoughts; empty where none was given.
        pointer: Of the response in the request.
    """
    given = given_text(None if response.text is None else answer, response.units, response.verdicts)
    if isinstance(given, FieldError):
        return FieldError(f"{pointer}{given.pointer}", given.message)
    if given.spans is None and spec.given_units == "responses":
        return GivenText(answer, whole(answer))
    return given


def imported_verdicts(
    spec: JobSpec, cell: Cell, response: ProvidedResponse, sentences: int, *, refused: bool
) -> list[NewVerdicts]:
    """A verdict of each imported judge on each sentence and trait; those that were not given are missing.

    Of a refusal the missing ones say that it is one, as of judges that are called.
    """
    given = {(each.judge, each.trait): each for each in response.verdicts}
    found = []
    for judge, model in enumerate(spec.judges):
        if model.imported is None:
            continue
        for trait, dimension in traits_at(cell, response.item):
            none = ImportedScores(judge, trait, [None] * sentences)
            scores = given.get((judge, trait), none).scores
            known = readings(dimension.scale)
            if refused:
                scores = ["refused" if score is None else score for score in scores]
            found.append(NewVerdicts(trait, judge, [known[score] for score in scores]))
    return found


def imported_grades(spec: JobSpec, placed: ProvidedResponse, *, doubtful: bool) -> list[NewGrade]:
    """A grade of each imported judge of an answer to PersonaGym's question; those that were not given are missing."""
    given = dict(placed.grades)
    return [
        NewGrade(judge, given.get(judge), doubtful)
        for judge, model in enumerate(spec.judges)
        if model.imported is not None
    ]


def doubtful_sentences(rules: Rules, text: str, spans: Sequence[Span]) -> frozenset[int]:
    """The sentences that address the judge, whoever it was."""
    texts = texts_at(text, [start for start, _ in spans], [end for _, end in spans])
    return frozenset(n for n, each in enumerate(texts) if rules.addresses_judge(each))
