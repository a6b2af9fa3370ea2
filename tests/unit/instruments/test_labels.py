"""What people are shown of the built-in dimensions: words that no prompt has."""

from dataclasses import replace

import pytest

from app.instruments.labels import labelled
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym

BUILT_IN = load_atomic().dimensions


def test_the_high_end_of_the_prompts_neuroticism_is_shown_as_stability() -> None:
    found = BUILT_IN["N"]
    assert (found.name, found.display_name) == ("neuroticism", "emotional stability")
    assert found.option_labels[5] == "Very emotionally stable"
    assert found.trait_in_words("low") == "low in emotional stability (neurotic)"


@pytest.mark.parametrize("id_", BUILT_IN)
def test_a_levels_words_name_the_end_of_the_options_that_it_is(id_: str) -> None:
    persona = load_atomic().personas
    for level, word in zip(BUILT_IN[id_].scale.levels, BUILT_IN[id_].level_words, strict=True):
        described = persona[f"{id_}-{level}"].description.removesuffix(" person").split()[-1]
        assert described[:4] in word.replace("extra", "extro")  # the prompts' spelling


def test_another_dimension_with_such_an_id_keeps_its_own_words() -> None:
    own = replace(BUILT_IN["N"], name="nostalgia", label="", level_words=())
    assert labelled(own) == own


def test_a_dimension_without_a_label_is_shown_by_its_name() -> None:
    assert load_personagym().consistency.trait_in_words("high") == "high in persona consistency"
