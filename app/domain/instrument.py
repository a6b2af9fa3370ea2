"""Names the version of a measuring device, so that a result says what it was measured with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstrumentRef:
    """Which version of the measuring device a job uses.

    Attributes:
        version: For example ``"v1"``.
        content_hash: SHA-256 over its content, in hexadecimal.
        segmenter: Name of the sentence segmenter, for example ``"punkt-en-v1"``.
    """

    version: str
    content_hash: str
    segmenter: str
