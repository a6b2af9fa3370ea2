"""Uploads that are read once they are complete: compressed JSON Lines, and Parquet as several writers make it; broken ones of each."""

import bz2
import datetime as dt
import gzip
import io
import random
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.api.service import Json, Service
from tests.api.test_tus import LINES, begin, jsonl, patch, uploaded
from tests.databases import libpq_url
from tests.observe import eventually

TABLE = pa.Table.from_pylist(LINES)
ONE = LINES[0]


def parquet(rows: list[Any] | pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), file, **options)
    return file.getvalue()


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def read(api: Service, content: bytes) -> Json:
    """An upload with this content, once it is read."""
    found = uploaded(api, content)
    path = f"/v1/uploads/{found['id']}"
    assert eventually(lambda: api.get(path).json()["status"] != "reading")
    ended: Json = api.get(path).json()
    return ended


def stored(api: Service, upload: Json) -> list[Any]:
    query = (
        "SELECT line, persona, task, model, run, text, unit_starts, unit_ends FROM upload_records"
        " WHERE upload_id = %s ORDER BY ordinal"
    )
    with psycopg.connect(libpq_url(api.database_url)) as connection:
        return connection.execute(query, (upload["id"],)).fetchall()


def has_all(api: Service, path: str) -> bool:
    found: int = api.get(path).json()["records"]
    return found == len(LINES)


