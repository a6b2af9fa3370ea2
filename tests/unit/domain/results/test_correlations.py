"""What goes with what over cells: the paper's Tables 4 and 8 and section 6, and the arithmetic."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.domain.metrics.cell import ResponseCounts, UnitCounts
from app.domain.results.correlations import correlations, length_effects
from app.domain.results.results import MeasuredCell
from app.domain.statistics.correlation import pearson
from app.domain.statistics.groups import PersonaSample
from tests.unit.domain.results.test_totals import published_cells

RESULTS_PAGE = Path(__file__).parents[4] / "benchmarks" / "RESULTS.md"
METRICS_PAGE = RESULTS_PAGE.parents[1] / "docs" / "metrics.md"

PRINTED = {
    # Table 4 and Table 8 as printed, and r over the 540 published cells.
    ("acc", "acc_atom"): ("0.91", "0.917"),
    ("acc", "rc_atom"): ("0.51", "0.468"),
    ("acc", "ic_atom"): ("0.40", "0.393"),
    ("rc", "acc_atom"): ("0.48", "0.439"),
    ("rc", "rc_atom"): ("0.98", "0.983"),
    ("rc", "ic_atom"): ("0.37", "0.310"),
    ("acc_atom", "ic_atom"): ("0.45", "0.441"),
    ("acc_atom", "rc_atom"): ("0.51", "0.479"),
    ("ic_atom", "rc_atom"): ("0.44", "0.381"),
}
TABLE_15 = """
Davinci-002 6.4 52.7 10.2 35.0 10.5 38.4
GPT-3.5-turbo 4.6 98.1 12.3 86.6 15.7 90.8
GPT-4-turbo 5.7 91.6 15.2 84.7 17.5 84.8
GPT-4o 5.5 95.4 14.8 84.2 23.7 87.8
GPT-4o-mini 5.7 96.8 16.0 81.8 28.5 87.0
Llama-3-8B 8.2 60.8 14.3 50.1 14.3 55.0
Llama-3-8B-Instruct 7.0 95.2 16.7 67.7 24.3 80.6
Llama-3-70B-Instruct 7.8 95.4 18.1 72.6 17.6 86.4
Mistral-7B 8.9 58.2 13.3 51.4 15.4 55.2
Mistral-7B-Instruct 5.8 93.4 12.4 88.5 21.8 88.4
Claude-3-haiku 6.6 84.4 17.2 87.6 19.9 88.0
Claude-3-sonnet 5.6 77.3 15.4 85.1 23.1 87.8
"""
TASKS = ("questionnaire", "essay", "social_media_post")
SECTION_6 = {
    # r over the 540 published cells with Table 15's number of sentences and of valid sentences.
    "ic_atom": ("−0.17", "−0.03"),
    "acc_atom": ("−0.12", "−0.02"),
    "rc_atom": ("0.00", "0.15"),
}
NAMES = {"acc": "ACC", "rc": "RC", "acc_atom": "ACC_atom", "ic_atom": "IC_atom", "rc_atom": "RC_atom"}


def sized(cell: MeasuredCell, sentences: float, scored: float) -> MeasuredCell:
    """A cell of 1,000 responses with these mean numbers of sentences."""
    units = UnitCounts.of(
        scored=round(1000 * scored), not_applicable=round(1000 * sentences) - round(1000 * scored)
    )
    return replace(cell, metrics=replace(cell.metrics, units=units, responses=ResponseCounts(total=1000)))


def with_lengths_of_table_15() -> list[MeasuredCell]:
    rows = [line.split() for line in TABLE_15.split("\n") if line]
    lengths = {
        (model, task): (float(figures[2 * n]), float(figures[2 * n]) * float(figures[2 * n + 1]) / 100)
        for model, *figures in rows
        for n, task in enumerate(TASKS)
    }
    return [sized(cell, *lengths[cell.model, cell.task]) for cell in published_cells()]


class TestPublishedCorrelations:
    def test_tables_4_and_8_are_within_seven_hundredths_of_the_published_cells(self) -> None:
        found = {each.metrics: each.r for each in correlations(published_cells(), None)}
        assert {pair: f"{r.value:.3f}" for pair, r in found.items()} == {
            pair: ours for pair, (_, ours) in PRINTED.items()
        }
        assert all(r.n == 540 for r in found.values())
        assert all(abs(float(printed) - float(ours)) < 0.065 for printed, ours in PRINTED.values())

    def test_the_page_of_results_says_the_same(self) -> None:
        page = RESULTS_PAGE.read_text("utf-8")
        for (first, second), (printed, ours) in PRINTED.items():
            assert f"| {NAMES[first]}, {NAMES[second]} | {printed} | {ours} |" in page
        for metric, figures in SECTION_6.items():
            assert f"| {NAMES[metric]} | {' | '.join(figures)} |" in page

    def test_lengths_of_table_15_go_with_the_published_cells_as_the_page_says(self) -> None:
        whole = [each for each in length_effects(with_lengths_of_table_15(), None) if each.task is None]
        assert {
            each.metric: tuple(f"{r.value:.2f}".replace("-", "−") for r in (each.units, each.scored_units))
            for each in whole
        } == SECTION_6

    def test_rc_atom_depends_on_the_scored_units_of_a_run_as_the_page_on_metrics_says(self) -> None:
        cells = with_lengths_of_table_15()
        answers = {"questionnaire": 10, "essay": 1, "social_media_post": 1}
        root = np.array(
            [1 / np.sqrt(cell.metrics.units.scored / 1000 * answers[cell.task]) for cell in cells]
        )
        values = np.array([cell.metrics["rc_atom"].value for cell in cells])
        found = {"all": np.corrcoef(root, values)[0, 1]}
        for task in TASKS:
            models = sorted({cell.model for cell in cells})
            of = [[n for n, each in enumerate(cells) if (each.model, each.task) == (m, task)] for m in models]
            means = [[figures[each].mean() for each in of] for figures in (root, values)]
            found[task] = np.corrcoef(means)[0, 1]
        shown = {name: f"{r:.2f}".replace("-", "−") for name, r in found.items()}
        assert shown == {
            "all": "−0.45",
            "questionnaire": "−0.46",
            "essay": "−0.88",
            "social_media_post": "−0.81",
        }
        page = " ".join(METRICS_PAGE.read_text("utf-8").split())
        assert (
            "is −0.45 over the 540 published cells; over models −0.46 (questionnaire), −0.88 (essay), −0.81 (post)"
            in page
        )


class TestLengthEffects:
    def test_a_task_has_its_own_and_responses_without_verdicts_none(self) -> None:
        cells = [
            sized(cell, 4 + n, 2 + n % 3)
            for n, cell in enumerate(published_cells()[:45])
            if cell.task != "essay"
        ]
        found = {(each.task, each.metric): each for each in length_effects(cells, None)}
        assert [task for task, metric in found if metric == "ic_atom"] == [
            None,
            "questionnaire",
            "social_media_post",
        ]
        posts = [cell for cell in cells if cell.task == "social_media_post"]
        expected = np.corrcoef(
            [cell.metrics.units.total for cell in posts],
            [cell.metrics["ic_atom"].value or 0.0 for cell in posts],
        )[0, 1]
        assert found["social_media_post", "ic_atom"].units.value == pytest.approx(expected)
        silent = length_effects(published_cells()[:45], None)[0]
        assert silent.units.reason == "too_few_pairs: 0 pairs of figures; a correlation needs 3"


class TestPearson:
    def test_is_scipys_and_its_interval_holds_it(self) -> None:
        from scipy import stats

        draws = np.random.default_rng(2)
        first = draws.normal(size=60)
        second = first + draws.normal(size=60)
        personas = [f"p{n % 15}" for n in range(60)]
        found = pearson(first, second, personas, PersonaSample(personas, 0))
        assert found.value == pytest.approx(stats.pearsonr(first, second).statistic)
        assert found.ci95 is not None
        low, high = found.ci95
        assert low < (found.value or 0.0) < high < low + 0.6

    def test_two_points_or_a_constant_have_none(self) -> None:
        one = np.array([1.0, 2.0, 3.0])
        assert pearson(one[:2], one[:2], ["a", "b"], None).reason is not None
        constant = pearson(one, np.ones(3), ["a", "b", "c"], None)
        assert constant.reason == "no_variation: one of the two figures is the same everywhere"
