"""Intervals by the design: hand-made tables, and what each population needs."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray
from app.domain.metrics.scores import CellScores
from app.domain.statistics.cells import estimate_cell
from app.domain.statistics.design import (
    FEWEST_WORDINGS_OF_SPREAD,
    DesignCell,
    Error,
    Population,
    Shape,
    Stratum,
    components,
    error,
    interval,
)
from app.domain.statistics.resampling import student
from app.domain.statistics.variability import Variability
from benchmarks.inference.population import varied_mean


def cells(table: FloatArray, strata: list[Stratum]) -> list[DesignCell]:
    """A cell for each row, of single runs under as many wordings as there are columns."""
    return [
        DesignCell(f"p{n}", stratum, varied_mean(row[:, None]))
        for n, (row, stratum) in enumerate(zip(table, strata, strict=True))
    ]


def known(found: Error | str) -> Error:
    assert isinstance(found, Error), found
    return found


def on(level: str, dimension: str = "E", task: str = "essay") -> Stratum:
    return Stratum(task, dimension, level)


TABLE = (
    np.random.default_rng(1).normal(0.6, 0.1, size=(6, 5))
    + np.linspace(0, 0.2, 5)
    + np.array([[0], [0.1], [0.3], [0.2], [0], [0.1]])
)
HIGH = [on("high")] * 6


def test_two_crossed_samples_have_the_quasi_f_of_clark() -> None:
    found = components(cells(TABLE, HIGH))
    rows, columns, grand = TABLE.mean(axis=1), TABLE.mean(axis=0), TABLE.mean()
    of_rows = 5 * ((rows - grand) ** 2).sum() / 5
    of_columns = 6 * ((columns - grand) ** 2).sum() / 4
    rest = TABLE - rows[:, None] - columns + grand
    of_both = (rest**2).sum() / 20
    whole = (of_rows + of_columns - of_both) / 30
    # Of five wordings: halfway from Satterthwaite's t to the mean of t over rows (5) and over columns (4), weighted by variance.
    degrees = whole**2 / sum((ms / 30) ** 2 / df for ms, df in ((of_rows, 5), (of_columns, 4), (of_both, 20)))
    wanted = (2.5706 * of_rows + 2.7764 * of_columns) / (of_rows + of_columns) / 2 + student(degrees) / 2
    both = known(error(found, Population.BOTH))
    assert both.variance == pytest.approx(whole)
    assert student(both.degrees) == pytest.approx(wanted, abs=0.01)
    personas = known(error(found, Population.PERSONAS))
    assert personas == pytest.approx(Error(rows.var(ddof=1) / 6, 5, 6))
    wordings = known(error(found, Population.WORDINGS))
    assert wordings == pytest.approx(Error(columns.var(ddof=1) / 5, 4, 5))


def test_levels_are_strata() -> None:
    table = TABLE + np.array([[0.0], [0.0], [0.0], [0.8], [0.8], [0.8]])
    found = known(components(cells(table, [on("low")] * 3 + [on("high")] * 3)).personas)
    rows = table.mean(axis=1)
    parts = [rows[:3].var(ddof=1) * 3, rows[3:].var(ddof=1) * 3]
    assert found.variance == pytest.approx(sum(parts) / 36)
    welch = sum(parts) ** 2 / sum(part**2 / (2 + 2) for part in parts) - 2
    assert found.degrees == pytest.approx(min(4, welch))
    assert known(components(cells(table, HIGH)).personas).variance > 5 * found.variance


def test_a_level_with_one_persona_of_each_dimension_is_one_stratum() -> None:
    strata = [on(level, dimension) for level in ("low", "high") for dimension in "EAN"]
    collapsed = components(cells(TABLE, strata)).personas
    by_level = components(cells(TABLE, [stratum._replace(dimension="E") for stratum in strata])).personas
    assert collapsed == by_level


@pytest.mark.parametrize(
    ("strata", "reason"),
    [(HIGH[:4], "too_few_personas: 4 personas"), ([on("low"), *HIGH[:5]], "one_persona_on_a_level")],
)
def test_too_few_personas_are_not_a_sample(strata: list[Stratum], reason: str) -> None:
    found = components(cells(TABLE[: len(strata)], strata))
    for population in (Population.PERSONAS, Population.BOTH):
        varied = error(found, population)
        assert isinstance(varied, str)
        assert varied.startswith(reason)
    assert isinstance(error(found, Population.WORDINGS), Error)


def test_a_persona_with_several_tasks_is_one_persona() -> None:
    one = cells(TABLE, HIGH)
    twice = one + [DesignCell(each.persona, on("high", task="post"), each.figure) for each in one]
    alone, found = components(one), components(twice)
    assert known(found.personas) == pytest.approx(known(alone.personas))
    assert known(found.wordings) == pytest.approx(known(alone.wordings))


def test_profiles_lose_a_degree_of_freedom_for_each_level() -> None:
    draws = np.random.default_rng(2)
    levels = np.array([draws.permutation(15) % 3 for _ in "OCEAN"])
    found = [
        DesignCell(f"p{persona}", on(str(levels[n, persona]), dimension), varied_mean(draws.random((3, 2))))
        for persona in range(15)
        for n, dimension in enumerate("OCEAN")
    ]
    personas = known(components(found).personas)
    assert (personas.degrees, personas.clusters) == pytest.approx((15 - 3, 15))


def test_few_wordings_or_single_runs_say_so() -> None:
    found = components(cells(TABLE[:, :2], HIGH))
    for population, reason in (
        (Population.WORDINGS, "too_few_wordings: 2 wordings"),
        (Population.BOTH, "too_few_wordings: 2 wordings"),
        (Population.THESE, "single_runs"),
    ):
        varied = error(found, population)
        assert isinstance(varied, str)
        assert varied.startswith(reason)
        assert interval(0.5, varied, (0, 1)).ends is None


def test_one_cell_of_single_runs_among_many_is_taken_to_vary_as_the_others() -> None:
    draws = np.random.default_rng(4)
    tables = [draws.normal(0.5, 0.1, (3, 4)) for _ in range(11)]
    whole = [DesignCell(f"p{n}", on("high"), varied_mean(table)) for n, table in enumerate(tables)]
    single = DesignCell("p10", on("high"), varied_mean(tables[10][:, :1]))
    found = known(error(components([*whole[:10], single]), Population.THESE))
    of_a_run = np.mean([table.var(axis=1, ddof=1).mean() for table in tables[:10]])
    assert found.variance == pytest.approx(of_a_run * (10 / 12 + 1 / 3) / 11**2)
    assert found.degrees == pytest.approx(known(error(components(whole[:10]), Population.THESE)).degrees)
    few = error(components([*whole[:9], single]), Population.THESE)
    assert str(few).startswith("single_runs: in 1 of 10 cells too few runs")


def test_intervals_over_runs_cover_with_a_cell_of_which_most_is_missing() -> None:
    draws = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        tables = [draws.normal(0.5, 0.1, (6, 5)) for _ in range(14)]
        some = [DesignCell(f"p{n}", on("high"), varied_mean(table)) for n, table in enumerate(tables)]
        some.append(DesignCell("p14", on("high"), varied_mean(draws.normal(0.5, 0.1, (1, 1)))))
        value = float(np.mean([each.figure.value for each in some]))
        low, high = interval(value, error(components(some), Population.THESE), (0, 1)).ends or (0, 0)
        hits += low <= 0.5 <= high
    assert 0.93 <= hits / 400 <= 0.97


def test_consistency_between_runs_needs_more_wordings_than_a_mean_does() -> None:
    found = components(cells(TABLE, HIGH), FEWEST_WORDINGS_OF_SPREAD)
    for population in (Population.WORDINGS, Population.BOTH):
        assert str(error(found, population)).startswith("too_few_wordings: 5 wordings")
    assert known(error(found, Population.PERSONAS))


def test_traits_of_one_text_share_its_runs() -> None:
    text = varied_mean(np.random.default_rng(3).random((2, 4)))
    one = [DesignCell("p", on("high", "E"), text)]
    both = [*one, DesignCell("p", on("high", "A"), text)]
    assert known(components(both).runs) == known(components(one).runs)
    other_task = [*one, DesignCell("p", on("high", task="post"), text)]
    assert known(components(other_task).runs).variance == pytest.approx(
        known(components(one).runs).variance / 2
    )


def test_an_interval_is_students_and_of_a_loss_on_its_logarithm() -> None:
    t = 2.5705818366147395  # scipy.stats.t.ppf(0.975, 5)
    half = t * 0.1
    assert interval(0.5, Error(0.01, 5, 6), (0, 1)) == Interval.around(0.5, 0.5 - half, 0.5 + half, (0, 1))
    found = interval(0.8, Error(0.01, 5, 6), (-1, 1), Shape.LOSS)
    factor = math.exp(half / 0.2)
    assert found == Interval.around(0.8, 1 - 0.2 * factor, 1 - 0.2 / factor, (-1, 1))
    odds = math.exp(half / 0.16)
    share = interval(0.8, Error(0.01, 5, 6), (0, 1), Shape.SHARE)
    assert share == Interval.around(0.8, 4 / (4 + odds), 4 * odds / (4 * odds + 1), (0, 1))
    # All clusters alike: another value may hide in a part of them.
    assert interval(1.0, Error(0.0, 5, 6), (0, 1)).ends == (math.floor(0.05 ** (1 / 6) * 1e6) / 1e6, 1.0)


@pytest.mark.parametrize(("hits", "runs"), [(1, 5), (3, 5), (29, 30), (7, 400)])
def test_a_share_of_runs_has_wilsons_score(hits: int, runs: int) -> None:
    share = hits / runs
    found = interval(share, Error(share * (1 - share) / (runs - 1), 1e6, runs), (0, 1), Shape.HITS)
    assert found.ends == pytest.approx(binomtest(hits, runs).proportion_ci(method="wilson"), abs=1e-5)


def test_a_mean_of_spreads_varies_less_than_the_jackknife_of_each_says() -> None:
    draws = np.random.default_rng(6)

    def cell(name: str) -> DesignCell:
        scores = CellScores(
            Scale(), 2, np.arange(5), np.zeros(5, dtype=np.int64), draws.integers(1, 9, size=(5, 5)), {}
        )
        found = estimate_cell({"judge": scores}, np.arange(5))
        return DesignCell(name, on("high"), found.varied["rc_atom"])

    cells_ = [cell(f"p{n}") for n in range(10)]
    of_each = [float((rows**2).sum()) for each in cells_ if (rows := each.figure.runs) is not None]
    assert known(components(cells_[:1]).runs).variance == pytest.approx(of_each[0])
    assert known(components(cells_).runs).variance == pytest.approx(sum(of_each) / 100 * (1 - 0.9 / 5))


def test_figures_without_runs_have_intervals_over_personas_only() -> None:
    found = components([DesignCell(f"p{n}", on("high"), Variability(n / 10)) for n in range(6)])
    assert isinstance(error(found, Population.PERSONAS), Error)
    for population in (Population.THESE, Population.WORDINGS, Population.BOTH):
        assert str(error(found, population)).startswith("unknown_runs")
