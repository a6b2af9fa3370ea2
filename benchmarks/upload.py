"""An upload of 1 GB of texts as JSON Lines, and of the same texts as Parquet, each broken off at 20 random places.

A stack without workers takes them. What is told is the time, the API's memory, the size of the database, and whether each text came
in once: their number, and a hash over all of them in their order.
"""

import argparse
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import httpx2
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.processes import ProcessMeter
from benchmarks.reading import memory, peak_memory
from benchmarks.whole_job import Json, machine
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

SENTENCES = 20
"""Of a text, as long as an essay of the atomic paper: some 2,000 characters."""
ROWS_AT_ONCE = 5_000
CHUNK_BYTES = 256 * 1024
PART = "application/offset+octet-stream"
WORDS = [
    "quiet",
    "evening",
    "garden",
    "neighbour",
    "letter",
    "window",
    "river",
    "market",
    "yellow",
    "careful",
    "tomorrow",
    "kitchen",
    "never",
    "always",
    "people",
    "rather",
    "music",
    "station",
    "friend",
    "morning",
    "although",
    "walking",
    "answer",
    "question",
]


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000, help="of JSON Lines")
    parser.add_argument("--cuts", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory:
        place = Path(directory)
        place.chmod(0o711)  # passable: Postgres may have to run as another account
        files = [place / "texts.jsonl", place / "texts.parquet"]
        hash_ = write(files[0], files[1], options.megabytes * 1_000_000)
        config = StackConfig(host="127.0.0.1", port=0, data_dir=place, workers=0)
        with (
            Supervisor(config) as supervisor,
            httpx2.Client(base_url=supervisor.urls.api, timeout=600) as api,
        ):
            meter = ProcessMeter(supervisor.pids())
            url = supervisor.urls.database.replace("postgresql+psycopg", "postgresql")
            print(json.dumps({"machine": machine()}), flush=True)
            for file in files:
                print(json.dumps(_measured(api, meter, url, file, options.cuts, hash_)), flush=True)


def texts() -> Iterator[str]:
    """Texts without end, no two of them alike."""
    chance, number = random.Random(1), 0
    sentences = [" ".join(chance.choices(WORDS, k=15)).capitalize() + "." for _ in range(3000)]
    while True:
        yield " ".join([f"Text {number} begins here.", *chance.sample(sentences, SENTENCES - 1)])
        number += 1


def write(lines: Path, table: Path, size: int) -> str:
    """Writes both files; a hash over the texts."""
    source, hashed = texts(), hashlib.md5(usedforsecurity=False)
    columns = pa.schema([("persona", pa.string()), ("task", pa.string()), ("text", pa.string())])
    with lines.open("wb") as file, pq.ParquetWriter(table, columns) as rows:
        while file.tell() < size:
            some = [
                {"persona": "E-low", "task": "essay", "text": text} for text in islice(source, ROWS_AT_ONCE)
            ]
            file.write(b"".join(json.dumps(each).encode() + b"\n" for each in some))
            rows.write_table(pa.Table.from_pylist(some, columns))
            for each in some:
                digest = hashlib.md5(each["text"].encode(), usedforsecurity=False)
                hashed.update(digest.hexdigest().encode())
    return hashed.hexdigest()


def _measured(
    api: httpx2.Client, meter: ProcessMeter, database_url: str, file: Path, cuts: int, hash_: str
) -> Json:
    before = memory(meter)
    with peak_memory(meter) as peaks:
        started = time.perf_counter()
        path = _send(api, meter, file, cuts)
        sent = time.perf_counter()
        while (upload := api.get(path).json())["status"] == "reading":
            time.sleep(1)
        ready = time.perf_counter()
    if upload["status"] != "ready":
        raise RuntimeError(str(upload))
    time.sleep(10)
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT pg_database_size(current_database()), count(*), sum(cardinality(unit_starts)),"
            " md5(string_agg(md5(text), '' ORDER BY ordinal)) FROM upload_records WHERE upload_id = %s",
            (upload["id"],),
        ).fetchone() or (0, 0, 0, "")
    size, records, sentences, stored = row
    after = memory(meter)
    api.delete(path).raise_for_status()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("VACUUM FULL upload_records")
    return {
        "file": file.name,
        "bytes": file.stat().st_size,
        "cuts": cuts,
        "seconds_sending": round(sent - started, 1),
        "seconds_until_ready": round(ready - started, 1),
        "api_mib_before": round(before),
        "api_mib_peak": round(max([before, *peaks])),
        "api_mib_after": round(after),
        "database_mb": round(int(size) / 1e6),
        "records": int(records),
        "sentences": int(sentences),
        "each_text_once": records == upload["records"] and stored == hash_,
    }


class _CutError(Exception):
    """The connection breaks off."""


def _send(api: httpx2.Client, meter: ProcessMeter, file: Path, cuts: int) -> str:
    """Sends a file over as many connections as it takes; where the upload is."""
    size = file.stat().st_size
    chance = random.Random(2)
    ends = [*sorted(chance.sample(range(1, size), cuts)), size]
    path = (
        api.post("/v1/uploads", headers={"Upload-Length": str(size)}).raise_for_status().headers["location"]
    )
    for end in ends:
        while (at := int(api.head(path).headers["upload-offset"])) < end:
            headers = {"Upload-Offset": str(at), "Content-Type": PART, "Content-Length": str(size - at)}
            try:
                answer = api.patch(path, content=_until(file, at, end, size), headers=headers)
            except _CutError:
                print(
                    f"{file.name}: cut at {end:,} of {size:,}, the API has {memory(meter):.0f} MiB",
                    flush=True,
                )
                time.sleep(0.5)
                break
            if answer.status_code != httpx2.codes.CONFLICT:  # what came before the last cut is being stored
                answer.raise_for_status()
    return str(path)


def _until(file: Path, start: int, end: int, size: int) -> Iterator[bytes]:
    """The bytes of a file up to a place; unless that is its end, the sender goes away there."""
    with file.open("rb") as opened:
        opened.seek(start)
        while opened.tell() < end:
            yield opened.read(min(CHUNK_BYTES, end - opened.tell()))
    if end < size:
        raise _CutError


if __name__ == "__main__":
    main()
