"""Gates: whether a job's results meet thresholds, fail them, or do not tell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from pydantic import Field

from app.domain.contract import Answer
from app.domain.labels.contract import JobCalibration
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import names
from app.domain.results.calibrated_totals import NOT_LABELLED, calibrated_totals, check_calibrated
from app.domain.results.comparison import METRICS as COMPARED
from app.domain.results.comparison import TASK_SCORE, Difference, Figures, compare, figures_of
from app.domain.results.contract import Results
from app.domain.results.coverage import COMPOSITE, GRADES, MINIMUM_COVERAGE, VERDICTS
from app.domain.results.named_baselines import NAME_FORM, PREFIX
from app.domain.results.refusal_rate import atomic_refusal_rates
from app.domain.results.totals import GROUPINGS
from app.domain.statistics.resampling import FEWEST_CLUSTERS
from app.domain.suggestion import some_of

IntervalKind = Literal["personas", "runs", "wordings", "both"]

ATOMIC = (*names(), COMPOSITE)
PERSONA_SCORE, REFUSAL_RATE = "persona_score", "refusal_rate"
METRICS = (*ATOMIC, PERSONA_SCORE, REFUSAL_RATE)
NOT_WORSE = (*(name for name in COMPARED if name != "mean"), PERSONA_SCORE)
"""Those of which more is better, and which comparisons have."""
KEYS = ("model", "task", "level", "dimension", "persona")
NAMES_SHOWN = 12
NO_FIGURE = "the results have no such value"
NO_MODEL = "the other job has no figures of that model"
WHICH_MODEL = "the other job has several models; name one, as in job_…:model"
PARTIAL = "the results are not complete"
CALLS_MISSING = "calls_missing"
"""Why results may be ``partial``: not all calls were made, or some failed. What else they lack, coverage counts."""
NO_PAIR = Metric.missing("no_pair: the two jobs have no such value in common")
PLACE = ("persona", "task", "dimension", "level")
INTERVAL_FIELDS: Mapping[IntervalKind, str] = {
    "personas": "ci95",
    "runs": "ci95_runs",
    "wordings": "ci95_wordings",
    "both": "ci95_both",
}

POPULATIONS: Mapping[str, IntervalKind] = {
    "personas like these": "personas",
    "these personas": "runs",
    "wordings like these": "wordings",
    "personas and wordings like these": "both",
}
"""What a threshold may be ``over``, and the interval that is over it."""

_FORM = re.compile(
    r"([a-z_]+)(?:@(.+?))?(>=|<=|:gte:|:lte:)(-?\d{1,6}(?:\.\d{1,9})?)( calibrated)?(?: over ("
    + "|".join(POPULATIONS)
    + "))?"
)
_NOT_WORSE = re.compile(
    r"([a-z_]+)(?:@(.+?))? not worse than (?:(job_[0-9A-Za-z]+)(?::(.+?))?|("
    + PREFIX
    + NAME_FORM
    + r")) by (\d{1,6}(?:\.\d{1,9})?)"
)
_AS_GOOD_AS = re.compile(r"([a-z_]+)(?:@(.+?))?\s*(?:>=|:gte:)\s*(" + PREFIX + NAME_FORM + ")")


_Measured: TypeAlias = tuple[dict[str, str], Metric, float | None]
"""What a figure is of, the figure, and its coverage."""

Verdict = Literal["pass", "fail", "inconclusive"]


class ReferenceJob(NamedTuple):
    """A job that another is held to.

    Attributes:
        results: Its results.
        reworded: Personas that the two jobs describe differently: they make no pairs.
        doubts: Why a difference between figures from verdicts may not be the models'; empty if it would be.
        doubts_of_grades: The same of figures from PersonaGym's grades.
        remarks: In what the two differ besides, without which it might be.
    """

    results: Results
    reworded: frozenset[str] = frozenset()
    doubts: tuple[str, ...] = ()
    doubts_of_grades: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Reference(NamedTuple):
    """A model that another shall not be worse than; ``None`` for its job's only one, or that of a named baseline.

    A baseline stands in place of the job, as ``baseline:name``, until it is looked up.
    """

    job: str
    model: str | None


@dataclass(frozen=True, slots=True)
class Threshold:
    """A bound for a figure, or for how far it may be below another job's.

    Attributes:
        text: As it was written.
        metric: One of :data:`METRICS`.
        where: What the figure is of, by key (:data:`KEYS`); every model if it names none.
        at_least: Whether the figure shall not be smaller, else not larger.
        limit: The bound; with a ``reference`` how much worse than that the figure may be.
        interval: Which one decides; ``None`` for the one that the gate takes.
        reference: What the figure is compared with; ``None`` for a bound.
        calibrated: Whether the figure is as people would give it, not as the judges do.
    """

    text: str
    metric: str
    where: Mapping[str, str]
    at_least: bool
    limit: float
    interval: IntervalKind | None = None
    reference: Reference | None = None
    calibrated: bool = False


class GateCheck(Answer):
    """One value checked against one threshold."""

    threshold: str = Field(examples=["acc_atom>=0.8"])
    of: Mapping[str, str] = Field(
        description="What the value describes.", examples=[{"model": "openai/gpt-6-luna"}]
    )
    verdict: Verdict
    reason: str
    value: float | None
    ci95: tuple[float, float] | None
    coverage: float | None = Field(
        description="Share of the planned verdicts, grades or cells (whichever is smaller) behind the value; "
        "`null` for refusal rates, and if not counted.",
    )


class Gate(Answer):
    """`fail` if any check fails, else `inconclusive` if any is, else `pass`."""

    job: str
    object: Literal["gate"] = "gate"
    verdict: Verdict
    minimum_coverage: float = Field(description="A value with less coverage is inconclusive.")
    checks: list[GateCheck]


@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """A baseline that stands beside a job, because its thresholds name it or in its report.

    Attributes:
        name: The baseline's.
        model: Which model it is.
        job: Of which job.
        judges: Who judged that.
        ended: The day on which that job ended.
        by_others: Whether other judges judged it than the job beside it.
    """

    name: str
    model: str
    job: str
    judges: Sequence[str]
    ended: str
    by_others: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What a job's own thresholds say of it.

    Attributes:
        gate: The checks; ``None`` if they could not be made.
        problem: Why not.
        baselines: Those that the thresholds name.
    """

    gate: Gate | None
    problem: str | None
    baselines: Sequence[HeldAgainst] = ()


