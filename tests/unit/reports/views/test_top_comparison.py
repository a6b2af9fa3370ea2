"""Which model is ahead: by a paired difference, or not at all."""

from itertools import product

import numpy as np
import pytest

from app.domain.judging.judged_response import JudgedResponse
from app.domain.results.contract import Results
from app.domain.statistics.paired import sign_flip_p_value
from app.reports.views.top_comparison import SIGNIFICANT, Lead, compare_top
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


def test_of_two_equal_models_the_higher_is_not_said_to_be_ahead_more_often_than_chance_allows() -> None:
    draws = np.random.default_rng(1)
    false_alarms = 0
    for _ in range(JOBS):
        figures = draws.normal(size=(2, PERSONAS))
        second, first = np.argsort(figures.mean(axis=1))
        false_alarms += sign_flip_p_value(figures[first] - figures[second], seed=0) < SIGNIFICANT
    assert false_alarms / JOBS <= 0.06


def shares(model: str, chances: list[float]) -> list[JudgedResponse]:
    """A model's responses, of each of as many personas: 20 sentences, such shares of which are in its level."""
    return [
        response_of(
            " ".join(f"S{n}." for n in range(20)),
            *((f"S{n}.", 5 if n < round(20 * chance) else 1) for n in range(20)),
            model=model,
            persona=f"p{place:02}",
        )
        for place, chance in enumerate(chances)
    ]


def drawn(model: str, chance: float, personas: int = 12) -> list[JudgedResponse]:
    draws = np.random.default_rng([len(model), *model.encode()])
    return shares(model, [float(each) for each in np.clip(draws.normal(chance, 0.1, personas), 0, 1)])


def ordered(results: Results) -> list[str]:
    totals = {
        t.model: t.metrics["acc_atom"].value or 0 for t in results.totals if t.by == ["model"] and t.model
    }
    return sorted(totals, key=lambda model: -totals[model])


def test_of_several_models_the_first_is_ahead_only_if_it_can_be_told_from_all_others() -> None:
    close = [*drawn("a", 0.62), *drawn("b", 0.6), *drawn("c", 0.2)]
    results = read(results_of(close))
    ranked = ordered(results)
    assert ranked[2] == "c"
    found = compare_top(results, ranked, "acc_atom")
    assert found is not None
    assert not found.shown
    assert found.tied == [ranked[1]]
    assert found.ranks == {ranked[0]: (1, 2), ranked[1]: (1, 2), "c": (3, 3)}
    assert isinstance(found.row, Lead)
    assert found.row.of_pairs == 3
    assert found.row.ci95 is not None
    assert found.row.ci95[0] < 0 < found.row.difference < found.row.ci95[1]

    clear = read(results_of([*drawn("a", 0.9), *drawn("b", 0.5), *drawn("c", 0.2)]))
    found = compare_top(clear, ["a", "b", "c"], "acc_atom")
    assert found is not None
    assert found.shown
    assert found.tied == []
    assert found.ranks == {"a": (1, 1), "b": (2, 2), "c": (3, 3)}
    # Told that the second is the first, it is the other way round.
    turned = compare_top(clear, ["b", "a", "c"], "acc_atom")
    assert turned is not None
    assert isinstance(found.row, Lead)
    assert isinstance(turned.row, Lead)
    assert turned.row.difference == -found.row.difference
    assert turned.row.ci95 == (-found.row.ci95[1], -found.row.ci95[0]) if found.row.ci95 else None
    assert not turned.shown


def test_several_models_are_compared_over_what_all_of_them_have() -> None:
    given = [*drawn("a", 0.9), *drawn("b", 0.5), *drawn("c", 0.2, personas=9)]
    found = compare_top(read(results_of(given)), ["a", "b", "c"], "acc_atom")
    assert found is not None
    assert found.row is not None
    assert (found.row.pairs, found.left_out) == (9, 3)
    other = [*drawn("a", 0.9), *drawn("b", 0.5), response_of("Yes.", ("Yes.", 5), model="c", persona="else")]
    found = compare_top(read(results_of(other)), ["a", "b", "c"], "acc_atom")
    assert found is not None
    assert found.row is not None
    assert (found.row.pairs, found.ranks) == (12, {})


@pytest.mark.parametrize("ranked", [[], [ONE]])
def test_one_model_leads_nobody(ranked: list[str]) -> None:
    assert compare_top(read(results_of([response_of("Yes.", ("Yes.", 5))])), ranked, "acc_atom") is None
