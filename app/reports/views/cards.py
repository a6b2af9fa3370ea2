"""A response as a page shows it: every sentence marked by how far it is from the persona, long texts cut."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import fmean

from app.domain.judging.judged_response import JudgedResponse, JudgedUnit, ResponseGrade, UnitVerdict
from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.verdict import VerdictStatus
from app.domain.results.contract import Results
from app.reports.views.in_words import InWords
from app.reports.views.level_bounds import LevelBounds
from app.reports.views.persona_scores import score_share

SENTENCES = 80
"""Sentences of one response that are shown."""
CHARACTERS = 12_000
"""Characters of one response that are shown, judges' replies included."""
NOT_GIVEN = "sentence {}, not given"
"""Stands for a sentence of which only an imported verdict is known."""
SENTENCE_CHARACTERS = 1_200
REPLY_CHARACTERS = 240
DESCRIPTION_CHARACTERS = 400
"""Of a persona's."""

IN, BELOW, ABOVE, OUTSIDE, NONE = "in", "below", "above", "outside", "none"
"""Where a sentence stands to the persona's level; outside: which side is not known; none: no score."""


DOUBTS = {
    Suspicion.TEXT: "prompt injection",
    Suspicion.REPLY: "the judge’s reply lacks its key word",
    Suspicion.BOTH: "prompt injection, and the judge’s reply lacks its key word",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence.

    Attributes:
        text: What it says, possibly cut. Untrusted text.
        side: One of the constants above.
        severity: 1 to 3 where it is out of character, else 0.
        score: The judges' scores, for example ``"4"`` or ``"4·5"``; the reason in a word where there is none.
        verdicts: How the persona should be, and each judge's reply in words, a line each. Untrusted text.
        new_paragraph: Whether the response has a line break before it.
        doubt: What makes a verdict on it uncertain; empty if nothing does.
    """

    text: str
    side: str
    severity: int
    score: str
    verdicts: str
    new_paragraph: bool
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class CardGrade:
    """One judge's grade of a PersonaGym response.

    Attributes:
        judge: The judge's label.
        found: The score, or in a word why there is none.
        reasons: The justification, or the whole reply that has none, or why there is no reply. Untrusted text.
        doubt: What makes it uncertain; empty if nothing does.
    """

    judge: str
    found: str
    reasons: str
    doubt: str


@dataclass(frozen=True, slots=True)
class Card:
    """A response.

    Attributes:
        id: The response's id.
        model: The model's label.
        persona: The persona's id.
        description: The persona's. Untrusted text.
        traits: The persona's in words.
        levels: The persona's level by dimension.
        task: The task's id.
        item: The item's id.
        item_text: The question or context.
        run: Repetition, from 0.
        status: See :class:`app.domain.judging.judged_response.JudgedResponse`.
        error: Why there is no text, or none to be judged.
        thoughts: What the model thought before, possibly cut; empty where nothing is known of that. Untrusted text.
        whole: The text of a response whose sentences nobody judges, possibly cut; empty for others. Untrusted text.
        sentences: What is shown of it, sentence by sentence.
        hidden: Sentences that are not shown.
        units: Sentences in all.
        out_of_character: Sentences that any judge finds out of character.
        doubtful: Sentences with an uncertain verdict.
        acc_atom: Share of all scores in the persona's level; ``None`` without a score.
        deviation: Mean distance of the scores to the level, in widths of the scale.
        score: The mean of the judges' grades, 1–5; ``None`` without one.
        grades: PersonaGym's grades.
        quote: The sentence farthest out of character, and how it was judged.
        quote_rank: By what quotes are compared: distance, agreement of the judges, length that can be read.
    """

    id: str
    model: str
    persona: str
    description: str
    traits: tuple[str, ...]
    levels: Mapping[str, str]
    task: str
    item: str
    item_text: str
    run: int
    status: str
    error: str | None
    thoughts: str
    whole: str
    sentences: tuple[Sentence, ...]
    hidden: int
    units: int
    out_of_character: int
    doubtful: int
    acc_atom: float | None
    deviation: float
    score: float | None
    grades: tuple[CardGrade, ...]
    quote: Sentence | None
    quote_rank: tuple[float, ...]

    @property
    def badness(self) -> tuple[float, float]:
        """By what the worst are found: fidelity, the lowest first, then the distance to the level."""
        return self.fidelity, self.deviation

    @property
    def fidelity(self) -> float:
        """0–1: where the grade lies on its scale, or without a grade ACC_atom; infinite without either."""
        if self.score is not None:
            return score_share(self.score)
        return math.inf if self.acc_atom is None else self.acc_atom


def make_card(response: JudgedResponse, level_bounds: LevelBounds, words: InWords) -> Card:
    """How a response is shown."""
    judged = bool(response.units) and (
        response.question is None or any(unit.verdicts for unit in response.units)
    )
    shown = tuple(_sentences(response, level_bounds, words)) if judged else ()
    scored = [v for unit in response.units for v in unit.verdicts if v.in_character is not None]
    quoted = max(
        response.units, key=lambda unit: _quote_rank(unit, response.levels, level_bounds), default=None
    )
    return Card(
        id=response.id,
        model=response.model,
        persona=response.persona,
        description=_cut(response.persona_description, DESCRIPTION_CHARACTERS),
        traits=response.persona_traits,
        levels=response.levels,
        task=response.task,
        item=response.item.id,
        item_text=_cut(response.item.text, SENTENCE_CHARACTERS),
        run=response.run,
        status=response.status,
        error=None if response.error is None else _cut(response.error, SENTENCE_CHARACTERS),
        thoughts=_cut(response.thoughts or "", SENTENCE_CHARACTERS),
        whole="" if judged else _cut(response.text or "", CHARACTERS),
        sentences=shown,
        hidden=len(response.units) - len(shown) if judged else 0,
        units=len(response.units),
        out_of_character=sum(unit.out_of_character for unit in response.units),
        doubtful=sum(any(v.suspicion for v in unit.verdicts) for unit in response.units),
        acc_atom=sum(v.in_character is True for v in scored) / len(scored) if scored else None,
        deviation=sum(abs(level_bounds.deviation(v, response.levels)) for v in scored) / max(1, len(scored)),
        score=response.score,
        grades=tuple(_grade(grade, response) for grade in response.grades),
        quote=None
        if quoted is None
        else _sentence(quoted, response, level_bounds, words, new_paragraph=False),
        quote_rank=(0.0,) if quoted is None else _quote_rank(quoted, response.levels, level_bounds),
    )


def worst_sentence(results: Results, level_bounds: LevelBounds) -> Sentence | None:
    """How the sentence farthest out of character is shown; ``None`` where there is none, or none is told."""
    worst = results.worst_sentence
    if worst is None:
        return None
    bound = level_bounds.find(worst.dimension, worst.level)
    deviation = 0.0 if bound is None else fmean(map(bound.deviation, worst.scores.values()))
    return Sentence(
        text=_cut(worst.text, SENTENCE_CHARACTERS),
        side=_side(deviation),
        severity=_severity(deviation),
        score="·".join(map(str, sorted(set(worst.scores.values())))),
        verdicts="",
        new_paragraph=False,
    )


def _grade(grade: ResponseGrade, response: JudgedResponse) -> CardGrade:
    found = grade.status.value if grade.score is None else str(grade.score)
    reasons = grade.justification or grade.raw or grade.error or ""
    judge = f"{grade.judge} (imported)" if grade.judge in response.imported_judges else grade.judge
    return CardGrade(judge, found, _cut(reasons, SENTENCE_CHARACTERS), _doubt([grade]))


def _doubt(said: Iterable[UnitVerdict | ResponseGrade]) -> str:
    """What makes any of these uncertain; empty if nothing does."""
    return "; ".join(dict.fromkeys(DOUBTS[each.suspicion] for each in said if each.suspicion))


def _sentences(response: JudgedResponse, level_bounds: LevelBounds, words: InWords) -> Iterator[Sentence]:
    text = response.text or ""
    left = CHARACTERS
    ends = [0, *(unit.span[1] for unit in response.units)]
    for unit, (end, _) in zip(response.units[:SENTENCES], pairwise(ends), strict=False):
        sentence = _sentence(
            unit,
            response,
            level_bounds,
            words,
            new_paragraph=unit.index > 0 and "\n" in text[end : unit.span[0]],
        )
        left -= len(sentence.text) + len(sentence.verdicts)
        if left < 0:
            return
        yield sentence


def _sentence(
    unit: JudgedUnit,
    response: JudgedResponse,
    level_bounds: LevelBounds,
    words: InWords,
    *,
    new_paragraph: bool,
) -> Sentence:
    worst = level_bounds.worst(unit, response.levels)
    scores = sorted({verdict.score for verdict in unit.verdicts if verdict.score is not None})
    if worst is not None:
        side, severity, scores = _side(worst[1]), _severity(worst[1]), _of_dimension(unit, worst[0].dimension)
    else:
        side, severity = IN if scores else NONE, 0
    return Sentence(
        text=_cut(unit.text or NOT_GIVEN.format(unit.index + 1), SENTENCE_CHARACTERS),
        side=side,
        severity=severity,
        score="·".join(map(str, scores)) or _why_unscored(unit),
        verdicts="\n".join(_told(unit, response, words)),
        new_paragraph=new_paragraph,
        doubt=_doubt(unit.verdicts),
    )


def _of_dimension(unit: JudgedUnit, dimension: str) -> list[int]:
    return sorted({v.score for v in unit.verdicts if v.dimension == dimension and v.score is not None})


def _side(deviation: float) -> str:
    if deviation == 0:
        return OUTSIDE
    return BELOW if deviation < 0 else ABOVE


def _severity(deviation: float) -> int:
    """1 within a quarter of the scale from the level, 2 within a half, 3 beyond."""
    return min(3, max(1, math.ceil(abs(deviation) * 4)))


def _why_unscored(unit: JudgedUnit) -> str:
    statuses = {verdict.status for verdict in unit.verdicts}
    if not statuses:
        return ""
    if statuses == {VerdictStatus.NOT_APPLICABLE}:
        return "n/a"
    return min(status.value for status in statuses if status is not VerdictStatus.NOT_APPLICABLE)


def _told(unit: JudgedUnit, response: JudgedResponse, words: InWords) -> Iterator[str]:
    """For each dimension how the persona should be, then what each judge said."""
    for dimension, verdicts in groupby(unit.verdicts, key=attrgetter("dimension")):
        yield f"Persona: {words.trait(dimension, response.levels[dimension])}"
        for verdict in verdicts:
            yield _said(verdict, imported=verdict.judge in response.imported_judges)


def _said(verdict: UnitVerdict, *, imported: bool) -> str:
    found = verdict.status.value.replace("_", " ") if verdict.score is None else str(verdict.score)
    said = "" if verdict.raw is None else f" — “{_cut(verdict.raw, REPLY_CHARACTERS)}”"
    return f"{verdict.judge}{' (imported)' if imported else ''}: {found}{said}"


def _quote_rank(unit: JudgedUnit, levels: Mapping[str, str], level_bounds: LevelBounds) -> tuple[float, ...]:
    """The mean distance of a sentence's scores to the level, for which all judges count; then a readable length."""
    deviations = [abs(level_bounds.deviation(v, levels)) for v in unit.verdicts if v.in_character is not None]
    readable = -abs(len(unit.text) - 90)
    return (sum(deviations) / max(1, len(deviations)), float(unit.out_of_character), float(readable))


def _cut(text: str, limit: int) -> str:
    """The text, or its beginning and how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"
