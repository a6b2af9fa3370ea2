"""All metrics of a cell: against a plain reference, in their ranges, and over several judges."""

from itertools import combinations
from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.cell import ResponseCounts, RunCounts, UnitCounts, combine_judges, measure
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import RANGES, range_of
from app.domain.metrics.scores import CellScores
from tests.unit.domain.metrics.cells import PAPER, Runs, cell

SCALES = st.sampled_from(
    [
        PAPER,
        Scale(1, 7, ("low", "high")),
        Scale(0, 10, not_applicable=99),
        Scale(-3, 3, ("a", "b", "c", "d", "e")),
    ]
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Scale, str, Runs, list[int]]:
    scale = draw(SCALES)
    level = draw(st.sampled_from(scale.levels))
    score = st.integers(scale.minimum, scale.maximum)
    runs = draw(st.lists(st.lists(st.lists(score, max_size=6), min_size=1, max_size=3), max_size=6))
    instructions = draw(st.lists(st.integers(-1, 2), min_size=len(runs), max_size=len(runs)))
    return scale, level, runs, instructions


def reference(
    scale: Scale, level: str, runs: Runs, instructions: list[int]
) -> dict[str, tuple[float | None, int]]:
    """The definitions in plain Python: value and n of each metric."""
    from scipy.stats import wasserstein_distance

    used = [
        (instruction, scored)
        for instruction, run in zip(instructions, runs, strict=True)
        if (scored := [units for units in run if units])
    ]

    def averaged(of_runs: list[float]) -> tuple[float | None, int]:
        return (fmean(of_runs), len(of_runs)) if of_runs else (None, 0)

    def consistency(pairs: list[tuple[list[int], list[int]]]) -> tuple[float | None, int]:
        if not pairs:
            return None, 0
        return (1 - fmean(wasserstein_distance(a, b) for a, b in pairs) / scale.width) * 2 - 1, len(pairs)

    def in_level(units: list[int]) -> bool:
        return scale.levels[scale.level_index(sum(units), len(units))] == level

    run_scores = [fmean(fmean(units) for units in run) for _, run in used]
    spreads = [[1 - 2 * pstdev(units) / scale.width for units in run if len(units) > 1] for _, run in used]
    merged = [(instruction, [score for units in run for score in units]) for instruction, run in used]
    pairs = list(combinations(merged, 2))
    known = [(a, b) for a, b in pairs if a[0] >= 0 and b[0] >= 0]
    return {
        "mean": averaged(run_scores),
        "acc": averaged([fmean(in_level(list(units)) for units in run) for _, run in used]),
        "rc": (1 - 2 * pstdev(run_scores) / scale.width, len(used)) if len(used) > 1 else (None, 0),
        "acc_atom": averaged(
            [fmean(fmean(in_level([score]) for score in units) for units in run) for _, run in used]
        ),
        "ic_atom": averaged([fmean(values) for values in spreads if values]),
        "rc_atom": consistency([(a[1], b[1]) for a, b in pairs]),
        "rc_atom_within_instruction": consistency([(a[1], b[1]) for a, b in known if a[0] == b[0]]),
        "rc_atom_across_instructions": consistency([(a[1], b[1]) for a, b in known if a[0] != b[0]]),
    }


