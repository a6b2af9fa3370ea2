"""A file that is sent in parts, and found again after its sending broke off."""

import hashlib
import os
from pathlib import Path

from persona_assay.calls import Call
from persona_assay.errors import AssayError, ProblemError
from persona_assay.operations import create_upload
from persona_assay.types import Upload

PART_BYTES = 4 * 1024 * 1024
_ARRIVED_ELSEWHERE = "wrong_offset"


class SentFile:
    """A file that is sent in parts.

    Args:
        path: Where it is.
        purpose: What it is for, as `create_upload` is told.

    Raises:
        OSError: It cannot be read.
    """

    def __init__(self, path: str | Path, purpose: str | None = None) -> None:
        self._path = Path(path)
        self._purpose = purpose
        with self._path.open("rb") as file:
            self._stamp = _stamp(file.fileno())
            self._digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.size = self._stamp[0]

    def begin(self) -> Call[Upload]:
        """Begins an upload of it."""
        name = os.fsencode(self._path.name).decode(errors="replace")
        return create_upload(self.size, name=name, sha256=self._digest, purpose=self._purpose)

    def is_of(self, upload: Upload) -> bool:
        """Whether an upload is of this file, and worth going on with."""
        told = upload["metadata"]
        same = upload["size"] == self.size and told.get("sha256") == self._digest
        return same and told.get("purpose") == self._purpose and upload["status"] != "invalid"

    def checked(self, upload: Upload) -> Upload:
        """An upload that was named to go on with.

        Raises:
            AssayError: It is of another file.
        """
        digest = upload["metadata"].get("sha256", self._digest)
        if upload["size"] != self.size or digest != self._digest:
            raise AssayError(f"{upload['id']} is not an upload of {self._path}")
        return upload

    def part(self, start: int) -> bytes:
        """What follows from a byte on.

        Raises:
            AssayError: The file is not what it was at the beginning.
        """
        with self._path.open("rb") as file:
            if _stamp(file.fileno()) != self._stamp:
                raise AssayError(f"{self._path} was changed while it was sent")
            file.seek(start)
            return file.read(PART_BYTES)


def is_unfinished(upload: Upload) -> bool:
    """Whether more of the file is worth sending: not after an error, of which nothing is kept."""
    return upload["status"] == "receiving" and upload["received"] < upload["size"]


def lost_answer(error: ProblemError) -> None:
    """Accepts that a part has arrived before, its answer lost, or sent by somebody else.

    Raises:
        ProblemError: If it was refused for another reason.
    """
    if error.code != _ARRIVED_ELSEWHERE:
        raise error


def _stamp(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns
