"""Two models' figures become pairs; what has no partner is left out and named."""

import copy
import json
from typing import Any

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.cell import measure
from app.domain.metrics.registry import range_of
from app.domain.metrics.scores import CellScores
from app.domain.results.comparison import (
    METRICS,
    Compared,
    Difference,
    Figure,
    Figures,
    Place,
    compare,
    figures_of,
    lengths_differ,
    other_length,
    other_runs,
    sentences_of,
)
from app.domain.results.contract import Results
from app.services.results.rarefied_figures import rarefied_figures
from tests.unit.gym_sample import graded_response, gym_results_of
from tests.unit.reports.sample import sample
from tests.unit.results_sample import read

STEADY, DRIFTING = "simulated/steady", "simulated/drifting"


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return sample(instructions=3).results


def compared(one: dict[str, Any], other: dict[str, Any], b: str = DRIFTING) -> Compared:
    return compare(figures_of(read(one), STEADY), figures_of(read(other), b))


class TestCompare:
    def test_a_difference_is_over_the_pairs_of_cells(self, results: dict[str, Any]) -> None:
        found = compared(results, results)
        (row,) = [row for row in found.differences if (row.metric, row.task) == ("acc_atom", None)]
        assert row.pairs == 30  # 9 personas, one of them with two traits, × 3 tasks
        assert row.personas == 9
        assert row.a - row.b == pytest.approx(row.difference)
        assert row.difference > 0.1
        assert row.p_value is not None
        assert row.p_value < 0.05
        assert row.p_value_holm is not None
        assert row.p_value_holm >= row.p_value

    def test_each_task_has_its_own_rows(self, results: dict[str, Any]) -> None:
        rows = [row for row in compared(results, results).differences if row.task == "essay"]
        assert {row.metric for row in rows} == {"mean", "acc", "rc", "acc_atom", "ic_atom", "rc_atom"}
        assert all(row.pairs == 10 for row in rows)

    def test_what_only_one_has_is_left_out_with_the_reason(self, results: dict[str, Any]) -> None:
        less = copy.deepcopy(results)
        less["cells"] = [cell for cell in less["cells"] if cell["persona"] != "E-low"]
        first = next(cell for cell in less["cells"] if cell["model"] == STEADY)
        first["metrics"]["rc"] = {"value": None, "n": 0, "reason": "x: it was lost"}
        found = compared(less, results, STEADY)
        assert {(each.persona, each.reason) for each in found.left_out if each.metric == "acc_atom"} == {
            ("E-low", "not_in_a: a has no such persona, task and dimension")
        }
        assert [each.reason for each in found.left_out if each.reason.startswith("no_value")] == [
            "no_value_in_a: it was lost"
        ]

    def test_the_same_results_do_not_differ(self, results: dict[str, Any]) -> None:
        found = compared(results, results, STEADY)
        assert {row.difference for row in found.differences} == {0.0}
        assert {row.p_value for row in found.differences} == {1.0}

    def test_means_on_different_scales_make_no_pair(self, results: dict[str, Any]) -> None:
        other = copy.deepcopy(results)
        for cell in other["cells"]:
            cell["scale"] = cell["scale"] | {"maximum": 10}
        found = compared(results, other, STEADY)
        assert "mean" not in {row.metric for row in found.differences}
        assert all(each.reason.startswith("other_scale:") for each in found.left_out)

    def test_persona_scores_are_paired_by_persona(self) -> None:
        def document(shift: int) -> Results:
            responses = [graded_response(score + shift, persona=f"gym-{score}") for score in (1, 2, 3, 4)]
            return read(gym_results_of(responses))

        found = compare(figures_of(document(1), STEADY), figures_of(document(0), STEADY))
        assert [(row.metric, row.task, row.difference, row.pairs) for row in found.differences] == [
            ("persona_score", None, 1.0, 4),
            ("task_score", "expected_action", 1.0, 4),
        ]

    def test_nothing_in_common_is_nothing(self, results: dict[str, Any]) -> None:
        found = compare(figures_of(read(results), STEADY), {})
        assert found.differences == []
        assert len(found.left_out) == 30 * 6

    def test_is_json_without_nan(self, results: dict[str, Any]) -> None:
        assert json.dumps(
            [row.model_dump() for row in compared(results, results).differences], allow_nan=False
        )


