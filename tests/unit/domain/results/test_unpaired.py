"""Differences of PersonaGym's scores over different personas."""

import pytest

from app.domain.personagym.scores import Spread
from app.domain.results.unpaired import Scores, unpaired_differences
from app.services.results.baselines import BaselineFilter, baselines

PUBLISHED: dict[str, Scores] = {
    row.model: {None: row.persona_score, **dict[str | None, Spread](row.tasks.items())}
    for row in baselines(BaselineFilter(source="personagym")).persona_score_totals
    if row.persona_score is not None
}


def spread(value: float | None, n: int, sd: float | None) -> Spread:
    if value is None:
        return Spread(value=None, n=0, reason="no_persona: there is none", sd=None)
    return Spread(value=value, n=n, sd=sd)


def test_published_models_differ_as_table_1_says() -> None:
    """Section 4.2: LLaMA 2 improves from 13b to 70b "across all tasks (average increase of 0.414)"."""
    found = unpaired_differences(PUBLISHED["LLaMA-2-70b"], PUBLISHED["LLaMA-2-13b"])
    whole, *tasks = found
    assert (whole.metric, whole.task, len(tasks)) == ("persona_score", None, 5)
    assert all(each.difference > 0 for each in tasks)
    mean = sum(each.difference for each in tasks) / 5
    assert mean == pytest.approx(0.414, abs=0.005)
    assert whole.difference == pytest.approx(mean, abs=0.011)
    assert {(each.personas_a, each.personas_b) for each in found} == {(200, 200)}


@pytest.mark.parametrize(("n", "sd"), [(2, 0.3), (7, 1.1), (50, 0.01)])
def test_the_interval_is_welchs(n: int, sd: float) -> None:
    from scipy import stats

    (found,) = unpaired_differences({"t": spread(4.4, 200, 0.6)}, {"t": spread(3.9, n, sd)})
    a, b = 0.6**2 / 200, sd**2 / n
    degrees = (a + b) ** 2 / (a**2 / 199 + b**2 / (n - 1))
    low, high = stats.t.interval(0.95, degrees, loc=0.5, scale=(a + b) ** 0.5)
    assert found.ci95 == pytest.approx((max(-4, low), min(4, high)))


def test_what_one_lacks_is_left_out_and_a_single_persona_has_no_interval() -> None:
    a: Scores = {None: spread(4.0, 1, None), "t": spread(4.0, 1, None), "u": spread(None, 0, None)}
    b: Scores = {"t": spread(3.0, 200, 0.5), "u": spread(3.0, 200, 0.5), "v": spread(3.0, 200, 0.5)}
    (found,) = unpaired_differences(a, b)
    assert (found.task, found.difference, found.ci95) == ("t", 1.0, None)
    assert (found.ci95_reason or "").startswith("too_few_personas: ")
    assert unpaired_differences(a, {}) == []


def test_scores_without_any_spread_have_no_interval() -> None:
    (found,) = unpaired_differences({"t": spread(5.0, 9, 0.0)}, {"t": spread(4.0, 9, 0.0)})
    assert found.ci95 is None
    assert (found.ci95_reason or "").startswith("unanimous: ")
