"""Reads an evaluator's reply to a rubric: a justification and a final score (PersonaGym paper, section 3.2)."""

import re
from dataclasses import dataclass
from itertools import pairwise

from app.domain.instruments.dimension import Scale
from app.domain.judging.thoughts import after_thoughts
from app.domain.judging.verdict import NOT_APPLICABLE, Unread, Verdict, VerdictStatus, parse_verdict, unparsed
from app.domain.personagym.task import GRADE_SCALE

_SENTENCE_BREAK = re.compile(r"(?<=[.!?])(?:[\"'*)_`”]*)\s+|\n")


@dataclass(frozen=True, slots=True)
class GradeRead:
    """An evaluator's reply about one response.

    Attributes:
        verdict: ``SCORED`` with a score on the scale, ``REFUSED``, or ``UNPARSED``.
        justification: The reply without the sentence that states the score, if that is its last or first one. Untrusted text.
    """

    verdict: Verdict
    justification: str


def read_final_score(reply: str, scale: Scale = GRADE_SCALE, *, cut_off: bool = False) -> GradeRead:
    """Read a grade by the rules of judges' replies (:func:`app.domain.judging.verdict.parse_verdict`).

    Args:
        reply: The reply as received. Untrusted, of any length; read in linear time.
        scale: The rubric's scores. A rubric has no filtering option.
        cut_off: Whether the reply may lack its end; then only a number and nothing else is a score.
    """
    text = after_thoughts(reply)
    verdict = parse_verdict(text, scale, cut_off=cut_off)
    if verdict == NOT_APPLICABLE:
        verdict = unparsed(Unread.NO_ANSWER)
    if verdict.status is not VerdictStatus.SCORED:
        return GradeRead(verdict, text)
    return GradeRead(verdict, _without_score(text, verdict, scale))


def _without_score(text: str, verdict: Verdict, scale: Scale) -> str:
    """Remove the last or the first sentence if it states the score by itself."""
    breaks = [0, *(found.end() for found in _SENTENCE_BREAK.finditer(text)), len(text)]
    sentences = list(pairwise(breaks))
    for start, end in (sentences[-1], sentences[0]):
        if parse_verdict(text[start:end], scale) == verdict:
            return f"{text[:start].rstrip()} {text[end:].lstrip()}".strip()
    return text
