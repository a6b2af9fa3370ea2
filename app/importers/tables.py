"""Tables as data sets have them: JSON Lines, JSON lists, CSV and Parquet, one text or persona a row."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.domain.errors import InvalidJobError
from app.importers.content import Document, Form, wrong_file
from app.importers.records import Character, Options, Record, Said, WrongRecordError, text_or_none

USUAL = {
    "text": ("response", "text", "completion", "output", "generation", "generated_text", "reply"),
    "persona": ("persona", "character", "system_prompt", "system", "role"),
    "prompt": ("prompt", "question", "instruction", "input", "query"),
    "model": ("model", "model_name", "generator", "model_id"),
}
"""What columns are usually called, by what they hold."""
MOST_ROWS = 200_000
BATCH_ROWS = 64
UNPACKED_BYTES = 64 * 1024 * 1024
"""How much of a Parquet file is unpacked."""


def columns_of(names: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, str]:
    """Which column holds what: as chosen, else by the usual names in any case.

    Args:
        names: The columns that there are.
        chosen: Columns by what they hold.
    """
    by_name = {name.casefold(): name for name in reversed(list(names))}
    guessed = {
        what: next((by_name[each] for each in usual if each in by_name), None)
        for what, usual in USUAL.items()
    }
    return {what: name for what, name in guessed.items() if name is not None} | dict(chosen)


def is_table(first: dict[str, Any], chosen: Mapping[str, str]) -> bool:
    """Whether a record has a column with a text or a persona."""
    return not {"text", "persona"}.isdisjoint(columns_of(first, chosen))


def read_row(place: str, row: dict[str, Any], options: Options) -> Iterator[Record]:
    """A row's text, or its persona if rows have no texts.

    Raises:
        WrongRecordError: If a column that is needed is missing or holds something else.
    """
    columns = columns_of(row, options.columns)
    values = {what: row.get(name) for what, name in columns.items()}
    for what in ("persona", "prompt", "model"):
        if values.get(what) is not None and not isinstance(values[what], str):
            raise WrongRecordError(f"/{columns[what]}", "must be a text")
    persona = text_or_none(values.get("persona"))
    if "text" in columns:
        text = values["text"]
        if not isinstance(text, str):
            raise WrongRecordError(f"/{columns['text']}", "is missing" if text is None else "must be a text")
        yield Said(
            place, text, persona, text_or_none(values.get("prompt")), text_or_none(values.get("model"))
        )
    elif persona is not None:
        yield Character(place, persona, text_or_none(row.get("name")))
    else:
        raise WrongRecordError("", "has no column with a text or a persona")


def parquet_columns(document: Document) -> list[str]:
    """The columns' names; none if the file is no Parquet file that can be read."""
    if document.form is not Form.PARQUET:
        return []
    return list(_opened(document).schema_arrow.names)


def read_parquet(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a Parquet file, from 1.

    Raises:
        InvalidJobError: If it can't be read, or is too large.
    """
    file = _opened(document)
    if file.metadata.num_rows > MOST_ROWS:
        raise wrong_file(f"{file.metadata.num_rows:,} rows; at most {MOST_ROWS:,}")
    unpacked, number = 0, 0
    for batch in _batches(file):
        unpacked += batch.nbytes
        if unpacked > UNPACKED_BYTES:
            raise wrong_file(f"the file unpacks to more than {UNPACKED_BYTES:,} bytes", f"/rows/{number + 1}")
        for row in _rows(batch, number + 1):
            number += 1
            yield f"/rows/{number}", row


def _opened(document: Document) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(pa.BufferReader(document.data))
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _broken(error) from error
    if size > UNPACKED_BYTES:
        raise wrong_file(f"the file unpacks to {size:,} bytes; at most {UNPACKED_BYTES:,}")
    return file


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    batches = file.iter_batches(batch_size=BATCH_ROWS, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(error) from error
        if batch is None:
            return
        yield batch


def _rows(batch: pa.RecordBatch, first: int) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = batch.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise wrong_file("a value can't be read", f"/rows/{first}") from error
    return found


def _broken(error: Exception) -> InvalidJobError:
    words = str(error).splitlines() or ["unreadable"]
    return wrong_file(f"not a Parquet file that can be read: {words[0][:200]}")
