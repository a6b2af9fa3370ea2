"""Estimates a job's calls, cost and duration without running it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from urllib.parse import urlsplit

from app import clock
from app.db.jobs.new_jobs import NewResponse
from app.domain.instruments.segmentation import FIRST_SEGMENTER, UNCUT_SIGNS
from app.domain.jobs.brought_answers import NOT_ANSWERED
from app.domain.jobs.contract import Plan, PlanControl, PlanCost, PlanParameters, PlanStage
from app.domain.jobs.execution import BATCHED_STAGES, Execution
from app.domain.jobs.personagym_plan import estimate_gym, merged
from app.domain.jobs.plan import Cell, gym, responses_per_run
from app.domain.jobs.plan import estimate as estimate_atomic
from app.domain.jobs.request import BudgetIn, DetectIn, JobIn
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.stage_estimate import StageEstimate, follow_ups
from app.domain.providers.addresses import is_private
from app.domain.providers.model import Stage, Usage
from app.domain.providers.parameters import bounded_output
from app.llm.connections.connections import Connections
from app.llm.models.table import end_of
from app.ports import Price, PriceBook
from app.services.execution.call_rows import is_free
from app.services.jobs.detection import ReadNoise, check_detection, detect
from app.services.jobs.planning import Check, Gone
from app.services.jobs.submit import (
    PreparedJob,
    SubmissionDependencies,
    calls_to_confirm,
    prepare_job,
)
from app.services.providers.model_parameters import (
    parameter_warnings,
    parameters_of,
    sampled_models,
    table_of,
)

FEWEST_UNITS, MOST_UNITS = 0.55, 1.5
"""How far the twelve models' sentences per response lie from their mean at most (atomic paper, Table 15)."""

JUDGES = frozenset({Stage.JUDGING, Stage.CHECKING, Stage.REPAIRING, Stage.REFUSAL_CHECK})
"""The judges' stages."""

SECONDS_PER_MINUTE = 60


@dataclass(frozen=True, slots=True)
class PlanDependencies:
    """What planning takes beside what submitting takes.

    Attributes:
        submission: What submitting takes.
        connections: The operator's connections.
        prices: Knows what calls cost.
        max_in_flight: Calls to a model that a worker process may have in flight, whatever the model's limits are.
        max_unwritten: Calls that have ended and are not written yet, from which on a worker process starts no further one.
        read_noise: Knows what differences of models vary with.
    """

    submission: SubmissionDependencies
    connections: Connections
    prices: PriceBook
    max_in_flight: int
    max_unwritten: int
    read_noise: ReadNoise


async def plan_job(
    deps: PlanDependencies,
    tenant: str,
    wanted: JobIn,
    gone: Gone | None = None,
    asked: DetectIn | None = None,
) -> Plan:
    """The plan of a job, and how large a one finds a difference if that is asked.

    Args:
        deps: What it takes.
        tenant: Who asks.
        wanted: The job.
        gone: Whether who asked has gone; then it is planned no further.
        asked: The difference that shall be found, if any.

    Raises:
        AbandonedError: If who asked has gone.
        BusyError: If too many of the tenant's jobs are being planned.
        InvalidJobError: If the job can't be run as it is described, or nothing can be said of the difference.
    """
    own = replace(deps, submission=await deps.submission.of_tenant(tenant, wanted))
    planning = own.submission.planning
    plan, prepared = await planning.run(tenant, "plan", lambda check: _plan(own, wanted, check), gone)
    if asked is None:
        return plan
    spec, estimates = prepared.resolution.spec, prepared.estimates
    control = _estimates_of_control(spec, prepared.resolution.cells)
    width = check_detection(asked, spec)
    known = await deps.read_noise(tenant, asked, [task.id for task in spec.tasks], width)
    plan.detection = await planning.run(
        tenant,
        "plan",
        lambda check: detect(
            asked,
            spec,
            known,
            lambda times, of_runs: _of_size(own, estimates, control, spec, times, of_runs),
            own.submission.max_planned_calls,
            check,
        ),
        gone,
    )
    return plan


