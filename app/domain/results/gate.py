"""Gates: whether a job's results meet thresholds, fail them, or do not tell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.metric import NOT_COMPUTED
from app.domain.metrics.registry import names
from app.domain.results.coverage import COMPOSITE, MINIMUM_COVERAGE, coverage_of_total
from app.domain.results.refusal_rate import atomic_refusal_rates
from app.domain.results.totals import GROUPINGS

Json = Mapping[str, Any]
IntervalKind = Literal["personas", "runs"]

ATOMIC = (*names(), COMPOSITE)
PERSONA_SCORE, REFUSAL_RATE = "persona_score", "refusal_rate"
METRICS = (*ATOMIC, PERSONA_SCORE, REFUSAL_RATE)
KEYS = ("model", "task", "level", "dimension", "persona")
NO_FIGURE = "the results have no such value"
PARTIAL = "the results are not complete"
CALLS_MISSING = "calls_missing"
"""Why results may be ``partial``: not all calls were made, or some failed. What else they lack, coverage counts."""
UNCOUNTED = "the results predate coverage; set minimum_coverage=0 to check them without it"
INTERVAL_FIELDS: Mapping[IntervalKind, str] = {"personas": "ci95", "runs": "ci95_runs"}

_FORM = re.compile(r"([a-z_]+)(?:@(.+?))?(>=|<=|:gte:|:lte:)(-?\d{1,6}(?:\.\d{1,9})?)")


Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A bound for a figure.

    Attributes:
        text: As it was written.
        metric: One of :data:`METRICS`.
        where: What the figure is of, by key (:data:`KEYS`); every model if it names none.
        at_least: Whether the figure shall not be smaller, else not larger.
        limit: The bound.
    """

    text: str
    metric: str
    where: Mapping[str, str]
    at_least: bool
    limit: float


class GateCheck(Answer):
    """One figure held to one threshold."""

    threshold: str = Field(examples=["acc_atom>=0.8"])
    of: Mapping[str, str] = Field(
        description="What the figure is of.", examples=[{"model": "openai/gpt-6-luna"}]
    )
    verdict: Verdict
    reason: str
    value: float | None
    ci95: tuple[float, float] | None
    coverage: float | None = Field(
        description="Share of the planned verdicts, grades or cells, whichever is smaller, that the figure is of;"
        " `null` of refusal rates, and where it was not counted.",
    )


class Gate(Answer):
    """`fail` if any check fails, else `inconclusive` if any is, else `pass`."""

    job: str
    object: Literal["gate"] = "gate"
    verdict: Verdict
    minimum_coverage: float = Field(description="A figure of less than this is inconclusive.")
    checks: list[GateCheck]


