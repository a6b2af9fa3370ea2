"""What personas change: gains over the model's own self, and how often their intervals hold the truth."""

from collections.abc import Sequence

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.definition import MetricDefinition
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import METRICS
from app.domain.metrics.scores import UNKNOWN_INSTRUCTION, CellScores
from app.domain.results.control import Place, cell_gains, gain_totals
from app.domain.results.gains import CellGains, GainTotal
from app.domain.results.results import MeasuredCell
from app.domain.results.totals import totals
from app.domain.statistics.cells import CellEstimate, estimate_cell

SCALE = Scale()
LEVELS = SCALE.levels
WORDINGS, ITERATIONS, UNITS = 6, 5, 8
RUNS = WORDINGS * ITERATIONS
SELF = np.array([0.03, 0.07, 0.15, 0.4, 0.35])
"""How often a model without a persona gets each score."""


def estimated(
    histograms: np.ndarray,
    level: str,
    instructions: np.ndarray | None = None,
    scale: Scale = SCALE,
    wanted: Sequence[MetricDefinition] = METRICS,
) -> CellEstimate:
    runs = np.arange(len(histograms))
    known = np.full(len(runs), UNKNOWN_INSTRUCTION) if instructions is None else instructions
    scores = CellScores(scale, scale.levels.index(level), runs, known, histograms, {})
    return estimate_cell({"judge": scores}, runs, wanted)


def cell(found: CellEstimate, persona: str, level: str) -> MeasuredCell:
    return MeasuredCell("m", persona, "essay", "E", level, RUNS, found.metrics, varied=found.varied)


def always(score: int, runs: int = RUNS) -> np.ndarray:
    found = np.zeros((runs, SCALE.size), dtype=np.int64)
    found[:, score - 1] = UNITS
    return found


def alone(histograms: np.ndarray) -> dict[Place, CellEstimate]:
    return {("m", "essay", "E", level): estimated(histograms, level) for level in LEVELS}


def one_gain(with_persona: int, without: int, level: str) -> CellGains:
    wordings = np.repeat(np.arange(WORDINGS), ITERATIONS)
    found = cell(estimated(always(with_persona), level, wordings), "p", level)
    [gain] = cell_gains([found], alone(always(without)))
    return gain


class TestGain:
    @pytest.mark.parametrize(
        ("level", "with_persona", "without", "share", "toward"),
        [
            ("high", 5, 3, 1.0, 2.0),
            ("high", 4, 5, 0.0, -1.0),
            ("low", 1, 4, 1.0, 3.0),
            ("low", 4, 2, -1.0, -2.0),
        ],
    )
    def test_is_the_difference_and_of_means_the_way_toward_the_level(
        self, level: str, with_persona: int, without: int, share: float, toward: float
    ) -> None:
        gain = one_gain(with_persona, without, level)
        assert gain.acc_atom.gain.value == share
        assert gain.mean_toward_level.gain.value == toward

    def test_toward_a_level_counts_from_the_other_end(self) -> None:
        assert one_gain(2, 4, "low").mean_toward_level.with_persona == 3
        assert one_gain(2, 4, "high").mean_toward_level.with_persona == 1

    def test_toward_the_middle_there_is_no_way(self) -> None:
        gain = one_gain(3, 5, "neutral")
        assert gain.acc_atom.gain.value == 1
        missing = gain.mean_toward_level
        assert (missing.with_persona, missing.without, missing.gain.value) == (None, None, None)
        assert (missing.gain.reason or "").startswith("no_direction")

    @pytest.mark.parametrize("with_persona", [True, False])
    def test_is_missing_where_an_arm_is_silent(self, with_persona: bool) -> None:
        nothing, something = np.zeros((RUNS, SCALE.size), dtype=np.int64), always(5)
        found = estimated(something if with_persona else nothing, "high")
        silent = alone(nothing if with_persona else something)
        [gain] = cell_gains([cell(found, "p", "high")], silent)
        assert gain.acc_atom.gain.value is None
        assert (gain.acc_atom.without is None) is with_persona
        assert (gain.acc_atom.gain.reason or "").startswith(
            "no_control" if with_persona else "no_scored_unit"
        )

    def test_of_scales_that_differ_means_have_no_total(self) -> None:
        fine = Scale(0, 10, not_applicable=99)
        histograms = np.ones((RUNS, fine.size), dtype=np.int64)
        other = estimated(histograms, "high", scale=fine)
        cells = [cell(estimated(always(5), "high"), "p", "high")]
        cells.append(
            MeasuredCell("m", "q", "essay", "X", "high", RUNS, other.metrics, scale=fine, varied=other.varied)
        )
        places = alone(always(5)) | {("m", "essay", "X", "high"): other}
        [total] = [each for each in gain_totals(cells, places) if each.by == ["model"]]
        assert total.acc_atom.gain.value == 0
        assert (total.mean_toward_level.gain.reason or "").startswith("mixed_scales")


