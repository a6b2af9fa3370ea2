"""Results by persona instruction: of each wording's runs alone, and together the job's own."""

import json
from collections import defaultdict
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest

from app.db.results.result_queries import ScoreRow
from app.domain.results.by_instruction import INSTRUCTION_METRICS, ByInstruction
from app.services.results.by_instruction import by_instruction
from tests.unit.services.results.test_compute import CONTEXT, JOB, computed, score_rows


def found_of(rows: list[ScoreRow]) -> ByInstruction:
    grouped: dict[int, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in rows:
        grouped[row.instruction or 0][row.cell, row.trait][row.judge].append(row)
    return by_instruction(JOB, CONTEXT, grouped)


class TestByInstruction:
    @pytest.mark.parametrize("metric", ["mean", "acc", "acc_atom"])
    def test_equally_many_runs_of_each_average_to_the_jobs_own_figure(self, metric: str) -> None:
        """Of means over runs; how far runs are apart is another thing within a wording."""
        rows = score_rows()
        whole = {
            (total["model"], total.get("task"), total.get("level")): total["metrics"][metric]["value"]
            for total in json.loads(computed(rows))["totals"]
            if total["by"] in (["model"], ["model", "task"], ["model", "level"])
        }
        own = defaultdict(list)
        for each in found_of(rows).instructions:
            for total in each.totals:
                own[total.model, total.task, total.level].append(total.metrics[metric].value)
        assert own.keys() == whole.keys()
        for key, values in own.items():
            assert fmean(value for value in values if value is not None) == pytest.approx(whole[key])

    def test_a_wording_that_fails_shows_and_does_not_spread(self) -> None:
        levels = {"high": [5, 5], "neutral": [3, 3], "low": [1, 1]}
        outside = {"high": [1, 1], "neutral": [5, 5], "low": [5, 5]}

        def planted(row: ScoreRow) -> ScoreRow:
            level = CONTEXT.cells[row.cell].persona.traits[row.trait].level
            return replace(row, scores=(outside if row.instruction else levels)[level])

        first, second = found_of([planted(row) for row in score_rows()]).instructions
        for each, value in ((first, 1.0), (second, 0.0)):
            assert {total.metrics["acc_atom"].value for total in each.totals} == {value}
            assert {total.metrics["rc_atom"].value for total in each.totals} == {1.0}

    def test_each_names_its_words_and_has_an_interval_over_personas_alone(self) -> None:
        found = found_of(score_rows())
        assert [each.words for each in found.instructions] == [*CONTEXT.spec.instructions, None][:2]
        (total,) = [total for total in found.instructions[0].totals if total.by == ["model"]]
        assert tuple(total.metrics) == INSTRUCTION_METRICS
        for metric in total.metrics.values():
            assert metric.ci95 is not None
            assert metric.value is not None
            assert metric.ci95[0] < metric.value < metric.ci95[1]
            assert metric.model_fields_set <= {"value", "n", "reason", "ci95", "ci95_reason", "left_out"}

    def test_a_single_run_of_a_wording_has_no_rc_and_says_why(self) -> None:
        rows = [row for row in score_rows() if row.run in (0, 3)]
        metrics = found_of(rows).instructions[0].totals[0].metrics
        assert metrics["acc_atom"].value is not None
        assert (metrics["rc_atom"].value, metrics["rc_atom"].n) == (None, 0)
        assert (metrics["rc_atom"].reason or "").startswith("no_cell")

    def test_existing_texts_tell_no_words(self) -> None:
        rows = [replace(row, instruction=90) for row in score_rows(runs=2)]
        assert found_of(rows).instructions[0].words is None

    def test_no_rows_give_nothing(self) -> None:
        assert found_of([]).instructions == []
