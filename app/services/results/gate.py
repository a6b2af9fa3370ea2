"""Checks a job's results against thresholds."""

import asyncio

from app.db.jobs.jobs import JobRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.judging.stepwise_json import parse_document
from app.domain.results.coverage import MINIMUM_COVERAGE
from app.domain.results.gate import Gate, IntervalKind, Threshold, judge_gate, parse_threshold
from app.services.results.read import ResultsReader

MAX_THRESHOLDS = 100


async def gate_of(
    results: ResultsReader,
    job: JobRow,
    given: list[str] | None,
    interval: IntervalKind,
    minimum_coverage: float | None = None,
) -> Gate:
    """A job's gate.

    Args:
        results: Where results are read.
        job: The job; one that still runs is inconclusive.
        given: Thresholds in text form; without any, those of the job.
        interval: See :func:`app.domain.results.gate.judge_gate`.
        minimum_coverage: Likewise; without it, the job's.

    Raises:
        InvalidJobError: If a threshold cannot be read, or there is none.
    """
    thresholds = _thresholds(given or job.request.get("thresholds") or [])
    found = await results.read(job)
    minimum = (
        job.request.get("minimum_coverage", MINIMUM_COVERAGE)
        if minimum_coverage is None
        else minimum_coverage
    )
    return await asyncio.to_thread(lambda: judge_gate(parse_document(found), thresholds, interval, minimum))


def _thresholds(texts: list[str]) -> list[Threshold]:
    if not texts:
        message = "give at least one, like acc_atom>=0.8; the job has none of its own"
        raise InvalidJobError([FieldError("/query/threshold", message)])
    found, errors = [], []
    for place, text in enumerate(texts):
        try:
            found.append(parse_threshold(text))
        except ValueError as error:
            errors.append(FieldError(f"/query/threshold/{place}", str(error)))
    if errors:
        raise InvalidJobError(errors)
    return found
