"""What imported judges said of a record: kept with it in few words, and read again for the job that names the upload."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.errors import FieldError
from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import texts_at
from app.domain.jobs.request import ResponseIn
from app.domain.jobs.text_source import NOT_JUDGED, Elsewhere, StoredText, UploadedText
from app.domain.jobs.verdicts_request import VerdictsIn
from app.domain.judging.imported import ImportedScores, Span, count_problems, whole

_GIVEN = ("given with the upload",)
"""Stands for sentences that were given: where they are is stored with the text."""
_NO_GRADES: dict[str, int | None] = {}


def scores_of(response: ResponseIn) -> list[ImportedScores]:
    """What each judge said, not yet told who it is."""
    return [
        ImportedScores(0, 0, (given.score,), f"/verdicts/{n}/score")
        if given.scores is None
        else ImportedScores(0, 0, given.scores, f"/verdicts/{n}/scores")
        for n, given in enumerate(response.verdicts)
    ]


def wrong_verdicts(
    response: ResponseIn, scores: Sequence[ImportedScores], answer: str, sentences: int
) -> FieldError | None:
    """What is wrong with what judges said of a text, as far as that is known without the job."""
    if response.grades and response.text is None:
        return FieldError("/text", "is required")
    forms = {given.scores is None for given in response.verdicts}
    if len(forms) > 1:
        return FieldError("/verdicts", "score and scores can't be mixed")
    if forms == {True} and response.text is not None:
        sentences = len(whole(answer))
    known = {"text": response.text is not None, "units": bool(response.units)}
    return next(count_problems(scores, sentences, **known), None)


def as_judged(response: ResponseIn, rules: Rules, text: str, spans: Sequence[Span]) -> dict[str, Any] | None:
    """What is kept of a record beside its text; ``None`` if nothing."""
    if not (response.verdicts or response.grades or response.units):
        return None
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    sentences = enumerate(texts_at(text, starts, ends)) if response.verdicts else ()
    kept: dict[str, Any] = {
        "verdicts": [
            [given.judge, given.dimension, given.score if given.scores is None else given.scores]
            for given in response.verdicts
        ],
        "grades": response.grades,
        "units": bool(response.units),
        "doubtful": [n for n, each in sentences if rules.addresses_judge(each)],
        "doubtful_text": rules.addresses_judge(text),
    }
    return {name: value for name, value in kept.items() if value} | (
        {"text": False} if response.text is None else {}
    )


def elsewhere(judged: Mapping[str, Any] | None) -> Elsewhere:
    """What is known of a text by what was kept."""
    if judged is None:
        return NOT_JUDGED
    doubtful = tuple(judged.get("doubtful", ()))
    return Elsewhere(judged.get("text", True), doubtful, judged.get("doubtful_text", False))


def as_uploaded(
    line: int, run: int | None, text: StoredText, judged: Mapping[str, Any] | None
) -> UploadedText:
    """A record as a job takes it.

    Args:
        line: Its line, or row.
        run: Its run, if it was given.
        text: Where its text is.
        judged: What was kept of what imported judges said.
    """
    if judged is None:
        return UploadedText(line, text, run, (), _NO_GRADES)
    verdicts = [
        VerdictsIn.model_construct({"judge", "score"}, judge=judge, dimension=dimension, score=said)
        if not isinstance(said, list)
        else VerdictsIn.model_construct({"judge", "scores"}, judge=judge, dimension=dimension, scores=said)
        for judge, dimension, said in judged.get("verdicts", ())
    ]
    units = _GIVEN if judged.get("units") else ()
    return UploadedText(line, text, run, verdicts, judged.get("grades", _NO_GRADES), units)
