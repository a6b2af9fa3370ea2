"""Personas beside the opposite ones: gains, who has none, and how often their intervals hold the truth."""

from collections.abc import Mapping

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.results.gains import GAINED, Gain, GainTotal
from app.domain.results.opposite import OppositeControl, opposite_control, opposite_level
from app.domain.results.results import MeasuredCell
from tests.unit.domain.results.test_control import (
    ITERATIONS,
    SCALE,
    SELF,
    UNITS,
    WORDINGS,
    always,
    cell,
    estimated,
    width,
)

INSTRUCTIONS = np.repeat(np.arange(WORDINGS), ITERATIONS)
INTERVALS = ("ci95", "ci95_runs", "ci95_wordings", "ci95_both")


def compared(texts: Mapping[tuple[str, str], np.ndarray]) -> OppositeControl:
    """What comes of personas' scores, by (persona, level)."""
    cells, turned = [], {}
    for (persona, level), histograms in texts.items():
        found: MeasuredCell = cell(estimated(histograms, level, INSTRUCTIONS, wanted=GAINED), persona, level)
        cells.append(found)
        if (other := opposite_level(SCALE, level)) is not None:
            turned[found.key] = estimated(histograms, other, INSTRUCTIONS, wanted=GAINED)
    return opposite_control(cells, turned)


def total(found: OppositeControl, *by: str, **of: str) -> GainTotal:
    [row] = [
        each
        for each in found.totals
        if each.by == ["model", *by] and all(getattr(each, name) == value for name, value in of.items())
    ]
    return row


def parts(gain: Gain) -> tuple[float | None, float | None, float | None]:
    return gain.with_persona, gain.without, gain.gain.value


@pytest.mark.parametrize(
    ("levels", "opposites"),
    [
        (("low", "neutral", "high"), ("high", None, "low")),
        (("no", "yes"), ("yes", "no")),
        (("a", "b", "c", "d"), ("d", "c", "b", "a")),
    ],
)
def test_the_opposite_level_is_as_far_from_the_other_end(
    levels: tuple[str, ...], opposites: tuple[str | None, ...]
) -> None:
    scale = Scale(1, 12, levels, not_applicable=99)
    assert tuple(opposite_level(scale, level) for level in levels) == opposites


class TestGain:
    def test_is_of_both_texts_on_the_personas_own_level(self) -> None:
        found = compared({("p", "high"): always(5), ("q", "low"): always(2)})
        assert {(gain.persona, parts(gain.acc_atom)) for gain in found.gains} == {
            ("p", (1.0, 0.0, 1.0)),
            ("q", (1.0, 0.0, 1.0)),
        }
        # Toward high 5 is 4 points from the other end, and 2 is one; toward low they are none and 3.
        assert {parts(gain.mean_toward_level) for gain in found.gains} == {(4.0, 1.0, 3.0), (3.0, 0.0, 3.0)}

    def test_is_none_where_both_personas_write_alike_however_faithful_one_looks(self) -> None:
        found = compared({("p", "high"): always(5), ("q", "low"): always(5)})
        assert [parts(gain.acc_atom) for gain in found.gains] == [(1.0, 1.0, 0.0), (0.0, 0.0, 0.0)]
        assert parts(total(found).acc_atom) == (0.5, 0.5, 0.0)

    def test_is_over_the_mean_of_all_opposite_ones(self) -> None:
        found = compared({("p", "high"): always(5), ("q", "low"): always(5), ("r", "low"): always(1)})
        assert parts(total(found, "level", level="high").acc_atom) == (1.0, 0.5, 0.5)
        assert parts(total(found).acc_atom) == pytest.approx((2 / 3, 1 / 6, 1 / 2))

    def test_is_missing_where_all_opposite_ones_are_silent(self) -> None:
        nothing = np.zeros((len(INSTRUCTIONS), SCALE.size), dtype=np.int64)
        found = compared({("p", "high"): always(5), ("q", "low"): nothing})
        assert [gain.acc_atom.gain.value for gain in found.gains] == [None, None]
        reasons = [(gain.acc_atom.gain.reason or "").partition(":")[2] for gain in found.gains]
        assert reasons[0] == " no opposite persona has a scored sentence on the dimension"
        assert total(found).acc_atom.gain.value is None

    def test_personas_without_an_opposite_one_are_named_with_the_reason(self) -> None:
        found = compared({("p", "high"): always(5), ("q", "neutral"): always(3)})
        assert (found.gains, found.totals) == ([], [])
        assert [(each.persona, each.reason) for each in found.left_out] == [
            ("p", "no_opposite: no persona of the job is on the level 'low' of the dimension"),
            ("q", "middle_level: the level is the middle of the scale"),
        ]


