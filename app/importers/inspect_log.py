"""Inspect's logs: `.eval`, an archive with a file for each sample, and `.json`."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from app.importers.content import Document, Form, parse_json
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

UNPACKED_BYTES = 64 * 1024 * 1024
"""How much of an archive is unpacked, and of one file in it a quarter: logs also have every event."""
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
        archive = zipfile.ZipFile(io.BytesIO(document.data))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        raise wrong_file("not a zip archive that can be read") from error
    with archive:
        members = archive.infolist()
        names = [each for each in members if each.filename.startswith("samples/")]
        if not names:
            raise wrong_file("the archive is no log of Inspect: it has no samples")
        left = _Left(UNPACKED_BYTES)
        model = _model_of(archive, document.data, members, left)
        for member in names:
            place = f"/files/{member.filename.encode(errors='replace').decode()}"
            try:
                sample = _json_of(archive, document.data, member, left)
            except ValueError as error:
                yield Refused(place, str(error))
            else:
                yield from _whole_sample(place, sample, model)


class _Left:
    """How much may still be unpacked."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def of_one(self) -> int:
        return min(self.size, UNPACKED_BYTES // 4)

    def take(self, size: int) -> None:
        self.size -= size


def _model_of(
    archive: zipfile.ZipFile, data: bytes, members: list[zipfile.ZipInfo], left: _Left
) -> str | None:
    """The model of a log; one that was broken off has only its beginning."""
    by_name = {each.filename: each for each in members}
    for name in ("_journal/start.json", "header.json"):
        if name in by_name:
            try:
                head = _json_of(archive, data, by_name[name], left)
            except ValueError as error:
                raise wrong_file(str(error), f"/files/{name}") from error
            model = text_or_none(optional(head, "eval", "model"))
            if model is not None:
                return model
    return None


def _json_of(archive: zipfile.ZipFile, data: bytes, member: zipfile.ZipInfo, left: _Left) -> Any:
    """What a file of the archive says.

    Raises:
        ValueError: If it can't be unpacked or is no JSON, with the reason for people.
    """
    most = left.of_one
    try:
        if member.compress_type == ZSTANDARD:
            content = _unpacked_zstandard(data, member, most)
        else:
            with archive.open(member) as file:
                content = file.read(most + 1)
    except NotImplementedError as error:
        raise ValueError(f"is packed by a method that is not read here ({member.compress_type})") from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as error:
        raise ValueError("can't be unpacked") from error
    if len(content) > most:
        raise ValueError(f"unpacks to too much: a log's files unpack to {UNPACKED_BYTES:,} bytes at most")
    left.take(len(content))
    try:
        return parse_json(content.decode())
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8") from error
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error


def _unpacked_zstandard(data: bytes, member: zipfile.ZipInfo, most: int) -> bytes:
    start = member.header_offset
    if data[start : start + 4] != b"PK\x03\x04":
        raise zipfile.BadZipFile
    name, extra = struct.unpack_from("<HH", data, start + 26)
    begin = start + LOCAL_HEADER + name + extra
    packed = data[begin : begin + member.compress_size]
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        content: bytes = stream.read(most + 1)
    if len(content) <= most and zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile
    return content


def _whole_sample(place: str, sample: Any, model: str | None) -> Iterator[Record]:
    try:
        yield _read_sample(place, sample, model)
    except WrongRecordError as error:
        yield Refused(f"{place}{error.field}", error.reason)


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
    """Numbers by scorer; letters as Inspect counts them."""
    scores = {}
    for name, score in found.items() if isinstance(found, dict) else ():
        value = optional(score, "value")
        number = LETTERS.get(value) if isinstance(value, str) else number_or_none(value)
        if number is not None:
            scores[name] = number
    return scores
