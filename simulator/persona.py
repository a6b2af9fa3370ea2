"""Reads from a system prompt who a model is asked to be: a target level on one or several dimensions."""

import re
from collections.abc import Mapping
from functools import lru_cache

from simulator.bank import DIMENSIONS
from simulator.draw import Draws
from simulator.profiles import LEVELS, Level

# Atomic paper, Table 12. Word for word: this is what the prompts under test contain.
WORDINGS: Mapping[str, tuple[str, Level]] = {
    "open person": ("O", "high"),
    "conscientious person": ("C", "high"),
    "extroverted person": ("E", "high"),
    "agreeable person": ("A", "high"),
    "emotionally stable person": ("N", "high"),
    "neither open nor close-minded person": ("O", "neutral"),
    "neither conscientious nor careless person": ("C", "neutral"),
    "neither extroverted nor introverted person": ("E", "neutral"),
    "neither agreeable nor disagreeable person": ("A", "neutral"),
    "neither emotionally stable nor neurotic person": ("N", "neutral"),
    "close-minded person": ("O", "low"),
    "careless person": ("C", "low"),
    "introverted person": ("E", "low"),
    "disagreeable person": ("A", "low"),
    "neurotic person": ("N", "low"),
}

_HINTS: Mapping[tuple[str, Level], str] = {
    (
        "O",
        "high",
    ): "open-minded curious creative imaginative artistic inventive philosopher artist poet explorer",
    ("O", "low"): "closed-minded conventional narrow-minded traditionalist",
    ("C", "high"): "organised organized meticulous punctual disciplined diligent accountant",
    ("C", "low"): "sloppy lazy disorganised disorganized forgetful unreliable chaotic",
    ("E", "high"): "extraverted outgoing sociable talkative cheerful entertainer",
    ("E", "low"): "shy quiet reserved withdrawn hermit loner",
    ("A", "high"): "kind warm gentle friendly compassionate helpful nurse",
    ("A", "low"): "blunt rude hostile selfish cynical cruel",
    ("N", "high"): "stable calm relaxed serene unflappable stoic",
    ("N", "low"): "anxious nervous moody irritable insecure worried",
}

# Where the name of the persona begins and ends in the six persona instructions (atomic paper, Table 12).
_BEFORE = (
    "you are a ",
    "you are ",
    "adopt the identity of ",
    "take the role of ",
    "speak exactly like ",
    "speak like ",
)
_AFTER = (
    ". your responses should closely mirror",
    ". answer the questions while",
    ". it is critical that",
    ". your answer should copy",
)

# PersonaGym paper, section 3.2 and appendix A.3.
_IDENTITY = re.compile(
    r"^(?:Adopt the identity of|You are) (.*?)"
    r"(?:\. (?:Answer the questions while staying|Your responses should closely mirror)\b.*)?$",
    re.DOTALL,
)

_TARGETS: dict[str, tuple[str, Level]] = {
    **{word: target for target, words in _HINTS.items() for word in words.split()},
    **{wording.removesuffix(" person"): target for wording, target in WORDINGS.items()},
    **WORDINGS,
}
# Longest first, because "neither open nor close-minded person" also ends in "close-minded person".
_KNOWN_WORDS = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(_TARGETS, key=len, reverse=True)))})\b")


@lru_cache(maxsize=4096)
def read_persona(system_prompt: str) -> Mapping[str, Level]:
    """The level that the persona of a system prompt has on each dimension it is about.

    The papers' fifteen wordings are found first, then words that hint at a trait; a persona with neither has a
    level on all five dimensions that is a function of its name alone, so that it is one person under all six instructions.

    Args:
        system_prompt: A persona instruction, or any text.

    Returns:
        At least one dimension code (of O, C, E, A, N) with its level.
    """
    persona = _persona_name(system_prompt)
    found = dict(_TARGETS[match.group()] for match in reversed(list(_KNOWN_WORDS.finditer(persona))))
    if found:
        return found
    draws = Draws("persona", persona)
    return {dimension: draws.pick(LEVELS) for dimension in DIMENSIONS}


def describe_persona(system_prompt: str) -> str:
    """Who a system prompt asks to be, in its own words; the whole prompt if it has none of PersonaGym's two forms."""
    return _IDENTITY.sub(r"\1", system_prompt.strip()).rstrip(".")


def _persona_name(system_prompt: str) -> str:
    text = system_prompt.lower().strip()
    before = next((words for words in _BEFORE if text.startswith(words)), "")
    text = text[len(before) :]
    for words in _AFTER:
        text = text.partition(words)[0]
    return text.rstrip(".").removeprefix("a ").removeprefix("an ")
