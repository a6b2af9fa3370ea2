"""Results from rows: the same rows give the same bytes, in whatever order they come."""

import json
import random
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import pytest

from app.db.jobs.jobs import JobRow
from app.db.jobs.progress import Counts
from app.db.results.joint_scores import JointRow
from app.db.results.result_queries import ResponseTally, ScoreRow
from app.domain.jobs.plan import cells_of
from app.domain.jobs.status import JobStatus
from app.domain.results.grouping_check import CheckedSentences
from app.services.job_context import JobContext
from app.services.results.compute import JobRows, render_results
from tests.job_requests import a_model
from tests.unit.domain.job_samples import resolved

SPEC = resolved(
    personas=("big-five",),
    tasks=("questionnaire", "essay"),
    judges=(a_model("sim/a"), a_model("sim/b")),
    seed=7,
).spec
CONTEXT = JobContext(SPEC, cells_of(SPEC))
JOB = JobRow(
    "job_x", "default", None, JobStatus.RUNNING, None, None, {}, False, {}, "normal", 1, 1,
    datetime(2026, 11, 29, tzinfo=UTC), None, None, None, (),
)  # fmt: skip


def score_rows(*, runs: int = 6, refused: bool = False) -> list[ScoreRow]:
    draw = random.Random(5)
    return [
        ScoreRow(
            cell=cell.ordinal,
            trait=trait,
            judge=judge,
            run=run,
            instruction=run // 3,
            scores=[] if refused else [draw.randint(1, 5) for _ in range(draw.randint(1, 7))],
            not_applicable=1,
            refused=int(refused),
            unparsed=0,
            failed=0,
        )
        for cell in CONTEXT.cells
        for trait in range(len(cell.dimensions))
        for judge in range(2)
        for run in range(runs)
        for _ in range(3 if cell.task.id == "questionnaire" else 1)
    ]


def computed(rows: list[ScoreRow], joint: list[JointRow] | None = None) -> str:
    grouped: dict[tuple[int, int, int], list[ScoreRow]] = defaultdict(list)
    for row in rows:
        grouped[row.cell, row.trait, row.judge].append(row)
    tallies = {cell.ordinal: ResponseTally(cell.ordinal, 6, 0, 0, 0, 0, 6, 0, 0, 0) for cell in CONTEXT.cells}
    read = JobRows(
        grouped,
        tallies,
        [],
        {},
        [],
        Counts(),
        [],
        [],
        [],
        None,
        None,
        CheckedSentences(),
        {},
        joint=joint or [],
    )
    text = render_results(JOB, CONTEXT, read).document
    document = json.loads(text)
    assert text == json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    del document["computed_at"]
    return json.dumps(document, allow_nan=False)


def metrics_in(document: Any) -> list[dict[str, Any]]:
    """Every metric in a document, wherever it stands."""
    if isinstance(document, list):
        return [metric for part in document for metric in metrics_in(part)]
    if not isinstance(document, dict):
        return []
    own = [document] if {"value", "n"} <= document.keys() else []
    return own + metrics_in(list(document.values()))


class TestRenderResults:
    def test_the_order_of_rows_changes_no_byte(self) -> None:
        rows = score_rows()
        shuffled = random.Random(1).sample(rows, len(rows))
        turned = [row.__class__(*(getattr(row, n) for n in row.__slots__)) for row in reversed(rows)]
        assert computed(rows) == computed(shuffled) == computed(turned)

    def test_every_figure_has_an_interval_or_says_why_not(self) -> None:
        document = json.loads(computed(score_rows()))
        found = metrics_in(document["cells"]) + metrics_in(document["totals"])
        assert len(found) > 800
        for metric in found:
            if metric["value"] is None:
                assert metric["reason"]
            elif metric["ci95"] is None:
                assert metric["ci95_reason"].startswith("too_few_")
            else:
                low, high = metric["ci95"]
                assert low <= metric["value"] <= high
        totals = [total for total in document["totals"] if total["by"] == ["model", "task"]]
        assert all(total["metrics"]["acc_atom"]["ci95_runs"] for total in totals)

    @pytest.mark.parametrize("rows", [[], score_rows(runs=1), score_rows(refused=True)])
    def test_little_or_nothing_gives_no_interval_and_no_error(self, rows: list[ScoreRow]) -> None:
        document = json.loads(computed(rows))
        cells = metrics_in(document["cells"])
        assert cells
        assert all(metric.get("ci95") is None for metric in cells)


class TestVerdictAgreement:
    ROWS = [
        JointRow(cell.ordinal, 0, [(0, score), (1, min(5, score + score % 2))], 2 + score)
        for cell in CONTEXT.cells
        for score in range(1, 6)
    ] + [JointRow(0, 0, [(1, 4)], 7)]

    def test_is_over_all_then_by_task_and_dimension_whatever_the_order(self) -> None:
        document = json.loads(computed([], self.ROWS))
        found = document["verdict_agreement"]
        assert [each.get("task") or each.get("dimension") for each in found] == [
            None, "essay", "questionnaire", "A", "C", "E", "N", "O",
        ]  # fmt: skip
        whole = found[0]
        assert whole["left_out"] == 7
        assert whole["alpha_ordinal"]["n"] == 25 * len(CONTEXT.cells)  # 3 + 4 + 5 + 6 + 7
        (pair,) = whole["pairs"]
        assert pair["judges"] == ["sim/a", "sim/b"]
        assert pair["exact_agreement"]["value"] == (4 + 6 + 7) / 25  # of 2, 4 and 5
        assert all(metric["ci95"] for metric in metrics_in(whole))
        shuffled = random.Random(2).sample(self.ROWS, len(self.ROWS))
        assert computed([], shuffled) == computed([], self.ROWS)

    def test_without_scores_there_is_none(self) -> None:
        assert json.loads(computed([]))["verdict_agreement"] == []
