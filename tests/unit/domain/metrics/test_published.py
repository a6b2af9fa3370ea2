"""The figures that the atomic paper prints for single responses and pairs of them (Table 17)."""

import pytest

from app.domain.metrics.acc import acc
from app.domain.metrics.acc_atom import acc_atom
from app.domain.metrics.ic_atom import ic_atom
from app.domain.metrics.mean import mean
from app.domain.metrics.rc import rc
from app.domain.metrics.rc_atom import rc_atom
from tests.unit.domain.metrics.cells import cell

G1 = [3, 4, 2, 1, 9, 4, 5, 4, 5, 4, 4, 9]
G2 = [5, 5, 5, 5, 3, 5, 4, 5, 5, 9]
G3 = [2, 2, 2, 4, 5, 2, 3, 3, 9, 4, 3, 4, 2, 4]
G4 = [1, 1, 1, 1, 1, 1, 5]
G5 = [5, 5, 5]


class TestTable17:
    @pytest.mark.parametrize(
        ("scores", "level", "printed"),
        [
            # s, ACC, ACC_atom, IC_atom, each to the digits that the paper prints.
            (G1, "high", ("3.6", "0", "0.7", "0.4")),
            (G2, "neutral", ("4.67", "0", "0.11", "0.67")),
            (G3, "neutral", ("3.08", "1", "0.23", "0.5")),
            (G5, "neutral", ("5", "0", "0", "1")),
        ],
    )
    def test_one_response_gives_the_printed_figures(
        self, scores: list[int], level: str, printed: tuple[str, ...]
    ) -> None:
        subject = cell([[scores]], level)
        values = [metric(subject).value for metric in (mean, acc, acc_atom, ic_atom)]
        digits = [len(figure.partition(".")[2]) for figure in printed]
        assert [f"{value:.{n}f}" for value, n in zip(values, digits, strict=True)] == list(printed)

    def test_the_fourth_generation_has_no_neutral_sentence_whatever_is_printed(self) -> None:
        # The paper prints ACC_atom 0.06, but no share of 7 sentences is 0.06 (1/7 = 0.14), and none of the seven
        # scores 1 1 1 1 1 1 5 lies in the neutral level [7/3, 11/3). Its other figures follow from these scores.
        subject = cell([[G4]], "neutral")
        assert f"{mean(subject).value:.2f}" == "1.57"
        assert acc(subject).value == 0.0
        assert acc_atom(subject).value == 0.0
        assert f"{ic_atom(subject).value:.1f}" == "0.3"

    @pytest.mark.parametrize(
        ("first", "second", "printed_rc", "printed_rc_atom"),
        [(G2, G3, "0.60", "0.21"), (G4, G5, "0.14", "-0.71")],
    )
    def test_two_generations_give_the_printed_consistency(
        self, first: list[int], second: list[int], printed_rc: str, printed_rc_atom: str
    ) -> None:
        subject = cell([[first], [second]], "neutral")
        assert f"{rc(subject).value:.2f}" == printed_rc
        assert f"{rc_atom(subject).overall.value:.2f}" == printed_rc_atom
