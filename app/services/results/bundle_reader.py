"""Reads a reproduction bundle in a child process: checks all parts, and compares its results with those of its rows."""

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, BinaryIO

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from app.domain.errors import escape_pointer
from app.domain.instruments.instrument import READER_VERSION
from app.domain.jobs.bundle import JOB, RESULTS, ROWS, SETS, SPECIFICATION, TABLES, BundleJob, BundleSet
from app.domain.jobs.bundle_reading import ReadAgain
from app.domain.jobs.bundle_rows import RowChecks, WrongRowError
from app.domain.jobs.plan import cells_of, control_cells_of, count_calls
from app.domain.jobs.specification import JobSpec, decode_spec, encode_spec
from app.domain.personagym.diversity import diversity
from app.domain.results.contract import Results
from app.domain.sets.kinds import PERSONA_SET, kind_of, set_id
from app.instruments.rules import RULES
from app.services.results.bundle_file import BundleReader, parsed, told, wrong

ROWS_AT_ONCE = 1_000
BYTES_AT_ONCE = 4 * 2**20
MOST_CELLS = 1_000_000
MOST_SETS = 1_000
_UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of code that relies on a specification whose parts don't fit together."""
_ROUNDING = 1e-9
"""Sums of money: a database adds them up in any order."""


def read_bundle(
    file: BinaryIO, max_planned_calls: int, fields: Mapping[str, frozenset[str]]
) -> Generator[bytes, bytes]:
    """Yield a bundle's parts as JSON, each with the name of its file, in the order in which they are written.

    First come the header, the job and the specification, then sets and rows, some at a time. The answer to the results' own
    fields is what was computed from the rows; the last part is the results with the deviations as this release words them.

    Args:
        file: The bundle.
        max_planned_calls: Limit of a job's planned calls.
        fields: Names that the rows of each table may have.

    Raises:
        InvalidJobError: If anything is wrong, or the results are not those of the rows.
    """
    reader = BundleReader(file)
    job = reader.model(JOB, BundleJob)
    if not job.is_over:
        raise wrong(f"{JOB}/status", f"a job in a bundle is over, not {job.status}")
    encoded = reader.json(SPECIFICATION)
    spec = _specification(encoded, max_planned_calls)
    simulated = any(model.simulated for model in (*spec.models, *spec.called))
    if reader.header.simulated != simulated:
        raise wrong("bundle.json/simulated", f"the specification says {str(simulated).lower()}")
    header = {"job": reader.header.job, "release": reader.header.release}
    values = job.model_dump(mode="json", exclude={"budget"})
    yield _part(JOB, header | {"values": values, "limits": asdict(job.limits), "spec": encoded})
    for number, line in reader.lines(SETS):
        if number > MOST_SETS:
            raise wrong(SETS, f"has more than {MOST_SETS:,} sets", number)
        yield _part(SETS, _read_set(line, number))
    yield from _tables(reader, job, spec, fields)
    document = reader.document(RESULTS)
    own = yield _part(RESULTS, _fields(reader.header.job, parsed(RESULTS, document), document))
    computed = own.decode()
    difference = first_difference(document, computed)
    if difference is not None:
        place, why = difference
        raise wrong(RESULTS + place, f"not what the rows give: {why}")
    yield _part(RESULTS, _in_own_words(document, computed))


def _part(path: str, content: Any) -> bytes:
    return to_json([path, content])


def _fields(job: str, results: Any, document: str) -> dict[str, Any]:
    """Return the fields of the results that the rows don't have."""
    try:
        found = Results.read(document)
    except ValidationError as error:
        raise told(RESULTS, error) from error
    if found.job != job:
        raise wrong(f"{RESULTS}/job", f"must be {job}, as in bundle.json")
    return {"name": found.name, "batches": results["manifest"].get("batches", [])}