def parse_threshold(text: str) -> Threshold:
    """A threshold from its text.

    ``metric[@key=value,…]>=limit`` or ``<=`` (``:gte:`` and ``:lte:`` mean the same), and perhaps `` calibrated``, `` over personas
    like these`` or `` over these personas``; or ``metric[@key=value,…] not worse than job[:model] by margin``, in which
    ``baseline:name`` may stand for the job. ``metric>=baseline:name`` is not worse by 0.

    Raises:
        ValueError: If it has another form, or names an unknown metric or key; the message says how it should look.
    """
    than = _NOT_WORSE.fullmatch(text.strip())
    if than is not None:
        metric, where, job, model, baseline, margin = than.groups()
        return _compared_with(text, metric, where, Reference(job or baseline, model), float(margin))
    as_good = _AS_GOOD_AS.fullmatch(text.strip())
    if as_good is not None:
        metric, where, baseline = as_good.groups()
        return _compared_with(text, metric, where, Reference(baseline, None), 0.0)
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            "write it like acc_atom>=0.8, acc_atom@task=essay,level=low>=0.6, refusal_rate<=0.02, acc_atom>=0.8 over"
            " personas like these, acc_atom>=0.8 calibrated, acc_atom not worse than job_… by 0.03, or"
            " acc_atom>=baseline:NAME"
        )
    metric, where, sign, limit, calibrated, over = found.groups()
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; known: {', '.join(METRICS)}")
    keys = _keys(where)
    _check_keys(metric, keys)
    if calibrated:
        check_calibrated(metric, keys)
    return Threshold(
        text=text.strip(),
        metric=metric,
        where=keys,
        at_least=sign in {">=", ":gte:"},
        limit=float(limit),
        interval=None if over is None else POPULATIONS[over],
        calibrated=bool(calibrated),
    )


def _compared_with(
    text: str, metric: str, where: str | None, reference: Reference, margin: float
) -> Threshold:
    if metric not in NOT_WORSE:
        raise ValueError(f"{metric!r} can't be compared by a gate; these can: {', '.join(NOT_WORSE)}")
    keys = _keys(where)
    if metric == PERSONA_SCORE:
        _check_keys(metric, keys)
    return Threshold(text.strip(), metric, keys, True, margin, None, reference)


def _keys(where: str | None) -> dict[str, str]:
    keys: dict[str, str] = {}
    for part in (where or "").split(",") if where else ():
        key, _, value = part.partition("=")
        if key not in KEYS or not value or key in keys:
            raise ValueError(f"{part!r} must be one of {', '.join(KEYS)} with a value, each at most once")
        keys[key] = value
    return keys