def _of_size(
    deps: PlanDependencies,
    estimates: Sequence[StageEstimate],
    control: Sequence[StageEstimate],
    spec: JobSpec,
    times: float,
    of_runs: float,
) -> tuple[int, float | None]:
    """Calls and dollars of a job with so many times the responses, and so many times the runs.

    The control arm, which ``estimates`` include, is asked once for all personas: it grows with the runs alone.
    """
    prices = [_price(deps, each, _times(each.usage, times), spec).usd for each in estimates if each.calls]
    known = [price for price in prices if price is not None]
    calls = sum(round(each.calls * times) for each in estimates)
    for each in control:
        calls += round(each.calls * (of_runs - times))
        known.append((of_runs - times) * (_price(deps, each, each.usage, spec).usd or 0.0))
    return calls, round(sum(known), 4) if len(known) > len(control) else None


def _times(usage: Usage, times: float) -> Usage:
    return Usage(round(usage.input_tokens * times), round(usage.output_tokens * times))


def _plan(deps: PlanDependencies, wanted: JobIn, check: Check) -> tuple[Plan, PreparedJob]:
    prepared = prepare_job(deps.submission, wanted, check)
    spec, cells = prepared.resolution.spec, prepared.resolution.cells
    estimates = [e for e in prepared.estimates if e.calls]
    plan = Plan(
        cells=sum(len(cell.dimensions) for cell in cells if not cell.control),
        persona_scores=len(spec.personas) * len(spec.models) if spec.gym is not None else 0,
        runs_per_cell=spec.runs or None,
        responses=prepared.planned_responses,
        calls=prepared.calls,
        most_repair_calls=_calls(prepared.follow_ups, Stage.REPAIRING),
        most_refusal_checks=_calls(prepared.follow_ups, Stage.REFUSAL_CHECK),
        confirm_calls=calls_to_confirm(deps.submission, prepared),
        estimated=not spec.provided,
        stages=[_stage(deps, e, spec) for e in estimates],
        cost=_cost(deps, estimates, spec),
        control=_control(deps, spec, cells) if spec.control else None,
        shortest_seconds=round(
            max((_seconds(deps, e) for e in estimates if not _batched(e, spec)), default=0.0), 1
        ),
        simulated=any(model.simulated for model in (*spec.models, *spec.called)),
        model_table=table_of(spec),
        parameters=[
            PlanParameters(role=role, model=model.label, **vars(parameters_of(model)))
            for role, model in sampled_models(spec)
        ],
        warnings=_warnings(deps, prepared, wanted.budget),
    )
    return plan, prepared


def _estimates_of_control(spec: JobSpec, cells: Sequence[Cell]) -> list[StageEstimate]:
    own = [cell for cell in cells if cell.control]
    estimates = estimate_atomic(spec, own) if own else []
    if own and spec.gym is not None:
        asked = [each for each in estimate_gym(spec, spec.gym, gym(own)) if each.stage in BATCHED_STAGES]
        estimates = merged([*estimates, *asked])
    return estimates


def _control(deps: PlanDependencies, spec: JobSpec, cells: Sequence[Cell]) -> PlanControl:
    estimates = _estimates_of_control(spec, cells)
    return PlanControl(
        responses=sum(cell.runs * responses_per_run(cell) for cell in cells if cell.control),
        calls=sum(each.calls for each in estimates),
        cost=_cost(deps, estimates, spec),
    )


def _stage(deps: PlanDependencies, estimate: StageEstimate, spec: JobSpec) -> PlanStage:
    price = _price(deps, estimate, estimate.usage, spec)
    return PlanStage(
        stage=estimate.stage.value,
        model=estimate.model.label,
        calls=estimate.calls,
        input_tokens=estimate.usage.input_tokens,
        output_tokens=estimate.usage.output_tokens,
        usd=price.usd,
        price_source=price.source,
    )


def _calls(estimates: Sequence[StageEstimate], stage: Stage) -> int:
    return sum(each.calls for each in estimates if each.stage is stage)


def _cost(deps: PlanDependencies, estimates: list[StageEstimate], spec: JobSpec) -> PlanCost:
    """Return the range of the cost, which depends on the length of the texts and the number of repairs and refusal checks."""
    low = high = 0.0
    unpriced: list[str] = []
    for estimate in estimates:
        fewest, most = (1.0, 1.0) if spec.provided else (FEWEST_UNITS, MOST_UNITS)
        of_low = _price(deps, estimate, _scaled(estimate, fewest), spec).usd
        of_high = _price(deps, estimate, _scaled(estimate, most), spec).usd
        if of_low is None or of_high is None:
            unpriced.append(estimate.model.label)
        else:
            low, high = low + of_low, high + of_high
    for further in follow_ups(spec, estimates):
        high += _price(deps, further, _scaled(further, 1.0 if spec.provided else MOST_UNITS), spec).usd or 0.0
    known = len(unpriced) < len(estimates) or not estimates
    return PlanCost(
        usd_low=round(low, 4) if known else None,
        usd_high=round(high, 4) if known else None,
        unpriced_models=sorted(set(unpriced)),
    )


