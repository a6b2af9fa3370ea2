"""Choosing among texts that another job has, and drawing a sample of them."""

from collections import Counter

from app.domain.instruments.persona import Persona, Trait
from app.domain.jobs.source_request import SampleIn
from app.domain.jobs.stored_texts import drawn
from app.domain.jobs.text_source import StoredText

PERSONAS = [Persona(f"{level} {n}", "", (Trait("E", level),)) for level in ("low", "high") for n in range(3)]
TEXTS = [
    StoredText(model, persona.id, task, "0", run, 0, "answered", 5, (number, run, 0))
    for number, (model, persona, task) in enumerate(
        (model, persona, task) for model in "ab" for persona in PERSONAS for task in ("essay", "post")
    )
    for run in range(10)
]


def test_every_model_task_and_level_has_its_share() -> None:
    for size in (24, 50, 100, 239):
        sample = drawn(TEXTS, SampleIn(responses=size, seed=size), PERSONAS)
        assert len(sample) == len({text.key for text in sample}) == size
        counts = Counter((text.model, text.task, text.persona.split()[0]) for text in sample)
        assert len(counts) == 8
        assert max(counts.values()) - min(counts.values()) <= 1


def test_every_text_is_as_likely_as_any_other() -> None:
    times = Counter(
        text.key for seed in range(2000) for text in drawn(TEXTS, SampleIn(responses=24, seed=seed), PERSONAS)
    )
    # 200 times expected; the standard deviation of a binomial count is 13.4, five of which are 67.
    assert len(times) == len(TEXTS) == 240
    assert all(abs(each - 200) < 67 for each in times.values())


def test_a_seed_draws_the_same_and_another_one_others() -> None:
    one, again, other = (
        [text.key for text in drawn(TEXTS, SampleIn(responses=30, seed=seed), PERSONAS)] for seed in (1, 1, 2)
    )
    assert one == again != other


def test_of_too_few_all_are_taken_in_their_order() -> None:
    assert drawn(TEXTS, SampleIn(responses=240), PERSONAS) == TEXTS
    assert drawn(TEXTS[:3], SampleIn(responses=5), PERSONAS) == TEXTS[:3]
