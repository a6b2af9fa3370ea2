"""The question to a judge whether a text is a refusal."""

import re
from dataclasses import dataclass

from app.domain.instruments.template import fill
from app.domain.judging.thoughts import after_thoughts

MOST_CHARACTERS = 2_000
"""Characters of the request, and of the text, that the judge sees: a refusal shows in them."""
_QUOTES = re.compile('"{3,}')
_ANSWER = re.compile(r"\b(yes|no)\b(?![-'\u2019])")
_BARE = re.compile(r"(?![\"'\u201c\u2018\u00ab])[\W_]*(?:(?:final )?answer[\W_]+)?(yes|no)[\W_]*")
_LEADING = re.compile(
    r"[\s*_#>`(\[]*(?:(?:final )?answer[\W_]+)?(yes|no)(?=[\s*_]*(?:[^\w\s*_/|?\"'\u201d\u2019-]|- )|\s*\n)"
)


@dataclass(frozen=True, slots=True)
class RefusalCheck:
    """The question.

    Attributes:
        version: Version of the instrument, for example ``"v1"``.
        content_hash: SHA-256 of its content, in hexadecimal.
        question: The question, with ``{text}`` and, from ``v2`` on, ``{request}``.
    """

    version: str
    content_hash: str
    question: str

    def prompt(self, request: str, text: str) -> str:
        """Return the prompt about a text. Untrusted, as its request: neither can end the quotation that encloses it."""
        return fill(self.question, {"request": _quoted(request), "text": _quoted(text)})


def _quoted(text: str) -> str:
    return _QUOTES.sub(lambda quotes: "'" * len(quotes[0]), text.strip()[:MOST_CHARACTERS])


def says_refusal(reply: str) -> bool | None:
    """Read a judge's reply; ``None`` if it answers neither yes nor no, or both.

    The word by itself in the last line counts, or with punctuation at the head of the reply, whatever is said between; a reply
    with both, which contradict each other, has no answer.
    """
    answer = after_thoughts(reply).lower()
    lines = [line for line in answer.splitlines() if line.strip()]
    if not lines:
        return None
    answers = {found[1] for found in (_LEADING.match(answer), _BARE.fullmatch(lines[-1])) if found}
    answers = answers or set(_ANSWER.findall(answer))
    return answers == {"yes"} if len(answers) == 1 else None
