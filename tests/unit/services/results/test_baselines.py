"""The papers' figures in the form of results."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain.results.personagym_results import range_over_models
from app.instruments import published
from app.services.results.baselines import BaselineFilter, baselines_json

GOLDEN = Path(__file__).parents[3] / "golden"


def found(**wanted: str) -> Any:
    return json.loads(baselines_json(BaselineFilter(**wanted)))


class TestBaselines:
    @pytest.mark.parametrize(
        ("shipped", "golden"),
        [("atomic_cells.csv", "published_atomic_cells.csv"), ("personagym.csv", "published_personagym.csv")],
    )
    def test_the_shipped_figures_are_the_golden_ones(self, shipped: str, golden: str) -> None:
        path = Path(published.__file__).parent / "published" / "v1" / shipped
        assert path.read_text("utf-8") == (GOLDEN / golden).read_text("utf-8")

    def test_people_agreed_with_persona_scores_as_the_paper_says_in_words(self) -> None:
        found = published.published_correlations()
        assert len(found) == 3 * 6
        whole = [each for each in found if each.task is None]
        assert np.mean([each.spearman_rho for each in whole]) == pytest.approx(0.761, abs=5e-4)
        assert np.mean([each.kendall_tau for each in whole]) == pytest.approx(0.733, abs=5e-4)
        assert {each.task for each in found} - {None} == published.published_scores()[0].tasks.keys()
        least = min(found, key=lambda each: each.spearman_rho)
        assert least == ("LLaMA-2-70b", "persona_consistency", 0.335, 0.658)

    def test_a_filter_leaves_what_was_asked_for(self) -> None:
        document = found(model="GPT-4o", task="essay")
        assert len(document["cells"]) == 15
        assert {(cell["model"], cell["task"]) for cell in document["cells"]} == {("GPT-4o", "essay")}
        (total,) = [total for total in document["totals"] if total["by"] == ["model", "task"]]
        assert round(total["metrics"]["acc_atom"]["value"], 2) == 0.58  # Table 5, last row
        low, high = total["metrics"]["acc_atom"]["ci95"]
        assert low < 0.58 < high
        assert document["persona_score_totals"] == []

    def test_a_published_cell_says_why_it_has_no_interval(self) -> None:
        cell = found(model="GPT-4o", persona="E-neutral", task="essay")["cells"][0]
        assert cell["metrics"]["mean"]["n"] == 30
        assert cell["metrics"]["rc_atom"]["n"] == 435
        assert cell["metrics"]["mean"]["ci95"] is None
        assert cell["metrics"]["mean"]["ci95_reason"].startswith("not_published:")

    def test_cells_have_corrected_metrics_too(self) -> None:
        cell = found(model="GPT-4o", persona="E-neutral", task="essay")["cells"][0]["metrics"]
        assert cell["acc_atom_corrected"]["value"] == pytest.approx((cell["acc_atom"]["value"] - 0.2) / 0.8)
        assert cell["ic_atom_corrected"]["value"] < cell["ic_atom"]["value"]
        corrected = cell["rc_atom_corrected"]
        assert cell["rc_atom"]["value"] < corrected["value"] <= 1
        assert (corrected["n"], corrected["ceiling_n"]) == (435, 435)
        assert cell["rc_atom"]["within_instruction_reason"].startswith("not_published:")

    def test_lengths_are_table_15s(self) -> None:
        lengths = {(row["model"], row["task"]): row for row in found(source="atomic")["lengths"]}
        assert len(lengths) == 36
        haiku = lengths["Claude-3-haiku", "social_media_post"]
        assert (haiku["sentences"], haiku["scored"]) == (19.9, 0.88)
        base = lengths["Davinci-002", "essay"]
        assert (base["sentences"], base["scored"]) == (10.2, 0.35)
        assert [row["task"] for row in found(model="GPT-4o", task="essay")["lengths"]] == ["essay"]
        assert found(persona="E-neutral")["lengths"] == found(source="personagym")["lengths"] == []

    def test_ranges_over_models_are_the_papers(self) -> None:
        """Section 4.2 of the PersonaGym paper prints them."""
        rows = found(source="personagym")["persona_score_totals"]
        ranges = {
            task: range_over_models(row["tasks"][task]["value"] for row in rows) for task in rows[0]["tasks"]
        }
        assert {task: round(value or 0, 2) for task, value in ranges.items()} == {
            "action_justification": 2.08,
            "persona_consistency": 1.34,
            "expected_action": 0.56,
            "linguistic_habits": 0.94,
            "toxicity_control": 0.78,
        }
        assert range_over_models([4.2, None]) is None

    def test_length_explains_less_of_the_corrected_consistency(self) -> None:
        # Of units per run: docs/metrics.md has these figures.
        lengths = published.published_lengths()
        cells = found(source="atomic")["cells"]
        short = [lengths[cell["model"], cell["task"]].sentences_of_run ** -0.5 for cell in cells]
        r = {
            name: np.corrcoef(short, [cell["metrics"][name]["value"] for cell in cells])[0, 1]
            for name in ("rc_atom", "rc_atom_corrected")
        }
        assert r == {
            "rc_atom": pytest.approx(-0.45, abs=0.005),
            "rc_atom_corrected": pytest.approx(-0.17, abs=0.005),
        }

    def test_persona_scores_have_the_interval_of_their_standard_deviation(self) -> None:
        document = found(source="personagym", model="GPT 3.5")
        (row,) = document["persona_score_totals"]
        # 4.38 ± t(199) · 0.23 / √200 = 4.38 ± 1.972 · 0.01626 = 4.38 ± 0.0321
        assert row["persona_score"]["ci95"] == pytest.approx([4.3479, 4.4121], abs=1e-4)
        assert (row["persona_score"]["n"], row["persona_score"]["sd"]) == (200, 0.23)
        assert document["cells"] == document["totals"] == []
        assert [source["id"] for source in document["sources"]] == ["personagym"]

    def test_correlations_are_over_the_cells_that_pass(self) -> None:
        whole, one = found(source="atomic")["correlations"], found(model="GPT-4o")["correlations"]
        assert [r["r"]["n"] for r in (whole[0], one[0])] == [540, 45]
        assert round(whole[0]["r"]["value"], 3) == 0.917  # ACC with ACC_atom
        low, high = whole[0]["r"]["ci95"]
        assert low < 0.917 < high

    def test_what_nobody_published_is_empty(self) -> None:
        document = found(model="GPT-9")
        assert document["correlations"] == []
        assert document["cells"] == document["totals"] == document["persona_score_totals"] == []
