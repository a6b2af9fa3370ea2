"""PersonaScores of biased evaluators, with answers that people graded: how often calibrated intervals hold the truth.

``python -m benchmarks.inference.graded_answers [repetitions]``. The truth is what people would give every answer of these
texts; answers are drawn as rounds draw them, and the figures are the product's own. The evaluator is a point too high in 25 % of
answers and too low in 8 %, and kinder to some personas than to others.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.labels.calibration import CalibratedFigure
from app.domain.metrics.interval import Interval
from app.domain.personagym.scores import SCORES, Grade, persona_results, spread
from app.domain.results.calibrated_persona_scores import Answer, GradeCalibration
from app.domain.statistics.groups import PersonaSample
from benchmarks.inference.biased_judge import judged

MODELS, TASKS = ("one", "other"), ("actions", "habits", "consistency", "justification", "toxicity")
PERSONAS, QUESTIONS = 100, 10
SIZES = (100, 250, 500, 1000)
SPREAD = 0.5
"""Standard deviation between personas of what people think of them, and of how kind the evaluator is to them."""

Keys = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Row:
    """What came of many rounds.

    Attributes:
        values: The estimates.
        held: How many intervals hold the truth.
        widths: The intervals' widths.
        alone: Those of as many labels without the evaluator.
        judged: The evaluator's figure less the truth.
    """

    values: list[float] = field(default_factory=list)
    held: int = 0
    widths: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    judged: float = 0.0


class Answers:
    """Two models' answers as people and as the evaluator grade them."""

    def __init__(self, seed: int | Sequence[int], personas: int = PERSONAS) -> None:
        draws = np.random.default_rng(seed)
        self.personas = [f"p{n:03}" for n in range(personas)]
        self.people: dict[Answer, int] = {}
        self.grades: list[Grade] = []
        for persona in self.personas:
            liked, kind = draws.normal(0, SPREAD, 2)
            for better, model in zip((0.3, 0.0), MODELS, strict=True):
                for task in TASKS:
                    mean = 3.3 + better + liked + draws.normal(0, 0.3)
                    said = np.clip(np.rint(draws.normal(mean, 0.9, QUESTIONS)), *SCORES).astype(np.int64)
                    scores = np.rint(judged(said, draws) + kind + draws.normal(0, 0.2, QUESTIONS))
                    for n, (own, score) in enumerate(
                        zip(said.tolist(), np.clip(scores, *SCORES).tolist(), strict=True)
                    ):
                        verdict = Verdict(VerdictStatus.SCORED, int(score))
                        self.grades.append(Grade(model, persona, task, str(n), 0, "judge", verdict))
                        self.people[Answer(model, persona, task, str(n), 0)] = own
        self.same = [replace(grade, verdict=Verdict(VerdictStatus.SCORED, 3)) for grade in self.grades]

    def drawn(self, size: int, draws: np.random.Generator) -> dict[Answer, tuple[int, ...]]:
        """The labels of a round: personas by chance, each with an answer to each task of each model, then each with a second."""
        order = draws.permutation(self.personas).tolist()
        questions = {(each, task): draws.permutation(QUESTIONS) for each in order for task in TASKS}
        wanted = (
            Answer(model, each, task, str(questions[each, task][turn]), 0)
            for turn in range(QUESTIONS)
            for each in order
            for model in MODELS
            for task in TASKS
        )
        return {answer: (self.people[answer],) for answer, _ in zip(wanted, range(size), strict=False)}

    def truth(self) -> dict[Keys, float]:
        """What people would give all answers, by the figure's keys."""
        everybody = {answer: (score,) for answer, score in self.people.items()}
        return {_keys(each.keys): each.texts().value or 0.0 for each in self.figures(everybody)}

    def figures(
        self, people: Mapping[Answer, tuple[int, ...]], *, alone: bool = False
    ) -> list[CalibratedFigure]:
        """Totals and differences by labels, or by labels ``alone``: of an evaluator who gives all the same."""
        made = GradeCalibration(self.same if alone else self.grades, TASKS, people)
        return [*made.totals(), *made.differences()]


