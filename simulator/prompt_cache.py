"""Remembers the beginnings of prompts, as a provider does that charges less for those it has just read."""

from collections import OrderedDict
from hashlib import blake2b

from simulator.conversation import CHARACTERS_PER_TOKEN, Conversation

FEWEST_TOKENS, STEP_TOKENS = 1_024, 128
"""OpenAI's: prompts below the first are not cached, and beginnings grow in steps of the second."""

_REMEMBERED = 2**16


class PromptCache:
    """The beginnings that one provider has read lately; the oldest are forgotten, not those of some minutes ago."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def read(self, conversation: Conversation) -> int:
        """How many of a prompt's tokens were read before, by the same model; from now on all of them were."""
        text = "\n".join((conversation.system, *(words for _, words in conversation.turns)))
        if len(text) < FEWEST_TOKENS * CHARACTERS_PER_TOKEN:
            return 0
        cached, read, digest = 0, 0, blake2b(conversation.model.encode())
        for tokens in range(FEWEST_TOKENS, len(text) // CHARACTERS_PER_TOKEN + 1, STEP_TOKENS):
            end = tokens * CHARACTERS_PER_TOKEN
            digest.update(ascii(text[read:end]).encode("ascii"))
            read, key = end, digest.digest()
            if key in self._known:
                cached = tokens
            self._known[key] = None
            self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return cached
