"""Changes files of every kind at random and reads them in child processes: each is read or refused, and no child is left behind."""

import asyncio
import gzip
import io
import json
from collections import Counter
from functools import cache
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from app.domain.errors import InvalidJobError
from app.domain.uploads.records import Place
from app.instruments.rules import RULES
from app.readers.pool import CRASHED, FAILED, BytesSource, ReaderPool
from app.services.jobs.import_reader import ImportChoices, Wanted, read_body
from app.services.results.bundle_reader import read_bundle
from app.services.uploads.upload_reader import Part, read_packed, read_piece
from tests.unit.importers.samples import FILES, WRITTEN

PREPARE = "app.services.file_readers:prepare"
LINES = [
    {"persona": "E-low", "task": "essay", "text": f"It snows. I stay at home {n}.", "run": n}
    for n in range(20)
]
MOST_CHANGED = 9
ODD = (b"\x00", b"\xff", b"\x7f", b"\x80", b"[", b"{", b'"', b"\\ud800", b"<<: ", b"*a", b"9" * 400, b"PAR1")


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
        ("bundle", "", next(data for name, data in FILES["inspect"].items() if name.endswith(".eval"))),
    ]
    return tuple(found)


def changed(data: bytes, draw: Random) -> bytes:
    """A file with some bytes replaced, repeated, left out or put in."""
    made = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at, length = draw.randrange(len(made) + 1), draw.randint(1, MOST_CHANGED)
        other = draw.choice(
            (draw.randbytes(length), draw.choice(ODD), bytes(made[at : at + length]) * 2, b"")
        )
        made[at : at + draw.choice((0, length))] = other
    return bytes(made)


async def read(pool: ReaderPool, how: str, name: str, data: bytes) -> str:
    """Read a file; return how that ended."""
    file, place, versions = BytesSource(data), Place(), dict(RULES.current)
    try:
        if how == "import":
            wanted = Wanted(ImportChoices(name=name))
            await pool.whole("fuzz", file, read_body, wanted, "here")
        elif how == "bundle":
            await pool.whole("fuzz", file, read_bundle, 1_000)
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


async def check_files(seed: int, first: int, count: int) -> Counter[str]:
    """Read so many changed files.

    Raises:
        AssertionError: If a reader fails, with the number of the case.
    """
    pool, ends = ReaderPool(PREPARE), Counter[str]()
    try:
        for number in range(first, first + count):
            draw = Random(f"{seed}/{number}")
            how, name, data = draw.choice(samples())
            end = await read(pool, how, name, changed(data, draw))
            assert end != "failed", f"case {number} of seed {seed}: the reader of {how} {name} failed"
            ends[end] += 1
    finally:
        await pool.close()
    return ends


def check_block(seed: int, first: int, count: int) -> Counter[str]:
    """Read so many changed files in a loop of their own."""
    return asyncio.run(check_files(seed, first, count))
