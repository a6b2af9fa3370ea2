"""Inspect's logs: `.eval`, an archive with a file for each sample, and `.json`."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import pyarrow as pa

from app.importers.content import PIECE_BYTES, Document, Form, parse_json
from app.importers.messages import last_question, persona_of, read_messages, text_of
from app.importers.records import (
    Record,
    Refused,
    Said,
    WrongRecordError,
    number_or_none,
    optional,
    text_or_none,
    wrong_file,
)

SAMPLE_BYTES = 16 * 1024 * 1024
"""How much of one file in an archive is unpacked: logs also have every event."""
LIST_BYTES = SAMPLE_BYTES + 1  # of a file that is not packed so much is read at once
"""How long an archive's list of files may be, which is held in memory."""
MOST_BROKEN = 10
ATTACHMENT = "attachment://"
_MEDIA = {"image", "audio", "video", "document", "data"}
_WITH_TEXTS = ("input", "messages", "output")
LOCAL_HEADER = 30
ZSTANDARD = 93
"""The method by which Inspect packs; Python knows it from 3.14 on."""
LETTERS: Mapping[str, float] = {"C": True, "P": 0.5, "I": False, "N": False}
"""Inspect's own values of its letters: correct, partial, incorrect, no answer."""


def is_archive(document: Document) -> bool:
    """Whether a file is a zip archive."""
    return document.form is Form.ZIP


def is_log(first: dict[str, Any]) -> bool:
    """Whether a JSON object is a log."""
    return isinstance(first.get("eval"), dict) and ("samples" in first or "plan" in first)


def read_log(place: str, log: dict[str, Any]) -> Iterator[Record]:
    """The texts of a log in JSON."""
    samples = log.get("samples")
    if not isinstance(samples, list) or not samples:
        raise WrongRecordError("/samples", "has no samples")
    model = text_or_none(optional(log, "eval", "model"))
    for n, sample in enumerate(samples):
        yield from _whole_sample(f"{place}/samples/{n}", sample, model)


def read_archive(document: Document) -> Iterator[Record]:
    """The texts of an archive, sample by sample.

    Raises:
        InvalidJobError: If it is no archive that can be read, or has no samples.
    """
    try:
        archive = zipfile.ZipFile(_Archive(document.file))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        raise wrong_file("not a zip archive that can be read") from error
    with archive:
        check_overlaps(archive.infolist())
        names = [each for each in archive.infolist() if each.filename.startswith("samples/")]
        if not names:
            raise wrong_file("the archive is no log of Inspect: it has no samples")
        unpacker = _Unpacker(archive, document)
        model = _model_of(unpacker)
        for member in names:
            place = f"/files/{member.filename.encode(errors='replace').decode()}"
            try:
                sample = unpacker.json_of(member)
            except ValueError as error:
                yield Refused(place, str(error))
            else:
                yield from _whole_sample(place, sample, model)


def check_overlaps(members: Sequence[zipfile.ZipInfo]) -> None:
    """Check that no two members of an archive share bytes: a short one could hold any number of long files.

    Raises:
        InvalidJobError: If two do.
    """
    by_place = sorted(members, key=lambda each: each.header_offset)
    for one, other in pairwise(by_place):
        if one.header_offset + LOCAL_HEADER + one.compress_size > other.header_offset:
            name = other.filename[:200].encode(errors="replace").decode()
            raise wrong_file("overlaps another file of the archive", f"/files/{name}")


