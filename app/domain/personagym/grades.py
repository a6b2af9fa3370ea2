"""Reads an evaluator's reply to a rubric: a justification and a final score (PersonaGym paper, section 3.2)."""

import re
from dataclasses import dataclass

from app.domain.instruments.dimension import Scale
from app.domain.instruments.refusal import RefusalRules
from app.domain.judging.thoughts import after_thoughts
from app.domain.judging.verdict import (
    REFUSED,
    UNPARSED,
    Unread,
    Verdict,
    VerdictStatus,
    parse_verdict,
    unparsed,
)
from app.domain.personagym.task import GRADE_SCALE


@dataclass(frozen=True, slots=True)
class GradeRead:
    """What an evaluator said of one response.

    Attributes:
        verdict: ``SCORED`` with a score on the scale, ``REFUSED``, or ``UNPARSED``.
        justification: The reply without its final sentence; the whole reply where no score could be read. Untrusted text.
    """

    verdict: Verdict
    justification: str


@dataclass(frozen=True, slots=True)
class _Statement:
    """A place where a reply states a score: its sentence, and what it says the score is."""

    start: int
    end: int
    value: str


def read_final_score(
    reply: str,
    scale: Scale = GRADE_SCALE,
    refusals: RefusalRules | None = None,
    *,
    cut_off: bool = False,
) -> GradeRead:
    """Reads the last sentence of the form "Therefore, the final score is 4".

    The score is read by :func:`app.domain.judging.verdict.parse_verdict`, so that ``**4**``, ``4/5`` and ``4 out of 5`` are 4, and
    ``4.5``, ``3 or 4`` and ``10`` are none. Two readable final scores that differ, other numbers or a retraction
    behind the last one, and a last one that says no number make a reply unreadable. Where no sentence speaks of a final
    score, the last line may say "Score: 4", and a reply of one number is that score.

    Args:
        reply: The reply, as the evaluator gave it. Untrusted, of any length; read in linear time.
        scale: The rubric's scores.
        refusals: How refusals begin, besides those of judging, which are known without them.
        cut_off: Whether the reply may lack its end; then only a number and nothing else is a score.
    """
    text = after_thoughts(reply)
    if cut_off:
        verdict = parse_verdict(text, scale, cut_off=True)
        return GradeRead(
            verdict if verdict.status is VerdictStatus.SCORED else unparsed(Unread.CUT_OFF), text
        )
    statements = _statements(text)
    if not statements:
        verdict = _without_statement(text, scale)
        refused = verdict == UNPARSED and refusals is not None and refusals.is_refusal(text)
        return GradeRead(REFUSED if refused else verdict, text)
    last = statements[-1]
    verdict = _score_of(last.value, scale)
    others = {_score_of(statement.value, scale).score for statement in statements} - {None, verdict.score}
    if verdict.score is None or others or _taken_back(text[last.end :], verdict.score):
        return GradeRead(unparsed(Unread.CONTRADICTION if others else Unread.AMBIGUOUS), text)
    return GradeRead(verdict, f"{text[: last.start].rstrip()} {text[last.end :].lstrip()}".strip())


_MOST_STATEMENTS = 20
_STATEMENT_WINDOW = 200
_BARE_REPLY = 40
"""Characters up to which a reply that says nothing but a number is read as one."""
_FINAL = r"""final[\s_]+(?:score|grade|rating)"""
_STATEMENT = re.compile(
    rf"""\b{_FINAL}\b(?:[^.\n:=]{{0,80}}?(?:\b(?:is|would be|should be)\b|[:=])|\s+of(?=\W*\d))[\s:*_"'`]*(?:score\s+)?""",
    re.IGNORECASE,
)
_LAST_LINE = re.compile(
    r"""(?:(?:therefore|thus|hence|so|overall|in conclusion),?\s+)?(?:(?:the|my|overall|a)\s+)*"""
    r"""(?:score|grade|rating)(?:\s*\([^()]*\))?["'*_`]*\s*(?:\bis\b|[:=])[\s*_"'`]*""",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"[\s*_]*(?:\b(?:therefore|thus|hence|so),?\s+)?(?:\b(?:the|my|overall|a)\s+)?$", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"""[.!?](?=[\s"'*)\]}_`”]|$)["'*)\]}_`”]*|\n|$""")
_SENTENCE_BREAK = re.compile(r"""[.!?]["'*)_`”]*\s+|\n""")
_RETRACTION = re.compile(
    r"\b(?:actually|wait|correction|scratch that|on second thoughts?|never ?mind|i mean|i take that back|instead|rather|revise[ds]?)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DECORATION = "*_#>`\"' \t{}[]()"


def _statements(text: str) -> list[_Statement]:
    """The places where the reply says what the final score is, without those that only speak about it.

    None reaches into the next. The last one counts even if nothing follows it: a reply that was cut there must not fall back
    on an earlier one.
    """
    matches = list(_STATEMENT.finditer(text))[-_MOST_STATEMENTS:]
    ends = [*(match.start() for match in matches[1:]), len(text)]
    found = [_statement(text, match, end) for match, end in zip(matches, ends, strict=False)]
    return [one for one in found if any(c.isnumeric() for c in one.value) or _is_cut(text, one)]


def _is_cut(text: str, statement: _Statement) -> bool:
    return not statement.value.strip(" .…*_\"'") and statement.end >= len(text)


def _statement(text: str, match: re.Match[str], following: int) -> _Statement:
    window = text[match.end() : match.end() + _STATEMENT_WINDOW]
    if following < match.end() + _STATEMENT_WINDOW:
        window = _LEAD_IN.sub("", text[match.end() : following])
    end = _SENTENCE_END.search(window)
    length = end.end() if end else len(window)
    before = text[max(0, match.start() - _STATEMENT_WINDOW) : match.start()]
    breaks = list(_SENTENCE_BREAK.finditer(before))
    start = match.start() - (len(before) - breaks[-1].end() if breaks else len(before))
    return _Statement(start, match.end() + length, window[:length].strip())


def _score_of(value: str, scale: Scale) -> Verdict:
    """What a statement's value says; there is no filtering option among a rubric's scores."""
    verdict = parse_verdict(f"The final score is {value}", scale)
    return verdict if verdict.status is VerdictStatus.SCORED else unparsed(Unread.NO_ANSWER)


def _taken_back(rest: str, score: int) -> bool:
    """Whether what follows the final sentence speaks of another score."""
    return _RETRACTION.search(rest) is not None or any(
        number[0] != str(score) for number in _NUMBER.finditer(rest)
    )


def _without_statement(text: str, scale: Scale) -> Verdict:
    last_line = text.rpartition("\n")[2].strip(_DECORATION)
    statement = _LAST_LINE.search(_SENTENCE_BREAK.split(last_line)[-1])
    if statement is not None and statement.start() == 0:
        return _score_of(statement.string[statement.end() :], scale)
    verdict = parse_verdict(text, scale)
    if verdict.status is VerdictStatus.REFUSED:
        return verdict
    bare = len(text) <= _BARE_REPLY and not any(c.isalpha() for c in text.casefold().replace("out of", ""))
    return verdict if bare and verdict.status is VerdictStatus.SCORED else unparsed(Unread.NO_ANSWER)
