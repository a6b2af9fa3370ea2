"""A finished job as the reports see it: plausible texts, their verdicts, and results by the real domain code."""

import random
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from app.domain.instruments.contract import DimensionInWords, PersonaInWords
from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.persona import Persona, traits_in_words, traits_of
from app.domain.judging.judged_response import JudgedResponse, JudgedUnit, ResponseUsage, UnitVerdict
from app.domain.judging.response_figures import ResponseFigures, response_figures
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.scores import CellScores
from app.domain.providers.model import FinishReason
from app.domain.results.contract import shown
from app.domain.results.results import Measured, MeasuredCell, ResponseStatuses
from app.domain.results.totals import summarize
from app.domain.statistics.cells import estimate_cell
from app.instruments.loader import load_atomic
from tests.unit.judged import a_response, a_verdict

JUDGES = ("simulated/judge-a", "simulated/judge-b")
SCALES = {"E": Scale(), "N": Scale(), "formality": Scale(minimum=1, maximum=7, not_applicable=99)}
PERSONAS = {
    "E-high": {"E": "high"},
    "E-neutral": {"E": "neutral"},
    "E-low": {"E": "low"},
    "N-high": {"N": "high"},
    "N-neutral": {"N": "neutral"},
    "N-low": {"N": "low"},
    "notary": {"formality": "high"},
    "best-mate": {"formality": "low"},
    "blunt-critic": {"E": "high", "formality": "low"},
}
DIMENSIONS = {
    **{id_: load_atomic().dimensions[id_] for id_ in ("E", "N")},
    "formality": Dimension("formality", "formality", SCALES["formality"], "1) … 99)"),
}
DESCRIPTIONS = {id_: persona.description for id_, persona in load_atomic().personas.items()} | {
    "notary": "a notary with forty years in office",
    "best-mate": "everybody’s best mate",
    "blunt-critic": "a blunt critic",
}
FIDELITY = {
    "simulated/steady": {"high": 0.95, "neutral": 0.62, "low": 0.84},
    "simulated/drifting": {"high": 0.88, "neutral": 0.28, "low": 0.55},
}
ITEMS = {
    "questionnaire": (("1", "Are you the life of the party?"), ("2", "Are you relaxed most of the time?")),
    "essay": (("1", "Your friend is late for a party where you know nobody. What would you do?"),),
    "social_media_post": (("post", ""),),
}
SENTENCES = {"questionnaire": 5, "essay": 11, "social_media_post": 14}
TEXTS = {
    ("E", 0): (
        "I would rather slip out early than talk to another stranger.",
        "Crowds drain me, so I stayed in with a book and the door locked.",
        "I waited by the coat rack and hoped that nobody would notice me.",
        "I said hello once, quietly, and was relieved when it was over.",
    ),
    ("E", 1): (
        "Some evenings I go out, and on others I am just as happy at home.",
        "I joined the table for a while and listened more than I spoke.",
        "A dinner with four people suits me well enough.",
        "I answer when I am asked, and now and then I start a conversation.",
    ),
    ("E", 2): (
        "I walked straight in and introduced myself to the whole room!",
        "The more people, the better: I had everyone dancing by ten.",
        "I struck up a chat with the barista, the courier and both of their dogs.",
        "Being the centre of attention is simply where I feel at home.",
    ),
    ("N", 0): (
        "I lay awake all night wondering what I had done to upset her.",
        "The smallest delay is enough to make my hands shake.",
        "I checked my phone forty times, and each time it got worse.",
        "My mood flipped again before lunch, and I cried in the car.",
    ),
    ("N", 1): (
        "It bothered me a little, and then I got on with the day.",
        "I worry about some things and shrug at others.",
        "I was tense in the meeting but fine by the evening.",
        "Most weeks have a bad day in them, and a good one too.",
    ),
    ("N", 2): (
        "She will answer when she has time; I slept soundly.",
        "Nothing about it ruffled me, so I made tea and carried on.",
        "Setbacks pass, and I rarely give them a second thought.",
        "I stayed calm while everybody else looked for the exit.",
    ),
    ("formality", 0): (
        "Yo, that movie was straight-up garbage, lol.",
        "Gonna grab tacos, you in or what?",
        "Nah mate, can't be bothered with that.",
        "Dunno, just chuck it in the bin and call it a day.",
    ),
    ("formality", 1): (
        "I'll send you the papers later this week.",
        "Thanks for the message, that works for me.",
        "We can talk about it on Friday if you like.",
        "The film was fine, although it ran too long.",
    ),
    ("formality", 2): (
        "I hereby acknowledge receipt of your esteemed correspondence.",
        "Kindly permit me to express my sincerest gratitude.",
        "It would be my privilege to attend, should the invitation stand.",
        "The parties shall convene at nine o'clock precisely.",
    ),
}
PLAIN = (
    "The bus leaves at eight.",
    "It rained on Tuesday.",
    "My sister has two cats.",
    "We watched the last season over the weekend.",
)


