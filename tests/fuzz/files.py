"""Changes files of every kind at random and reads them in child processes: each is read or refused, and no child is left behind."""

import asyncio
import gzip
import io
import json
from collections import Counter
from contextlib import aclosing, suppress
from functools import cache, partial
from random import Random
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_core import from_json

from app.db.jobs.bundles import fields_of_rows
from app.domain.errors import InvalidJobError
from app.domain.jobs.bundle import RESULTS
from app.domain.uploads.records import Place
from app.instruments.rules import RULES
from app.readers.pool import CRASHED, FAILED, LARGE, BytesSource, ReaderPool, twice
from app.services.jobs.import_reader import ImportChoices, Wanted, read_body
from app.services.results.bundle_reader import read_bundle
from app.services.uploads.upload_reader import Part, read_packed, read_piece
from tests.fuzz.changes import changed
from tests.unit.importers.samples import FILES, WRITTEN

PREPARE = "app.services.file_readers:prepare"
LINES = [
    {"persona": "E-low", "task": "essay", "text": f"It snows. I stay at home {n}.", "run": n}
    for n in range(20)
]
BUNDLES = 12
"""Cases of a hundred that change the bundle."""


def parquet(**options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(LINES), file, **options)
    return file.getvalue()


@cache
def samples() -> tuple[tuple[str, str, bytes], ...]:
    """How each file is read, its name, and its bytes."""
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in LINES)
    found = [("import", name, data) for files in FILES.values() for name, data in files.items()]
    found += [("import", path.name, path.read_bytes()) for path in sorted(WRITTEN.glob("*[!d]"))]
    tables = (parquet(), parquet(data_page_version="2.0", compression="zstd"), parquet(compression="none"))
    found += [(how, "", table) for table in tables for how in ("import", "parquet")] * 3
    found += [
        ("lines", "", lines),
        ("gzip", "", gzip.compress(lines)),
        ("zstd", "", pa.compress(lines, codec="zstd", asbytes=True)),
    ]
    return tuple(found)


async def read_parts(pool: ReaderPool, file: BytesSource, results: bytes) -> None:
    """Read a bundle; answer what it says of its results with `results`, as if they had been computed from its rows."""
    async with aclosing(pool.run("fuzz", file, read_bundle, 1_000, fields_of_rows(), kind=LARGE)) as parts:
        answer: bytes | None = None
        with suppress(StopAsyncIteration):
            while True:
                path, _ = from_json(await parts.asend(answer))
                answer = results if path == RESULTS else None


async def read(pool: ReaderPool, how: str, name: str, data: bytes, results: bytes) -> str:
    """Read a file; return how that ended."""
    file, place, versions = BytesSource(data), Place(), dict(RULES.current)
    try:
        if how == "import":
            wanted = Wanted(ImportChoices(name=name))
            await pool.whole("fuzz", file, read_body, wanted, "here")
        elif how == "bundle":
            await twice(partial(read_parts, pool, file, results))
        elif how == "lines":
            Part.from_json(await pool.whole("fuzz", file, read_piece, place, versions, True, True))
        else:
            await pool.whole("fuzz", file, read_packed, how, place, 0, versions, 10**6)
    except InvalidJobError as error:
        words = error.errors[0].message
        if words.startswith("takes more than"):
            return "beyond a limit"
        return {CRASHED: "crashed", FAILED: "failed"}.get(words, "refused")
    return "read"


async def check_files(bundle: bytes, seed: int, first: int, count: int) -> Counter[str]:
    """Read so many changed files.

    Raises:
        AssertionError: If a reader fails, with the number of the case.
    """
    pool, ends = ReaderPool(PREPARE), Counter[str]()
    with ZipFile(io.BytesIO(bundle)) as packed:
        results = packed.read(RESULTS)
    try:
        assert await read(pool, "bundle", "", bundle, results) == "read"
        for number in range(first, first + count):
            draw = Random(f"{seed}/{number}")
            how, name, data = draw.choice(samples())
            if draw.randrange(100) < BUNDLES:
                how, name, data = "bundle", "", bundle
            end = await read(pool, how, name, changed(data, draw), results)
            assert end != "failed", f"case {number} of seed {seed}: the reader of {how} {name} failed"
            ends[end] += 1
    finally:
        await pool.close()
    return ends


def check_block(bundle: bytes, seed: int, first: int, count: int) -> Counter[str]:
    """Read so many changed files in a loop of their own."""
    return asyncio.run(check_files(bundle, seed, first, count))
