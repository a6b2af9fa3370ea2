"""Checks the pages of a Parquet file before they are read: what one announces is held in memory whole, whatever the footer says."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import pyarrow.parquet as pq

from app.importers.records import wrong_file

PAGES_BYTES = 64 * 1024 * 1024
"""One page of each column is held at a time: so much may they take."""
MOST_PAGES = 1_000_000
MOST_NESTED = 8_000_000
"""Values of nested columns in one row group: a single row may have them all."""
_WINDOW_BYTES = 64 * 1024
_HEADER_BYTES = 4 * 1024 * 1024
"""Longest header of a page: it has the least and the greatest value."""
_MOST_DEEP = 16


class File(Protocol):
    """What a Parquet file is read from."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Goes to a place."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """Reads from there."""
        ...


@dataclass(frozen=True, slots=True)
class _Page:
    plain: int
    length: int
    values: int


def check_pages(file: File, metadata: Any, schema: Any) -> int:
    """About how many bytes the longest value may have.

    Args:
        file: The file.
        metadata: Its footer.
        schema: The footer's columns.

    Raises:
        InvalidJobError: If pages are too large or too many, or not where the footer says.
    """
    longest, pages = [1] * metadata.num_columns, 0
    for number in range(metadata.num_row_groups):
        group, nested = metadata.row_group(number), 0
        for n in range(group.num_columns):
            for page in _pages(file, group.column(n), f"/row_groups/{number}/columns/{n}"):
                pages += 1
                longest[n] = max(longest[n], page.plain)
                nested += page.values if schema.column(n).max_repetition_level else 0
                if pages > MOST_PAGES:
                    raise wrong_file(f"more than {MOST_PAGES:,} pages")
                if sum(longest) > PAGES_BYTES:
                    raise wrong_file(
                        f"pages of more than {PAGES_BYTES:,} bytes; write it with smaller pages or row groups"
                    )
        if nested > MOST_NESTED:
            raise wrong_file(
                f"row group {number} has {nested:,} values in nested columns; at most {MOST_NESTED:,}: write smaller ones"
            )
    return max(longest, default=1)


def _pages(file: File, chunk: Any, pointer: str) -> Iterator[_Page]:
    """The pages of a column in one row group."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    window, values = memoryview(b""), 0
    try:
        while at < end and values < chunk.num_values:
            try:
                page = _page(window, end - at)
            except IndexError:
                window = _longer(file, at, end, window)
                continue
            yield page
            values += page.values
            at += page.length
            window = window[page.length :]
    except (EOFError, _WrongHeaderError) as error:
        raise wrong_file("a page's header can't be read", pointer) from error


def _longer(file: File, at: int, end: int, known: memoryview) -> memoryview:
    """More of what is in a file at a place."""
    if len(known) >= _HEADER_BYTES:
        raise EOFError
    file.seek(at)
    more = file.read(min(max(_WINDOW_BYTES, 8 * len(known)), end - at))
    if len(more) <= len(known):
        raise EOFError
    return memoryview(more)


def _page(data: memoryview, most: int) -> _Page:
    """The page whose header begins here.

    Raises:
        IndexError: If the header is longer.
    """
    header = _Header(data)
    fields = dict(header.struct())
    plain, packed = fields.get(_PLAIN, -1), fields.get(_PACKED, -1)
    kind = next((n for n in _KINDS if isinstance(fields.get(n), dict)), None)
    values = 0 if kind in {None, _DICTIONARY} else fields[kind].get(_VALUES, -1)
    if not all(isinstance(n, int) and n >= 0 for n in (plain, packed, values)) or header.at + packed > most:
        raise _WrongHeaderError
    return _Page(plain, header.at + packed, values)


_PLAIN, _PACKED = 2, 3
_DATA, _DICTIONARY, _DATA_2 = _KINDS = 5, 7, 8
_VALUES = 1
"""Fields of a page's header, and the first field of what it says of its kind of page:
https://parquet.apache.org/docs/file-format/metadata/
"""


_ROW_GROUPS, _COLUMNS, _META_DATA, _SIZES, _REPETITION, _DEFINITION = 4, 1, 3, 16, 2, 3
"""Fields of the footer, on the way to a column's histograms of levels."""


def check_histograms(footer: bytes, schema: pq.ParquetSchema) -> None:
    """Refuses histograms that do not fit their column: pyarrow ends the process where it meets one.

    Raises:
        InvalidJobError: If one does not fit, or the footer can't be read.
    """
    try:
        for group in dict(_Header(memoryview(footer)).struct()).get(_ROW_GROUPS, ()):
            for n, chunk in enumerate(group.get(_COLUMNS, ())):
                sizes = chunk.get(_META_DATA, {}).get(_SIZES, {})
                column = schema.column(n)
                _check_length(sizes.get(_REPETITION, ()), column.max_repetition_level)
                _check_length(sizes.get(_DEFINITION, ()), column.max_definition_level)
    except (IndexError, AttributeError, TypeError, _WrongHeaderError) as error:
        raise wrong_file("the footer can't be read") from error


def _check_length(histogram: list[int], most: int) -> None:
    if len(histogram) not in {0, most + 1}:
        raise _WrongHeaderError


class _WrongHeaderError(Exception):
    pass


class _Kind(IntEnum):
    """Of a field, in Thrift's compact protocol; headers have no others."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    SHORT = 4
    INT = 5
    LONG = 6
    DOUBLE = 7
    BYTES = 8
    LIST = 9
    STRUCT = 12


_MORE = 0x80
_LONG_LIST = 15
_MOST_BITS = 63


class _Header:
    """Reads a struct in Thrift's compact protocol."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> Iterator[tuple[int, Any]]:
        """Its fields, by number.

        Raises:
            IndexError: If it does not end here.
        """
        if depth > _MOST_DEEP:
            raise _WrongHeaderError
        field = 0
        while (byte := self._byte()) != 0:
            field = field + (byte >> 4) if byte >> 4 else self._signed()
            yield field, self._value(byte & 0x0F, depth)

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        length = head >> 4 if head >> 4 < _LONG_LIST else self._number()
        if depth > _MOST_DEEP or length > len(self._data) - self.at:
            raise _WrongHeaderError
        if head & 0x0F in {_Kind.TRUE, _Kind.FALSE}:
            self.at += length
            return []
        return [self._value(head & 0x0F, depth) for _ in range(length)]

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _number(self) -> int:
        value = 0
        for shift in range(0, _MOST_BITS, 7):
            byte = self._byte()
            value |= (byte & ~_MORE) << shift
            if byte < _MORE:
                return value
        raise _WrongHeaderError

    def _signed(self) -> int:
        value = self._number()
        return (value >> 1) ^ -(value & 1)

    def _value(self, number: int, depth: int) -> Any:
        try:
            kind = _Kind(number)
        except ValueError as error:
            raise _WrongHeaderError from error
        if kind in {_Kind.TRUE, _Kind.FALSE}:
            return kind is _Kind.TRUE
        if kind in {_Kind.SHORT, _Kind.INT, _Kind.LONG}:
            return self._signed()
        if kind is _Kind.STRUCT:
            return dict(self.struct(depth + 1))
        if kind is _Kind.LIST:
            return self._list(depth + 1)
        passed_over = self._number() if kind is _Kind.BYTES else 8 if kind is _Kind.DOUBLE else 1
        self.at += passed_over
        if self.at > len(self._data):
            raise IndexError
        return None