class TestMeasure:
    @given(case=cases())
    def test_equals_the_definitions_in_plain_python(self, case: tuple[Scale, str, Runs, list[int]]) -> None:
        scale, level, runs, instructions = case
        metrics = measure(cell(runs, level, scale=scale, instructions=instructions))
        for name, (value, n) in reference(scale, level, runs, instructions).items():
            found: Metric = metrics[name]
            assert found.n == n, name
            assert (
                found.value == pytest.approx(value, abs=1e-9) if value is not None else found.value is None
            ), name

    @given(case=cases())
    def test_stays_within_the_ranges(self, case: tuple[Scale, str, Runs, list[int]]) -> None:
        scale, level, runs, instructions = case
        metrics = measure(cell(runs, level, scale=scale, instructions=instructions))
        for name in RANGES:
            value = metrics[name].value
            low, high = range_of(name, (scale.minimum, scale.maximum))
            assert value is None or low <= value <= high, name

    @given(case=cases(), seed=st.integers(0, 1000))
    def test_the_order_of_responses_does_not_matter(
        self, case: tuple[Scale, str, Runs, list[int]], seed: int
    ) -> None:
        scale, level, runs, instructions = case
        scores = cell(runs, level, scale=scale, instructions=instructions)
        order = np.random.default_rng(seed).permutation(len(scores.runs))
        shuffled = CellScores(
            scale=scale,
            level=scores.level,
            runs=900 - scores.runs[order],  # other run numbers in another order, too
            instructions=scores.instructions[order],
            histograms=scores.histograms[order],
            excluded=scores.excluded,
        )
        before, after = measure(scores), measure(shuffled)
        assert (before.units, before.responses, before.runs) == (after.units, after.responses, after.runs)
        for name in RANGES:
            one, other = before[name], after[name]
            assert one.n == other.n
            assert one.value is other.value or one.value == pytest.approx(other.value, abs=1e-12)

    def test_counts_what_was_left_out(self) -> None:
        metrics = measure(
            cell(
                [[[4, 5, 5], [3], []], [[]]],
                excluded={
                    VerdictStatus.NOT_APPLICABLE: 6,
                    VerdictStatus.REFUSED: 1,
                    VerdictStatus.UNPARSED: 2,
                },
            )
        )
        assert metrics.units == UnitCounts.of(scored=4, not_applicable=6, refused=1, unparsed=2, failed=0)
        assert metrics.units.total == 13
        assert metrics.responses == ResponseCounts(total=4, without_scored_unit=2, with_one_scored_unit=1)
        assert metrics.runs == RunCounts(total=2, used=1)
        assert metrics.scores == (0, 0, 1, 1, 2)

    @pytest.mark.parametrize("runs", [[], [[[]]], [[[9, 9], [9]], [[9]]]])
    def test_without_a_scored_unit_every_metric_is_missing_with_a_reason(self, runs: Runs) -> None:
        metrics = measure(cell(runs))
        for name in RANGES:
            metric: Metric = metrics[name]
            assert (metric.value, metric.n) == (None, 0)
            assert metric.reason is not None
            assert ": " in metric.reason


class TestCombineJudges:
    def test_averages_the_judges_and_keeps_the_smaller_n(self) -> None:
        # MEAN: judge A (4 + 5)/2 = 4.5 over 2 runs, judge B 3 over 1 run; (4.5 + 3)/2 = 3.75, n = 1.
        # RC: only judge A has two runs, σ(4, 5) = 0.5: 1 − 2·0.5/4 = 0.75, n = 2.
        first = measure(cell([[[4]], [[5]]]))
        second = measure(cell([[[3]], [[9]]]))
        combined = combine_judges([first, second])
        assert combined["mean"] == Metric.of(3.75, 1)
        assert combined["rc"] == Metric.of(0.75, 2)
        assert combined["ic_atom"].value is None
        assert combined["ic_atom"].reason == first["ic_atom"].reason
        assert combined.units == UnitCounts.of(scored=3, not_applicable=1)
        assert combined.responses == ResponseCounts(total=4, without_scored_unit=1, with_one_scored_unit=3)
        assert combined.runs == RunCounts(total=2, used=1)
        assert combined.scores == (0, 0, 1, 1, 1)

    def test_one_judge_is_reported_as_it_is(self) -> None:
        only = measure(cell([[[4, 5]], [[5]]]))
        assert combine_judges([only]) is only

    def test_the_order_of_judges_does_not_matter(self) -> None:
        judges = [measure(cell([[[score, 5]], [[score]]])) for score in (1, 2, 4)]
        forward, backward = combine_judges(judges), combine_judges(judges[::-1])
        assert forward["mean"].value == pytest.approx(backward["mean"].value)
        assert forward.units == backward.units

    def test_needs_a_judge(self) -> None:
        with pytest.raises(ValueError, match="judges must name at least one"):
            combine_judges([])