class TestTextsOfDifferentLength:
    """Sentences of one generator, 4 and 40 a text: the paper's RC_atom and IC_atom differ by length alone."""

    def sides(self, *sentences: int) -> tuple[Figures, ...]:
        random = np.random.default_rng(1)
        scores = [
            {
                Place(f"p{n:02}", "essay", "E", "high"): [
                    CellScores(
                        scale=Scale(),
                        level=2,
                        runs=np.arange(10),
                        instructions=np.zeros(10, dtype=np.int64),
                        histograms=random.multinomial(length, (0.05, 0.1, 0.15, 0.3, 0.4), size=10),
                        excluded={},
                    )
                ]
                for n in range(12)
            }
            for length in sentences
        ]
        measured = [
            {
                (name, place): Figure(
                    found[name].value,
                    found[name].reason,
                    range_of(name, (1.0, 5.0)),
                    sentences_of(
                        name, scored=found.units.scored, runs=found.runs.used, responses=found.responses.total
                    ),
                )
                for place, (own,) in side.items()
                for found in [measure(own)]
                for name in METRICS
            }
            for side in scores
        ]
        return tuple(one | other for one, other in zip(measured, rarefied_figures(scores), strict=True))

    def test_show_no_difference_where_length_alone_makes_one(self) -> None:
        short, long = self.sides(4, 40)
        rows = {row.metric: row for row in compare(short, long).differences if row.task is None}
        for name in ("rc_atom", "ic_atom", "rc", "acc"):
            row = rows[name]
            assert abs(row.difference) > 0.05
            assert (row.p_value, row.p_value_holm, row.ci95, row.smallest_detectable) == (None,) * 4
            assert (row.ci95_reason or "").startswith("other_length: a has 4.0 scored sentences per ")
        for name in ("rc_atom_rarefied", "ic_atom_rarefied"):
            assert abs(rows[name].difference) < 0.03
            assert (rows[name].p_value_holm or 0) > 0.05
        assert rows["acc_atom"].p_value is not None
        assert lengths_differ(short, long)

    def test_are_compared_as_before_where_they_are_equally_long(self) -> None:
        one, other = self.sides(40, 41)
        rows = {row.metric: row for row in compare(one, other).differences if row.task is None}
        assert rows["rc_atom"].p_value is not None
        assert not lengths_differ(one, other)

    def test_are_told_apart_task_by_task(self) -> None:
        place = Place("p", "essay", "E", "high")
        a = {("rc_atom", place): Figure(0.5, None, (-1.0, 1.0), 10.0)}
        b = {("rc_atom", place): Figure(0.5, None, (-1.0, 1.0), 20.0)}
        both = {("rc_atom", place._replace(task="post")): Figure(0.5, None, (-1.0, 1.0), 20.0)}
        more = {("rc_atom", place._replace(task="post")): Figure(0.5, None, (-1.0, 1.0), 10.0)}
        assert other_length("rc_atom", None, a | both, b | more) is None
        assert other_length("rc_atom", "essay", a | both, b | more) is not None
        assert lengths_differ(a | both, b | more)

    def test_of_unknown_length_are_compared(self) -> None:
        place = Place("p", "essay", "E", "high")
        unknown = {("rc_atom", place): Figure(0.5, None, (-1.0, 1.0))}
        known = {("rc_atom", place): Figure(0.5, None, (-1.0, 1.0), 20.0)}
        assert other_length("rc_atom", None, unknown, known) is None


Pairs = dict[tuple[str, Place], Figure]


def by_item(values: dict[tuple[str, str], float], metric: str = "acc_atom") -> Pairs:
    """Figures by persona and item."""
    return {
        (metric, Place(persona, "questionnaire", "E", "high", item)): Figure(value, None, (0.0, 1.0))
        for (persona, item), value in values.items()
    }


class TestItems:
    def test_a_difference_over_items_has_a_cluster_for_each_item_of_each_persona(self) -> None:
        # Differences 0.1, 0.2, 0.3 and 0.0 of one persona, 0.4 and 0.5 of another: mean 1.5/6.
        a = {
            ("p", "1"): 0.6,
            ("p", "2"): 0.7,
            ("p", "3"): 0.8,
            ("p", "4"): 0.5,
            ("q", "1"): 0.9,
            ("q", "2"): 1.0,
        }
        (row, _) = compare(by_item(a), by_item(dict.fromkeys(a, 0.5))).differences
        assert row.over_items is not None
        assert (row.pairs, row.personas, row.over_items.items) == (6, 2, 6)
        assert row.difference == pytest.approx(0.25)
        # Personas' sums 0.6 and 0.9: of 4 sign patterns ++ and −−. Items': of 64 those in which at most the 0.0 is turned.
        assert (row.p_value, row.over_items.p_value) == (0.5, 4 / 64)
        assert row.ci95_reason == "too_few_personas: 2 personas; an interval needs 5"
        assert row.over_items.ci95 is not None

    def test_an_item_that_only_one_has_is_left_out_and_named(self) -> None:
        found = compare(by_item({("p", "1"): 0.6, ("p", "2"): 0.7}), by_item({("p", "1"): 0.5}))
        (left,) = found.left_out
        assert (left.item, left.persona) == ("2", "p")

    def test_one_persona_with_few_items_says_what_is_lacking(self) -> None:
        found = compare(
            by_item({("p", "1"): 0.6, ("p", "2"): 0.7}), by_item({("p", "1"): 0.5, ("p", "2"): 0.5})
        )
        over_items = found.differences[0].over_items
        assert over_items is not None
        assert over_items.ci95_reason == "too_few_items: 2 items; an interval needs 5"

    def test_cells_have_no_items(self, results: dict[str, Any]) -> None:
        assert all(row.over_items is None for row in compared(results, results).differences)