def drawn(
    draw: np.random.Generator, effect: float, spread: float, highs: int = 5, lows: int = 7
) -> OppositeControl:
    """A model that turns a share ``effect`` of its sentences to the level, more or less by persona and by wording."""
    by_wording = draw.normal(0, spread, WORDINGS)
    texts = {}
    for number in range(highs + lows):
        level = "high" if number < highs else "low"
        share = np.clip(effect + by_wording[INSTRUCTIONS] + draw.normal(0, spread), 0, 1)
        turned = draw.binomial(UNITS, share)
        histograms = np.array([draw.multinomial(UNITS - each, SELF) for each in turned])
        histograms[:, 4 if level == "high" else 0] += turned
        texts[f"p{number:02}", level] = histograms
    return compared(texts)


class TestIntervals:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("effect", "spread", "interval"),
        [(0.0, 0.0, "ci95_runs"), (0.5, 0.0, "ci95_runs"), (0.5, 0.0, "ci95"), (0.5, 0.1, "ci95_both")],
    )
    @pytest.mark.parametrize("level", [None, "high"])
    def test_hold_the_true_gain(self, effect: float, spread: float, interval: str, level: str | None) -> None:
        draw, held, jobs = np.random.default_rng(3), 0, 120
        for _ in range(jobs):
            found = drawn(draw, effect, spread)
            row = total(found) if level is None else total(found, "level", level=level)
            # Own sentences turned to the level, less those of the others' that were turned from it: `effect` in all.
            ends = getattr(row.acc_atom.gain, interval)
            assert ends is not None
            held += ends[0] <= effect <= ends[1]
        assert 0.92 * jobs <= held

    @pytest.mark.parametrize("interval", ["ci95", "ci95_wordings"])
    def test_of_a_cell_allow_for_the_opposite_ones_texts(self, interval: str) -> None:
        one = drawn(np.random.default_rng(1), 0.3, 0.0, 1, 1)
        many = drawn(np.random.default_rng(1), 0.3, 0.0, 1, 11)
        widths = [width(found.gains[0].acc_atom.gain, interval) for found in (one, many)]
        assert widths[0] > 1.15 * widths[1] > 0

    def test_of_one_persona_speak_of_it_alone(self) -> None:
        row = total(
            drawn(np.random.default_rng(2), 0.5, 0.05), "persona", "dimension", "level", persona="p03"
        )
        assert row.acc_atom.gain.ci95_runs is not None
        assert (row.acc_atom.gain.ci95_reason or "").startswith("too_few_personas")

    @pytest.mark.parametrize("interval", INTERVALS)
    def test_of_a_group_with_one_persona_on_a_level_are_those_of_the_design(self, interval: str) -> None:
        """Texts that stand on both sides do so once: with one persona on each level both gains are of the same texts."""
        found = drawn(np.random.default_rng(4), 0.3, 0.0, 1, 1)
        [row] = [each for each in found.totals if each.by == ["model"]]
        ends = getattr(row.acc_atom.gain, interval)
        if interval in {"ci95", "ci95_both"}:
            assert ends is None
        else:
            assert ends[0] < (row.acc_atom.gain.value or 0) < ends[1]
