"""Which model is ahead: by a paired difference, or not at all."""

from itertools import product

import numpy as np
import pytest

from app.domain.statistics.paired import sign_flip_p_value
from app.reports.views.top_comparison import SIGNIFICANT, compare_top
from tests.unit.reports.sample import response_of, results_of
from tests.unit.results_sample import read

ONE, OTHER = "simulated/steady", "simulated/drifting"
JOBS, PERSONAS = 2_000, 10


def test_a_lead_is_shown_where_every_persona_has_it() -> None:
    # One has both sentences of each persona in its level, the other one of two: 1 - 1/2.
    results = read(
        results_of(
            [
                response_of(
                    "Yes. So.", ("Yes.", 5), ("So.", 5 if model == ONE else 1), model=model, persona=f"p{n}"
                )
                for model, n in product((ONE, OTHER), range(10))
            ]
        )
    )
    found = compare_top(results, [ONE, OTHER], "acc_atom")
    assert found is not None
    assert found.row is not None
    assert (found.row.difference, found.row.pairs, found.left_out) == (0.5, 10, 0)
    assert found.shown


def test_a_lead_over_other_personas_is_not_shown_where_both_have_figures() -> None:
    # One: 1/2 for p0, and 1 for nine that the other lacks. The other: 1 for p0.
    own = [response_of("Yes.", ("Yes.", 5), model=ONE, persona=f"p{n}") for n in range(1, 10)]
    shared = [
        response_of("Yes. No.", ("Yes.", 5), ("No.", 5 if model == OTHER else 1), model=model, persona="p0")
        for model in (ONE, OTHER)
    ]
    found = compare_top(read(results_of([*own, *shared])), [ONE, OTHER], "acc_atom")
    assert found is not None
    assert found.row is not None
    assert (found.row.difference, found.row.pairs, found.left_out) == (-0.5, 1, 9)
    assert not found.shown


@pytest.mark.parametrize(
    ("equal", "worse", "most"),
    [
        pytest.param(2, 0, 0.06, id="two"),
        pytest.param(3, 0, 0.025, id="three"),
        pytest.param(12, 0, 0.01, id="twelve"),
        pytest.param(2, 10, 0.06, id="two far ahead of ten"),
    ],
)
def test_of_equal_models_the_highest_is_not_said_to_be_ahead_more_often_than_chance_allows(
    equal: int, worse: int, most: float
) -> None:
    # The expected shares are 0.05, 0.016, 0.002 and 0.05; the interval, which must be beyond 0 too, only lowers them.
    draws = np.random.default_rng(1)
    false_alarms = 0
    for _ in range(JOBS):
        figures = draws.normal(size=(equal + worse, PERSONAS))
        figures[equal:] -= 3
        second, first = np.argsort(figures.mean(axis=1))[-2:]
        false_alarms += sign_flip_p_value(figures[first] - figures[second], seed=0) < SIGNIFICANT
    assert false_alarms / JOBS <= most


@pytest.mark.parametrize("ranked", [[], [ONE]])
def test_one_model_leads_nobody(ranked: list[str]) -> None:
    assert compare_top(read(results_of([response_of("Yes.", ("Yes.", 5))])), ranked, "acc_atom") is None
