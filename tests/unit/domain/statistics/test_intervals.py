"""Intervals: what they cover, what they are where there is little to go by, and that they repeat."""

import numpy as np
import pytest

from app.domain.metrics.cell import CellMetrics
from app.domain.metrics.interval import Interval
from app.domain.metrics.registry import RANGES, range_of
from app.domain.metrics.scores import CellScores
from app.domain.statistics.cells import CellEstimate, estimate_cell
from app.domain.statistics.groups import Member, PersonaSample, stratified_interval
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws
from tests.unit.domain.metrics.cells import Runs, cell

KEY = ("model", "persona", "essay")
VARIED: Runs = [[[5, 4, 3]], [[4, 4, 1]], [[5, 5, 2]], [[3, 2, 4]], [[5, 5, 5]], [[4, 1, 2]]]
NAMES = [name for name in RANGES if name != "rc_atom_corrected_ceiling"]


def estimated(*judges: CellScores, seed: int = 0) -> CellEstimate:
    runs = np.unique(np.concatenate([scores.runs for scores in judges]))
    return estimate_cell({f"judge {n}": scores for n, scores in enumerate(judges)}, runs, seed, KEY)


def ends_of(metrics: CellMetrics, name: str) -> tuple[float, float]:
    ends = metrics[name].ci95
    assert ends is not None
    return ends


class TestCells:
    def test_every_metric_lies_in_its_interval_and_the_interval_in_the_metrics_range(self) -> None:
        metrics = estimated(cell(VARIED, instructions=[0, 0, 0, 1, 1, 1])).metrics
        for name in NAMES:
            low, high = ends_of(metrics, name)
            value = metrics[name].value
            assert value is not None
            assert low < value <= high
            least, most = range_of(name, (1.0, 5.0))
            assert least <= low
            assert high <= most
        assert metrics["rc_atom_corrected_ceiling"].ci95_reason == "not_estimated: only the value is computed"

    def test_more_runs_make_it_narrower(self) -> None:
        few, many = (ends_of(estimated(cell(runs)).metrics, "acc_atom") for runs in (VARIED, [*VARIED] * 5))
        assert many[1] - many[0] < 0.6 * (few[1] - few[0])  # about √(1/5) = 0.45

    def test_fewer_than_five_runs_have_none(self) -> None:
        metrics = estimated(cell(VARIED[:4])).metrics
        for name in ("mean", "acc", "rc", "acc_atom", "ic_atom", "rc_atom"):
            reason = metrics[name].ci95_reason
            assert reason == "too_few_runs: 4 runs; an interval needs 5"

    def test_what_does_not_exist_has_none_either(self) -> None:
        metrics = estimated(cell([[[9]]] * 6)).metrics
        assert all({"ci95", "ci95_reason"}.isdisjoint(metrics[name].to_json()) for name in NAMES)

    def test_runs_that_all_agree_do_not_make_certain(self) -> None:
        # 0.05^(1/6) = 0.607 of all runs could be like these six, and the others as different as can be.
        metrics = estimated(cell([[[5, 5]]] * 6)).metrics
        assert ends_of(metrics, "acc_atom") == (0.606962, 1.0)
        assert ends_of(metrics, "mean") == (3.427848, 5.0)  # 0.607 · 5 + 0.393 · 1
        assert ends_of(metrics, "rc_atom") == (-0.263194, 1.0)  # 1 − 2 · (1 − 0.607²)
        assert ends_of(metrics, "rc") == (0.023149, 1.0)  # 1 − 2 · √(0.607 · 0.393)
        assert ends_of(metrics, "rc_atom_corrected") == ends_of(metrics, "rc_atom")
        assert ends_of(metrics, "ic_atom_corrected") == (0.11339, 1.0)  # 1 − √2 · √0.393

    def test_the_order_of_responses_changes_nothing(self) -> None:
        scores = cell(VARIED, instructions=[0, 0, 0, 1, 1, 1])
        order = np.random.default_rng(3).permutation(len(scores.runs))
        shuffled = CellScores(
            scores.scale,
            scores.level,
            scores.runs[order],
            scores.instructions[order],
            scores.histograms[order],
            scores.excluded,
        )
        assert estimated(shuffled).metrics == estimated(scores).metrics

    def test_another_seed_gives_almost_the_same(self) -> None:
        low, high = ends_of(estimated(cell([*VARIED] * 5), seed=1).metrics, "acc_atom")
        again = ends_of(estimated(cell([*VARIED] * 5), seed=2).metrics, "acc_atom")
        assert (low, high) != again
        assert again == pytest.approx((low, high), abs=0.3 * (high - low))

    def test_a_corrected_acc_atom_has_that_of_acc_atom_on_its_own_scale(self) -> None:
        for runs in (VARIED, [[[5, 5]]] * 6):
            metrics = estimated(cell(runs)).metrics
            ends = [(end - 0.4) / 0.6 for end in ends_of(metrics, "acc_atom")]
            assert ends_of(metrics, "acc_atom_corrected") == pytest.approx(ends, abs=1e-5)

    def test_two_judges_who_say_the_same_are_no_surer_than_one(self) -> None:
        scores = cell(VARIED)
        one, two = estimated(scores), estimated(scores, scores)
        for name in NAMES:
            if one.metrics[name].value is None:
                continue
            assert ends_of(two.metrics, name) == pytest.approx(ends_of(one.metrics, name), abs=1e-5)

    def test_a_judge_who_could_use_fewer_runs_lowers_what_counts(self) -> None:
        lacking = cell([*VARIED[:4], [[9]], [[9]]])
        found = estimated(cell(VARIED), lacking)
        assert found.by_judge["judge 0"]["mean"].ci95 is not None
        assert found.metrics["mean"].ci95_reason == "too_few_runs: 4 runs; an interval needs 5"


