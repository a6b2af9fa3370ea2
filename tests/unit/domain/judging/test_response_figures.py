"""A response's own figures: those of the metrics, and of the paper's examples."""

import random

import numpy as np
import pytest

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.response_figures import ResponseFigures, response_figures
from app.domain.metrics.cell import combine_judges, measure
from app.domain.metrics.scores import CellScores

E = Dimension("E", "extroversion", Scale(), "")
FORMALITY = Dimension("formality", "formality", Scale(minimum=0, maximum=6, not_applicable=99), "")


def of_one(*scores: int | None, level: str | None = "neutral", dimension: Dimension = E) -> ResponseFigures:
    said = [(dimension.id, "judge", score) for score in scores]
    levels = {} if level is None else {dimension.id: level}
    (found,) = response_figures(said, [dimension], levels)
    return found


class TestResponseFigures:
    def test_a_mean_in_the_level_hides_what_sentences_do(self) -> None:
        """Table 1's two texts: both neutral on average, one of them of extremes alone."""
        steady, mixed = of_one(3, 3, 3, 3), of_one(5, 1, 5, 1)
        assert (steady.mean, steady.acc, steady.acc_atom, steady.ic_atom) == (3, 1, 1, 1)
        assert (mixed.mean, mixed.acc, mixed.acc_atom, mixed.ic_atom) == (3, 1, 0, 0)

    def test_the_papers_third_generation(self) -> None:
        """Table 17's form: a mean of 3.6 is neutral, not high, though most sentences are high."""
        found = of_one(5, 5, 5, 2, 1, level="high")
        assert (found.mean, found.acc, found.acc_atom, found.n) == (3.6, 0, 0.6, 5)

    @pytest.mark.parametrize("dimension", [E, FORMALITY])
    @pytest.mark.parametrize("judges", [1, 3])
    def test_they_are_what_the_metrics_of_a_cell_of_this_response_would_be(
        self, dimension: Dimension, judges: int
    ) -> None:
        draw, scale = random.Random(3), dimension.scale
        for _ in range(200):
            level = draw.choice(scale.levels)
            by_judge = [
                [draw.randint(scale.minimum, scale.maximum) for _ in range(draw.randint(0, 6))]
                for _ in range(judges)
            ]
            if not any(by_judge):
                continue
            said = [(dimension.id, f"j{n}", score) for n, scores in enumerate(by_judge) for score in scores]
            (found,) = response_figures(said, [dimension], {dimension.id: level})
            cells = [
                CellScores(
                    scale,
                    scale.levels.index(level),
                    np.zeros(1, dtype=np.int64),
                    np.zeros(1, dtype=np.int64),
                    np.bincount(np.array(scores) - scale.minimum, minlength=scale.size)[None],
                    {},
                )
                for scores in by_judge
                if scores
            ]
            expected = combine_judges([measure(cell) for cell in cells])
            for name in ("mean", "acc", "acc_atom", "ic_atom"):
                value = expected[name].value
                assert getattr(found, name) == (None if value is None else pytest.approx(value))

    def test_without_a_persona_there_is_no_accuracy(self) -> None:
        found = of_one(4, 5, level=None)
        assert (found.n, found.mean, found.acc, found.acc_atom) == (2, 4.5, None, None)
        assert found.ic_atom == 0.75

    def test_without_a_score_there_is_no_figure_and_without_a_verdict_none_at_all(self) -> None:
        assert of_one(None, None) == ResponseFigures("E", 0, None, None, None, None)
        assert of_one(4, None).ic_atom is None
        assert response_figures([], [E], {"E": "high"}) == ()

    def test_dimensions_stand_in_the_cells_order(self) -> None:
        said = [("formality", "j", 6), ("E", "j", 1)]
        found = response_figures(said, [E, FORMALITY], {"E": "low", "formality": "low"})
        assert [(each.dimension, each.acc) for each in found] == [("E", 1), ("formality", 0)]