def parse_threshold(text: str) -> Threshold:
    """A threshold from its text: ``metric[@key=value,…]>=limit`` or ``<=``; ``:gte:`` and ``:lte:`` mean the same.

    Raises:
        ValueError: If it has another form, or names an unknown metric or key; the message says how it should look.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            "write it like acc_atom>=0.8, acc_atom@task=essay,level=low>=0.6 or refusal_rate<=0.02"
        )
    metric, where, sign, limit = found.groups()
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; known: {', '.join(METRICS)}")
    keys: dict[str, str] = {}
    for part in (where or "").split(",") if where else ():
        key, _, value = part.partition("=")
        if key not in KEYS or not value or key in keys:
            raise ValueError(f"{part!r} must be one of {', '.join(KEYS)} with a value, each at most once")
        keys[key] = value
    _check_keys(metric, keys)
    return Threshold(text.strip(), metric, keys, sign in {">=", ":gte:"}, float(limit))


def _check_keys(metric: str, keys: Mapping[str, str]) -> None:
    if metric in ATOMIC:
        if _grouping(keys) is None:
            raise ValueError(f"there are no totals by {', '.join(keys)} together")
    elif not keys.keys() <= ({"model", "task"} if metric == PERSONA_SCORE else {"model"}):
        raise ValueError(f"{metric} exists by model{' and task' if metric == PERSONA_SCORE else ''} only")


def judge_gate(
    results: Json,
    thresholds: Sequence[Threshold],
    interval: IntervalKind,
    minimum_coverage: float = MINIMUM_COVERAGE,
) -> Gate:
    """Holds a job's results to thresholds.

    A figure passes only if its whole interval does, and fails only if its whole interval fails. What is missing, has no
    interval, is of too small a share of what was planned, or comes from results that are not complete is inconclusive: it
    never passes.

    Args:
        results: The results document.
        thresholds: At least one.
        interval: Over personas like the job's, or over the runs of its very cells.
        minimum_coverage: Share of the planned verdicts (grades), and of the cells, that a figure shall be of, 0–1.
    """
    checks = [
        check
        for threshold in thresholds
        for check in _checks(results, threshold, interval, minimum_coverage) or [_missing(threshold)]
    ]
    return Gate(
        job=results["job"], verdict=_overall(checks), minimum_coverage=minimum_coverage, checks=checks
    )


def _overall(checks: Sequence[GateCheck]) -> Verdict:
    found = {check.verdict for check in checks}
    return "fail" if "fail" in found else "inconclusive" if "inconclusive" in found else "pass"


def _missing(threshold: Threshold) -> GateCheck:
    return GateCheck(
        threshold=threshold.text,
        of=threshold.where,
        verdict="inconclusive",
        reason=NO_FIGURE,
        value=None,
        ci95=None,
        coverage=None,
    )


def _checks(results: Json, threshold: Threshold, interval: IntervalKind, minimum: float) -> list[GateCheck]:
    full = _all_called(results)
    found = []
    for of, metric, coverage in _figures(results, threshold):
        check = _check(threshold, of, metric, interval, coverage, full=full)
        doubt = None if threshold.metric == REFUSAL_RATE else _too_little(coverage, minimum)
        if doubt is not None and check.value is not None:
            words = f"{doubt}; {check.reason}"
            check = check.model_copy(update={"verdict": "inconclusive", "reason": words})
        found.append(check)
    return found


def _all_called(results: Json) -> bool:
    """Whether no call is missing; a cell without a figure counts in its totals' coverage, not in other models'."""
    if results["completeness"] == "full":
        return True
    reasons = results.get("completeness_reasons", ())
    return len(reasons) > 0 and not any(reason.startswith(f"{CALLS_MISSING}:") for reason in reasons)


def _too_little(coverage: float | None, minimum: float) -> str | None:
    """Why a figure is of too little to decide by; ``None`` if it is of enough."""
    if not minimum:
        return None
    if coverage is None:
        return UNCOUNTED
    if coverage >= minimum:
        return None
    return f"coverage is {100 * coverage:.1f} %, below the minimum of {100 * minimum:g} %"


def _metric_of(name: str, total: Json) -> Json:
    of = (total.get("corrected") or {}) if name == COMPOSITE else total["metrics"]
    return cast("Json", of.get(name, NOT_COMPUTED))


def _figures(results: Json, threshold: Threshold) -> list[tuple[dict[str, str], Json, float | None]]:
    """The figures that a threshold is about, what each is of, and its coverage."""
    where = threshold.where
    if threshold.metric in ATOMIC:
        by = _grouping(where)
        return [
            (
                {key: total[key] for key in total["by"]},
                _metric_of(threshold.metric, total),
                coverage_of_total(total, threshold.metric),
            )
            for total in results["totals"]
            if tuple(total["by"]) == by and all(total[key] == value for key, value in where.items())
        ]
    found: list[tuple[dict[str, str], Json, float | None]] = []
    if threshold.metric == REFUSAL_RATE:
        found += [
            ({"model": model, "framework": "atomic"}, rate, None)
            for model, rate in atomic_refusal_rates(results)
            if where.get("model") in {None, model}
        ]
    for total in results.get("persona_score_totals", ()):
        if where.get("model") in {None, total["model"]}:
            of = {"model": total["model"]}
            if "task" not in where:
                of_what = of | ({"framework": "personagym"} if threshold.metric == REFUSAL_RATE else {})
                found.append((of_what, total[threshold.metric], _share(total.get("coverage"))))
            elif where["task"] in total["tasks"]:
                task = total["tasks"][where["task"]]
                found.append((of | {"task": where["task"]}, task, _share(task.get("coverage"))))
    return found


def _share(coverage: Json | None) -> float | None:
    return None if coverage is None else coverage["share"]


def _grouping(where: Mapping[str, str]) -> tuple[str, ...] | None:
    """The smallest grouping of totals that tells models and all these keys apart."""
    wanted = {"model", *where}
    return next((by for by in sorted(GROUPINGS, key=len) if wanted <= set(by)), None)


def _check(
    threshold: Threshold,
    of: Mapping[str, str],
    metric: Json,
    interval: IntervalKind,
    coverage: float | None,
    *,
    full: bool,
) -> GateCheck:
    value = metric["value"]

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
        return said("inconclusive", f"no value: {_words(metric['reason'])}")
    name = INTERVAL_FIELDS[interval]
    ends = metric.get(name)
    if ends is None:
        why = _words(metric.get(f"{name}_reason") or f"there is none across {interval} for this value")
        other = (
            "; use interval=runs to check these cells only"
            if "ci95_runs" in metric and interval == "personas"
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