class TestInfluence:
    def test_that_of_a_mean_is_its_standard_error(self) -> None:
        # Squares of the scaled influences add up to s²/n, s with the denominator n − 1.
        influences, runs = estimated(cell(VARIED)).influences["mean"]
        values = [4.0, 3.0, 4.0, 3.0, 5.0, 7 / 3]
        assert runs == 6
        assert float((influences**2).sum()) == pytest.approx(np.var(values, ddof=1) / 6)


class TestPersonas:
    def test_a_persona_is_drawn_with_all_of_its_cells(self) -> None:
        # Six personas of three equal cells are six values, not eighteen.
        sample = PersonaSample([f"p{n}" for n in range(6)], 0)
        values = [0.2, 0.9, 0.4, 0.7, 0.5, 0.6]
        single = [Member(("m", f"p{n}", "t"), f"p{n}", value, None) for n, value in enumerate(values)]
        triple = [m._replace(text=("m", m.persona, task)) for m in single for task in "abc"]
        bounds = (0.0, 1.0)
        assert sample.over_cells(0.55, triple, bounds) == sample.over_cells(0.55, single, bounds)

    def test_fewer_than_five_personas_have_none(self) -> None:
        members = [Member(("m", "p", "t"), "p", 0.5, None)]
        found = PersonaSample(["p"], 0).over_cells(0.5, members, (0.0, 1.0))
        assert found.reason == "too_few_personas: 1 persona; an interval needs 5"


class TestStratified:
    def test_is_students_interval_for_a_single_stratum(self) -> None:
        # Values 1, 2, 3, 4, 5: mean 3, standard error √(2.5/5) = 0.7071, t(4) = 2.7764: 3 ± 1.9633.
        influence = (np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / np.sqrt(5 * 4), 5)
        found = stratified_interval(3.0, [Member(("m", "p", "t"), "p", 3.0, influence)], (0.0, 9.0), "runs")
        assert found.ends == pytest.approx((1.0367, 4.9633), abs=1e-4)

    def test_traits_that_share_a_text_are_not_independent(self) -> None:
        influence = (np.array([0.1, -0.1, 0.2, -0.2]), 4)

        def width(second_text: str) -> float:
            members = [
                Member(("m", "p", "t"), "p", 0.5, influence),
                Member(("m", "p", second_text), "p", 0.5, influence),
            ]
            ends = stratified_interval(0.5, members, (-9.0, 9.0), "runs").ends
            assert ends is not None
            return ends[1] - ends[0]

        assert width("t") > 1.4 * width("u")

    def test_a_single_run_tells_no_spread(self) -> None:
        found = stratified_interval(0.5, [Member(("m", "p", "t"), "p", 0.5, None)], (0.0, 1.0), "runs")
        assert str(found.reason).startswith("single_runs:")


class TestWeights:
    def test_depend_on_seed_and_key_alone(self) -> None:
        weights = cluster_weights(1, ("a", "b"), 4)
        assert (weights == cluster_weights(1, ("a", "b"), 9)[:4]).all()
        assert (weights != cluster_weights(2, ("a", "b"), 4)).any()
        assert (weights != cluster_weights(1, ("ab",), 4)).any()

    def test_have_mean_and_variance_one(self) -> None:
        weights = cluster_weights(0, ("x",), 50)
        assert weights.mean() == pytest.approx(1, abs=0.02)
        assert weights.var() == pytest.approx(1, abs=0.05)


class TestPercentiles:
    def test_resemble_students_interval_where_values_are_normal(self) -> None:
        values = np.random.default_rng(1).normal(10, 1, 40)
        draws = ratio_draws(values, np.ones(40), cluster_weights(0, ("x",), 40))
        found = percentile_interval(float(values.mean()), draws, 40, (0.0, 20.0), "runs").ends
        assert found is not None
        half = 2.0227 * values.std(ddof=1) / np.sqrt(40)  # t(39)
        assert (found[1] - found[0]) / 2 == pytest.approx(half, rel=0.15)


class TestInterval:
    @pytest.mark.parametrize(
        ("low", "high", "reason"),
        [
            (None, None, None),
            (0.0, None, None),
            (1.0, 0.0, None),
            (0.0, float("inf"), None),
            (0.0, 1.0, "x: y"),
        ],
    )
    def test_contradictions_are_refused(
        self, low: float | None, high: float | None, reason: str | None
    ) -> None:
        with pytest.raises(ValueError, match="interval"):
            Interval(low, high, reason)

    def test_ends_beyond_the_range_are_cut_off_however_far_they_are(self) -> None:
        assert Interval.around(0.5, -1e308, 1e308, (0.0, 1.0)).ends == (0.0, 1.0)

    def test_ends_are_rounded_outward_and_hold_the_value(self) -> None:
        assert Interval.around(0.5, 0.1234567, 0.7654321, (0.0, 1.0)).ends == (0.123456, 0.765433)
        assert Interval.around(0.5, 0.6, 0.7, (0.0, 1.0)).ends == (0.5, 0.7)