def simulated(
    draws: np.random.Generator, personas: int, items: int, spread: float = 0.0
) -> tuple[Pairs, Pairs]:
    """Two models that do not differ: shares of 8 sentences whose chances depend on persona and item, not on the model.

    With ``spread``, they differ by persona, one way and the other, and not on the whole.
    """
    of_persona = draws.normal(0.6, 0.1, personas)[:, None]
    chances = of_persona + draws.normal(0, 0.15, (personas, items))
    shifts = draws.normal(0, spread, personas)[:, None] if spread else np.zeros((personas, 1))
    a, b = (draws.binomial(8, np.clip(chances + way * shifts, 0, 1)) / 8 for way in (0.5, -0.5))

    def figures(values: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Pairs:
        return by_item({(f"p{p}", f"i{i}"): float(v) for (p, i), v in np.ndenumerate(values)})

    return figures(a), figures(b)


def alarms(rows: list[Difference]) -> tuple[float, float]:
    """Shares of comparisons with a p-value of at most 5 %, over personas and over items."""
    over = [row.over_items for row in rows]
    return (
        float(np.mean([row.p_value <= 0.05 for row in rows if row.p_value is not None])),
        float(np.mean([found.p_value <= 0.05 for found in over if found and found.p_value is not None])),
    )


REPETITIONS = 500
"""Of the long form: some minutes of CPU time."""


class TestFalseAlarms:
    """Two standard errors above 5 % are what chance allows."""

    def test_models_that_do_not_differ_alarm_in_at_most_one_of_twenty_comparisons(self) -> None:
        draws = np.random.default_rng(11)
        rows = [compare(*simulated(draws, 6, 2)).differences[0] for _ in range(400)]
        assert max(alarms(rows)) < 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    def test_neither_do_large_ones_nor_families_of_metrics(self) -> None:
        draws = np.random.default_rng(12)
        rows, any_of_six = [], []
        for _ in range(REPETITIONS):
            pairs = [simulated(draws, 15, 12) for _ in METRICS]
            a, b = (
                {
                    (metric, place): f
                    for metric, side in zip(METRICS, sides, strict=True)
                    for (_, place), f in side.items()
                }
                for sides in zip(*pairs, strict=True)
            )
            found = [row for row in compare(a, b).differences if row.task is None]
            rows.append(found[0])
            over = [row.over_items for row in found if row.over_items is not None]
            any_of_six.append(min(each.p_value_holm or 1.0 for each in over) <= 0.05)
        bound = 0.05 + 2 * (0.05 * 0.95 / REPETITIONS) ** 0.5
        assert max(alarms(rows)) < bound
        assert np.mean(any_of_six) < bound

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    def test_where_models_differ_by_persona_personas_must_be_what_is_drawn(self) -> None:
        draws = np.random.default_rng(13)
        rows = [compare(*simulated(draws, 15, 12, spread=0.15)).differences[0] for _ in range(REPETITIONS)]
        over_personas, over_items = alarms(rows)
        assert over_personas < 0.05 + 2 * (0.05 * 0.95 / REPETITIONS) ** 0.5
        assert over_items > 0.1  # it speaks of these personas, among whom there is a difference


class TestOtherRuns:
    @staticmethod
    def figures(metric: str, runs: int) -> dict[tuple[str, Place], Figure]:
        return {(metric, Place("p", "essay", "E", "high")): Figure(0.5, None, (0.0, 1.0), n=runs)}

    @pytest.mark.parametrize(
        ("one", "other", "same"), [(2, 30, False), (5, 6, False), (25, 30, True), (9, 9, True)]
    )
    def test_rc_over_other_numbers_of_runs_shows_no_difference(
        self, one: int, other: int, same: bool
    ) -> None:
        found = other_runs("rc", None, self.figures("rc", one), self.figures("rc", other))
        assert (found is None) is same
        if found is not None:
            assert found == f"other_runs: a has {one}.0 runs, b {other}.0, on whose number RC depends"

    def test_other_metrics_do_not_depend_on_it(self) -> None:
        assert other_runs("rc_atom", None, self.figures("rc_atom", 2), self.figures("rc_atom", 30)) is None
