"""The one figure for each model by which lists show a job."""

import pytest

from app.domain.results.model_scores import ModelScore, model_scores
from tests.unit.domain.results.test_gate import cell, results
from tests.unit.results_sample import read


def score(metric: str, value: float | None = 0.8, model: str = "m") -> ModelScore:
    return ModelScore(model=model, metric=metric, value=value, n=0 if value is None else 9)


class TestModelScores:
    @pytest.mark.parametrize(
        ("task", "metric"), [("expected_action", "persona_score"), ("essay", "acc_atom")]
    )
    def test_are_persona_scores_only_where_all_tasks_are_graded(self, task: str, metric: str) -> None:
        document = results()
        document |= {"cells": [cell("p", 0) | {"task": task}]}
        assert model_scores(read(document)) == [score(metric)]

    def test_come_highest_first_and_those_without_a_value_last(self) -> None:
        documents = [results(None, model="a"), results(0.5, model="b"), results(0.7, model="c")]
        document = results() | {"totals": [each for found in documents for each in found["totals"]]}
        del document["persona_score_totals"]
        assert model_scores(read(document)) == [
            score("acc_atom", 0.7, "c"),
            score("acc_atom", 0.5, "b"),
            score("acc_atom", None, "a"),
        ]

    def test_there_are_none_without_models(self) -> None:
        assert model_scores(read({"job": "job_x", "totals": []})) == []