def job(
    draw: np.random.Generator, effect: float, spread: float
) -> tuple[list[MeasuredCell], list[GainTotal], float]:
    """A model that turns a share ``effect`` of its sentences to the level, more or less by persona and wording."""
    cells = []
    wordings = np.repeat(np.arange(WORDINGS), ITERATIONS)
    by_wording = draw.normal(0, spread, WORDINGS)
    for number in range(12):
        level = ("low", "high")[number % 2]
        share = np.clip(effect + by_wording[wordings] + draw.normal(0, spread), 0, 1)
        turned = draw.binomial(UNITS, share)
        histograms = np.array([draw.multinomial(UNITS - each, SELF) for each in turned])
        histograms[:, 0 if level == "low" else 4] += turned
        cells.append(cell(estimated(histograms, level, wordings), f"p{number}", level))
    control = draw.multinomial(UNITS, SELF, size=RUNS)
    by_level = {"low": SELF[:2].sum(), "high": SELF[3:].sum()}
    truth = float(np.mean([effect * (1 - each) for each in by_level.values()]))
    return cells, gain_totals(cells, alone(control)), truth


def width(metric: Metric, interval: str) -> float:
    low, high = getattr(metric, interval)
    return float(high - low)


class TestIntervals:
    @pytest.mark.slow
    @pytest.mark.parametrize(("effect", "spread"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.1)])
    def test_hold_the_true_gain(self, effect: float, spread: float) -> None:
        draw, held, jobs = np.random.default_rng(3), 0, 300
        for _ in range(jobs):
            _, totals, truth = job(draw, effect, spread)
            [total] = [each for each in totals if each.by == ["model"]]
            interval = total.acc_atom.gain.ci95_both if spread else total.acc_atom.gain.ci95_runs
            assert interval is not None
            held += interval[0] <= truth <= interval[1]
        assert 0.92 * jobs <= held <= 0.99 * jobs

    @pytest.mark.parametrize("interval", ["ci95", "ci95_runs", "ci95_wordings", "ci95_both"])
    def test_allow_for_the_control_arms_texts(self, interval: str) -> None:
        cells, gains, _ = job(np.random.default_rng(1), 0.2, 0.0)
        [gain] = [each for each in gains if each.by == ["model"]]
        [figure] = [each for each in totals(cells, intervals=True) if each.by == ("model",)]
        own = width(figure.metrics["acc_atom"], interval)
        assert width(gain.acc_atom.gain, interval) > 1.2 * own

    def test_of_one_persona_speak_of_it_alone(self) -> None:
        _, found, _ = job(np.random.default_rng(2), 0.5, 0.05)
        [one] = [each for each in found if each.persona == "p3"]
        assert one.acc_atom.gain.ci95_runs is not None
        assert (one.acc_atom.gain.ci95_reason or "").startswith("too_few_personas")