def _check_keys(metric: str, keys: Mapping[str, str]) -> None:
    if metric in ATOMIC:
        if _grouping(keys) is None:
            raise ValueError(f"there are no totals by {', '.join(keys)} together")
    elif not keys.keys() <= ({"model", "task"} if metric == PERSONA_SCORE else {"model"}):
        raise ValueError(f"{metric} exists by model{' and task' if metric == PERSONA_SCORE else ''} only")


def judge_gate(
    results: Results,
    thresholds: Sequence[Threshold],
    interval: IntervalKind,
    minimum_coverage: float = MINIMUM_COVERAGE,
    references: Mapping[str, ReferenceJob] = MappingProxyType({}),
    calibration: JobCalibration | None = None,
) -> Gate:
    """Holds a job's results to thresholds.

    A figure passes only if its whole interval does, and fails only if its whole interval fails. What is missing, has no
    interval, is of too small a share of what was planned, lacks cells that another model of the job has, or comes from results
    that are not complete is inconclusive: it never passes.

    Args:
        results: The job's.
        thresholds: At least one.
        interval: Whose interval decides, see :data:`POPULATIONS`.
        minimum_coverage: Share of the planned verdicts (grades), and of the cells, that a figure shall be of, 0–1; with 0 it
            may lack cells that another model has.
        references: The thresholds' other jobs, by id.
        calibration: What people would say of the job's sentences; ``None`` if no threshold is about that, or nobody can know yet.
    """
    checks = [
        check
        for threshold in thresholds
        for check in (
            _checks(results, threshold, threshold.interval or interval, minimum_coverage, calibration)
            if threshold.reference is None
            else _comparisons(results, references[threshold.reference.job], threshold, minimum_coverage)
        )
        or [_missing(threshold, _why_none(results, threshold))]
    ]
    return Gate(job=results.job, verdict=_overall(checks), minimum_coverage=minimum_coverage, checks=checks)


def _overall(checks: Sequence[GateCheck]) -> Verdict:
    found = {check.verdict for check in checks}
    return "fail" if "fail" in found else "inconclusive" if "inconclusive" in found else "pass"


def _why_none(results: Results, threshold: Threshold) -> str:
    """Why there is no figure that a threshold is about: a name that the results do not know, or else what they lack."""
    for key, value in threshold.where.items() if threshold.metric in ATOMIC else ():
        known = sorted({getattr(cell, key) for cell in results.cells})
        if known and value not in known:
            return f"the results have no {key} {value!r}, only {some_of(known, NAMES_SHOWN)}"
    return NOT_LABELLED if threshold.calibrated else NO_FIGURE


def _missing(threshold: Threshold, reason: str) -> GateCheck:
    return GateCheck(
        threshold=threshold.text,
        of=threshold.where,
        verdict="inconclusive",
        reason=reason,
        value=None,
        ci95=None,
        coverage=None,
    )


def _checks(
    results: Results,
    threshold: Threshold,
    interval: IntervalKind,
    minimum: float,
    calibration: JobCalibration | None,
) -> list[GateCheck]:
    full = _all_called(results)
    found = []
    for of, metric, coverage in threshold_figures(results, threshold, calibration):
        check = _check(threshold, of, metric, interval, coverage, full=full)
        doubt = None if threshold.metric == REFUSAL_RATE else _too_little(coverage, minimum)
        if doubt is None and minimum and threshold.metric in ATOMIC and threshold.metric != COMPOSITE:
            doubt = _unmatched(results, threshold.metric, of)
        doubt = doubt or _few_runs(results, threshold.metric, of)
        # Calibrated figures are estimates of what people would say.
        untrusted = None if threshold.calibrated else _untrusted(results, threshold.metric)
        found.append(_doubted(check, untrusted, doubt))
    return found


def _doubted(check: GateCheck, *doubts: str | None) -> GateCheck:
    """The check, inconclusive if there is a doubt about its figure."""
    known = [doubt for doubt in doubts if doubt]
    if not known or check.value is None:
        return check
    reason = "; ".join([*known, check.reason])
    return check.model_copy(update={"verdict": "inconclusive", "reason": reason})


