"""ACC_atom where responses or verdicts are missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.results.missing import JudgedResponses, composite_shares, share_bounds
from app.domain.statistics.cells import estimate_mean

Answer = tuple[int, int, int, int]
"""Run, units in the level, units outside it, units without a readable verdict."""


def judged(*answers: Answer) -> JudgedResponses:
    rows = np.array([(run, inside, inside + out, lost) for run, inside, out, lost in answers], dtype=np.int64)
    return JudgedResponses(*rows.reshape(-1, 4).T)


def runs(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


class TestComposite:
    def test_a_refusal_is_a_response_out_of_character_throughout(self) -> None:
        # Run 0: (1 + 0) / 2; run 1: 1/2; run 4 has only a refusal: 0.
        found = composite_shares(judged((0, 2, 0, 0), (1, 1, 1, 3)), runs(0, 4))
        assert dict(zip(found.runs.tolist(), found.values.tolist(), strict=True)) == {0: 0.5, 1: 0.5, 4: 0.0}
        metric, _ = estimate_mean({"judge": found}, {})
        assert metric.value == pytest.approx(1 / 3)
        assert metric.n == 3

    def test_of_nothing_but_answers_without_scores_there_is_none(self) -> None:
        metric, varied = estimate_mean({"judge": composite_shares(judged((0, 0, 0, 2)), runs())}, {})
        assert metric.value is None
        assert varied is None

    def test_it_has_an_interval_over_runs(self) -> None:
        answers = judged(*((run, run % 3, 3 - run % 3, 0) for run in range(8)))
        found, varied = estimate_mean({"j": composite_shares(answers, runs(8, 9))}, {})
        assert found.ci95 is not None
        low, high = found.ci95
        assert 0 <= low < (found.value or 0) < high <= 1
        assert varied is not None


class TestBounds:
    def test_all_that_is_missing_is_out_of_character_or_in_it(self) -> None:
        # Run 0: 1 in, 1 out, 2 unreadable: 1/4 to 3/4. Run 1, of one answer, has none: 0 to 1.
        assert share_bounds(judged((0, 1, 1, 2)), [(0, 1), (1, 1)]) == (0.125, 0.875)

    def test_they_meet_where_nothing_is_missing(self) -> None:
        assert share_bounds(judged((0, 1, 3, 0)), [(0, 1)]) == (0.25, 0.25)

    def test_without_a_planned_response_there_are_none(self) -> None:
        assert share_bounds(judged(), []) is None

    @given(
        st.lists(st.tuples(st.integers(0, 4), *(st.integers(0, 5) for _ in range(3))), max_size=12),
        st.lists(st.integers(0, 4), max_size=6),
        st.integers(0, 3),
    )
    def test_whatever_is_missing_acc_atom_and_the_composite_lie_within(
        self, answers: list[Answer], refused: list[int], per_run: int
    ) -> None:
        there = [run for run, *_ in answers] + refused
        planned = [(run, max(per_run, there.count(run))) for run in range(5)]
        found = share_bounds(judged(*answers), planned)
        assert found is not None
        low, high = found
        assert 0 <= low <= high <= 1
        for missing in ([], refused):
            shares = composite_shares(judged(*answers), runs(*missing)).values
            if len(shares):
                assert low - 1e-12 <= shares.mean() <= high + 1e-12

    @given(
        st.lists(st.tuples(st.integers(0, 3), *(st.integers(1, 5) for _ in range(2)), st.just(0)), min_size=1)
    )
    def test_more_missing_never_narrows_them(self, answers: list[Answer]) -> None:
        planned = [(run, 1 + sum(answer[0] == run for answer in answers)) for run in range(4)]
        low, high = share_bounds(judged(*answers), planned) or (0.0, 0.0)
        fewer = share_bounds(judged(*answers[1:]), planned) or (0.0, 0.0)
        assert fewer[0] <= low + 1e-12
        assert fewer[1] >= high - 1e-12
