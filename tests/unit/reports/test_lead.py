"""Which model is ahead: by a paired difference, or not at all."""

from itertools import product

import pytest

from app.reports.lead import lead
from tests.unit.reports.sample import response_of, results_of

ONE, OTHER = "simulated/steady", "simulated/drifting"


def test_a_lead_is_shown_where_every_persona_has_it() -> None:
    # One has both sentences of each persona in its level, the other one of two: 1 - 1/2.
    results = results_of(
        [
            response_of(
                "Yes. So.", ("Yes.", 5), ("So.", 5 if model == ONE else 1), model=model, persona=f"p{n}"
            )
            for model, n in product((ONE, OTHER), range(10))
        ]
    )
    found = lead(results, [ONE, OTHER], "acc_atom")
    assert found is not None
    assert found.row is not None
    assert (found.row["difference"], found.row["pairs"], found.left_out) == (0.5, 10, 0)
    assert found.shown


def test_a_lead_over_other_personas_is_not_shown_where_both_have_figures() -> None:
    # One: 1/2 for p0, and 1 for nine that the other lacks. The other: 1 for p0.
    own = [response_of("Yes.", ("Yes.", 5), model=ONE, persona=f"p{n}") for n in range(1, 10)]
    shared = [
        response_of("Yes. No.", ("Yes.", 5), ("No.", 5 if model == OTHER else 1), model=model, persona="p0")
        for model in (ONE, OTHER)
    ]
    found = lead(results_of([*own, *shared]), [ONE, OTHER], "acc_atom")
    assert found is not None
    assert found.row is not None
    assert (found.row["difference"], found.row["pairs"], found.left_out) == (-0.5, 1, 9)
    assert not found.shown


@pytest.mark.parametrize("ranked", [[], [ONE]])
def test_one_model_leads_nobody(ranked: list[str]) -> None:
    assert lead(results_of([response_of("Yes.", ("Yes.", 5))]), ranked, "acc_atom") is None