def _untrusted(results: Results, metric: str) -> str | None:
    """Return why the judges behind a metric cannot be trusted; ``None`` if nothing speaks against them."""
    if metric == REFUSAL_RATE:
        return None
    of = "grades" if metric == PERSONA_SCORE else "sentences"
    about = [each for each in results.warnings if each.judges and each.of in {of, "all"}]
    found = dict.fromkeys(each.summary or each.message for each in about)
    return "; ".join(message.rstrip(".") for message in found) or None


def _unmatched(results: Results, metric: str, of: Mapping[str, str]) -> str | None:
    """Why a model's figure is not of the same cells as the other models'; ``None`` if it lacks none that one of them has."""
    lacking, there = set(), set()
    for cell in results.cells:
        if any(getattr(cell, key) != value for key, value in of.items() if key != "model"):
            continue
        place = tuple(getattr(cell, key) for key in PLACE)
        if cell.metrics[metric].value is not None:
            there.add(place)
        elif cell.model == of["model"]:
            lacking.add(place)
    count = len(lacking & there)
    if not count:
        return None
    return f"{count} cell{'' if count == 1 else 's'} of which other models have it {'is' if count == 1 else 'are'} missing"


def _few_runs(results: Results, metric: str, of: Mapping[str, str]) -> str | None:
    """Why RC is of too few runs; ``None`` if it is not.

    It is the higher the fewer they are: over two, an interval over personas covers what many runs would give in 23 of 100 cases.
    """
    if metric != "rc":
        return None
    few = [
        cell.runs_used
        for cell in results.cells
        if all(getattr(cell, key) == value for key, value in of.items())
        and cell.metrics[metric].value is not None
        and cell.runs_used < FEWEST_CLUSTERS
    ]
    if not few:
        return None
    cells = f"{len(few)} cell{' has' if len(few) == 1 else 's have'}"
    return f"{cells} under {FEWEST_CLUSTERS} runs with a score, on whose number RC depends; rc_corrected does not"


def _comparisons(
    results: Results, other: ReferenceJob, threshold: Threshold, minimum: float
) -> list[GateCheck]:
    """Each of the job's models held to not being worse than the other job's: the paired difference decides."""
    models = sorted(_models(results))
    wanted = [model for model in models if threshold.where.get("model") in {None, model}]
    known = _models(other.results)
    reference = threshold.reference.model if threshold.reference else None
    if reference is None and len(known) == 1:
        (reference,) = known
    if reference is None or reference not in known:
        return [_missing(threshold, WHICH_MODEL if reference is None and known else NO_MODEL)]
    return [_comparison(results, model, other, reference, threshold, minimum) for model in wanted]


def _models(results: Results) -> set[str]:
    return {cell.model for cell in results.cells} | {row.model for row in results.persona_scores}


def _comparison(
    results: Results, model: str, other: ReferenceJob, reference: str, threshold: Threshold, minimum: float
) -> GateCheck:
    a, b = (
        _wanted(figures_of(document, label), threshold)
        for document, label in ((results, model), (other.results, reference))
    )
    found = compare(*(_without(side, other.reworded) for side in (a, b)))
    kind = [GRADES] if threshold.metric == PERSONA_SCORE else [VERDICTS]
    shares = [results.coverage_of(model, kind), other.results.coverage_of(reference, kind)]
    row = next(iter(found.differences), None)
    if None not in shares:
        # Of the figures that either has, those that are pairs: the rest is not compared.
        shares.append(0.0 if row is None else row.pairs / len(a.keys() | b.keys()))
    coverage = None if None in shares else min(share for share in shares if share is not None)
    check = _check(
        replace(threshold, limit=-threshold.limit),
        {"model": model, "than": reference},
        _as_metric(row),
        "personas",
        coverage,
        full=_all_called(results) and _all_called(other.results),
    )
    graded = threshold.metric == PERSONA_SCORE
    doubt = ", ".join(other.doubts_of_grades if graded else other.doubts)
    check = check.model_copy(update={"reason": "; ".join([check.reason, *other.remarks])})
    untrusted = dict.fromkeys(_untrusted(each, threshold.metric) for each in (results, other.results))
    return _doubted(check, *untrusted, doubt or _too_little(coverage, minimum))


def _without(figures: Figures, personas: frozenset[str]) -> Figures:
    return {key: figure for key, figure in figures.items() if key[1].persona not in personas}


def _wanted(figures: Figures, threshold: Threshold) -> Figures:
    metric, where = threshold.metric, threshold.where
    if metric == PERSONA_SCORE and "task" in where:
        metric = TASK_SCORE
    return {
        (name, place): figure
        for (name, place), figure in figures.items()
        if name == metric and all(getattr(place, key) == where[key] for key in PLACE if key in where)
    }


