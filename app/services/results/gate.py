"""Checks a job's results against thresholds."""

import asyncio
from dataclasses import replace

from app.db.jobs.jobs import JobRow
from app.db.jobs.named_baselines import NamedBaselineRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.results.contract import Results
from app.domain.results.coverage import MINIMUM_COVERAGE
from app.domain.results.gate import (
    Gate,
    Held,
    HeldAgainst,
    IntervalKind,
    Reference,
    ReferenceJob,
    Threshold,
    judge_gate,
    parse_threshold,
)
from app.domain.results.named_baselines import PREFIX
from app.services.errors import NotFoundError
from app.services.jobs.view import find_job
from app.services.results.compare import Comparer
from app.services.results.comparison_notes import differences, judged
from app.services.results.named_baselines import find_baseline

MAX_THRESHOLDS = 100


async def gate_of(
    sources: Comparer,
    job: JobRow,
    given: list[str] | None,
    interval: IntervalKind,
    minimum_coverage: float | None = None,
) -> Gate:
    """A job's gate.

    Args:
        sources: Where results are read, and the thresholds' other jobs found.
        job: The job; one that still runs is inconclusive.
        given: Thresholds in text form; without any, those of the job.
        interval: See :func:`app.domain.results.gate.judge_gate`.
        minimum_coverage: Likewise; without it, the job's.

    Raises:
        InvalidJobError: If a threshold cannot be read, or there is none.
        NotFoundError: If a threshold names a job or a baseline that does not exist.
    """
    thresholds = [
        await _with_baseline(sources, job.tenant, threshold)
        for threshold in _thresholds(given or job.request.get("thresholds") or [])
    ]
    results = await sources.results.read_model(job)
    references = {
        id_: await _reference(sources, job, results, id_)
        for id_ in sorted({threshold.reference.job for threshold in thresholds if threshold.reference})
    }
    minimum = (
        job.request.get("minimum_coverage", MINIMUM_COVERAGE)
        if minimum_coverage is None
        else minimum_coverage
    )
    calibration = None
    if job.status.is_terminal and any(threshold.calibrated for threshold in thresholds):
        calibration = await sources.results.calibration.read(job)
    return await asyncio.to_thread(
        lambda: judge_gate(results, thresholds, interval, minimum, references, calibration)
    )


async def held(sources: Comparer, job: JobRow, *, alone: bool = False) -> Held | None:
    """What a job's own thresholds say of it; ``None`` if it has none.

    Args:
        sources: See :func:`gate_of`.
        job: The job.
        alone: Whether it is for readers who may know of no other job; ``None`` as well if a threshold names one.
    """
    given: list[str] = job.request.get("thresholds") or []
    if not given:
        return None
    try:
        if alone and any(threshold.reference for threshold in _thresholds(given)):
            return None
        gate = await gate_of(sources, job, None, "personas")
    except (NotFoundError, InvalidJobError) as error:
        return Held(None, str(error))
    names = [
        threshold.reference.job.removeprefix(PREFIX)
        for threshold in _thresholds(given)
        if threshold.reference is not None and threshold.reference.job.startswith(PREFIX)
    ]
    found = [await find_baseline(sources.engine, job.tenant, name) for name in dict.fromkeys(names)]
    return Held(gate, None, [await held_against(sources, job, each) for each in found if each is not None])


async def held_against(sources: Comparer, job: JobRow, found: NamedBaselineRow) -> HeldAgainst:
    """Which baseline stands beside a job.

    Raises:
        NotFoundError: If the baseline's job has been deleted since it was read.
    """
    its = await find_job(sources.engine, job.tenant, found.job_id)
    own, theirs = [
        sorted(judge.label for judge in (await sources.contexts.get(job.tenant, id_)).spec.judges)
        for id_ in (job.id, its.id)
    ]
    ended = "" if its.finished_at is None else f"{its.finished_at:%Y-%m-%d}"
    return HeldAgainst(found.name, found.model, its.id, theirs, ended, own != theirs)


async def _with_baseline(sources: Comparer, tenant: str, threshold: Threshold) -> Threshold:
    """The threshold with the job and model of the baseline that it names, if it names one."""
    if threshold.reference is None or not threshold.reference.job.startswith(PREFIX):
        return threshold
    name = threshold.reference.job.removeprefix(PREFIX)
    found = await find_baseline(sources.engine, tenant, name)
    if found is None:
        raise NotFoundError(f"baseline {name} not found")
    return replace(threshold, reference=Reference(found.job_id, found.model))


async def _reference(sources: Comparer, job: JobRow, own_results: Results, other: str) -> ReferenceJob:
    found = await find_job(sources.engine, job.tenant, other)
    results = await sources.results.read_model(found)
    own = await sources.contexts.get(job.tenant, job.id)
    its = await sources.contexts.get(job.tenant, found.id)
    words = {persona.id: persona.description for persona in own.spec.personas}
    reworded = {
        each.id for each in its.spec.personas if words.get(each.id, each.description) != each.description
    }
    sides = {
        "this job": judged(own.spec, own_results.manifest, job.finished_at),
        found.id: judged(its.spec, results.manifest, found.finished_at),
    }
    apart = list(differences(sides))
    return ReferenceJob(
        results,
        frozenset(reworded),
        tuple(each.what for each in apart if each.decides and each.touches(grades=False)),
        tuple(each.what for each in apart if each.decides and each.touches(grades=True)),
        tuple(each.what for each in apart if not each.decides),
    )


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
