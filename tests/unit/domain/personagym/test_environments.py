"""Environments and words of personas, counted."""

from app.domain.personagym.diversity import shared_words
from app.domain.personagym.environments import EnvironmentsOfPersona, environments_of


def of(persona: str, *environments: str) -> EnvironmentsOfPersona:
    return EnvironmentsOfPersona(persona=persona, environments=list(environments), given=False)


def test_an_environment_counts_the_personas_in_it_once_each() -> None:
    found = environments_of("job_1", 150, [of("a", "Zoo", "Bank", "Zoo"), of("b", "Bank"), of("c")])
    assert found.used == [("Bank", 2), ("Zoo", 1)]
    assert environments_of("job_1", 0, []).used == []


def test_equal_counts_stand_in_the_alphabets_order() -> None:
    assert environments_of("j", 3, [of("a", "C", "A", "B")]).used == [("A", 1), ("B", 1), ("C", 1)]


def test_words_count_descriptions_and_leave_out_ages_and_articles() -> None:
    personas = [
        "A 71-year-old retired nurse from Italy, a nurse of nurses",
        "a 68-year-old retired Engineer from Japan",
        "the ENGINEER from Sydney",
    ]
    assert shared_words(personas) == [("engineer", 2), ("retired", 2)]
    assert shared_words(personas[:1]) == []