def _read_set(line: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a set and, of personas that a job made, how alike they are.

    Raises:
        InvalidJobError: If its id is not that of its content, or its content can't be shown.
    """
    try:
        kept = BundleSet.model_validate(line)
        kind = kind_of(kept.id)
        if kind is None:
            raise wrong(SETS, f"id: no set's begins with {kept.id.partition('_')[0][:20]!r}", number)
        kind.model.of(kept.id, kept.name, kept.content)
    except ValidationError as error:
        raise told(f"{SETS}/{number}", error) from error
    except TypeError as error:
        raise wrong(SETS, "content: must be an object", number) from error
    if kept.id != (expected := set_id(kind, kept.content)):
        raise wrong(SETS, f"id: the content's is {expected}, not {kept.id}", number)
    alike = kept.made and kind is PERSONA_SET
    measured = diversity([persona["description"] for persona in kept.content]) if alike else None
    return kept.model_dump() | {"diversity": None if measured is None else measured.model_dump()}


def _tables(
    reader: BundleReader, job: BundleJob, spec: JobSpec, fields: Mapping[str, frozenset[str]]
) -> Iterator[bytes]:
    cells = cells_of(spec)
    checks = RowChecks(spec, (*cells, *control_cells_of(spec, len(cells))), _read_again(job, spec))
    for table in ROWS:
        path = f"{TABLES}{table}.jsonl"
        rows = _checked(table, path, reader.lines(path), checks, fields[table])
        while some := _some(reader, rows):
            yield _part(path, some)
        if table == "cells":
            try:
                checks.check_whole()
            except WrongRowError as error:
                raise wrong(path, str(error)) from error


def _read_again(job: BundleJob, spec: JobSpec) -> ReadAgain:
    """Return what reads texts and replies again, as far as this release has the rules that read them."""
    used, known = spec.instrument, RULES.segmenter
    segmenter = known.load(used.segmenter) if used.segmenter in known.names else None
    return ReadAgain(spec, segmenter, replies=(job.reader or used.replies) == READER_VERSION)


def _some(reader: BundleReader, rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the next rows: fewer where they are long."""
    some, most = [], reader.bytes_of_lines + BYTES_AT_ONCE
    for row in islice(rows, ROWS_AT_ONCE):
        some.append(row)
        if reader.bytes_of_lines >= most:
            break
    return some


def _checked(
    table: str,
    path: str,
    lines: Iterator[tuple[int, dict[str, Any]]],
    checks: RowChecks,
    known: frozenset[str],
) -> Iterator[dict[str, Any]]:
    fields: Sequence[str] | None = None
    for number, row in lines:
        if fields is None:
            fields = list(row)
            if unknown := sorted(set(fields) - known):
                raise wrong(path, f"unknown fields: {', '.join(unknown)[:300]}", number)
        elif list(row) != fields:
            raise wrong(path, "must have the fields of the first line", number)
        try:
            checks.check(table, row)
        except WrongRowError as error:
            raise wrong(path, str(error), number) from error
        except _UNFIT as error:
            raise wrong(path, f"does not fit the specification: {_reason(error)}", number) from error
        yield row


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _specification(encoded: Any, max_planned_calls: int) -> JobSpec:
    """A specification that is not too large to be looked at."""
    try:
        spec = decode_spec(encoded)
        tasks = len(spec.tasks) + (0 if spec.gym is None else len(spec.gym.tasks))
        cells = len(spec.personas) * len(spec.models) * max(1, tasks)
        calls = count_calls(spec)
        unknown = _unknown_field(encoded, encode_spec(spec), SPECIFICATION)
    except ValidationError as error:
        raise told(SPECIFICATION, error) from error
    except _UNFIT as error:
        raise wrong(SPECIFICATION, f"does not fit together: {_reason(error)}") from error
    if cells > MOST_CELLS or calls > max_planned_calls:
        why = f"{cells:,} cells and {calls:,} calls; at most {MOST_CELLS:,} and {max_planned_calls:,}"
        raise wrong(SPECIFICATION, why)
    if unknown is not None:
        raise wrong(unknown, "unknown field")
    return spec


def _unknown_field(one: Any, other: Any, path: str) -> str | None:
    """Return the path of a field of the first value that the second lacks."""
    if isinstance(one, dict) and isinstance(other, dict):
        unknown = next((name for name in one if name not in other), None)
        if unknown is not None:
            return f"{path}/{escape_pointer(unknown)}"
        parts = [(one[name], other[name], f"{path}/{escape_pointer(name)}") for name in one]
    elif isinstance(one, list) and isinstance(other, list):
        parts = [(*pair, f"{path}/{n}") for n, pair in enumerate(zip(one, other, strict=False))]
    else:
        return None
    return next(filter(None, (_unknown_field(*part) for part in parts)), None)


_HERE = (("computed_at",), ("manifest", "versions"), ("manifest", "thoughts"))
"""Fields that say when and by which code results were computed; the rows do not tell."""
_DEVIATIONS = ("manifest", "deviations")
"""What each release says in its own words."""
_SUMS = ("/usage/", "/cost/", "/reuse/")


def _in_own_words(document: str, own: str) -> str:
    """The bundle's results, with the deviations as this release words them: nobody has checked what a bundle says."""
    found = from_json(document)
    words = from_json(own)["manifest"]["deviations"]
    if found["manifest"].get("deviations") == words:
        return document
    found["manifest"]["deviations"] = words
    return to_json(found).decode()


def first_difference(document: str, own: str) -> tuple[str, str] | None:
    """Where two results differ first, and how; ``None`` where all of the first are in the second, which later code may add fields to.

    Args:
        document: Those of the bundle.
        own: Those that were computed here.
    """
    one, other = from_json(document), from_json(own)
    for path in (*_HERE, _DEVIATIONS):
        _forget(one, path)
    return _differ(one, other, "")


def _forget(results: dict[str, Any], path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        results = results[name]
    results.pop(path[-1], None)


def _differ(one: Any, other: Any, path: str) -> tuple[str, str] | None:
    if isinstance(one, dict) and isinstance(other, dict):
        parts = [(one[name], other.get(name, _MISSING), f"{path}/{name}") for name in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = [(a, b, f"{path}/{n}") for n, (a, b) in enumerate(zip(one, other, strict=True))]
    elif one == other or (path.startswith(_SUMS) and _close(one, other)):
        return None
    else:
        return path, f"{_short(other)}, not {_short(one)}"
    return next(filter(None, (_differ(*part) for part in parts)), None)


_MISSING = object()


def _close(one: Any, other: Any) -> bool:
    numbers = isinstance(one, float) and isinstance(other, float)
    return numbers and math.isclose(one, other, rel_tol=_ROUNDING)


def _short(value: Any) -> str:
    return "missing" if value is _MISSING else str(to_json(value)[:200].decode(errors="replace"))