def _scaled(estimate: StageEstimate, share: float) -> Usage:
    """What a stage takes if the models write as much more or less."""
    usage = estimate.usage
    if estimate.stage not in JUDGES:
        of_a_reply = usage.output_tokens * share / max(1, estimate.calls)
        output = estimate.calls * bounded_output(estimate.model, of_a_reply)
        return Usage(usage.input_tokens, round(output))
    return _times(usage, share)


def _price(deps: PlanDependencies, estimate: StageEstimate, usage: Usage, spec: JobSpec) -> Price:
    model = estimate.model
    return deps.prices.price(model, usage, batched=_batched(estimate, spec))


def _batched(estimate: StageEstimate, spec: JobSpec) -> bool:
    """Whether a stage's calls go out in batches: at their price, and without rate limits."""
    return spec.execution is Execution.BATCH and estimate.stage in BATCHED_STAGES


def _seconds(deps: PlanDependencies, estimate: StageEstimate) -> float:
    """The shortest time that the model's rate limits allow; other limits are not known beforehand."""
    limits = deps.connections.limits(estimate.model.connection, estimate.model.name)
    tokens = estimate.usage.input_tokens + estimate.usage.output_tokens
    by_requests = estimate.calls / limits.requests_per_minute if limits.requests_per_minute else 0.0
    by_tokens = tokens / limits.tokens_per_minute if limits.tokens_per_minute else 0.0
    return max(by_requests, by_tokens) * SECONDS_PER_MINUTE


def _warnings(deps: PlanDependencies, prepared: PreparedJob, budget: BudgetIn | None) -> list[str]:
    spec = prepared.resolution.spec
    found: list[str] = []
    for _, model in sampled_models(spec):
        found += [warning for warning in parameter_warnings(model) if warning not in found]
    found += _ending(deps, spec, clock.now().date())
    found += _without_bound(deps, spec)
    found += [
        f"{judge.label} scores every sentence: judges with the profile {judge.profile} have no option for one that does not"
        " show the trait."
        for judge in spec.judges
        if judge.profile is not None
    ]
    if spec.uneven_runs:
        found.append(
            f"Existing responses are uneven: runs that lack an item or question that another run has: {spec.uneven_runs:,}."
            " RC and RC_atom then compare different ones."
        )
    if spec.runs == 1:
        found.append("With 1 run per cell, RC and RC_atom will be missing: they compare runs.")
    if not spec.provided and len(spec.instructions) > 1 and spec.iterations == 1:
        found.append("With 1 iteration, RC_atom can't separate repetition from wording; use 2 or more.")
    if spec.reuse.wanted:
        found.append(
            "The estimate assumes no reused replies: how many can be reused is not known in advance."
        )
        if spec.grouping is not None:
            found.append("Grouped judging makes its calls every time; hardly any reply will be reused.")
    if spec.instrument.leave_out and not spec.provided:
        found.append(
            "The estimate includes sentences that will be left out: their number is not known in advance."
        )
    found += _gym_warnings(prepared)
    found += _uncut_sentences(prepared)
    unpriced = _cost(deps, list(prepared.estimates), spec).unpriced_models
    found += _budget_warnings(deps, prepared, budget)
    found += _kill_warning(deps, prepared, budget)
    if unpriced:
        found.append(
            f"No price is known for {', '.join(unpriced)}; their calls are not included in the cost."
        )
    return found


def _ending(deps: PlanDependencies, spec: JobSpec, today: date) -> list[str]:
    """The models that are gone, or whose end is announced."""
    found = []
    for model in dict.fromkeys((model.connection, model.name) for model in spec.called):
        connection = deps.connections.get(model[0])
        ends = None if connection is None else end_of(connection, model[1])
        if ends is not None:
            found.append(f"{model[1]} {ends.told(today)}")
    return found


