"""The follow-up request to a judge whose reply could not be read."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.instruments.template import fill
from app.domain.providers.model import Message

MOST_CHARACTERS = 4_000
"""Characters of the unreadable reply that the conversation repeats; a judge may have written without end."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The texts of the follow-up request.

    Attributes:
        version: Version of the instrument, for example ``"v1"``.
        content_hash: SHA-256 of its content, in hexadecimal.
        score: The request for an option's number, with ``{numbers}``.
        grade: The request for a PersonaGym grade, with ``{numbers}``.
        empty_reply: Stands for a reply without text in the conversation.
    """

    version: str
    content_hash: str
    score: str
    grade: str
    empty_reply: str

    def turns(self, reply: str, numbers: Sequence[int], *, graded: bool) -> tuple[Message, Message]:
        """Return the judge's reply and the request for a number, which continue the conversation.

        Args:
            reply: The judge's reply. Untrusted.
            numbers: The numbers that the judge may answer.
            graded: Whether it grades a whole response.
        """
        words = self.grade if graded else self.score
        asked = fill(words, {"numbers": ", ".join(map(str, numbers))})
        said = reply[:MOST_CHARACTERS] if reply.strip() else self.empty_reply
        return Message("assistant", said), Message("user", asked)
