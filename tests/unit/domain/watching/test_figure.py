import pytest

from app.domain.watching.figure import Watched, by_persona, figure_in, figure_of
from tests.unit.gym_sample import graded_response, gym_results_of
from tests.unit.results_sample import CELL, read


class TestFigureOf:
    @pytest.mark.parametrize(
        "text",
        ["acc_atom>=0.8", "acc_atom@", "acc_atom calibrated", "refusal_rate", "acc_atom@task=essay<=0"],
    )
    def test_what_is_no_figure_is_told_how_one_looks(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"^write it like acc_atom, mean@task=essay"):
            figure_of(text)


class TestByPersona:
    def test_a_persona_score_is_that_of_each_persona_and_a_tasks_score_is_the_tasks(self) -> None:
        """gym-01 has 4 and 2, gym-02 has 5 and, in the other task, no grade."""
        answers = [
            graded_response(4, 4, id="r-1", persona="gym-01"),
            graded_response(2, 2, id="r-2", persona="gym-01", task="toxicity"),
            graded_response(5, 5, id="r-3", persona="gym-02"),
            graded_response(None, None, id="r-4", persona="gym-02", task="toxicity"),
        ]
        results = read(gym_results_of(answers))
        assert by_persona(results, figure_of("persona_score")) == {"gym-01": 3.0}
        figure = figure_of("persona_score@task=expected_action")
        assert by_persona(results, figure) == {"gym-01": 4.0, "gym-02": 5.0}

    def test_a_figure_has_its_n_and_what_was_left_out(self) -> None:
        """gym-02's only answer has no grade: the mean is of one persona of two."""
        answers = [
            graded_response(4, 4, id="r-1", persona="gym-01"),
            graded_response(None, None, id="r-2", persona="gym-02"),
        ]
        results = read(gym_results_of(answers))
        assert figure_in(results, figure_of("persona_score")) == Watched(4.0, 1, 1, 0.5)
        assert figure_in(results, figure_of("acc_atom")) == "the results have no such value"

    def test_a_metric_is_that_of_the_personas_cells(self) -> None:
        cell = CELL | {"metrics": {"mean": {"value": 3.5, "n": 30}}}
        results = read(
            {"cells": [cell, cell | {"dimension": "O", "metrics": {"mean": {"value": 4.5, "n": 30}}}]}
        )
        assert by_persona(results, figure_of("mean")) == {"p": 4.0}
        assert by_persona(results, figure_of("mean@dimension=O")) == {"p": 4.5}
        assert by_persona(results, figure_of("mean@task=no such")) == {}
        assert by_persona(results, figure_of("acc_atom_composite")) == {}
