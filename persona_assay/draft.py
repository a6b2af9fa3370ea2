"""Files that appear only once they are whole."""

import uuid
from pathlib import Path


class Draft:
    """A file that is written beside its place and then put there; an earlier one stays until that.

    Args:
        path: Its place.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
        self._length = 0

    def open(self) -> None:
        """Begins the file."""
        self._file = self._beside.open("wb")

    def write(self, piece: bytes) -> None:
        """Writes the next piece."""
        self._length += self._file.write(piece)

    def keep(self) -> int:
        """Puts the file, which is whole, in its place.

        Returns:
            Its length in bytes.
        """
        self._file.close()
        self._beside.replace(self._path)
        return self._length

    def discard(self) -> None:
        """Leaves nothing behind unless the file was kept."""
        self._file.close()
        self._beside.unlink(missing_ok=True)
