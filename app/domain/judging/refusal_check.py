"""The question to a judge whether a text is a refusal."""

import re
from dataclasses import dataclass

from app.domain.instruments.template import fill
from app.domain.judging.thoughts import after_thoughts

MOST_CHARACTERS = 2_000
"""Characters of the text that the judge sees: a refusal shows in them."""
_QUOTES = re.compile('"{3,}')
_ANSWER = re.compile(r"\b(yes|no)\b(?![-'])")


@dataclass(frozen=True, slots=True)
class RefusalCheck:
    """The question.

    Attributes:
        version: Version of the instrument, for example ``"v1"``.
        content_hash: SHA-256 of its content, in hexadecimal.
        question: The question, with ``{text}``.
    """

    version: str
    content_hash: str
    question: str

    def prompt(self, text: str) -> str:
        """Return the prompt about a text. Untrusted: it cannot end the quotation that encloses it."""
        shown = _QUOTES.sub(lambda quotes: "'" * len(quotes[0]), text.strip()[:MOST_CHARACTERS])
        return fill(self.question, {"text": shown})


def says_refusal(reply: str) -> bool | None:
    """Read a judge's reply; ``None`` if it answers neither yes nor no, or both."""
    answers = set(_ANSWER.findall(after_thoughts(reply).lower()))
    return answers == {"yes"} if len(answers) == 1 else None
