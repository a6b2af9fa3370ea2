"""Reads reproduction bundles in a child process. Anybody may have written one: nothing in it is believed before it is checked."""

import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, TypeVar
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.bundle import (
    HEADER,
    JOB,
    MOST_DOCUMENT_BYTES,
    MOST_LINE_BYTES,
    MOST_UNPACKED,
    RESULTS,
    ROWS,
    SETS,
    SPECIFICATION,
    TABLES,
    VERSION,
    BundleHeader,
)
from app.domain.validation import message
from app.importers.inspect_log import check_overlaps

M = TypeVar("M", bound=BaseModel)
_PATHS = {HEADER, JOB, SPECIFICATION, RESULTS, SETS, *(f"{TABLES}{table}.jsonl" for table in ROWS)}
_ENCRYPTED = 1
MOST_NESTED = 1_000_000
"""Lists and objects of a document, or of a line."""
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_READ_BYTES = 2**20
_BROKEN = (BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


def wrong(path: str, why: str, line: int | None = None) -> InvalidJobError:
    """What is said of a file of a bundle."""
    return InvalidJobError([FieldError(f"/{path}" + ("" if line is None else f"/{line}"), why)])


class BundleReader:
    """A bundle.

    Attributes:
        header: Its first file.
        bytes_of_lines: How much has been read line by line.

    Raises:
        InvalidJobError: If it is no bundle, or one of a later version; here and by all methods, if something in it is wrong.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.bytes_of_lines = 0
        try:
            self._zip = ZipFile(file)
        except _BROKEN as error:
            raise wrong("", "not a zip file") from error
        self._check_names(file.seek(0, os.SEEK_END))
        self.header = self.model(HEADER, BundleHeader)
        self._check_version()
        self._check_files()

    def _check_version(self) -> None:
        if self.header.version > VERSION:
            why = (
                f"version {self.header.version} is of a later release ({self.header.release});"
                f" this one reads {VERSION}"
            )
            raise wrong(f"{HEADER}/version", why)

    def _check_names(self, packed: int) -> None:
        infos = self._zip.infolist()
        names = [info.filename for info in infos]
        for name in names:
            if name not in _PATHS:
                raise wrong("", f"a bundle has no file {name[:200]!r}")
        if len(set(names)) < len(names):
            raise wrong("", "a file is in it twice")
        if missing := sorted(_PATHS - set(names)):
            raise wrong(missing[0], "missing")
        for info in infos:
            if info.flag_bits & _ENCRYPTED or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise wrong(info.filename, "must be stored or deflated, without a password")
            if not info.filename.endswith(".jsonl") and info.file_size > MOST_DOCUMENT_BYTES:
                why = f"has {info.file_size:,} bytes; at most {MOST_DOCUMENT_BYTES:,}"
                raise wrong(info.filename, why)
        check_overlaps(infos)
        unpacked = sum(info.file_size for info in infos)
        if unpacked > MOST_UNPACKED * packed:
            why = f"its files have {unpacked:,} bytes, more than {MOST_UNPACKED} times those of the bundle itself"
            raise wrong("", why)

    def _check_files(self) -> None:
        told = self.header.files
        for path in sorted(_PATHS - {HEADER}):
            if path not in told:
                raise wrong(f"{HEADER}/files", f"lacks {path}")
            found = hashlib.sha256()
            for part in self._parts(path):
                found.update(part)
            if found.hexdigest() != told[path].sha256:
                raise wrong(path, f"its SHA-256 is {found.hexdigest()}, not {told[path].sha256}")

    def _parts(self, path: str) -> Iterator[bytes]:
        try:
            with self._zip.open(path) as file:
                while part := file.read(_READ_BYTES):
                    yield part
        except _BROKEN as error:
            raise wrong(path, f"broken: {error}") from error

    def document(self, path: str) -> str:
        """A whole file."""
        try:
            return b"".join(self._parts(path)).decode()
        except UnicodeDecodeError as error:
            raise wrong(path, "not UTF-8") from error

    def json(self, path: str) -> Any:
        """A whole file of JSON."""
        return parsed(path, self.document(path))

    def model(self, path: str, model: type[M]) -> M:
        """A whole file as a model."""
        text = self.document(path)
        _check_structure(path, text.encode())
        try:
            return model.model_validate_json(text)
        except ValidationError as error:
            raise told(path, error) from error

    def lines(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a file of JSON Lines, with the numbers of their lines."""
        try:
            with self._zip.open(path) as file:
                yield from self._lines(path, file)
        except _BROKEN as error:
            raise wrong(path, f"broken: {error}") from error

    def _lines(self, path: str, file: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
        number = 0
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            self.bytes_of_lines += len(line)
            if len(line) > MOST_LINE_BYTES:
                raise wrong(path, f"a line has at most {MOST_LINE_BYTES:,} bytes", number)
            found = parsed(path, line, number)
            if not isinstance(found, dict):
                raise wrong(path, "must be an object", number)
            yield number, found


def parsed(path: str, text: str | bytes, line: int | None = None) -> Any:
    """Return the value of a JSON text.

    Raises:
        InvalidJobError: If it is not JSON, or has too many lists and objects.
    """
    _check_structure(path, text if isinstance(text, bytes) else text.encode(), line)
    try:
        found = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise wrong(path, f"not JSON: {error}", line) from error
    return found


def _check_structure(path: str, text: bytes, line: int | None = None) -> None:
    """Check the number of lists and objects: a short file can have so many that they take gigabytes."""
    if text.count(b"[") + text.count(b"{") <= MOST_NESTED:
        return
    outside = _TEXT.sub(b"", text)
    found = outside.count(b"[") + outside.count(b"{")
    if found > MOST_NESTED:
        raise wrong(path, f"has {found:,} lists and objects; at most {MOST_NESTED:,}", line)


def told(path: str, error: ValidationError) -> InvalidJobError:
    """What a model said of a file."""
    fields = [
        FieldError("/" + "/".join([path, *map(str, each["loc"])]), message(each))
        for each in error.errors(include_url=False, include_input=False)
    ]
    return InvalidJobError(fields[:20])
