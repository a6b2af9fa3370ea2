"""The follow-up request to a judge whose reply could not be read."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.instruments.template import fill
from app.domain.providers.model import Message

MOST_CHARACTERS = 4_000
"""Characters of the unreadable reply that the conversation repeats; a judge may have written without end."""

Turns = tuple[Message, Message]
"""The judge's reply and the request that follows it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The texts of the follow-up request.

    Attributes:
        version: Version of the instrument, for example ``"v1"``.
        content_hash: SHA-256 of its content, in hexadecimal.
        score: The request for an option's number, with ``{numbers}``.
        grade: The request for a PersonaGym grade, with ``{numbers}``.
        sentences: The request for the numbers of several sentences, with ``{numbers}`` and ``{lines}``.
        key: Asks for the key word of the hardened protocol, with ``{key}``.
        empty_reply: Stands for a reply without text in the conversation.
    """

    version: str
    content_hash: str
    score: str
    grade: str
    sentences: str
    key: str
    empty_reply: str

    def about_score(self, reply: str, numbers: Sequence[int], key: str) -> Turns:
        """Ask for one number.

        Args:
            reply: The judge's reply. Untrusted.
            numbers: The numbers that the judge may answer.
            key: The key word that its reply must begin with; empty for none.
        """
        return self._turns(reply, fill(self.score, {"numbers": _listed(numbers)}), key)

    def about_grade(self, reply: str, numbers: Sequence[int], key: str) -> Turns:
        """Ask for the final score of a response; see :meth:`about_score`."""
        return self._turns(reply, fill(self.grade, {"numbers": _listed(numbers)}), key)

    def about_sentences(self, reply: str, numbers: Sequence[int], labels: Sequence[int], key: str) -> Turns:
        """Ask for the numbers of the sentences with these labels; see :meth:`about_score`."""
        lines = "\n".join(f"S{label}: <number>" for label in labels)
        return self._turns(reply, fill(self.sentences, {"numbers": _listed(numbers), "lines": lines}), key)

    def _turns(self, reply: str, request: str, key: str) -> Turns:
        if key:
            request = f"{request}\n{fill(self.key, {'key': key})}"
        said = reply[:MOST_CHARACTERS] if reply.strip() else self.empty_reply
        return Message("assistant", said), Message("user", request)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
