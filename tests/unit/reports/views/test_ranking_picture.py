"""Where each model lies beside the highest."""

from app.domain.results.ranking import ComparisonOfModels, PairDifference, RankedModel, Ranking
from app.reports.views.ranking_picture import picture, tied_with_first


def pair(a: str, b: str, difference: float, half: float | None, p: float | None) -> PairDifference:
    return PairDifference(
        a=a,
        b=b,
        difference=difference,
        ci95=None if half is None else (difference - half, difference + half),
        ci95_reason=None if half else "x: none",
        p_value=p,
        p_value_corrected=p,
    )


def ranking(metric: str, pairs: list[PairDifference]) -> Ranking:
    return Ranking(
        metric=metric,
        exploratory=metric != "acc_atom",
        population="personas like these, these wordings",
        values=6,
        personas=6,
        models=[
            RankedModel(name="a", value=0.75, rank=(1, 2)),
            RankedModel(name="b", value=0.5, rank=(1, 2)),
            RankedModel(name="c", value=0.0, rank=(3, 3)),
        ],
        differences=pairs,
        smallest_p_value=None,
        smallest_detectable=None,
        smallest_detectable_reason=None,
    )


def compared(pairs: list[PairDifference]) -> ComparisonOfModels:
    rankings = [ranking("acc_atom", pairs), ranking("rc", pairs)]
    return ComparisonOfModels(
        models=[],
        pairing="cells",
        primary="acc_atom",
        simulated=False,
        personas=[],
        rankings=rankings,
        in_tasks=[],
        calibrated=[],
        notes=[],
    )


def test_all_models_are_on_one_axis_with_the_highest_at_its_zero() -> None:
    pairs = [
        pair("a", "b", 0.25, 0.5, 0.4),
        pair("a", "c", 0.75, 0.25, 0.001),
        pair("b", "c", 0.5, 0.25, 0.01),
    ]
    first, second, third = picture(compared(pairs))
    # From -1, the farthest end of an interval, to +0.25, with a twentieth of that on either side.
    assert first.zero == second.zero == third.zero == first.point == 77.27
    assert (second.point, second.ends) == (59.09, (22.73, 95.45))
    assert (third.point, third.ends) == (22.73, (4.55, 40.91))
    assert [row.said for row in (first, second)] == ["highest", "−0.25 [−0.75, +0.25]"]
    assert [row.apart for row in (first, second, third)] == [False, False, True]
    assert second.others == [(0.5, (1, 2))]
    assert tied_with_first(compared(pairs).rankings[0]) == ["b"]


def test_models_without_any_difference_or_interval_lie_on_the_zero() -> None:
    pairs = [pair("a", other, 0.0, None, None) for other in "bc"] + [pair("b", "c", 0.0, None, None)]
    rows = picture(compared(pairs))
    assert {(row.point, row.zero, row.ends) for row in rows} == {(50.0, 50.0, None)}
    assert rows[1].said == "0.00"
