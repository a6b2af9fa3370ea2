"""What a job does that makes up personas, and how a reasoner's replies to it are read (PersonaGym paper, section 4.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.personagym.diversity import likeness
from app.domain.personagym.replies import read_list
from app.domain.personagym.similarity import normalised
from app.domain.personagym.task import GymPrompts
from app.domain.providers.model import Model

MOST_PERSONAS = 1_000
"""Personas that can be made up at once; the paper's generation collapsed beyond 200."""

PORTION, FEWEST = 20, 5
"""Personas that a reasoner is asked for at a time: at most, and at least, since some will be like others."""

MOST_FRUITLESS = 5
"""Asks in a row without a new persona after which the reasoner is given up."""

_SHORTEST, _LONGEST = 10, 1_000
"""Characters of a description."""


@dataclass(frozen=True, slots=True)
class PersonaGeneration:
    """What a job does that makes up personas and nothing else.

    Attributes:
        count: How many distinct ones.
        reasoner: Who makes them up.
        prompts: The templates.
    """

    count: int
    reasoner: Model
    prompts: GymPrompts


@dataclass(frozen=True, slots=True)
class NewPersonas:
    """What a reply adds to the personas that there are.

    Attributes:
        accepted: Descriptions that are like none of the others; at most as many as were wanted. Untrusted texts.
        dropped: Descriptions that were not used, by reason: ``duplicate`` (an earlier one has the same words), ``alike``
            (too much like an earlier one), ``unusable`` (shorter than 10 or longer than 1,000 characters), ``surplus``
            (whatever comes after as many as were wanted).
        readable: Whether the reply holds a list at all.
    """

    accepted: tuple[str, ...]
    dropped: Mapping[str, int]
    readable: bool = True


def portion(missing: int) -> int:
    """How many personas to ask for where so many are missing."""
    return min(PORTION, max(missing, FEWEST))


def fruitless(sizes: Sequence[int]) -> int:
    """How many asks in a row, the last one included, brought nothing new.

    Args:
        sizes: How many personas there were after each ask.
    """
    before = (0, *sizes)
    count = 0
    while count < len(sizes) and before[-1 - count] == before[-2 - count]:
        count += 1
    return count


def read_new_personas(
    reply: str, wanted: int, already: Sequence[str] = (), *, cut: bool = False
) -> NewPersonas:
    """The personas in a reply that are like none that there are, by the rule of :func:`likeness`.

    Args:
        reply: The reasoner's reply. Untrusted.
        wanted: How many more there shall be.
        already: The descriptions that there are.
        cut: Whether the provider said that the reply stopped for length.
    """
    found = read_list(reply, cut=cut)
    if found is None:
        return NewPersonas((), {}, readable=False)
    known = list(already)
    words = {normalised(description) for description in known}
    dropped = dict.fromkeys(("duplicate", "alike", "unusable", "surplus"), 0)
    for item in found.items:
        if len(known) - len(already) == wanted:
            dropped["surplus"] += 1
        elif not _SHORTEST <= len(item) <= _LONGEST:
            dropped["unusable"] += 1
        elif normalised(item) in words:
            dropped["duplicate"] += 1
        elif likeness(item, known) is not None:
            dropped["alike"] += 1
        else:
            known.append(item)
            words.add(normalised(item))
    accepted = tuple(known[len(already) :])
    return NewPersonas(accepted, {reason: count for reason, count in dropped.items() if count})