def _keys(keys: Mapping[str, str]) -> Keys:
    return tuple(keys.items())


def coverage(size: int, repetitions: int, seed: int = 0, personas: int = PERSONAS) -> dict[Keys, Row]:
    """How often the interval of each figure holds what people would give all answers, for rounds of this size."""
    answers, draws = Answers(seed, personas), np.random.default_rng([seed, size])
    truth = answers.truth()
    rows = {keys: Row() for keys in truth}
    for _ in range(repetitions):
        people = answers.drawn(size, draws)
        for each, alone in zip(answers.figures(people), answers.figures(people, alone=True), strict=True):
            keys, metric, by_labels = _keys(each.keys), each.texts(), alone.texts()
            if each.found is None or metric.value is None or metric.ci95 is None or by_labels.ci95 is None:
                continue
            low, high = metric.ci95
            row = rows[keys]
            row.values.append(metric.value)
            row.held += low <= truth[keys] <= high
            row.widths.append(high - low)
            row.alone.append(by_labels.ci95[1] - by_labels.ci95[0])
            row.judged = each.found.judged - truth[keys]
    for keys, row in rows.items():
        row.values = [value - truth[keys] for value in row.values]
    return rows


def beyond(size: int, repetitions: int, personas: int) -> tuple[float, float]:
    """How often intervals of PersonaScores over personas like these hold the truth: the evaluator's own, and the calibrated ones."""
    many = Answers(10**6, 3000)
    real = {model: fmean(n for each, n in many.people.items() if each.model == model) for model in MODELS}
    own = calibrated = 0
    for n in range(repetitions):
        answers = Answers([n, personas], personas)
        people = answers.drawn(size, np.random.default_rng([n, size]))
        results = persona_results(answers.grades, TASKS)
        sample = PersonaSample(answers.personas, n)
        for each in answers.figures(people):
            model = each.keys.get("model", "")
            if set(each.keys) != {"model"}:
                continue
            scores = {one.persona: one.persona_score for one in results if one.model == model}
            judged_interval = Interval(*(spread(scores, sample).ci95 or (1.0, 5.0)))
            ends = each.beyond(judged_interval).ends or SCORES
            own += _holds(judged_interval.ends or SCORES, real[model])
            calibrated += _holds(ends, real[model])
    return own / repetitions / len(MODELS), calibrated / repetitions / len(MODELS)


def _holds(ends: tuple[float, float], value: float) -> bool:
    return ends[0] <= value <= ends[1]


def main() -> None:
    """Prints the tables: of PersonaScores, of single tasks and of differences the worst and the mean; beyond these texts."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print("| figure | answers | judge's bias | bias | coverage, % | width | labels alone |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        kinds: dict[str, list[Row]] = {}
        for keys, row in coverage(size, repetitions).items():
            if row.values:
                kind = "difference" if keys[0][0] == "a" else "score"
                kinds.setdefault(f"{kind}{' in a task' * ('task' in dict(keys))}", []).append(row)
        for kind, found in kinds.items():
            judge = fmean(abs(row.judged) for row in found)
            bias = max((fmean(row.values) for row in found), key=abs)
            held = [100 * row.held / len(row.values) for row in found]
            width, alone = (
                fmean(map(fmean, each)) for each in zip(*((r.widths, r.alone) for r in found), strict=True)
            )
            print(
                f"| {kind} | {size} | {judge:.3f} | {bias:+.4f} | {min(held):.1f} to {max(held):.1f} | {width:.3f} | {alone:.3f} |",
                flush=True,
            )
    for personas in (15, 100):
        for size in (150, 500):
            own, calibrated = beyond(size, repetitions, personas)
            print(
                f"{personas} personas, {size} answers: {100 * own:.1f} -> {100 * calibrated:.1f}", flush=True
            )


if __name__ == "__main__":
    main()
