"""Names the version of a measuring device, so that a result says what it was measured with."""

from dataclasses import dataclass

READER_VERSION = "replies-v1"
"""Version of the rules that read judges' replies and grades (:mod:`app.domain.judging.verdict`)."""


READING = ("segmenter", "refusals", "injections", "leave_out")
"""Fields of :class:`InstrumentRef` that decide how texts are read."""


@dataclass(frozen=True, slots=True)
class InstrumentRef:
    """Which version of the measuring device a job uses.

    Attributes:
        version: For example ``"v1"``.
        content_hash: SHA-256 over its content, in hexadecimal.
        segmenter: Which version splits texts into sentences, for example ``"punkt-en-v1"``; see :mod:`app.domain.instruments.rules`.
        refusals: Which version tells refusals from responses.
        injections: Which version recognises texts that address the judge.
        replies: Version of the rules that read judges' replies.
        leave_out: Notes of :mod:`app.domain.judging.text_notes` whose sentences are not judged.
    """

    version: str
    content_hash: str
    segmenter: str
    refusals: str
    injections: str
    replies: str = READER_VERSION
    leave_out: tuple[str, ...] = ()


def splits_alike(one: InstrumentRef, other: InstrumentRef) -> bool:
    """Return whether texts have the same judged sentences by both."""
    return (one.segmenter, one.leave_out) == (other.segmenter, other.leave_out)
