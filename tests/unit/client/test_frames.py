"""Results as data frames of pandas, which analysts use; polars runs in ``make test-clients``."""

import doctest
from typing import Any

import pytest

from persona_assay import AssayError, ProblemError, ProblemField, frames
from persona_assay.frames import to_dataframe
from persona_assay.notebook import FigureFile, ResultsDocument, progress_shown
from tests.unit.cli.documents import job, results


def metric(value: float | None, **others: Any) -> dict[str, Any]:
    return {"value": value, "n": 3, **others}


CELL: dict[str, Any] = {
    "model": "openai/a",
    "persona": "E-high",
    "generation": {"planned": 4},
    "metrics": {"acc_atom": metric(0.5, ci95=[0.25, 0.75]), "rc": metric(None, reason="one run")},
    "by_judge": {"openai/j": {"metrics": {"acc_atom": metric(0.1)}}},
    "corrected": {"acc_atom_bounds": [0.1, 0.2]},
}


class TestFrames:
    def test_figures_follow_what_the_row_is(self) -> None:
        frame = to_dataframe({"cells": [CELL]})
        assert list(frame.columns) == [
            *("model", "persona"),
            *("acc_atom", "acc_atom_n", "acc_atom_ci95_low", "acc_atom_ci95_high", "rc", "rc_n", "rc_reason"),
            "generation_planned",
        ]
        assert frame.loc[0, "acc_atom_ci95_high"] == 0.75

    def test_missing_is_never_a_number(self) -> None:
        frame = to_dataframe({"cells": [CELL, {**CELL, "metrics": {}}]})
        assert frame["rc"].isna().all()
        assert frame["acc_atom"].isna().tolist() == [False, True]

    def test_totals_say_what_they_are_by(self) -> None:
        frame = to_dataframe({"totals": [{"by": ["model", "task"], "metrics": {}}]}, "totals")
        assert frame["by"].tolist() == ["model, task"]

    def test_no_rows_are_an_empty_frame(self) -> None:
        assert to_dataframe({"cells": []}).empty

    def test_what_is_not_there_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(AssayError, match="have no 'persona_score_totals'"):
            to_dataframe({"cells": []}, "persona_score_totals")
        monkeypatch.setitem(__import__("sys").modules, "polars", None)
        with pytest.raises(AssayError, match=r"pip install 'persona-assay\[polars\]'"):
            to_dataframe({"cells": []}, engine="polars")

    def test_the_example_is_true(self) -> None:
        assert doctest.testmod(frames).attempted
        assert doctest.testmod(frames).failed == 0


class TestShown:
    def test_results_stay_a_dictionary(self) -> None:
        document = ResultsDocument(results(simulated=True))
        assert document == results(simulated=True)
        assert len(document.to_dataframe()) == len(document["cells"])

    def test_a_name_can_be_no_markup(self) -> None:
        document = ResultsDocument({**results("<b>x"), "name": "<script>"})
        shown = document._repr_html_()
        assert "&lt;script&gt;" in shown
        assert "&lt;b&gt;x" in shown
        assert "<script>" not in shown

    def test_a_figure_is_shown_as_what_it_is(self) -> None:
        assert FigureFile(b"<svg/>")._repr_svg_() == "<svg/>"
        assert FigureFile(b"<svg/>")._repr_png_() is None
        assert FigureFile(b"\x89PNG.")._repr_png_() == b"\x89PNG."
        assert FigureFile(b"\x89PNG.")._repr_svg_() is None


def test_progress_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"cause": "x [/] can't be resolved", "remedy": "Wait.", "attempts": 2, "model": "a/[b]"}
    with progress_shown() as show:
        show(job(retrying=[found]))
    assert "Retrying: x [/] can't be resolved, 2 attempts." in capsys.readouterr().err


def test_an_error_prints_its_fields() -> None:
    error = ProblemError(
        422, "2 fields are invalid", fields=[ProblemField("/a", "no"), ProblemField("", "nor")]
    )
    assert str(error) == "2 fields are invalid\n  /a: no\n  /: nor"