class _Archive:
    """An archive of which no long list of files is read: that is read at once, and its entries take much more memory than it."""

    def __init__(self, file: BinaryIO) -> None:
        self._read = file.read
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes."""
        if size > LIST_BYTES:
            raise wrong_file(f"the archive's list of files has {size:,} bytes; at most {LIST_BYTES:,}")
        return self._read(size)


class _Unpacker:
    """Unpacks files of an archive, up to what its document allows together."""

    def __init__(self, archive: zipfile.ZipFile, document: Document) -> None:
        self.archive = archive
        self._file = document.file
        self._most = self._left = document.most
        self._broken = 0

    def json_of(self, member: zipfile.ZipInfo) -> Any:
        """What a file of the archive says.

        Raises:
            ValueError: If it can't be unpacked or is no JSON, with the reason for people.
        """
        most = min(self._left, SAMPLE_BYTES)
        try:
            content = self._unpacked(member, most)
        except ValueError:
            self._broken += 1
            if self._broken > MOST_BROKEN:
                raise wrong_file(f"more than {MOST_BROKEN} of its files can't be unpacked") from None
            raise
        if len(content) > most:
            raise ValueError(
                f"unpacks to too much: a log's files unpack to {self._most:,} bytes at most, each to {SAMPLE_BYTES:,}"
            )
        self._left -= len(content)
        try:
            return parse_json(content.decode())
        except UnicodeDecodeError as error:
            raise ValueError("is not UTF-8") from error
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error

    def _unpacked(self, member: zipfile.ZipInfo, most: int) -> bytes:
        try:
            if member.compress_type == ZSTANDARD:
                return self._unpacked_zstandard(member, most)
            with self.archive.open(member) as file:
                return file.read(most + 1)
        except NotImplementedError as error:
            reason = f"is packed by a method that is not read here ({member.compress_type})"
            raise ValueError(reason) from error
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            OverflowError,  # of a place in the file
            RuntimeError,
            ValueError,
            struct.error,
        ) as error:
            raise ValueError("can't be unpacked") from error

    def _unpacked_zstandard(self, member: zipfile.ZipInfo, most: int) -> bytes:
        self._file.seek(member.header_offset)
        header = self._file.read(LOCAL_HEADER)
        if not header.startswith(b"PK\x03\x04") or member.compress_size > LIST_BYTES:
            raise zipfile.BadZipFile
        name, extra = struct.unpack_from("<HH", header, 26)
        self._file.seek(name + extra, os.SEEK_CUR)
        packed = self._file.read(member.compress_size)
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            parts, left = [], most + 1
            while left and (
                part := stream.read(min(left, PIECE_BYTES))
            ):  # a read that fails keeps its buffer
                parts.append(part)
                left -= len(part)
            content = b"".join(parts)
        if len(content) <= most and zlib.crc32(content) != member.CRC:
            raise zipfile.BadZipFile
        return content


def _model_of(unpacker: _Unpacker) -> str | None:
    """The model of a log; one that was broken off has only its beginning."""
    by_name = {each.filename: each for each in unpacker.archive.infolist()}
    for name in ("_journal/start.json", "header.json"):
        if name in by_name:
            try:
                head = unpacker.json_of(by_name[name])
            except ValueError as error:
                raise wrong_file(str(error), f"/files/{name}") from error
            model = text_or_none(optional(head, "eval", "model"))
            if model is not None:
                return model
    return None


def _whole_sample(place: str, sample: Any, model: str | None) -> Iterator[Record]:
    try:
        yield _read_sample(place, _with_attachments(sample), model)
    except WrongRecordError as error:
        yield Refused(f"{place}{error.field}", error.reason)


def _with_attachments(sample: Any) -> Any:
    """A sample with its attachments in place of their references, where texts are read.

    Inspect moves long values into ``attachments``: https://inspect.aisi.org.uk/eval-logs.html
    """
    if not isinstance(sample, dict):
        return sample
    known = sample.get("attachments")
    resolve = _Attachments(known if isinstance(known, dict) else {}).resolve
    return sample | {name: resolve(sample[name], f"/{name}") for name in _WITH_TEXTS if name in sample}


class _Attachments:
    """Replaces references to attachments; a reference within an attachment is text."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known
        self._left = SAMPLE_BYTES

    def resolve(self, value: Any, place: str) -> Any:
        """A value with the attachments that it refers to.

        Raises:
            WrongRecordError: If one is missing, or they are too long together.
        """
        if isinstance(value, dict):
            others = value.keys() & _MEDIA  # media without text
            return {
                name: each if name in others else self.resolve(each, f"{place}/{name}")
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self.resolve(each, f"{place}/{n}") for n, each in enumerate(value)]
        if not isinstance(value, str) or not value.startswith(ATTACHMENT):
            return value
        found = self._known.get(value.removeprefix(ATTACHMENT))
        if not isinstance(found, str):
            raise WrongRecordError(place, f"refers to an attachment that the log lacks ({value[:60]})")
        self._left -= len(found)
        if self._left < 0:
            raise WrongRecordError(place, f"has attachments of more than {SAMPLE_BYTES:,} characters")
        return found


def _read_sample(place: str, sample: Any, model: str | None) -> Record:
    if not isinstance(sample, dict):
        raise WrongRecordError("", "must be an object")
    choices = optional(sample, "output", "choices")
    answer = choices[0] if isinstance(choices, list) and choices else None
    text = text_of(optional(answer, "message", "content")) or text_or_none(
        optional(sample, "output", "completion")
    )
    if text is None:
        why = "the sample failed" if sample.get("error") else "the model's answer has no text"
        raise WrongRecordError("/output", why)
    try:
        messages = read_messages(sample.get("messages") or [], "")
        asked = sample.get("input")
        question = asked if isinstance(asked, str) else last_question(read_messages(asked, ""))
    except WrongRecordError as error:
        raise WrongRecordError(f"/messages{error.field}", error.reason) from error
    told = text_or_none(optional(sample, "output", "model"))
    return Said(
        place,
        text,
        persona_of(messages),
        text_or_none(question),
        model or told,
        scores=_scores(sample.get("scores")),
    )


def _scores(found: Any) -> Mapping[str, float]:
    """Numbers by scorer, of one that gives several by scorer and name; letters as Inspect counts them."""
    scores = {}
    values = {
        name: optional(score, "value") for name, score in (found.items() if isinstance(found, dict) else ())
    }
    several = {name: value for name, value in values.items() if isinstance(value, dict)}
    values |= {f"{name}/{key}": each for name, value in several.items() for key, each in value.items()}
    for name, value in values.items():
        number = LETTERS.get(value) if isinstance(value, str) else number_or_none(value)
        if number is not None:
            scores[name] = number
    return scores