GOOD: dict[str, tuple[bytes, str]] = {
    "gzip": (gzip.compress(jsonl(LINES)), "gzip"),
    "gzip in several members": (gzip.compress(jsonl(LINES[:7])) + gzip.compress(jsonl(LINES[7:])), "gzip"),
    "zstd": (zstd(jsonl(LINES)), "zstd"),
    "zstd as pzstd writes it": (b"\x50\x2a\x4d\x18\4\0\0\0size" + zstd(jsonl(LINES)), "zstd"),
    "Parquet": (parquet(LINES), "parquet"),
    "without dictionaries": (parquet(LINES, use_dictionary=False), "parquet"),
    "in small row groups": (parquet(LINES, row_group_size=3), "parquet"),
    "in small pages": (parquet(LINES, data_page_size=1, max_rows_per_page=1), "parquet"),
    "later pages": (parquet(LINES, data_page_version="2.0", compression="zstd"), "parquet"),
    "gzip pages": (parquet(LINES, compression="gzip"), "parquet"),
    "brotli pages": (parquet(LINES, compression="brotli"), "parquet"),
    "plain pages": (parquet(LINES, compression="none", write_statistics=False), "parquet"),
    "a column of nothing": (parquet(TABLE.append_column("item", pa.nulls(40, pa.string()))), "parquet"),
    "text as bytes": (
        parquet(TABLE.set_column(2, "text", TABLE["text"].cast(pa.binary()))),
        "parquet",
    ),
    "large text": (parquet(TABLE.set_column(2, "text", TABLE["text"].cast(pa.large_string()))), "parquet"),
    "a number as a fraction": (
        parquet(TABLE.append_column("run", pa.array([float(n) for n in range(40)]))),
        "parquet",
    ),
    "dictionary-encoded": (
        parquet(TABLE.set_column(0, "persona", TABLE["persona"].dictionary_encode())),
        "parquet",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_packed_file_has_the_records_of_its_json_lines(api: Service, name: str) -> None:
    content, form = GOOD[name]
    packed = read(api, content)
    assert (packed["status"], packed["records"], packed["format"]) == ("ready", 40, form)
    lines = [line | {"run": n} for n, line in enumerate(LINES)] if "fraction" in name else LINES
    assert stored(api, packed) == stored(api, read(api, jsonl(lines)))
    assert api.rows()["upload_parts"] == 0


@pytest.mark.parametrize("name", ["gzip", "zstd", "Parquet", "in small pages"])
def test_parts_may_be_cut_anywhere(api: Service, name: str) -> None:
    content, _ = GOOD[name]
    path, at, chance = begin(api, len(content)), 0, random.Random(5)
    while at < len(content):
        part = content[at : at + chance.randint(1, 2 * len(content) // 30)]
        assert patch(api, path, at, part).status_code == 204
        assert patch(api, path, at, part).status_code in {409, 413}
        at += len(part)
        if at < len(content):
            assert api.get(path).json()["records"] == 0
    assert eventually(lambda: api.get(path).json()["status"] == "ready")
    assert api.get(path).json()["records"] == api.rows()["upload_records"] == 40


def test_the_first_bytes_may_come_one_by_one(api: Service) -> None:
    for content in (jsonl(LINES), b"\n\n\n" + jsonl(LINES), gzip.compress(jsonl(LINES))):
        path = begin(api, len(content))
        for at in range(6):
            assert patch(api, path, at, content[at : at + 1]).status_code == 204
        assert patch(api, path, 6, content[6:]).status_code == 204
        assert eventually(partial(has_all, api, path))


def test_an_upload_whose_reader_died_is_read_on_by_whoever_looks_at_it(api: Service) -> None:
    """As after the end of the process that read it: 13 rows were stored, and its lease has run out."""
    content = parquet([*LINES, *LINES], row_group_size=11)
    path = begin(api, len(content) + 1)
    patch(api, path, 0, content)
    upload_id = path.rpartition("/")[2]
    whole = read(api, parquet([*LINES, *LINES]))
    api.execute(
        "INSERT INTO upload_records SELECT %s, ordinal, tenant, line, persona, task, model, item, run, instruction, question,"
        " status, text, thoughts, error, unit_starts, unit_ends, judged FROM upload_records WHERE upload_id = %s AND ordinal < 13",
        upload_id,
        whole["id"],
    )
    api.execute(
        "UPDATE uploads SET size = size - 1, status = 'reading', records = 13, lines = 13, unpacked = 900,"
        " reading_until = clock_timestamp() + interval '1 second' WHERE id = %s",
        upload_id,
    )
    assert api.get(path).json()["status"] == "reading"
    assert eventually(lambda: api.get(path).json()["status"] == "ready")
    assert stored(api, {"id": upload_id}) == stored(api, whole)


def test_a_job_cannot_use_an_upload_that_is_being_read(api: Service) -> None:
    found = read(api, GOOD["gzip"][0])
    api.execute(
        "UPDATE uploads SET status = 'reading', reading_until = clock_timestamp() + interval '1 hour'"
    )
    body = {"personas": ["E-low"], "tasks": ["essay"], "judges": ["simulated/sim-judge"]}
    refused = api.post("/v1/jobs", body | {"responses": {"upload": found["id"]}})
    assert refused.json()["errors"] == [
        {"pointer": "/responses/upload", "message": "is being read; try again when it is ready"}
    ]


def changed(at: int, by: bytes, content: bytes = GOOD["Parquet"][0]) -> bytes:
    at %= len(content)
    return content[:at] + by + content[at + len(by) :]


def with_column(name: str, values: pa.Array) -> bytes:
    table = TABLE.slice(0, len(values))
    return parquet(
        table.drop_columns([name]).append_column(name, values)
        if name in table.schema.names
        else table.append_column(name, values)
    )


def dictionary_bomb() -> bytes:
    """One page of 130 MB of one letter: 6 kB of file."""
    text = pa.array(["x" * 130_000_000])
    return parquet(
        pa.table({"persona": ["E-low"], "task": ["essay"], "text": text}),
        compression="zstd",
        data_page_size=2**30,
    )


def repeated_text() -> bytes:
    """A text of 5 MB, kept once, in 2,000 rows: 10 GB."""
    text = pa.DictionaryArray.from_arrays([0] * 2000, ["x" * 5_000_000])
    rows = {"persona": ["E-low"] * 2000, "task": ["essay"] * 2000, "text": text}
    return parquet(pa.table(rows), compression="zstd")


def nested_bomb() -> bytes:
    """Ten million missing scores in one row."""
    scores = pa.ListArray.from_arrays([0, 10_000_000], pa.nulls(10_000_000, pa.int64()))
    verdicts = pa.ListArray.from_arrays(
        [0, 1], pa.StructArray.from_arrays([["a"], scores], ["judge", "scores"])
    )
    return parquet(TABLE.slice(0, 1).append_column("verdicts", verdicts))


def not_text() -> pa.Array:
    """Text that is not UTF-8 in its second value."""
    return pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(struct.pack("<3i", 0, 2, 4)), pa.py_buffer(b"ok\xff\xfe")]
    )


def deep() -> pa.Array:
    kind: pa.DataType = pa.int64()
    value: Any = 1
    for _ in range(40):
        kind, value = pa.list_(kind), [value]
    return pa.array([value], kind)


PARQUET = GOOD["Parquet"][0]


def cut(at: slice) -> bytes:
    return PARQUET[at]


FOOTER = int.from_bytes(PARQUET[-8:-4], "little")
BROKEN: dict[str, tuple[Callable[[], bytes], int, str, str]] = {
    **{
        f"cut after byte {at}": (partial(cut, slice(at)), 0, "", "")
        for at in (4, 5, 8, 12, 100, len(PARQUET) - FOOTER - 8, len(PARQUET) - 100)
    },
    **{
        f"{n} bytes less at the end": (partial(cut, slice(-n)), 0, "", "not a Parquet file")
        for n in (1, 2, 4, 7, 8, 9)
    },
    "bad magic at the end": (lambda: changed(-4, b"PAR2"), 0, "", "not a Parquet file"),
    "bad magic at the beginning": (lambda: changed(0, b"PAR2"), 1, "", "is not"),
    "a footer of nothing": (lambda: changed(-8, bytes(4)), 0, "", "not a Parquet file"),
    "a footer of 4 GB": (lambda: changed(-8, b"\xff" * 4), 0, "", "footer of 4,294,967,295 bytes"),
    "a footer that begins before the file": (lambda: changed(-8, struct.pack("<I", 9_999_999)), 0, "", ""),
    "a footer of zeros": (lambda: changed(-8 - FOOTER, bytes(FOOTER)), 0, "", ""),
    "a footer of ones": (lambda: changed(-8 - FOOTER, b"\xff" * FOOTER), 0, "", ""),
    "pages of zeros": (lambda: changed(4, bytes(300)), 0, "", ""),
    "pages of ones": (lambda: changed(4, b"\xff" * 300), 0, "", ""),
    "pages of another file": (lambda: changed(4, b"\x15\x04\x15" * 90), 0, "", ""),
    "no page at all": (lambda: PARQUET[:4] + PARQUET[-8 - FOOTER :], 0, "", ""),
    "two magics": (lambda: b"PAR1PAR1", 0, "", "footer of"),
    "an encrypted footer": (lambda: b"PARE" + PARQUET[4:-4] + b"PARE", 0, "", "encrypted"),
    "no row": (lambda: parquet(TABLE.slice(0, 0)), 0, "", "has no records"),
    "no column": (lambda: parquet(pa.table({})), 0, "", "has no records"),
    "a column twice": (
        lambda: parquet(
            pa.Table.from_arrays([*TABLE.columns, TABLE["text"]], ["persona", "task", "text", "text"])
        ),
        0,
        "",
        "'text' appears more than once",
    ),
    "one page of 130 MB": (dictionary_bomb, 0, "", ""),
    "a text of 5 MB in 2,000 rows": (repeated_text, 0, "", "takes more than"),
    "ten million scores in a row": (nested_bomb, 0, "", "takes more than"),
    "lists forty deep": (
        lambda: parquet(TABLE.slice(0, 1).append_column("item", deep())),
        1,
        "/item",
        "must be text",
    ),
    "text that is a number": (lambda: with_column("text", pa.array([1, 2])), 1, "/text", "must be text"),
    "text that is a date": (
        lambda: with_column("text", pa.array([dt.date(2026, 1, 1)])),
        1,
        "/text",
        "must be text",
    ),
    "text that is a list": (lambda: with_column("text", pa.array([["a", None]])), 1, "/text", "must be text"),
    "text that is missing": (lambda: with_column("text", pa.array(["a", None])), 2, "/text", "is required"),
    "text that is not UTF-8": (lambda: with_column("text", not_text()), 2, "/text", "is not UTF-8"),
    "bytes that are not UTF-8": (
        lambda: with_column("text", pa.array([b"ok", b"\xff\xfe"])),
        2,
        "/text",
        "must be text",
    ),
    "text with U+0000": (lambda: with_column("text", pa.array(["a\0b"])), 1, "/text", "U+0000"),
    "a persona that is a struct": (
        lambda: with_column("persona", pa.array([{"id": "E-low"}])),
        1,
        "/persona",
        "must be text",
    ),
    "no persona": (lambda: parquet(TABLE.drop_columns(["persona"])), 1, "/persona", "is required"),
    "a column that means nothing": (
        lambda: with_column("modle", pa.array(["m"])),
        1,
        "/modle",
        "did you mean 'model'",
    ),
    "a run that is a text": (lambda: with_column("run", pa.array(["0", "first"])), 1, "/run", "whole number"),
    "half a run": (lambda: with_column("run", pa.array([0.0, 0.5])), 2, "/run", "whole number"),
    "a run that is no number": (
        lambda: with_column("run", pa.array([0.0, float("nan")])),
        2,
        "/run",
        "",
    ),
    "a run that is a truth value": (lambda: with_column("run", pa.array([True])), 1, "/run", "whole number"),
    "a run beyond all": (lambda: with_column("run", pa.array([2**63 - 1])), 1, "/run", ""),
    "a date that no calendar has": (
        lambda: with_column("run", pa.array([2**62], pa.timestamp("us"))),
        1,
        "/run",
        "can't be read",
    ),
    "verdicts that are a text": (
        lambda: with_column("verdicts", pa.array(["E: 5"])),
        1,
        "/verdicts",
        "",
    ),
    "verdicts without a judge": (
        lambda: with_column("verdicts", pa.array([[{"scores": [1]}]])),
        1,
        "/verdicts/0/judge",
        "is required",
    ),
    "verdicts that are missing": (
        lambda: with_column("verdicts", pa.array([[None, {"judge": "a", "scores": [1]}]])),
        1,
        "/verdicts/0",
        "must be an object",
    ),
    "grades by number": (
        lambda: with_column("grades", pa.array([[(1, 5)]], pa.map_(pa.int64(), pa.int64()))),
        1,
        "/grades",
        "",
    ),
    "grades beyond the scale": (
        lambda: with_column("grades", pa.array([[("a", 9)]], pa.map_(pa.string(), pa.int64()))),
        1,
        "/grades/a",
        "",
    ),
    "gzip without its end": (lambda: GOOD["gzip"][0][:-1], 0, "", "can't be unpacked"),
    "gzip of its magic alone": (lambda: b"\x1f\x8b", 0, "", "can't be unpacked"),
    "gzip with a wrong checksum": (lambda: changed(-6, b"abcd", GOOD["gzip"][0]), 0, "", "can't be unpacked"),
    "gzip and something else": (lambda: GOOD["gzip"][0] + b"something else", 0, "", "can't be unpacked"),
    "gzip of nothing": (lambda: gzip.compress(b""), 0, "", "has no records"),
    "gzip of gzip": (lambda: gzip.compress(GOOD["gzip"][0]), 1, "", "is not UTF-8"),
    "gzip of Parquet": (lambda: gzip.compress(PARQUET), 1, "", ""),
    "gzip of a long line": (lambda: gzip.compress(b"x" * 99_000_000), 1, "", "4,194,304 bytes"),
    "gzip with a wrong field": (lambda: gzip.compress(jsonl([ONE, ONE | {"run": "x"}])), 2, "/run", "whole"),
    "zstd without its end": (lambda: GOOD["zstd"][0][:-1], 0, "", "can't be unpacked"),
    "zstd of its magic alone": (lambda: GOOD["zstd"][0][:4], 0, "", "can't be unpacked"),
    "zstd that was changed": (lambda: changed(20, bytes(20), GOOD["zstd"][0]), 0, "", "can't be unpacked"),
    "zstd and something else": (lambda: GOOD["zstd"][0] + b"something else", 0, "", "can't be unpacked"),
    "another compression": (lambda: bz2.compress(jsonl(LINES)), 1, "", "is not"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told_by_row_and_field_and_leaves_nothing(api: Service, name: str) -> None:
    make, line, field, message = BROKEN[name]
    found = read(api, make())
    assert (found["status"], found["records"]) == ("invalid", 0), found
    first = found["errors"][0]
    assert (first["line"], first["field"]) == (line, field), first
    assert message in first["message"], first
    rows = api.rows()
    assert rows["upload_records"] == rows["upload_parts"] == 0
    assert "Traceback" not in first["message"]


def test_a_file_changed_at_random_is_read_or_told(api: Service) -> None:
    """Of 60 changes of one to nine bytes some make no difference, and the API is there after all of them."""
    chance, ends = random.Random(6), set()
    for _ in range(60):
        wrong = bytes(chance.randrange(256) for _ in range(chance.randint(1, 9)))
        found = read(
            api,
            changed(
                chance.randrange(4, len(PARQUET)),
                wrong,
                GOOD[chance.choice(["Parquet", "in small pages"])][0],
            ),
        )
        assert (found["status"] == "ready") == (found["records"] == 40)
        ends.add(found["status"])
    assert ends == {"ready", "invalid"}
