"""Krippendorff's α against its author's worked example and against its definition over all pairs of scores."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.metrics.metric import IntArray
from app.domain.statistics.krippendorff import NO_SCORE, alpha, coincidences, coincidences_of

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers, twelve units, missing data.
OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)


def units(*observers: str) -> IntArray:
    """Shape (units, observers): the scores from 0, -1 for a missing one."""
    rows = [[NO_SCORE if score == "." else int(score) - 1 for score in row.split()] for row in observers]
    return np.array(rows, dtype=np.int64).T


def alpha_of(scores: IntArray, *, ordinal: bool) -> float:
    ones = np.ones(len(scores), dtype=np.int64)
    tables = coincidences(scores, ones, np.zeros_like(ones), 5)
    return float(alpha(tables.sum(axis=0), ordinal=ordinal))


def test_the_authors_example_gives_his_coincidences() -> None:
    scores = units(*OBSERVERS)
    (table,) = coincidences(scores, np.ones(12, dtype=np.int64), np.zeros(12, dtype=np.int64), 5)
    assert table == pytest.approx(
        np.array(
            [
                [7, 4 / 3, 1 / 3, 1 / 3, 0],
                [4 / 3, 10, 4 / 3, 1 / 3, 0],
                [1 / 3, 4 / 3, 8, 1 / 3, 0],
                [1 / 3, 1 / 3, 1 / 3, 4, 0],
                [0, 0, 0, 0, 3],
            ]
        )
    )
    assert table.sum() == pytest.approx(40)  # 41 scores, one of them alone in its unit


@pytest.mark.parametrize(("ordinal", "printed"), [(True, "0.815"), (False, "0.849")])
def test_the_authors_example_gives_his_alphas(ordinal: bool, printed: str) -> None:
    assert f"{alpha_of(units(*OBSERVERS), ordinal=ordinal):.3f}" == printed


def test_perfect_agreement_is_one_and_a_single_value_none() -> None:
    for ordinal in (True, False):
        assert alpha_of(units("1 4 5 2", "1 4 5 2"), ordinal=ordinal) == 1.0
        assert np.isnan(alpha_of(units("4 4", "4 4"), ordinal=ordinal))


def test_counts_stand_for_units_and_clusters_add_up() -> None:
    scores = units(*OBSERVERS)
    clusters = np.arange(12, dtype=np.int64) % 3
    once = coincidences(scores, np.full(12, 2), clusters, 5)
    twice = coincidences(np.repeat(scores, 2, axis=0), np.ones(24, dtype=np.int64), np.repeat(clusters, 2), 5)
    assert once == pytest.approx(twice)
    assert once.shape == (3, 5, 5)


def by_definition(scores: Sequence[Sequence[int]], *, ordinal: bool) -> float | None:
    """1 − observed / expected, both means of δ² over ordered pairs of scores: within units, and of all."""
    paired = [[score for score in unit if score != NO_SCORE] for unit in scores]
    paired = [unit for unit in paired if len(unit) > 1]
    pooled = [score for unit in paired for score in unit]

    def squared(one: int, other: int) -> float:
        low, high = min(one, other), max(one, other)
        between = sum(low <= score <= high for score in pooled) - (pooled.count(low) + pooled.count(high)) / 2
        return (between if one != other else 0.0) ** 2 if ordinal else float(high - low) ** 2

    observed = sum(sum(squared(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in paired)
    expected = sum(squared(a, b) for a, b in permutations(pooled, 2)) / max(1, len(pooled) - 1)
    return 1 - observed / expected if expected else None


@given(
    st.lists(st.lists(st.integers(NO_SCORE, 4), min_size=3, max_size=3), min_size=1, max_size=12),
    st.booleans(),
)
def test_is_its_definition_for_any_scores(scores: list[list[int]], ordinal: bool) -> None:
    expected = by_definition(scores, ordinal=ordinal)
    found = alpha_of(np.array(scores, dtype=np.int64), ordinal=ordinal)
    if expected is None:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(expected)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(-1, 3), min_size=4, max_size=4)),
        min_size=1,
        max_size=12,
    )
)
def test_coincidences_are_the_same_from_how_many_gave_each_score(units: list[tuple[int, list[int]]]) -> None:
    clusters = np.array([cluster for cluster, _ in units], dtype=np.int64)
    scores = np.array([given for _, given in units], dtype=np.int64)
    answers = np.array([[given.count(score) for score in range(4)] for _, given in units], dtype=np.float64)
    found = coincidences_of(answers, clusters)
    several = (scores != NO_SCORE).sum(axis=1) > 1
    ones = np.ones(int(several.sum()), dtype=np.int64)
    expected = coincidences(scores[several], ones, clusters[several], 4)
    assert found.shape == expected.shape
    assert found == pytest.approx(expected)
