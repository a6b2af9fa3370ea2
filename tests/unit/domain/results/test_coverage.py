"""Coverage: the share of the planned verdicts that count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.results.coverage import Coverage, JudgedCell, coverages
from tests.unit.results_sample import TOTAL, read

ESSAY, POST = ("m", "essay"), ("m", "post")


def covered(*cells: JudgedCell) -> list[tuple[int, int, int]]:
    return [(found.counted, found.refused, found.planned) for found in coverages(cells)]


class TestCoverages:
    def test_a_response_that_never_came_has_as_many_sentences_as_the_others(self) -> None:
        # 4 texts of 10 sentences, of 10: 3 refusals and 3 failures would have had 30 each.
        assert covered(JudgedCell(ESSAY, 10, 3, 4, 40, 38)) == [(38, 30, 100)]

    def test_the_length_is_that_of_the_model_in_the_task(self) -> None:
        long, short = JudgedCell(ESSAY, 1, 0, 1, 30, 30), JudgedCell(POST, 2, 0, 1, 4, 4)
        refused = JudgedCell(ESSAY, 2, 2, 0, 0, 0)
        assert covered(long, short, refused) == [(30, 0, 30), (4, 0, 8), (0, 60, 60)]

    def test_or_else_that_of_the_other_models_or_one(self) -> None:
        assert covered(JudgedCell(("other", "essay"), 1, 0, 1, 9, 9), JudgedCell(ESSAY, 1, 1, 0, 0, 0)) == [
            (9, 0, 9),
            (0, 9, 9),
        ]
        assert covered(JudgedCell(ESSAY, 5, 0, 0, 0, 0)) == [(0, 0, 5)]

    @given(
        st.lists(
            st.tuples(*(st.integers(0, 9) for _ in range(3)), st.integers(0, 60), st.integers(0, 60)),
            min_size=1,
            max_size=6,
        )
    )
    def test_a_share_lies_between_0_and_1_and_is_1_where_all_is_there(
        self, drawn: list[tuple[int, int, int, int, int]]
    ) -> None:
        cells = [
            JudgedCell(
                ESSAY,
                refused + judged + absent,
                refused,
                judged,
                verdicts * judged,
                min(counted, verdicts) * judged,
            )
            for refused, judged, absent, verdicts, counted in drawn
        ]
        for cell, found in zip(cells, coverages(cells), strict=True):
            assert found.counted + found.refused <= found.planned or not cell.verdicts
            if found.share is not None:
                assert 0 <= found.share <= 1
            if cell.judged == cell.planned and cell.counted == cell.verdicts > 0:
                assert found.share == 1
        whole = Coverage.sum(coverages(cells))
        assert whole.planned == sum(found.planned for found in coverages(cells))


@pytest.mark.parametrize("totals", [[], [TOTAL | {"by": ["model"], "model": "m", "cells": 1}]])
def test_what_older_results_do_not_say_is_not_known(totals: list[dict[str, object]]) -> None:
    assert read({"totals": totals}).coverage_of("m") is None
