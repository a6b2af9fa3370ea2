"""The sentence bank: everything that a simulated persona model can say, and the true score of each sentence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import NamedTuple

DIMENSIONS = ("O", "C", "E", "A", "N")
SCORES = (1, 2, 3, 4, 5)
NOT_APPLICABLE = 9
"""The option that the papers' scales offer for a sentence that says nothing about the dimension."""
CONSISTENCY = "P"
"""Beside the five dimensions of a personality: how well a sentence fits the persona, from 1 (contradicts it) to 5."""


class Truth(NamedTuple):
    """What a sentence really says: about `dimension`, `score`; about no dimension, `NOT_APPLICABLE`.

    A sentence of an answer to a PersonaGym question has the dimension `CONSISTENCY`, whatever its score.
    """

    dimension: str | None
    score: int

    def asked_for(self, dimension: str) -> int:
        """The answer of a judge without error that is asked about `dimension`."""
        return self.score if dimension == self.dimension else NOT_APPLICABLE


@dataclass(frozen=True, slots=True)
class Bank:
    """All sentences.

    Attributes:
        trait: For each (dimension, score), the thoughts that express it; each is a tuple of wordings, the plain one first.
        neutral: Sentences about nothing that a personality scale asks.
        consistency: For each score 1 to 5 and NOT_APPLICABLE, the thoughts that fit any persona to that degree, in
            wordings as above.
        openings: (words, sentences): first sentences for a reply to a prompt that contains these words; they carry no trait.
        refusals: What a model says that does not want to play.
        truths: The truth of every sentence above, by its normalised text.
    """

    trait: Mapping[tuple[str, int], Sequence[Sequence[str]]]
    neutral: Sequence[str]
    consistency: Mapping[int, Sequence[Sequence[str]]]
    openings: Sequence[tuple[str, Sequence[str]]]
    refusals: Sequence[str]
    truths: Mapping[str, Truth]

    def truth(self, sentence: str) -> Truth | None:
        """The truth of a sentence as it was written or as it reads after `normalise`; None if it is not of this bank."""
        return self.truths.get(normalise(sentence))


def normalise(sentence: str) -> str:
    """The form that sentences are looked up in: typewriter apostrophes and dashes, no surrounding blanks."""
    return sentence.replace("\u2019", "'").replace("—", "--").strip()


@cache
def load_bank() -> Bank:
    """Reads the bank from the package's data.

    Raises:
        ValueError: A sentence has two different truths.
    """
    sections = read_sections("sentences.txt")
    leads, tails = sections["lead"], sections["tail"]
    trait = {
        (dimension, score): tuple(
            _wordings(plain, leads, tails) for plain in sections[f"{dimension} {score}"]
        )
        for dimension in DIMENSIONS
        for score in SCORES
    }
    openings = [
        (name.removeprefix("opening: "), sentences)
        for name, sentences in sections.items()
        if name.startswith("opening: ")
    ]
    consistency = {
        int(score): tuple(_wordings(plain, leads, tails=()) for plain in sentences)
        for score, sentences in read_sections("consistency.txt").items()
    }
    bank = Bank(trait, sections["neutral"], consistency, openings, sections["refusal"], {})
    return replace(bank, truths=_truths(bank))


def read_sections(name: str) -> dict[str, list[str]]:
    """The lines of a data file of this package, by the name of their section."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (files("simulator") / "data" / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


def _wordings(plain: str, leads: Sequence[str], tails: Sequence[str]) -> tuple[str, ...]:
    first_word = plain.split(" ", 1)[0]
    keeps_capital = first_word.replace("\u2019", "'").split("'")[0].rstrip(",") == "I"
    continued = plain if keeps_capital else plain[0].lower() + plain[1:]
    wordings = [plain, *(f"{lead} {continued}" for lead in leads)]
    # A dash, a pause or a quotation has its own rhythm, which a tail would break.
    if plain.endswith(".") and not any(mark in plain for mark in ("—", "...", "“", ";")):
        wordings += [f"{plain[:-1]}{tail}." for tail in tails]
    return tuple(wordings)


def _truths(bank: Bank) -> dict[str, Truth]:
    truths: dict[str, Truth] = {}
    for sentence, truth in _all_sentences(bank):
        if truths.setdefault(normalise(sentence), truth) != truth:
            raise ValueError(f"the sentence bank gives {sentence!r} two different scores")
    return truths


def _all_sentences(bank: Bank) -> Iterator[tuple[str, Truth]]:
    for (dimension, score), thoughts in bank.trait.items():
        for wordings in thoughts:
            yield from ((wording, Truth(dimension, score)) for wording in wordings)
    for score, thoughts in bank.consistency.items():
        for wordings in thoughts:
            yield from ((wording, Truth(CONSISTENCY, score)) for wording in wordings)
    neutral = [*bank.neutral, *bank.refusals, *(one for _, sentences in bank.openings for one in sentences)]
    yield from ((sentence, Truth(None, NOT_APPLICABLE)) for sentence in neutral)