def _without_bound(deps: PlanDependencies, spec: JobSpec) -> list[str]:
    """The models on servers of one's own, which have few slots, for which no limit of calls in flight is set."""
    found = []
    for name, model in dict.fromkeys((model.connection, model.name) for model in spec.called):
        connection = deps.connections.get(name)
        if connection is None or connection.simulated or deps.connections.limits(name, model).max_in_flight:
            continue
        if is_private(urlsplit(connection.base_url).hostname or ""):
            found.append(
                f"{name}/{model} is on a private address and its connection has no max_in_flight, so the limit is found by "
                "trial. Set it to the server's number of slots to avoid overloading the server."
            )
    return found


def _budget_warnings(deps: PlanDependencies, prepared: PreparedJob, budget: BudgetIn | None) -> list[str]:
    """Warn about limits that the job may exceed with the most repairs and refusal checks; retries are not counted."""
    if budget is None:
        return []
    every = [*prepared.estimates, *prepared.follow_ups]
    tokens = sum(e.usage.input_tokens + e.usage.output_tokens for e in every)
    usd = _cost(deps, list(prepared.estimates), prepared.resolution.spec).usd_high
    found = []
    if budget.usd is not None and usd is not None and usd > budget.usd:
        found.append(f"The job may cost up to ${usd:,.2f}, more than its budget of ${budget.usd:,.2f}.")
    if budget.calls is not None and prepared.most_calls > budget.calls:
        found.append(
            f"The job may need up to {prepared.most_calls:,} calls, more than its budget of {budget.calls:,}."
        )
    if budget.tokens is not None and tokens > budget.tokens:
        found.append(f"The job may need up to {tokens:,} tokens, more than its budget of {budget.tokens:,}.")
    return found


def _kill_warning(deps: PlanDependencies, prepared: PreparedJob, budget: BudgetIn | None) -> list[str]:
    """Warn about calls that a killed worker makes again: those in flight and those not yet written. Free ones don't count."""
    spec = prepared.resolution.spec
    called = [
        each
        for each in prepared.estimates
        if each.calls and not _batched(each, spec) and not is_free(deps.prices, each.model)
    ]
    if budget is None or not called:
        return []
    names = {(e.model.connection, e.model.name) for e in called}
    limits = [deps.connections.limits(*name).max_in_flight or deps.max_in_flight for name in names]
    in_flight = sum(min(limit, deps.max_in_flight) for limit in limits)
    most = in_flight + deps.max_unwritten
    return [
        f"If a worker is killed, up to {most:,} of its calls may be paid for twice; the budget still holds."
    ]


def _uncut_sentences(prepared: PreparedJob) -> Iterator[str]:
    """Warn if sentences of the job's texts end in signs that the segmenter does not know."""
    spec = prepared.resolution.spec
    texts = [persona.description for persona in spec.personas] + [
        each.text for each in prepared.responses if isinstance(each, NewResponse)
    ]
    splits = bool(spec.tasks) and spec.instrument.segmenter == FIRST_SEGMENTER
    found = next(filter(None, map(UNCUT_SIGNS.search, texts)), None) if splits else None
    if found is not None:
        yield (
            f"{FIRST_SEGMENTER} doesn't end sentences at {found[0]} and would judge such a text as one sentence: set"
            ' "versions": {"segmenter": "punkt-en-wide-v1"}.'
        )


def _gym_warnings(prepared: PreparedJob) -> list[str]:
    spec = prepared.resolution.spec
    if spec.gym is None:
        return []
    found: list[str] = []
    if not prepared.exact:
        found.append("The number of questions depends on the environments, which are not known yet.")
    pairs, given = len(spec.personas) * len(spec.gym.tasks), spec.gym.given_pairs(spec.personas)
    if spec.provided:
        if given < pairs:
            found.append(f"The answers cover {given:,} of {pairs:,} pairs of persona and task.")
        missing = sum(
            isinstance(each, NewResponse) and each.error == NOT_ANSWERED for each in prepared.responses
        )
        if missing:
            found.append(
                f"{missing:,} questions are not answered by all models; they count as missing responses."
            )
    elif 0 < given < pairs:
        found.append(
            f"The given questions cover {given:,} of {pairs:,} pairs of persona and task;"
            " the reasoner writes the others."
        )
    if spec.tasks and not all(persona.traits for persona in spec.personas):
        found.append("Personas without traits are measured only by PersonaGym's tasks.")
    if not spec.provided and any(task.atomic and task.runs == 1 for task in spec.gym.tasks):
        found.append(
            "With 1 run of a PersonaGym task judged by sentence, its RC and RC_atom will be missing."
        )
    return found
