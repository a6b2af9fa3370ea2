"""What is written of existing texts that come with their sentences, or with what imported judges said of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.db.jobs.new_jobs import NewGrade, NewVerdicts
from app.domain.errors import FieldError
from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import texts_at
from app.domain.jobs.plan import Cell, traits_at
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.judging.imported import ImportedScores, Span, joined, judged, places_of, readings


@dataclass(frozen=True, slots=True)
class GivenText:
    """A text as far as it was given, and its sentences if the segmenter is not to find them."""

    text: str
    spans: Sequence[Span] | None


def given_text(
    spec: JobSpec, response: ProvidedResponse, answer: str, pointer: str
) -> GivenText | FieldError:
    """What is to be stored of a response's text, or what is wrong with its sentences.

    Args:
        spec: The job.
        response: As it was placed.
        answer: Its text without thoughts; empty where none was given.
        pointer: Of the response in the request.
    """
    if response.units:
        if response.text is None:
            return GivenText(*joined(response.units))
        places = list(places_of(response.units, answer))
        missing = len(places) - 1
        found = [place for place in places if place is not None]
        if len(found) < len(places):
            return FieldError(
                f"{pointer}/units/{missing}", "is not in the text after the sentences before it"
            )
        return GivenText(answer, found)
    if response.text is None:
        # Sentences without words: how many there are is all that is known of them.
        return GivenText("", [(0, 0)] * max((len(each.scores) for each in response.verdicts), default=0))
    if spec.given_units == "responses":
        start = len(answer) - len(answer.lstrip())
        return GivenText(answer, [(start, len(answer.rstrip()))] if answer.strip() else [])
    return GivenText(answer, None)


def count_problems(response: ProvidedResponse, sentences: int) -> Iterator[FieldError]:
    """The imported verdicts that are more or fewer than the sentences."""
    known = "its units are" if response.units else "the text has"
    if response.text is None and not response.units:
        known = "other verdicts are on"
    hint = "; if they are on other sentences, give these in units" if known == "the text has" else ""
    for given in response.verdicts:
        if len(given.scores) != sentences:
            yield FieldError(
                given.field, f"{len(given.scores):,} scores, but {known} {sentences:,} sentences{hint}"
            )


def refused_elsewhere(response: ProvidedResponse) -> bool | None:
    """Whether a response is a refusal by what imported judges said of it; ``None`` where its text decides."""
    if any(judged(given.scores) for given in response.verdicts):
        return False
    given = [score for each in response.verdicts for score in each.scores]
    return True if given and all(score == "refused" for score in given) else None


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
