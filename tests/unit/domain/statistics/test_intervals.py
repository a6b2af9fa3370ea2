"""Intervals: what they cover, what they are where there is little to go by, and that they repeat."""

import numpy as np
import pytest

from app.domain.metrics.cell import MeasuredMetrics
from app.domain.metrics.interval import Interval
from app.domain.metrics.registry import RANGES, range_of
from app.domain.metrics.scores import CellScores
from app.domain.statistics.cells import CellEstimate, estimate_cell
from app.domain.statistics.groups import stratified_interval
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws
from tests.unit.domain.metrics.cells import Runs, cell

VARIED: Runs = [[[5, 4, 3]], [[4, 4, 1]], [[5, 5, 2]], [[3, 2, 4]], [[5, 5, 5]], [[4, 1, 2]]]
NAMES = [name for name in RANGES if name != "rc_atom_corrected_ceiling"]


def estimated(*judges: CellScores) -> CellEstimate:
    runs = np.unique(np.concatenate([scores.runs for scores in judges]))
    return estimate_cell({f"judge {n}": scores for n, scores in enumerate(judges)}, runs)


def ends_of(metrics: MeasuredMetrics, name: str) -> tuple[float, float]:
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

    def test_runs_at_two_places_do_not_tell_how_sure_their_spread_is(self) -> None:
        metrics = estimated(cell([[[5, 5]], [[1, 1]]] * 3)).metrics
        assert metrics["rc"].value == 0
        assert str(metrics["rc"].ci95_reason).startswith("unstable:")
        assert metrics["mean"].ci95 is not None

    def test_repetition_is_told_from_wording(self) -> None:
        # Wordings far apart, runs within them near: surer of these wordings than of others like them.
        runs = [
            [[5, 5, 5, 4]],
            [[5, 5, 4, 4]],
            [[3, 3, 3, 3]],
            [[3, 3, 3, 2]],
            [[2, 2, 1, 1]],
            [[1, 1, 2, 1]],
        ]
        found = estimated(cell(runs, instructions=[0, 0, 1, 1, 2, 2])).metrics["mean"]
        low, high = found.ci95 or (0, 0)
        least, most = found.ci95_wordings or (0, 0)
        assert 0 < high - low < 0.25 * (most - least)
        # Six runs as if of one wording say something between the two.
        alone = estimated(cell(runs, instructions=[0] * 6)).metrics["mean"]
        assert high - low < alone.ci95[1] - alone.ci95[0] < most - least if alone.ci95 else False
        assert str(alone.ci95_wordings_reason).startswith("too_few_wordings: 1 wording")

    def test_single_runs_of_wordings_tell_no_repetition(self) -> None:
        found = estimated(cell(VARIED, instructions=[0, 1, 2, 3, 4, 5])).metrics["mean"]
        assert str(found.ci95_reason).startswith("single_runs:")
        assert found.ci95_wordings is not None

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


class TestStratified:
    def test_is_students_interval_for_a_single_task(self) -> None:
        # Values 1, 2, 3, 4, 5: mean 3, standard error √(2.5/5) = 0.7071, t(4) = 2.7764: 3 ± 1.9633.
        influence = (np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / np.sqrt(5 * 4), 5)
        found = stratified_interval(3.0, [influence], (0.0, 9.0), "questions")
        assert found.ends == pytest.approx((1.0367, 4.9633), abs=1e-4)

    def test_a_single_question_tells_no_spread(self) -> None:
        found = stratified_interval(0.5, [None], (0.0, 1.0), "questions")
        assert str(found.reason).startswith("single_questions:")


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