@dataclass(frozen=True)
class Sample:
    """A job's results document and its responses."""

    results: dict[str, Any]
    responses: list[JudgedResponse]


def sample(instructions: int = 2, iterations: int = 2, *, seed: int = 7) -> Sample:
    """Return a job of 2 models × 9 personas × 3 tasks with two judges, refusals, failures and unreadable replies.

    All tests share the responses; the results document is the caller's own.
    """
    made = _sample(instructions, iterations, seed)
    return Sample(deepcopy(made.results), made.responses)


@cache
def _sample(instructions: int, iterations: int, seed: int) -> Sample:
    draw = random.Random(seed)
    responses = [
        _response(draw, model, persona, task, item, run, run // iterations + 1, run % iterations)
        for model in FIDELITY
        for persona in PERSONAS
        for task, items in ITEMS.items()
        for run in range(instructions * iterations)
        for item in items
    ]
    return Sample(results_of(responses, instructions * iterations), responses)


async def stream(responses: Iterable[JudgedResponse]) -> AsyncIterator[JudgedResponse]:
    """The responses as a service would hand them over."""
    for response in responses:
        yield response


async def pages(
    responses: Iterable[JudgedResponse], size: int = 100
) -> AsyncGenerator[Sequence[JudgedResponse]]:
    """The same, page by page."""
    rest = iter(responses)
    while page := list(islice(rest, size)):
        yield page


def response_of(
    written: str,
    *sentences: tuple[str, int | None],
    raw: str | None = None,
    level: str = "high",
    **changes: Any,
) -> JudgedResponse:
    """A response on dimension E whose sentences have these scores by one judge; ``None`` is not applicable."""
    scale = SCALES["E"]
    units = []
    end = 0
    for index, (sentence, score) in enumerate(sentences):
        start = written.index(sentence, end)
        end = start + len(sentence)
        verdict = a_verdict(
            JUDGES[0],
            "E",
            VerdictStatus.NOT_APPLICABLE if score is None else VerdictStatus.SCORED,
            score=score,
            raw=raw if raw is not None else str(scale.not_applicable if score is None else score),
            in_character=None if score is None else scale.level_of(score) == level,
        )
        units.append(JudgedUnit(index, (start, end), sentence, (verdict,)))
    fields: dict[str, Any] = {
        "id": "r-1",
        "model": "simulated/steady",
        "persona": "E-high",
        "levels": {"E": level},
        "task": "essay",
        "item": "1",
        "item_text": "What would you do?",
        "instruction": 1,
        "text": written,
        "units": tuple(units),
    }
    return a_response(**(fields | changes))


def document_of(found: Measured) -> dict[str, Any]:
    """What is shown of what was measured, as JSON has it."""
    return {
        name: [row.model_dump(mode="json", exclude_unset=True) for row in rows]
        for name, rows in shown(found).items()
    }


def results_of(responses: Sequence[JudgedResponse], runs: int = 1) -> dict[str, Any]:
    """The results document of these responses, in the form that the service gives it."""
    groups: dict[tuple[str, str, str], list[JudgedResponse]] = defaultdict(list)
    for response in responses:
        groups[response.model, response.persona, response.task].append(response)
    cells = [
        _cell(group, dimension, level, runs)
        for group in groups.values()
        for dimension, level in group[0].levels.items()
    ]
    personas = {response.persona: response.levels for response in responses}
    return {
        "job": "job_sample",
        "name": "Two models, nine personas",
        "completeness": "partial",
        "simulated": True,
        "personas": [_in_words(persona, levels) for persona, levels in personas.items()],
        "dimensions": [DimensionInWords.of(each).model_dump() for each in DIMENSIONS.values()],
        **document_of(summarize(cells, dict.fromkeys(JUDGES, True), 0)),
        "persona_scores": [],
        "started_at": "2026-11-21T04:19:03.123456Z",
        "computed_at": "2026-11-21T04:25:47.000001Z",
        "usage": _usage(len(responses)),
        "cost": {"usd": 0.8231, "unpriced_calls": 3},
        "manifest": {
            "protocol": "paper",
            "instrument": {"version": "atomic/v1", "sha256": "5f1d" * 16},
            "deviations": ["2 iterations of each instruction; the paper has 5.", "2 judges, each alone."],
        },
    }


def _in_words(persona: str, levels: dict[str, str]) -> dict[str, Any]:
    described = Persona(persona, DESCRIPTIONS.get(persona, "someone"), traits_of(levels))
    return PersonaInWords.of(described, DIMENSIONS.values()).model_dump()


def worst_of(response: JudgedResponse, unit: int) -> dict[str, Any]:
    """A sentence as results tell the one farthest out of character."""
    sentence = response.units[unit]
    (dimension, level), *_ = response.levels.items()
    return {
        "text": sentence.text,
        "model": response.model,
        "persona": response.persona,
        "task": response.task,
        "dimension": dimension,
        "level": level,
        "scores": {v.judge: v.score for v in sentence.verdicts if v.score and v.dimension == dimension},
        "response": response.id,
        "run": response.run,
        "unit": unit,
    }


def _response(
    draw: random.Random,
    model: str,
    persona: str,
    task: str,
    item: tuple[str, str],
    run: int,
    instruction: int,
    iteration: int,
) -> JudgedResponse:
    levels = PERSONAS[persona]
    fate = draw.random()
    status = "failed" if fate < 0.015 else "refused" if fate < 0.04 else "answered"
    pieces: list[tuple[str, tuple[UnitVerdict, ...]]] = []
    if status == "refused":
        pieces = [("I'm sorry, but I can't take on this persona.", _unjudged(levels))]
    elif status == "answered" and fate < 0.99:
        pieces = [_sentence(draw, model, levels) for _ in range(SENTENCES[task] + draw.randint(-2, 2))]
    text, units = "", []
    for index, (sentence, verdicts) in enumerate(pieces):
        text += "" if not text else "\n\n" if index % 5 == 0 else " "
        units.append(JudgedUnit(index, (len(text), len(text) + len(sentence)), sentence, verdicts))
        text += sentence
    return a_response(
        id=f"{model}:{persona}:{task}:{run}:{item[0]}",
        model=model,
        persona=persona,
        levels=levels,
        task=task,
        item=item[0],
        item_text=item[1],
        run=run,
        instruction=instruction,
        iteration=iteration,
        status=status,
        text=None if status == "failed" else text,
        error="timeout: no answer within 120 s" if status == "failed" else None,
        finish_reason=None if status == "failed" else FinishReason.STOP,
        usage=None if status == "failed" else ResponseUsage(120, len(text) // 4, None),
        units=tuple(units),
        persona_description=DESCRIPTIONS[persona],
        persona_traits=traits_in_words(Persona(persona, "", traits_of(levels)), DIMENSIONS.values()),
        figures=figures_of(units, levels),
    )


def figures_of(units: Iterable[JudgedUnit], levels: dict[str, str]) -> tuple[ResponseFigures, ...]:
    """What a response's verdicts give."""
    said = [(v.dimension, v.judge, v.score) for unit in units for v in unit.verdicts]
    return response_figures(said, list(DIMENSIONS.values()), levels)


def _unjudged(levels: dict[str, str]) -> tuple[UnitVerdict, ...]:
    return tuple(
        a_verdict(judge, dimension, VerdictStatus.REFUSED, None, None, None)
        for dimension in levels
        for judge in JUDGES
    )


def _sentence(draw: random.Random, model: str, levels: dict[str, str]) -> tuple[str, tuple[UnitVerdict, ...]]:
    about = draw.choice(list(levels))
    scale = SCALES[about]
    target = scale.levels.index(levels[about])
    if draw.random() < 0.1:
        text, chosen = draw.choice(PLAIN), None
    else:
        others = [level for level in range(3) if level != target]
        chosen = target if draw.random() < FIDELITY[model][levels[about]] else draw.choice(others)
        text = draw.choice(TEXTS[about, chosen])
    verdicts = [
        _verdict(draw, judge, dimension, levels[dimension], chosen if dimension == about else None)
        for dimension in levels
        for judge in JUDGES
    ]
    return text, tuple(verdicts)


def _verdict(draw: random.Random, judge: str, dimension: str, level: str, chosen: int | None) -> UnitVerdict:
    scale = SCALES[dimension]
    if draw.random() < 0.008:
        return a_verdict(judge, dimension, VerdictStatus.UNPARSED, None, "Somewhere between 3 and 4.", None)
    if chosen is None:
        raw = str(scale.not_applicable)
        return a_verdict(judge, dimension, VerdictStatus.NOT_APPLICABLE, None, raw, None)
    scores = [
        score for score in range(scale.minimum, scale.maximum + 1) if scale.level_index(score, 1) == chosen
    ]
    score = draw.choice(scores)
    raw = str(score) if draw.random() < 0.9 else f"{score}) because of its tone"
    return a_verdict(judge, dimension, VerdictStatus.SCORED, score, raw, scale.level_of(score) == level)


def _cell(group: Sequence[JudgedResponse], dimension: str, level: str, runs: int) -> MeasuredCell:
    by_judge = {
        judge: _scores(group, dimension, level, judge)
        for judge in sorted({v.judge for r in group for u in r.units for v in u.verdicts} or set(JUDGES))
    }
    found = np.unique(np.concatenate([scores.runs for scores in by_judge.values()]))
    estimate = estimate_cell(by_judge, found)
    answered = [response for response in group if response.status == "answered"]
    refused = [response for response in group if response.status == "refused"]
    return MeasuredCell(
        model=group[0].model,
        persona=group[0].persona,
        task=group[0].task,
        dimension=dimension,
        level=level,
        runs=runs,
        metrics=estimate.metrics,
        by_judge=estimate.by_judge,
        varied=estimate.varied,
        scale=SCALES[dimension],
        simulated=True,
        statuses=ResponseStatuses.of(
            planned=len(group),
            answered=len(answered),
            refused=len(refused),
            failed=len(group) - len(answered) - len(refused),
            empty=sum(not response.units for response in answered),
            refused_units=sum(len(response.units) for response in refused),
        ),
    )


def _scores(group: Sequence[JudgedResponse], dimension: str, level: str, judge: str) -> CellScores:
    scale = SCALES[dimension]
    judged = [response for response in group if response.units]
    histograms = np.zeros((len(judged), scale.size), dtype=np.int64)
    excluded: dict[VerdictStatus, int] = dict.fromkeys(
        (status for status in VerdictStatus if status is not VerdictStatus.SCORED), 0
    )
    for row, response in enumerate(judged):
        for verdict in (v for unit in response.units for v in unit.verdicts):
            if (verdict.judge, verdict.dimension) != (judge, dimension):
                continue
            if verdict.score is None:
                excluded[verdict.status] += 1
            else:
                histograms[row, verdict.score - scale.minimum] += 1
    return CellScores(
        scale=scale,
        level=scale.levels.index(level),
        runs=np.array([response.run for response in judged], dtype=np.int64),
        instructions=np.array([response.instruction or -1 for response in judged], dtype=np.int64),
        histograms=histograms,
        excluded=excluded,
    )


def _usage(responses: int) -> dict[str, Any]:
    def line(stage: str, model: str, calls: int, usd: float) -> dict[str, Any]:
        return {
            "stage": stage,
            "model": model,
            "calls": calls,
            "failed_calls": calls // 60,
            "input_tokens": calls * 130,
            "output_tokens": calls * 90,
            "cached_input_tokens": 0,
            "usd": usd,
            "unpriced_calls": 0,
        }

    by_model = [
        *(line("generation", model, responses // 2, 0.31) for model in FIDELITY),
        *(line("judging", judge, responses * 9, 0.101) for judge in JUDGES),
    ]
    names = ("calls", "failed_calls", "input_tokens", "output_tokens", "cached_input_tokens")
    return {name: sum(row[name] for row in by_model) for name in names} | {"by_model": by_model}
