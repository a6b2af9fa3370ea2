"""Which values several models are compared over, and which metric decides."""

import numpy as np
import pytest

from app.domain.results.comparison import Figure, Place
from app.domain.results.ranking import Ranking, rank_models

Own = dict[tuple[str, Place], Figure]
UNIT = (0.0, 1.0)


def model(seed: int, level: float, personas: int = 12, **more: float | None) -> Own:
    """A model's ACC_atom, and RC by further personas' id."""
    draws = np.random.default_rng(seed)
    found = {
        ("acc_atom", Place(f"p{n:02}", "essay", "E", "high")): Figure(
            level + float(draws.normal(0, 0.02)), None, UNIT, n=5
        )
        for n in range(personas)
    }
    for id_, value in more.items():
        found["rc", Place(id_, "essay", "E", "high")] = Figure(
            value, "x: none" if value is None else None, UNIT, n=5
        )
    return found


def primary(models: dict[str, Own]) -> Ranking:
    return rank_models(models)[0]


def test_only_what_all_models_have_is_compared() -> None:
    models = {"a": model(1, 0.5), "b": model(2, 0.5, personas=9), "c": model(3, 0.8, personas=10)}
    models["c"]["acc_atom", Place("p00", "essay", "E", "high")] = Figure(None, "x: none", UNIT)
    found = primary(models)
    assert (found.values, found.personas) == (8, 8)
    means = {each.name: each.value for each in found.models}
    own = [models["a"]["acc_atom", Place(f"p{n:02}", "essay", "E", "high")].value or 0 for n in range(1, 9)]
    assert means["a"] == pytest.approx(sum(own) / 8)
    assert found.models[0].name == "c"
    assert found.models[0].rank == (1, 1)
    assert {each.rank for each in found.models[1:]} == {(2, 3)}


def test_other_scales_are_not_compared() -> None:
    other = {key: Figure(4.0, None, (1.0, 5.0)) for key in model(1, 0.5)}
    assert rank_models({"a": model(1, 0.5), "b": other}) == []
    assert rank_models({"a": model(1, 0.5), "b": {}}) == []


def test_metrics_that_were_not_named_beforehand_are_exploratory() -> None:
    models = {name: model(n, 0.5, p1=0.2 * n, p2=0.3) for n, name in enumerate("abc")}
    found = rank_models(models)
    assert [(each.metric, each.exploratory) for each in found] == [("acc_atom", False), ("rc", True)]
    assert found[1].smallest_p_value == 0.5


def test_a_metric_that_depends_on_the_number_of_runs_shows_nothing_of_pairs_whose_runs_differ() -> None:
    models = {name: model(n, 0.5, p1=0.2, p2=0.3) for n, name in enumerate("abc")}
    for key, figure in models["c"].items():
        if key[0] == "rc":
            models["c"][key] = Figure(figure.value, None, UNIT, n=2)
    (rc,) = [each for each in rank_models(models) if each.metric == "rc"]
    reasons = {frozenset((each.a, each.b)): str(each.ci95_reason) for each in rc.differences}
    assert reasons[frozenset("ac")].startswith("other_runs: ")
    assert reasons[frozenset("bc")].startswith("other_runs: ")
    assert not reasons[frozenset("ab")].startswith("other_runs: ")


def test_wordings_count_as_the_same_only_where_all_models_have_the_same() -> None:
    def worded(seed: int, words: str) -> Own:
        draws = np.random.default_rng(seed)
        return {
            key: Figure(
                figure.value, None, UNIT, wordings={word: float(draws.normal(0, 0.01)) for word in words}
            )
            for key, figure in model(seed, 0.5).items()
        }

    same = primary({"a": worded(1, "xyz"), "b": worded(2, "xyz"), "c": worded(3, "xyz")})
    assert same.population == "personas like these, wordings like these"
    other = primary({"a": worded(1, "xyz"), "b": worded(2, "xyz"), "c": worded(3, "uvw")})
    assert other.population == "personas like these, these wordings"