def _as_metric(row: Difference | None) -> Metric:
    if row is None:
        return NO_PAIR
    return Metric(value=row.difference, n=row.pairs, ci95=row.ci95, ci95_reason=row.ci95_reason)


def _all_called(results: Results) -> bool:
    """Whether no call is missing; a cell without a figure counts in its totals' coverage, not in other models'."""
    if results.completeness == "full":
        return True
    reasons = results.completeness_reasons
    return len(reasons) > 0 and not any(reason.startswith(f"{CALLS_MISSING}:") for reason in reasons)


def _too_little(coverage: float | None, minimum: float) -> str | None:
    """Why a figure is of too little to decide by; ``None`` if it is of enough."""
    if not minimum:
        return None
    if coverage is None:
        return "its coverage is not known"
    if coverage >= minimum:
        return None
    return f"coverage is {100 * coverage:.1f} %, below the minimum of {100 * minimum:g} %"


def threshold_figures(
    results: Results, threshold: Threshold, calibration: JobCalibration | None = None
) -> list[_Measured]:
    """The figures that a threshold is about, what each is of, and its coverage."""
    where = threshold.where
    if threshold.calibrated:
        if calibration is None:
            return []
        return calibrated_totals(calibration, results, threshold.metric, where)
    if threshold.metric in ATOMIC:
        by = _grouping(where)
        return [
            (total.group, total.figure(threshold.metric), total.covered(threshold.metric))
            for total in results.totals
            if tuple(total.by) == by and where.items() <= total.group.items()
        ]
    found: list[_Measured] = []
    if threshold.metric == REFUSAL_RATE:
        found += [
            ({"model": model, "framework": "atomic"}, rate, None)
            for model, rate in atomic_refusal_rates(results)
            if where.get("model") in {None, model}
        ]
    for total in results.persona_score_totals:
        of = {"model": total.model}
        if where.get("model") not in {None, total.model}:
            continue
        if threshold.metric == REFUSAL_RATE:
            found.append((of | {"framework": "personagym"}, total.refusal_rate, total.coverage.share))
        elif "task" not in where:
            found.append((of, total.persona_score, total.coverage.share))
        elif where["task"] in total.tasks:
            task = total.tasks[where["task"]]
            found.append((of | {"task": where["task"]}, task, task.coverage.share))
    return found


def _grouping(where: Mapping[str, str]) -> tuple[str, ...] | None:
    """The smallest grouping of totals that tells models and all these keys apart."""
    wanted = {"model", *where}
    return next((by for by in sorted(GROUPINGS, key=len) if wanted <= set(by)), None)


def _check(
    threshold: Threshold,
    of: Mapping[str, str],
    metric: Metric,
    interval: IntervalKind,
    coverage: float | None,
    *,
    full: bool,
) -> GateCheck:
    value = metric.value

    def said(verdict: Verdict, reason: str, ends: tuple[float, float] | None = None) -> GateCheck:
        return GateCheck(
            threshold=threshold.text,
            of=of,
            verdict=verdict,
            reason=reason,
            value=value,
            ci95=ends,
            coverage=coverage,
        )

    if value is None:
        return said("inconclusive", f"no value: {_words(metric.reason or '')}")
    name = INTERVAL_FIELDS[interval]
    ends: tuple[float, float] | None = getattr(metric, name)
    if ends is None:
        why = _words(
            getattr(metric, f"{name}_reason") or f"there is none of this kind ({interval}) for this value"
        )
        other = (
            "; use interval=runs to check these cells only"
            if metric.ci95_runs is not None and interval == "personas"
            else ""
        )
        return said("inconclusive", f"no interval: {why}{other}")
    low, high = ends
    span = f"[{low:.3f}, {high:.3f}]"
    # Turned so that larger is better.
    worst, best, limit = (
        (low, high, threshold.limit) if threshold.at_least else (-high, -low, -threshold.limit)
    )
    if not full:
        return said("inconclusive", f"{PARTIAL}; so far {value:.3f} {span}", (low, high))
    if worst >= limit:
        return said("pass", f"{value:.3f}: all of the interval {span} meets it", (low, high))
    if best < limit:
        return said("fail", f"{value:.3f}: none of the interval {span} meets it", (low, high))
    return said("inconclusive", f"{value:.3f}: interval {span} straddles {threshold.limit:g}", (low, high))


def _words(reason: str) -> str:
    return reason.partition(": ")[2] or reason
