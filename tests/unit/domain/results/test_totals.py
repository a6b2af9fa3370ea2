"""Totals over cells, and results in the contract's form."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from app.domain.instruments.dimension import Scale
from app.domain.metrics.cell import MeasuredMetrics, ResponseCounts, RunCounts, UnitCounts, measure
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import RANGES, names
from app.domain.results.contract import CellResult, TotalResult
from app.domain.results.results import MeasuredCell, ResponseStatuses, Total
from app.domain.results.totals import summarize, totals
from tests.unit.domain.metrics.cells import cell
from tests.unit.reports.sample import document_of

PUBLISHED = Path(__file__).parents[3] / "golden" / "published_atomic_cells.csv"

TABLE_16 = {
    # ACC_atom, IC_atom, RC_atom as printed.
    "Davinci-002": ("0.39", "0.64", "0.56"),
    "GPT-3.5-turbo": ("0.60", "0.75", "0.79"),
    "GPT-4-turbo": ("0.65", "0.74", "0.79"),
    "GPT-4o": ("0.61", "0.74", "0.78"),
    "GPT-4o-mini": ("0.61", "0.74", "0.84"),
    "Llama-3-8B": ("0.41", "0.60", "0.64"),
    "Llama-3-8B-Instruct": ("0.65", "0.70", "0.82"),
    "Llama-3-70B-Instruct": ("0.67", "0.71", "0.83"),
    "Mistral-7B": ("0.41", "0.59", "0.67"),
    "Mistral-7B-Instruct": ("0.58", "0.69", "0.80"),
    "Claude-3-haiku": ("0.59", "0.71", "0.69"),
    "Claude-3-sonnet": ("0.56", "0.70", "0.62"),
}
TASKS = ("questionnaire", "essay", "social_media_post")
TABLE_5_LEVEL_ROWS = {
    # MEAN, ACC_atom, IC_atom, RC_atom for each task as printed in the rows "High Total" and so on.
    "high": "4.84 0.98 0.90 0.93 4.51 0.93 0.75 0.87 4.62 0.95 0.81 0.93",
    "neutral": "3.58 0.40 0.77 0.74 3.74 0.22 0.64 0.77 4.17 0.19 0.71 0.81",
    "low": "1.73 0.82 0.75 0.69 2.48 0.60 0.64 0.66 2.85 0.43 0.67 0.63",
}
TABLE_5_LAST_ROW = "0.73 0.81 0.78 0.58 0.68 0.77 0.52 0.73 0.79"  # ACC_atom, IC_atom, RC_atom for each task


def published_cells() -> list[MeasuredCell]:
    """The 540 cells of Tables 18–29; the two parts of RC_atom are not in the paper."""
    missing = dict.fromkeys(RANGES, Metric.missing("not_published: not in the paper"))
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        MeasuredCell(
            model=row["model"],
            persona=f"{row['dimension']}-{row['level']}",
            task=row["task"],
            dimension=row["dimension"],
            level=row["level"],
            runs=30,
            metrics=MeasuredMetrics(
                missing | {name: Metric.of(float(row[name]), 30) for name in names() if name in row},
                units=UnitCounts.of(),
                responses=ResponseCounts(),
                runs=RunCounts(),
                scores=(),
            ),
        )
        for row in rows
    ]


def find(found: tuple[Total, ...], **keys: str) -> Total:
    (total,) = [total for total in found if total.keys == keys]
    return total


def printed(total: Total, *metrics: str) -> list[str]:
    return [f"{total.metrics[name].value:.2f}" for name in metrics]


def result(task: str = "essay", model: str = "a", **changes: object) -> MeasuredCell:
    metrics = measure(cell([[[4, 5]], [[5, 5]]], instructions=[0, 1]))
    base = MeasuredCell(model, "E-high", task, "E", "high", 2, metrics, {"judge": metrics})
    return replace(base, **changes)  # type: ignore[arg-type]  # the fields vary by test


class TestPublishedTotals:
    def test_the_540_cells_average_to_all_36_figures_of_table_16(self) -> None:
        found = totals(published_cells())
        ours = {m: tuple(printed(find(found, model=m), "acc_atom", "ic_atom", "rc_atom")) for m in TABLE_16}
        assert ours == TABLE_16
        assert all(find(found, model=model).metrics["acc_atom"].n == 45 for model in TABLE_16)

    def test_gpt_4os_cells_average_to_the_total_rows_of_table_5(self) -> None:
        found = totals(published_cells())
        for level, row in TABLE_5_LEVEL_ROWS.items():
            cells = [find(found, model="GPT-4o", task=task, level=level) for task in TASKS]
            ours = [
                figure
                for total in cells
                for figure in printed(total, "mean", "acc_atom", "ic_atom", "rc_atom")
            ]
            assert ours == row.split()

    def test_gpt_4os_cells_average_to_the_last_row_of_table_5(self) -> None:
        found = totals(published_cells())
        cells = [find(found, model="GPT-4o", task=task) for task in TASKS]
        assert [
            f for total in cells for f in printed(total, "acc_atom", "ic_atom", "rc_atom")
        ] == TABLE_5_LAST_ROW.split()

    def test_every_grouping_covers_every_cell_once(self) -> None:
        found = totals(published_cells())
        for by in {total.by for total in found}:
            assert sum(total.cells for total in found if total.by == by) == 540


class TestTotals:
    def test_a_cell_counts_the_same_whatever_its_size(self) -> None:
        # Means 5 (one unit) and 2 (six units): (5 + 2) / 2 = 3.5, n = 2 cells.
        small = result("essay", metrics=measure(cell([[[5]]])))
        large = result("post", metrics=measure(cell([[[2, 2, 2]], [[2, 2, 2]]])))
        total = find(totals([small, large]), model="a")
        assert total.metrics["mean"] == Metric.of(3.5, 2)
        assert total.units == UnitCounts.of(scored=7)

    def test_cells_without_the_metric_are_left_out_and_counted(self) -> None:
        one_run = result("essay", metrics=measure(cell([[[5]]])))
        total = find(totals([one_run, result("post")]), model="a")
        assert (total.metrics["rc"].n, total.cells) == (1, 2)
        assert TotalResult.of(total).metrics.model_dump()["rc"]["left_out"] == 1

    def test_what_no_model_has_is_lacking_to_none_of_them(self) -> None:
        # One run each: RC of neither model exists, and both have all the rest.
        one, other = (replace(result(metrics=measure(cell([[[5]]]))), model=model) for model in "ab")
        assert [total.matched for total in totals([one, other])] == [None] * len(totals([one, other]))

    def test_models_have_means_over_the_cells_that_all_have(self) -> None:
        hard = result("essay", metrics=measure(cell([[[1]]])))
        easy = result("post", metrics=measure(cell([[[5]]])))
        silent = replace(hard, model="b", metrics=measure(cell([[[9]]])))
        found = totals([hard, easy, silent, replace(easy, model="b")])
        assert find(found, model="a").metrics["acc_atom"] == Metric.of(0.5, 2)
        matched = [find(found, model=model).matched for model in "ab"]
        assert [each["acc_atom"] for each in matched if each] == [Metric.of(1.0, 1)] * 2

    def test_a_group_without_the_metric_says_so(self) -> None:
        total = find(totals([result(metrics=measure(cell([[[9]]])))]), model="a")
        assert total.metrics["mean"] == Metric.missing("no_cell: no cell of the group has the metric")

    def test_means_on_different_scales_are_not_averaged(self) -> None:
        seven = Scale(1, 7)
        other = result("post", scale=seven, metrics=measure(cell([[[7]], [[7]]], scale=seven)))
        total = find(totals([result("essay"), other]), model="a")
        assert total.metrics["mean"].value is None
        assert total.metrics["mean"].reason is not None
        assert total.metrics["mean"].reason.startswith("mixed_scales:")
        assert total.metrics["acc"].n == 2
        assert find(totals([result("essay"), other]), model="a", task="post").metrics["mean"].value == 7.0

    def test_no_cells_have_no_totals(self) -> None:
        assert totals([]) == ()


class TestResultsJson:
    def test_has_the_contracts_fields(self) -> None:
        found = document_of(summarize([result()]))
        cell_json = found["cells"][0]
        keys = {k: cell_json[k] for k in ("model", "persona", "task", "dimension", "level", "runs")}
        assert keys == {
            "model": "a", "persona": "E-high", "task": "essay", "dimension": "E", "level": "high", "runs": 2,
        }  # fmt: skip
        assert list(cell_json["metrics"]) == list(names())
        assert cell_json["metrics"]["mean"] == {"value": 4.75, "n": 2}  # run scores 4.5 and 5
        assert cell_json["units"] == {
            "total": 4, "scored": 4, "not_applicable": 0, "refused": 0, "unparsed": 0, "failed": 0, "filtered": 0,
        }  # fmt: skip
        total = found["totals"][1]
        assert (total["by"], total["model"], total["task"]) == (["model", "task"], "a", "essay")
        assert found["judges"][0]["judge"] == "judge"

    def test_says_how_much_refusals_removed(self) -> None:
        statuses = ResponseStatuses.of(planned=30, answered=28, refused=2, refused_units=4)
        assert CellResult.of(result(statuses=statuses)).generation.model_dump() == {
            "planned": 30, "answered": 28, "refused": 2, "filtered": 0, "no_answer": 0, "failed": 0, "empty": 0,
            "truncated": 0, "refused_units": 4, "sentences": 0, "unknown_tags": 0, "unknown_finish_word": 0,
            "cut_off": 0, "repeated_sentences": 0, "left_out": 0, "role_breaks": 0, "refusal_check": 0,
        }  # fmt: skip

    def test_a_total_has_its_cells_responses_each_text_once(self) -> None:
        # One text is judged on two dimensions, another one on one: 30 + 20 responses, not 80.
        shared = ResponseStatuses.of(planned=30, answered=24, filtered=3, no_answer=2, failed=1, truncated=5)
        other = ResponseStatuses.of(planned=20, answered=19, refused=1)
        cells = [
            result(statuses=shared),
            replace(result(statuses=shared), dimension="O"),
            result("post", statuses=other),
        ]
        found = find(totals(cells), model="a").statuses
        assert found == ResponseStatuses.of(
            planned=50, answered=43, refused=1, filtered=3, no_answer=2, failed=1, truncated=5
        )

    def test_rc_atom_carries_its_two_parts(self) -> None:
        # Distributions {4, 5} and {5, 5}: distance 1/2, so 2·(1 − 0.5/4) − 1 = 0.75; the two instructions differ.
        rc_atom = _metrics_of(result())["rc_atom"]
        assert rc_atom["value"] == rc_atom["across_instructions"] == 0.75
        assert rc_atom["across_instructions_n"] == 1
        assert rc_atom["within_instruction"] is None
        assert str(rc_atom["within_instruction_reason"]).startswith("no_pair_within:")

    def test_a_missing_metric_is_null_with_its_reason(self) -> None:
        rc = _metrics_of(result(metrics=measure(cell([[[5]]]))))["rc"]
        assert (rc["value"], rc["n"]) == (None, 0)
        assert str(rc["reason"]).startswith("fewer_than_two_runs:")

    def test_the_order_is_the_same_whatever_order_cells_come_in(self) -> None:
        cells = [result(task, model) for task in TASKS for model in ("b", "a")]
        assert document_of(summarize(cells)) == document_of(summarize(cells[::-1]))

    def test_simulated_shows_on_cell_total_judge_and_whole(self) -> None:
        found = summarize([result(model="a", simulated=True), result(model="b")])
        assert [found_cell.simulated for found_cell in found.cells] == [True, False]
        assert find(found.totals, model="a").simulated
        assert not find(found.totals, model="b").simulated
        assert found.simulated
        assert summarize([result()], {"judge": True}).judges[0].simulated
        assert summarize([result()], {"judge": True}).simulated
        assert not summarize([result()]).simulated

    def test_a_judge_that_judged_no_sentence_is_listed_with_none(self) -> None:
        (judge,) = summarize([], {"grader": False}).judges
        assert (judge.judge, judge.units.total, judge.simulated) == ("grader", 0, False)


def _metrics_of(subject: MeasuredCell) -> Mapping[str, Mapping[str, object]]:
    return CellResult.of(subject).metrics.model_dump(exclude_unset=True)
