"""How metrics vary with wordings and runs, against what leaving wordings out gives."""

import tracemalloc
from collections.abc import Mapping

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.cell import measure
from app.domain.metrics.metric import IntArray
from app.domain.metrics.registry import METRICS
from app.domain.metrics.scores import UNKNOWN_INSTRUCTION, CellScores
from app.domain.statistics.cells import estimate_cell
from app.domain.statistics.variability import Variability

LINEARIZED = "rc_atom_corrected"
"""Its chance distance is kept when a wording is left out."""
NAMES = {name for metric in METRICS for name in metric.names} - {"rc_atom_corrected_ceiling"}


def cell(instructions: list[int], seed: int = 0, sentences: int = 9) -> CellScores:
    """One response for each run, its scores leaning to a side with the wording."""
    draws = np.random.default_rng(seed)
    shares = [np.roll((0.4, 0.3, 0.1, 0.1, 0.1), max(0, wording) % 3) for wording in instructions]
    return CellScores(
        scale=Scale(),
        level=2,
        runs=np.arange(len(instructions)),
        instructions=np.array(instructions),
        histograms=np.array([draws.multinomial(sentences, share) for share in shares]),
        excluded={},
    )


def varied(*judges: CellScores) -> Mapping[str, Variability]:
    return estimate_cell({f"j{n}": scores for n, scores in enumerate(judges)}, judges[0].runs).varied


def part(scores: CellScores, kept: IntArray) -> CellScores:
    return CellScores(
        scores.scale, scores.level, scores.runs[kept], scores.instructions[kept], scores.histograms[kept], {}
    )


@pytest.mark.parametrize("instructions", [[0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 4, 4, 4, 4]])
def test_leaving_a_wording_out_changes_each_metric_as_if_its_runs_had_not_been(
    instructions: list[int],
) -> None:
    scores = cell(instructions)
    found = varied(scores)
    whole = measure(scores)
    assert set(found) == NAMES
    for name in NAMES - {LINEARIZED}:
        one = found[name]
        assert one.value == pytest.approx(whole[name].value, abs=1e-12)
        assert one.dropped is not None
        for wording, drop in one.dropped.items():
            left = measure(part(scores, np.flatnonzero(scores.instructions != wording)))[name].value
            assert left is not None
            assert drop == pytest.approx(one.value - left, abs=1e-12), (name, wording)


def test_the_variance_of_a_mean_over_runs_is_that_within_wordings() -> None:
    scores = cell([0, 0, 0, 1, 1, 4, 4, 4, 4])
    found = varied(scores)["acc_atom"]
    hits = scores.histograms[:, 3:].sum(axis=1) / 9
    strata = [hits[:3], hits[3:5], hits[5:]]
    expected = sum(len(each) * each.var(ddof=1) for each in strata) / 9**2
    assert found.runs is not None
    assert (found.runs**2).sum() == pytest.approx(expected)
    assert found.degrees == 9 - 3


def test_a_wordings_only_run_varies_as_the_others() -> None:
    scores = cell([0, 0, 0, 1, 1, 1, 1, 2, 3])
    found = varied(scores)["acc_atom"]
    hits = scores.histograms[:, 3:].sum(axis=1) / 9
    repeated = [hits[:3], hits[3:7]]
    expected = sum(len(each) * each.var(ddof=1) for each in repeated) / 9**2 * 9 / 7
    assert found.runs is not None
    assert (found.runs**2).sum() == pytest.approx(expected)
    assert found.degrees == 9 - 4


def test_where_most_runs_are_their_wordings_only_one_repetition_is_not_known() -> None:
    assert varied(cell([0, 0, 1, 2]))["acc_atom"].runs is None
    assert varied(cell([0, 0, 0, 1, 2]))["acc_atom"].runs is not None


@pytest.mark.parametrize(
    "name",
    [
        "rc",
        "rc_atom",
        "rc_atom_within_instruction",
        "rc_atom_across_instructions",
        "ic_atom_corrected",
        "rc_corrected",
        "rc_atom_corrected",
    ],
)
def test_runs_influence_spreads_and_distances_as_a_small_change_of_their_weight_does(name: str) -> None:
    # The standard error from influences is near the spread of the metric when runs are drawn anew within wordings.
    instructions = [wording for wording in range(3) for _ in range(40)]
    cells = [measure(cell(instructions, seed, sentences=30)) for seed in range(200)]
    repeated = [value for each in cells if (value := each[name].value) is not None]
    scores = cell(instructions, 999, sentences=30)
    found = varied(scores)[name].runs
    assert found is not None
    assert np.sqrt((found**2).sum()) == pytest.approx(np.std(repeated, ddof=1), rel=0.3)


def test_judges_vary_together() -> None:
    one, other = cell([0, 0, 1, 1], 1), cell([0, 0, 1, 1], 2)
    both = varied(one, other)["mean"]
    single = [varied(scores)["mean"] for scores in (one, other)]
    assert both.value == pytest.approx(np.mean([each.value for each in single]))
    assert both.dropped is not None
    assert both.runs is not None
    for wording in (0, 1):
        drops = [each.dropped[wording] for each in single if each.dropped is not None]
        assert both.dropped[wording] == pytest.approx(np.mean(drops))
    rows = [each.runs for each in single if each.runs is not None]
    assert both.runs == pytest.approx(np.mean(rows, axis=0))


def test_what_a_design_does_not_tell_is_not_there() -> None:
    single = cell([0, 1, 2, 3])
    assert varied(single)["acc"].runs is None
    unknown = cell([0, 0, UNKNOWN_INSTRUCTION, UNKNOWN_INSTRUCTION])
    assert varied(unknown)["acc"].dropped is None
    alone = cell([3, 3, 3])
    assert varied(alone)["acc"].dropped == {3: 0.0}
    # Without the first wording a single run is left, which has no RC.
    pair = cell([0, 1])
    assert varied(pair)["rc"].dropped is None


def test_what_exceeds_chance_moves_with_the_distance() -> None:
    scores = cell([0, 0, 0, 1, 1, 1, 2, 2, 2], sentences=40)
    found = varied(scores)
    plain, beyond = found["rc_atom"], found["rc_atom_corrected"]
    assert beyond.dropped is not None
    assert plain.dropped is not None
    ratios = {round(beyond.dropped[n] / plain.dropped[n], 6) for n in plain.dropped}
    assert len(ratios) == 1
    assert ratios.pop() > 1  # √(d² − d₀²) is steeper than d


@pytest.mark.slow
def test_many_runs_take_memory_in_proportion_to_their_number_and_not_to_that_of_their_pairs() -> None:
    def peak(runs: int) -> int:
        histograms = np.random.default_rng(runs).integers(0, 4, (runs, 5))
        scores = CellScores(Scale(), 0, np.arange(runs), np.full(runs, -1), histograms, {})
        tracemalloc.start()
        estimate_cell({"j": scores}, np.arange(runs))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert (
        peak(6000) < 3 * peak(3000) < 90 * 2**20
    )  # their distances alone would be 69 MiB, and four times as many


def test_runs_that_are_alike_are_nothing_apart() -> None:
    histograms = np.tile([1, 0, 3, 0, 7], (2000, 1))
    found = varied(CellScores(Scale(), 0, np.arange(2000), np.arange(2000) % 4, histograms, {}))
    for name in ("rc", "rc_atom", "rc_atom_within_instruction", "rc_atom_across_instructions"):
        rows = found[name].runs
        assert rows is not None
        assert found[name].value == pytest.approx(1)
        assert not rows.any()
