"""Everything that can be downloaded of a job, without what differs between two runs of it: ``make pins`` renews the hashes.

What is taken out is listed once, in :data:`VARYING`; the rest of each file has to be the same on every machine.
"""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq

from app.services.results.exports import EXPORT_FORMS
from app.services.results.figures import OF_ONE_MODEL, FigureFormat, FigureName
from app.services.results.reports import EXPORTS, ReportLevel
from tests.e2e.stack import Stack

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "pinned_results.json"
CONTENTS = ROOT / "build" / "pinned"
"""Where the files behind the hashes are written, for a diff."""

VARYING: tuple[tuple[str, str], ...] = (
    (r"\b([a-z]+_|[a-z]+_job_)?(?=\w*\d)[0-9a-hjkmnp-tv-z]{26}(?![0-9a-z])", r"\1<id>"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])", "<uuid>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d|(?: |&nbsp;)UTC)?", "<time>"),
    (r"(127\.0\.0\.1|localhost):\d+", "<host>"),
    (r'"(eval_id|task_id|run_id)":"[0-9a-f]{22}"', r'"\1":"<id>"'),  # Inspect AI's, made of the job's
    (
        r'"sha256":"[0-9a-f]{64}","bytes":\d+',
        '"sha256":"<hash>"',
    ),  # of a bundle's files, which have ids and times
    (r'"provider_request_id":"[^"]*"', '"provider_request_id":"<id>"'),
    (r'"evaluation_id":( ?)"(.*?)/\d{10}"', r'"evaluation_id":\1"\2/<time>"'),
    (r'_timestamp": "\d{10}"', '_timestamp": "<time>"'),
    (r'"checksum": "[0-9a-f]{64}"', '"checksum": "<hash>"'),  # of a file that has times
    (r'"latency_ms":[^,}]+', '"latency_ms":"<time>"'),
    (
        r'"(cached_input_tokens|lease_token|on_the_wire)":(?:\d+|null)',
        r'"\1":"<load>"',
    ),  # other jobs and processes show in these
)
"""Patterns of what differs by nature, each with what stands in its place."""
UNORDERED = "tables/calls.jsonl"
"""A bundle's list of calls, in the order in which they happened to be made."""
_LONG_NUMBER = re.compile(r"-?\d+\.\d{10,}(?:e-?\d+)?")
"""Processors add up numbers in different orders, which shows in the last digits."""


def normalised(text: str) -> str:
    """A text without what differs between runs and machines."""
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.9g}", text)


def downloads(stack: Stack, job_id: str, model: str) -> Iterator[tuple[str, str]]:
    """The name and content of each file that the registries of reports, exports and figures offer for a job.

    Args:
        stack: Where the job is.
        job_id: Whose files.
        model: Whose figures, for those of one model.
    """
    for name, path, query in _requests(model):
        answer = stack.api.get(f"/v1/jobs/{job_id}/{path}", params=query)
        if answer.is_success:
            yield from _readable(name, answer.content)
        else:
            yield name, f"status {answer.status_code}"


def _requests(model: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    for format_, export in EXPORTS.items():
        for level in get_args(ReportLevel) if export.table else ("",):
            name = "-".join(filter(None, ("report", level)))
            yield (
                f"{name}.{export.extension}",
                "report",
                {"format": format_} | ({"level": level} if level else {}),
            )
    for exported, form in EXPORT_FORMS.items():
        yield f"{exported}.{form.extension}", f"exports/{exported}", {}
    for figure, file_format in product(get_args(FigureName), get_args(FigureFormat)):
        yield (
            f"{figure}.{file_format}",
            f"figures/{figure}.{file_format}",
            {"model": model} if figure in OF_ONE_MODEL else {},
        )


def _readable(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """A file as text, by its content and not by how it is packed; an archive's members each for itself."""
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from _readable(f"{name}/{normalised(member)}", archive.read(member))
    elif content.startswith(b"PAR1"):
        table = pq.read_table(io.BytesIO(content))
        rows = "".join(f"{json.dumps(row, default=str)}\n" for row in table.to_pylist())
        yield name, normalised(f"{_fields(table.schema)}\n{rows}")
    elif content.startswith(b"\x89PNG"):
        yield name, sha256(content).hexdigest()
    elif name.endswith(UNORDERED):
        yield name, "".join(sorted(normalised(content.decode()).splitlines(keepends=True)))
    else:
        yield name, normalised(content.decode())


def _fields(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
