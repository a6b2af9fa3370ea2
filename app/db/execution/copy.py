"""COPY in few messages: a transaction's overhead is what it sends and waits for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import repeat
from typing import cast
from uuid import UUID

import psycopg
from psycopg import generators, pq, waiting
from psycopg.abc import PQGen
from psycopg.errors import error_from_result

MOST_AT_ONCE = 2**20
"""Bytes that are given to libpq before they are on their way; it would hold all of them twice."""

_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_NULL = r"\N"
_PLAIN = frozenset({int, float, datetime})
"""What Postgres reads as Python writes it."""

Reader = Callable[[pq.abc.PGresult], Iterable[bytes]]
"""Given the answer to a query, says what is to be copied by each COPY that follows it."""


def copy_text(rows: Sequence[tuple[object, ...]]) -> bytes:
    """Rows in the text format of COPY, as psycopg would write them; it takes each row and field by itself.

    Args:
        rows: Of one table, so that all have the same columns: of text, numbers, ids, moments, or lists of integers.

    Raises:
        UnicodeEncodeError: If a text can't be encoded (a lone surrogate).
    """
    columns = [_column(values) for values in zip(*rows, strict=True)]
    return "".join([f"{line}\n" for line in map("\t".join, zip(*columns, strict=False))]).encode()


def _column(values: tuple[object, ...]) -> Iterable[str]:
    """A column's fields. In most columns of a transaction all rows have the same."""
    first = values[0]
    # Of floats, 0.0 is equal to -0.0.
    if values.count(first) == len(values) and not isinstance(first, float):
        return repeat(_field(first), len(values))
    if _PLAIN.issuperset(map(type, values)):
        return map(str, values)
    return [_field(value) for value in values]


def _field(value: object) -> str:
    if value is None:
        return _NULL
    if isinstance(value, str):
        return value.translate(_ESCAPES) if _is_odd(value) else value
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, list):
        return f"{{{','.join(map(str, cast('list[int]', value)))}}}"
    return str(value)


def _is_odd(text: str) -> bool:
    """Whether a text has a character that has a meaning in COPY."""
    return "\\" in text or "\n" in text or "\t" in text or "\r" in text


async def converse(
    connection: psycopg.AsyncConnection[tuple[object, ...]], statements: Sequence[str], read: Reader
) -> None:
    """Sends statements as one message: one transaction, unless there is one already, without a message to begin or to end it.

    Args:
        connection: In no other use.
        statements: The first is a query; any of the others may be a COPY from here.
        read: What is to be copied, told by the answer to the query.

    Raises:
        psycopg.Error: As of any statement; then all of them are undone.
    """
    await connection.wait(_converse(connection.pgconn, "; ".join(statements).encode(), read))


def _converse(pgconn: pq.abc.PGconn, statements: bytes, read: Reader) -> PQGen[None]:
    pgconn.send_query(statements)
    yield from generators.send(pgconn)
    error: psycopg.Error | None = None
    copies: Iterator[bytes] = iter(())
    while True:
        try:
            result = yield from generators.fetch(pgconn)
        except psycopg.OperationalError:
            if error is None:
                raise
            break  # the server has said why, and hung up
        if result is None:
            break
        if result.status == pq.ExecStatus.TUPLES_OK:
            copies = iter(read(result))
        elif result.status == pq.ExecStatus.COPY_IN:
            yield from _copy(pgconn, next(copies))
        elif result.status != pq.ExecStatus.COMMAND_OK:
            error = error or error_from_result(result)
    if error is not None:
        raise error


def _copy(pgconn: pq.abc.PGconn, rows: bytes) -> PQGen[None]:
    for start in range(0, len(rows), MOST_AT_ONCE):
        yield from generators.copy_to(pgconn, rows[start : start + MOST_AT_ONCE], flush=False)
        if len(rows) > MOST_AT_ONCE:
            yield from generators.send(pgconn)
    while not pgconn.put_copy_end():
        yield waiting.WAIT_W
    yield from generators.send(pgconn)
