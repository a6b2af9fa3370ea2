"""Corrected metrics of published cells, estimated from what is printed, against those from the scores themselves."""

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.from_printed import PrintedCell, estimate_corrected
from app.domain.metrics.ic_atom import ic_atom
from app.domain.metrics.ic_atom_corrected import ic_atom_corrected
from app.domain.metrics.mean import mean
from app.domain.metrics.rc import rc
from app.domain.metrics.rc_atom import rc_atom
from app.domain.metrics.rc_atom_corrected import rc_atom_corrected
from app.domain.metrics.scores import CellScores
from tests.unit.domain.metrics.cells import PAPER

RUNS, CELLS = 30, 12
SHARES = {
    "mixed": [0.05, 0.1, 0.15, 0.3, 0.4],
    "at both ends": [0.3, 0.1, 0.2, 0.1, 0.3],
    "in the middle": [0.1, 0.2, 0.4, 0.2, 0.1],
}
NAMES = ("ic_atom_corrected", "rc_atom_corrected", "rc_atom_corrected_ceiling")


def simulated(random: np.random.Generator, shares: list[float], sentences: int, alike: float) -> CellScores:
    """A cell whose runs have lengths that differ by a fifth, and distributions around the shares."""
    lengths = np.maximum(2, np.rint(random.normal(sentences, sentences / 5, RUNS))).astype(int)
    of_runs = random.dirichlet(np.array(shares) * alike, RUNS)
    histograms = np.array([random.multinomial(n, p) for n, p in zip(lengths, of_runs, strict=True)])
    return CellScores(
        scale=PAPER,
        level=2,
        runs=np.arange(RUNS),
        instructions=np.zeros(RUNS, dtype=np.int64),
        histograms=histograms,
        excluded={},
    )


def printed(scores: CellScores) -> PrintedCell:
    """To two digits, like the paper."""
    values = (mean(scores), rc(scores), ic_atom(scores), rc_atom(scores).overall)
    m, r, i, a = (round(each.value or 0.0, 2) for each in values)
    per_response = float(scores.histograms.sum() / RUNS)
    return PrintedCell(m, r, i, a, per_response, per_response)


def errors(shares: list[float], sentences: int, alike: float) -> dict[str, float]:
    """How far the estimates are from the metrics, on average."""
    random = np.random.default_rng(sentences)
    cells = [simulated(random, shares, sentences, alike) for _ in range(CELLS)]
    found = estimate_corrected([printed(cell) for cell in cells], RUNS, PAPER)
    true = []
    for cell in cells:
        beyond = rc_atom_corrected(cell)
        true.append([each.value for each in (ic_atom_corrected(cell), beyond.corrected, beyond.ceiling)])
    differences = np.array([[each[name] for name in NAMES] for each in found]) - np.array(true, dtype=float)
    return dict(zip(NAMES, differences.mean(axis=0), strict=True))


class TestEstimates:
    @pytest.mark.parametrize("shares", SHARES)
    @pytest.mark.parametrize("alike", [8, 30])
    @pytest.mark.parametrize("sentences", [6, 12, 40])
    def test_are_near_what_the_scores_give(self, shares: str, alike: float, sentences: int) -> None:
        found = errors(SHARES[shares], sentences, alike)
        assert abs(found["ic_atom_corrected"]) < 0.05
        assert abs(found["rc_atom_corrected"]) < 0.03
        assert abs(found["rc_atom_corrected_ceiling"]) < 0.02

    def test_are_further_off_for_texts_of_three_or_four_sentences(self) -> None:
        assert abs(errors(SHARES["mixed"], 4, 8)["rc_atom_corrected"]) < 0.07

    def test_of_texts_that_are_all_alike_are_1_and_of_one_score_too(self) -> None:
        (found,) = estimate_corrected([PrintedCell(5.0, 1.0, 1.0, 1.0, 5.0, 50.0)], RUNS, Scale())
        assert found["ic_atom_corrected"] == found["rc_atom_corrected"] == 1
        assert 0.95 < found["rc_atom_corrected_ceiling"] < 1

    def test_of_figures_that_no_scores_have_are_what_the_nearest_give(self) -> None:
        # Rounded, or of unequal runs: a mean of 4.99 has no response with IC_atom 0.
        (found,) = estimate_corrected([PrintedCell(4.99, 0.5, 0.0, 0.2, 4.0, 4.0)], RUNS, Scale())
        assert all(np.isfinite(value) for value in found.values())
