from dataclasses import replace

import pytest

from app.instruments.guidelines import guideline_for
from app.instruments.loader import load_atomic

ASPECTS = 6
"""As many as the paper's has."""


@pytest.mark.parametrize("dimension", "OCEAN")
def test_each_of_the_papers_dimensions_has_one_in_the_form_of_table_14(dimension: str) -> None:
    found = guideline_for(load_atomic("v1").dimensions[dimension])
    assert found is not None
    first, second, *_ = found.split(". ")
    assert first.startswith("People with a")
    assert " personality are individuals who " in first
    assert second.split(" such as ")[1].count(",") == ASPECTS - 1


def test_extroversion_is_the_papers_word_for_word() -> None:
    assert guideline_for(load_atomic("v1").dimensions["E"]) == (
        "People with an extroverted personality are individuals who passionately seek out others and prefer to interact with"
        " their environment. Extroversion has aspects such as friendliness, sociability, confidence, active energy,"
        " stimulation/excitement seeking, and cheerfulness."
    )


def test_a_dimension_of_ones_own_has_none_nor_one_that_goes_the_other_way() -> None:
    paper = load_atomic("v1").dimensions["N"]
    assert guideline_for(replace(paper, name="politeness")) is None
    assert guideline_for(replace(paper, options="1) Very emotionally stable. 5) Very neurotic.")) is None
    assert guideline_for(replace(paper, options="Say a number.")) is None
