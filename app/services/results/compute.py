"""Computes a job's results from its rows: on request while it runs, and finally when it ends."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import clock
from app.db.batches import batches
from app.db.execution import failures, response_cache
from app.db.execution.failures import FailureRow
from app.db.execution.response_cache import ReuseRow
from app.db.jobs import preparations, progress
from app.db.jobs.jobs import JobRow
from app.db.jobs.preparations import NO_EXEMPLARS, ExemplarsUsed, StoredStep
from app.db.jobs.progress import Counts, UsageRow
from app.db.results import result_queries
from app.db.results.joint_scores import JointRow, joint_scores
from app.db.results.result_queries import ResponseTally, ScoreRow, UnjudgedResponse
from app.db.sets import sets
from app.db.sets.sets import StoredSet
from app.domain.contract import Completeness
from app.domain.instruments.contract import DimensionInWords, PersonaInWords
from app.domain.jobs.execution import Execution
from app.domain.jobs.plan import AtomicCell, Cell, GymCell, gym, responses_per_run
from app.domain.jobs.specification import JobSpec
from app.domain.judging.order_check import order_of
from app.domain.judging.refusal_check import says_refusal
from app.domain.judging.verdict import Unread, Verdict, VerdictStatus
from app.domain.metrics.scores import CellScores
from app.domain.personagym.scores import Grade, GymResponses, GymTally, PersonaResult
from app.domain.results import contract
from app.domain.results.contract import (
    GroupResult,
    PreparationAsks,
    Results,
    SourceOfTexts,
    SuspicionSummary,
    WithoutSuspicion,
    WorstSentence,
)
from app.domain.results.control import ControlArm
from app.domain.results.coverage import coverages
from app.domain.results.gate import CALLS_MISSING
from app.domain.results.grouping_check import CheckedSentence, CheckedSentences, JudgingCheck
from app.domain.results.judge_sanity import judge_warnings
from app.domain.results.missing import Corrected
from app.domain.results.model_scores import ModelScore, model_scores
from app.domain.results.order_check import Reading, Readings
from app.domain.results.paired_verdicts import Pair
from app.domain.results.personagym_results import GymResults, gym_results
from app.domain.results.repairs import JudgeRepairs, sum_of
from app.domain.results.results import MeasuredCell, ResponseStatuses
from app.domain.results.totals import summarize, totals
from app.domain.results.warnings import (
    NotedTexts,
    ResultWarning,
    headline,
    left_out_words,
    no_effect_warnings,
    text_warnings,
    time_out_warnings,
    turn_warnings,
)
from app.domain.sets.kinds import PERSONA_SET, QUESTION_SET
from app.domain.statistics.cells import estimate_cell, of_turns, without_intervals
from app.services.job_context import JobContext
from app.services.jobs.view import cost_of, failures_of, reuse_of, usage_of
from app.services.results.cell_rows import TURN_SECONDS, cell_scores, response_statuses
from app.services.results.control_arm import ControlRows, control_arm
from app.services.results.judge_agreement import judge_agreement
from app.services.results.judge_sanity import judge_evidence
from app.services.results.manifest import NO_CHECK_LEFT, LeftToRules, manifest
from app.services.results.missing import corrected, judged_cell, responses_per_run_on
from app.services.results.opposite_control import opposite_arm
from app.services.results.prompt_injection import (
    Scores,
    StoredGrade,
    Suspicious,
    read_suspicious,
    suspicion_summary,
)
from app.services.results.worst_sentence import worst_sentence
from app.services.sets.persona_sets import generation_result, made_by
from app.services.sets.sets import made_set_id

CONTROL_CALLS_MISSING = "control_calls_missing"
_LACKING = {
    CALLS_MISSING: "planned responses or verdicts are missing",
    CONTROL_CALLS_MISSING: "the control arm lacks planned responses or verdicts",
}
CELLS_WITHOUT_FIGURE, PERSONAS_WITHOUT_SCORE = "cells_without_figure", "personas_without_score"


@dataclass(frozen=True, slots=True)
class JobRows:
    """What the results are computed from."""

    scores: Scores
    tallies: dict[int, ResponseTally]
    grades: list[Grade]
    questions: dict[tuple[int, str], StoredStep]
    asks: list[PreparationAsks]
    counts: Counts
    usage: list[UsageRow]
    snapshots: list[Any]
    batches: list[Any]
    made: StoredStep | None
    made_set: StoredSet | None
    checked: CheckedSentences
    asked_alone: dict[str, int]
    spared: list[ReuseRow] = field(default_factory=list)
    reused_snapshots: list[Any] = field(default_factory=list)
    joint: list[JointRow] = field(default_factory=list)
    suspicious: Suspicious = field(default_factory=Suspicious)
    failed: list[FailureRow] = field(default_factory=list)
    unjudged: dict[int, list[UnjudgedResponse]] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    worst: WorstSentence | None = None
    control: Scores = field(default_factory=dict)
    control_grades: list[Grade] = field(default_factory=list)
    exemplars: ExemplarsUsed = NO_EXEMPLARS
    left_to_rules: LeftToRules = NO_CHECK_LEFT
    own_called: bool = False
    """Whether no call for a persona's figures is missing, of a job that lacks some."""


async def read_rows(connection: AsyncConnection, job: JobRow, context: JobContext) -> JobRows:
    """Reads everything that a job's results are computed from."""
    grouped: Scores = defaultdict(list)
    control: Scores = defaultdict(list)
    async for row in result_queries.scores(connection, job.tenant, job.id):
        of_arm = grouped if row.cell < len(context.cells) else control
        of_arm[row.cell, row.trait, row.judge].append(row)
    counts, _ = await progress.counts(connection, job.tenant, job.id)
    spec = context.spec
    several, wanted = spec.grouping is not None, spec.reuse.wanted
    prepared = spec.gym is not None or spec.generation is not None
    grades = await _stored_grades(connection, job, context, context.cells)
    return JobRows(
        grouped,
        await result_queries.response_tallies(connection, job.tenant, job.id),
        [grade for grade, _ in grades],
        await preparations.questions_of_job(connection, job.tenant, job.id) if prepared else {},
        await preparations.asks(connection, job.tenant, job.id) if prepared else [],
        counts,
        await progress.usage(connection, job.tenant, job.id),
        await result_queries.snapshots(connection, job.tenant, job.id),
        await batches.submitted_batches(connection, job.tenant, job.id)
        if spec.execution is not Execution.DIRECT
        else [],
        await made_by(connection, job.tenant, job.id) if spec.generation is not None else None,
        await _made_set(connection, job),
        await _checked(connection, job, context) if several else CheckedSentences(),
        await result_queries.asked_alone(connection, job.tenant, job.id, len(context.cells))
        if several
        else {},
        await response_cache.reuse(connection, job.tenant, job.id) if wanted else [],
        await response_cache.snapshots(connection, job.tenant, job.id) if wanted else [],
        await joint_scores(connection, job.tenant, job.id) if len(spec.judges) > 1 else [],
        await read_suspicious(connection, job, context, grouped, grades),
        await failures.histogram(connection, job.tenant, job.id),
        await result_queries.unjudged_responses(connection, job.tenant, job.id, provided=spec.provided),
        await _readings(connection, job, context),
        await worst_sentence(connection, job, context, grouped),
        control,
        [grade for grade, _ in await _stored_grades(connection, job, context, context.control)],
        await preparations.exemplars_used(connection, job.tenant, job.id) if prepared else NO_EXEMPLARS,
        await _left_to_rules(connection, job, context),
        await _own_called(connection, job, context, counts),
    )


async def _left_to_rules(connection: AsyncConnection, job: JobRow, context: JobContext) -> LeftToRules:
    if context.spec.refusal_check is None:
        return NO_CHECK_LEFT
    unread = 0
    async for replies in result_queries.wordy_refusal_checks(connection, job.tenant, job.id):
        unread += await asyncio.to_thread(lambda some: sum(says_refusal(r) is None for r in some), replies)
    return LeftToRules(unread, await result_queries.failed_refusal_checks(connection, job.tenant, job.id))


async def _own_called(connection: AsyncConnection, job: JobRow, context: JobContext, counts: Counts) -> bool:
    if is_full(counts) or not context.control:
        return False
    return not await progress.lacks_calls(connection, job.tenant, job.id, len(context.cells))


async def _readings(connection: AsyncConnection, job: JobRow, context: JobContext) -> Readings:
    """The sentences that were judged again with the options in other orders, added up as they are read."""
    found, judges = Readings(), context.spec.judges
    if context.spec.order_check is None:
        return found
    async for row in result_queries.sentences_judged_again(connection, job.tenant, job.id, len(judges)):
        cell = context.cells[row.cell]
        found.add(
            Reading(
                judge=judges[row.number % len(judges)].label,
                order=order_of(row.number, len(judges)),
                dimension=cell.dimensions[row.trait].id,
                response=(row.cell, row.run, row.item),
                pair=Pair(
                    cell.dimensions[row.trait].scale,
                    cell.persona.traits[row.trait].level,
                    Verdict(VerdictStatus(row.status), row.score),
                    Verdict(VerdictStatus(row.again), row.again_score),
                ),
            )
        )
    return found


async def _checked(connection: AsyncConnection, job: JobRow, context: JobContext) -> CheckedSentences:
    """The sentences that were judged in a group and alone, added up as they are read."""
    check = CheckedSentences()
    async for row in result_queries.checked_sentences(connection, job.tenant, job.id):
        cell = context.cells[row.cell]
        check.add(
            CheckedSentence(
                judge=context.spec.judges[row.judge].label,
                task=cell.task.id,
                scale=cell.dimensions[row.trait].scale,
                level=cell.persona.traits[row.trait].level,
                response=(row.cell, row.run, row.item),
                grouped=Verdict(VerdictStatus(row.grouped), row.grouped_score),
                alone=Verdict(VerdictStatus(row.alone), row.alone_score),
                suspicious=row.suspicious,
            )
        )
    return check


async def _made_set(connection: AsyncConnection, job: JobRow) -> StoredSet | None:
    kept = made_set_id(job.made_sets, PERSONA_SET)
    return None if kept is None else await sets.find_set(connection, PERSONA_SET, job.tenant, kept)


async def read_grades(connection: AsyncConnection, job: JobRow, context: JobContext) -> list[Grade]:
    """Every grade of a job; a question is known by its number."""
    return [grade for grade, _ in await _stored_grades(connection, job, context, context.cells)]


async def _stored_grades(
    connection: AsyncConnection, job: JobRow, context: JobContext, cells: Sequence[Cell]
) -> list[StoredGrade]:
    graded = {cell.ordinal: cell for cell in gym(cells)}
    if not graded:
        return []
    judges = [judge.label for judge in context.spec.judges]
    found = result_queries.grades(connection, job.tenant, job.id, list(graded), len(judges))
    return [
        (
            Grade(
                model=context.spec.models[graded[cell].model].label,
                persona=graded[cell].persona.id,
                task=graded[cell].task.id,
                question=str(item),
                run=run,
                judge=judges[judge],
                verdict=Verdict(VerdictStatus(status), score, Unread(unread) if unread else None),
                unrepaired=unread is not None and failed,
            ),
            suspicion,
        )
        async for cell, run, item, judge, status, score, suspicion, unread, failed in found
    ]


class Computed(NamedTuple):
    """A job's results.

    Attributes:
        completeness: Whether anything is missing.
        called: Whether every planned response and verdict is there and none has failed.
        document: The results as JSON text.
        scores: Its models' main figures.
        warnings: Reasons to doubt the results.
    """

    completeness: Completeness
    called: bool
    document: str
    scores: list[ModelScore]
    warnings: list[ResultWarning]


async def compute_results(engine: AsyncEngine, job: JobRow, context: JobContext) -> Computed:
    """A job's results as they stand; no connection is held while they are computed from what was read."""
    async with engine.connect() as connection:
        # One snapshot for all the queries behind the figures.
        await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        rows = await read_rows(connection, job, context)
    return await asyncio.to_thread(render_results, job, context, rows)


def render_results(job: JobRow, context: JobContext, rows: JobRows) -> Computed:
    """See :func:`compute_results`; CPU only."""
    spec = context.spec
    cells = _cell_results(context, rows)
    called = is_full(rows.counts) and _all_made(spec, rows)
    graded = _gym_results(context, rows)
    lacking = None if called else CONTROL_CALLS_MISSING if rows.own_called else CALLS_MISSING
    reasons = _incomplete(cells, () if graded is None else graded.persona_scores, lacking)
    completeness: Completeness = "partial" if reasons else "full"
    judges = {judge.label: judge.simulated for judge in spec.judges}
    imported = {judge.label: judge.imported for judge in spec.judges if judge.imported is not None}
    measured = summarize(cells, judges, spec.seed, imported)
    check = _check(context, rows)
    agreement = judge_agreement(context, rows.joint)
    control = _control_arm(context, cells, rows) if spec.control else None
    evidence = judge_evidence(
        context,
        cells,
        (rows.scores, rows.control),
        (*rows.grades, *rows.control_grades),
        agreement,
        () if graded is None else graded.judge_agreement,
    )
    usage, failed = usage_of(rows.usage), failures_of(rows.failed)
    late = [] if spec.provided else [*time_out_warnings(spec.models, usage.by_model, failed)]
    texts = [*_noted_texts(context, rows)]
    noted = [each for of_model in texts for each in text_warnings(of_model)]
    turns = turn_warnings([(tally.turns, tally.conversations) for tally in rows.tallies.values()])
    warnings = [*judge_warnings(evidence), *no_effect_warnings(control), *turns, *late, *noted]
    repairs = _repairs(spec, rows)
    results = Results(
        job=job.id,
        name=job.name,
        completeness=completeness,
        completeness_reasons=reasons,
        simulated=job.simulated,  # also where no sentence was judged
        headline=headline(warnings, len(spec.models)),
        warnings=warnings,
        **_in_words(context),
        **contract.shown(measured),
        verdict_agreement=agreement,
        **({"persona_scores": []} if graded is None else graded._asdict() | {"preparation": rows.asks}),
        **_generation_results(spec, rows),
        worst_sentence=rows.worst,
        suspicion=_suspicion(context, rows),
        **({} if check is None else {"judging_check": check}),
        **({} if spec.order_check is None else {"order_check": rows.readings.result(spec.order_check)}),
        **({"repairs": repairs, "repairs_total": sum_of(repairs)} if repairs else {}),
        **({} if control is None else {"control": control}),
        **({"opposite": opposite_arm(context, cells, rows.scores)} if spec.opposite else {}),
        **({} if spec.source is None else {"source": SourceOfTexts.of_row(spec.source)}),
        started_at=job.started_at,
        computed_at=clock.now(),
        usage=usage,
        cost=cost_of(rows.usage),
        failures=failed,
        reuse=reuse_of(rows.spared) if spec.reuse.wanted else None,
        manifest=manifest(
            job,
            context,
            rows.snapshots,
            made_set_id(job.made_sets, QUESTION_SET),
            check,
            batches=rows.batches,
            reused_snapshots=rows.reused_snapshots,
            exemplars=rows.exemplars,
            late=[*(each.message for each in late), *left_out_words(texts)],
            repairs=repairs,
            left_to_rules=rows.left_to_rules,
        ),
    )
    return Computed(completeness, called, results.document(), model_scores(results), warnings)


def _in_words(context: JobContext) -> dict[str, Any]:
    """Who a job's personas are, and what its dimensions are called, by the fields of results."""
    spec = context.spec
    return {
        "personas": [PersonaInWords.of(persona, spec.dimensions) for persona in spec.personas],
        "dimensions": [DimensionInWords.of(dimension) for dimension in context.dimensions],
    }


def _incomplete(
    cells: Sequence[MeasuredCell], persona_scores: Sequence[PersonaResult], lacking: str | None
) -> list[str]:
    """Why results are not complete, each ``"code: words"``; nothing where they are."""
    reasons = [] if lacking is None else [f"{lacking}: {_LACKING[lacking]}"]
    empty = sum(cell.metrics["acc_atom"].value is None for cell in cells)
    if empty:
        reasons.append(f"{CELLS_WITHOUT_FIGURE}: {empty} of {len(cells)} cells have no scored sentence")
    without = sum(row.persona_score.value is None for row in persona_scores)
    if without:
        reasons.append(
            f"{PERSONAS_WITHOUT_SCORE}: {without} of {len(persona_scores)} personas have no PersonaScore"
        )
    return reasons


def _control_arm(context: JobContext, cells: Sequence[MeasuredCell], rows: JobRows) -> ControlArm:
    planned: Counter[str] = Counter()
    for cell in gym(context.control):
        planned[context.spec.models[cell.model].label] += _planned(cell, rows) * len(context.spec.judges)
    found = ControlRows(rows.control, rows.tallies, rows.unjudged, rows.grades, rows.control_grades, planned)
    return control_arm(context, cells, found)


def _repairs(spec: JobSpec, rows: JobRows) -> list[JudgeRepairs]:
    """Count the unreadable first replies, by judge, of a job whose judges are asked once more."""
    if spec.repair is None:
        return []
    unread: Counter[str] = Counter()
    repaired: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for arm in (rows.scores, rows.control):
        for (_, _, judge), of_judge in arm.items():
            unread[spec.judges[judge].label] += sum(row.unread for row in of_judge)
            repaired[spec.judges[judge].label] += sum(row.repaired for row in of_judge)
            failed[spec.judges[judge].label] += sum(row.unrepaired for row in of_judge)
    for grade in (*rows.grades, *rows.control_grades):
        if grade.verdict.unread is not None:
            unread[grade.judge] += 1
            repaired[grade.judge] += grade.verdict.score is not None
            failed[grade.judge] += grade.unrepaired
    labels = [spec.judges[number].label for number in spec.asked_judges]
    return [
        JudgeRepairs(
            judge=label,
            unread=unread[label],
            repaired=repaired[label],
            unparsed=unread[label] - repaired[label],
            failed=failed[label],
        )
        for label in labels
    ]


def _suspicion(context: JobContext, rows: JobRows) -> SuspicionSummary | None:
    """The verdicts that a judged text may have swayed; ``None`` for a job in which nothing is judged."""
    spec, found = context.spec, rows.suspicious
    if spec.generation is not None:
        return None
    if not found.any:
        return suspicion_summary(found, None)
    others = replace(
        rows, scores=found.scores if found.verdicts else rows.scores, grades=list(found.other_grades)
    )
    of_models = totals(_cell_results(context, others), intervals=True)
    graded = _gym_results(context, others)
    without = WithoutSuspicion(
        # What is left out on purpose is not missing.
        totals=[
            GroupResult.of(replace(one, matched=None))
            for one in of_models
            if one.by in {("model",), ("model", "task")}
        ],
        persona_score_totals=[] if graded is None else graded.persona_score_totals,
    )
    return suspicion_summary(found, without)


def _noted_texts(context: JobContext, rows: JobRows) -> Iterator[NotedTexts]:
    """Yield each model's texts with the notes on them."""
    for n, model in enumerate(context.spec.models):
        own, control = (
            [rows.tallies[cell.ordinal] for cell in cells if cell.model == n and cell.ordinal in rows.tallies]
            for cells in (context.cells, context.control)
        )
        tallies = [*own, *control]
        statuses, as_personas = (
            ResponseStatuses.sum(
                response_statuses(tally, 0, context.spec.instrument.leave_out) for tally in some
            )
            for some in (tallies, own)
        )
        yield NotedTexts(
            model.label,
            statuses.answered + statuses.refused + statuses.filtered + statuses.no_answer,
            statuses,
            as_personas,
            [*{word for tally in tallies for word in tally.tags}],
            [*{word for tally in tallies for word in tally.finish_words}],
        )


def _check(context: JobContext, rows: JobRows) -> JudgingCheck | None:
    """How far grouped verdicts agree with those on single sentences; ``None`` for a job that does not group."""
    grouping = context.spec.grouping
    if grouping is None:
        return None
    return rows.checked.check(grouping, rows.asked_alone)


def is_full(counts: Counts) -> bool:
    """Whether every planned response and verdict is there and none has failed."""
    return (
        counts.answered == counts.planned
        and counts.judged == counts.due
        and counts.failed == counts.unjudged == 0
    )


def _cell_results(context: JobContext, rows: JobRows) -> list[MeasuredCell]:
    found, judged = [], []
    for cell in context.cells:
        for trait in range(len(cell.dimensions)):
            found.append(_cell_result(context.spec, cell, trait, rows))
            judged.append(
                judged_cell(context.spec.models[cell.model].label, *_missing(context.spec, cell, trait, rows))
            )
            clock.sleep(TURN_SECONDS)
    return [
        replace(result, coverage=coverage) for result, coverage in zip(found, coverages(judged), strict=True)
    ]


def _missing(
    spec: JobSpec, cell: Cell, trait: int, rows: JobRows
) -> tuple[Cell, int, dict[str, list[ScoreRow]], list[UnjudgedResponse], int]:
    """What :mod:`app.services.results.missing` asks for of a cell."""
    by_judge = {
        judge.label: rows.scores.get((cell.ordinal, trait, n), []) for n, judge in enumerate(spec.judges)
    }
    per_run = responses_per_run_on(cell, trait, _per_run(cell, rows))
    return cell, trait, by_judge, rows.unjudged.get(cell.ordinal, []), per_run


def _cell_result(spec: JobSpec, cell: Cell, trait: int, rows: JobRows) -> MeasuredCell:
    dimension = cell.dimensions[trait]
    level = cell.persona.traits[trait].level
    by_judge = {
        judge.label: cell_scores(cell, trait, rows.scores.get((cell.ordinal, trait, n), []))
        for n, judge in enumerate(spec.judges)
    }
    model = spec.models[cell.model]
    runs = np.unique(np.concatenate([scores.runs for scores in by_judge.values()]))
    estimate = estimate_cell(by_judge, runs)
    tally = rows.tallies.get(cell.ordinal)
    missing = corrected(*_missing(spec, cell, trait, rows), estimate, _wordings(spec, cell, by_judge))
    turns = tally is not None and tally.dependent
    if tally is not None and turns:
        estimate = of_turns(estimate, tally.independent)
        composite = without_intervals(missing.acc_atom_composite, "ci95", "ci95_wordings")
        missing = Corrected.of(composite, missing.acc_atom_bounds, None)
    return MeasuredCell(
        model=model.label,
        persona=cell.persona.id,
        task=cell.task.id,
        dimension=dimension.id,
        level=level,
        runs=cell.runs or _runs_of(tally),
        metrics=estimate.metrics,
        by_judge=estimate.by_judge,
        varied=estimate.varied,
        scale=dimension.scale,
        simulated=model.simulated or any(judge.simulated for judge in spec.judges),
        statuses=response_statuses(tally, _planned(cell, rows), spec.instrument.leave_out),
        corrected=missing,
        turns=turns,
    )


def _runs_of(tally: ResponseTally | None) -> int:
    """Runs of existing texts, of which there are as many as came; turns of one conversation are none."""
    if tally is None:
        return 0
    return tally.independent if tally.dependent else tally.runs


def _wordings(spec: JobSpec, cell: Cell, by_judge: Mapping[str, CellScores]) -> dict[int, int]:
    """The persona instruction of each run: as planned, or as it came with existing texts."""
    if spec.instructions and isinstance(cell, AtomicCell):
        return {run: spec.instruction_of(run) for run in range(cell.runs)}
    return {
        run: instruction
        for scores in by_judge.values()
        for run, instruction in zip(scores.run_ids.tolist(), scores.run_instructions.tolist(), strict=True)
    }


def _planned(cell: Cell, rows: JobRows) -> int:
    """Responses that a cell shall have; 0 for existing texts, which are not planned."""
    return cell.runs * _per_run(cell, rows)


def _per_run(cell: Cell, rows: JobRows) -> int:
    """Responses that a run of the cell shall have."""
    step = rows.questions.get((cell.person, cell.task.id)) if isinstance(cell, GymCell) else None
    known = len(step.content) if step is not None and step.status == "ready" else 0
    return known or responses_per_run(cell)


def _gym_results(context: JobContext, rows: JobRows) -> GymResults | None:
    """PersonaScores and what they rest on; ``None`` for a job without PersonaGym tasks."""
    spec = context.spec
    if spec.gym is None:
        return None
    tallies = [_gym_tally(spec, cell, rows) for cell in gym(context.cells)]
    tasks = [task.id for task in spec.gym.tasks]
    turns = any(tally.dependent for cell in gym(context.cells) if (tally := rows.tallies.get(cell.ordinal)))
    return gym_results(tallies, rows.grades, tasks, len(spec.judges), None if turns else spec.seed)


def _all_made(spec: JobSpec, rows: JobRows) -> bool:
    """Whether there are as many personas as were wanted, in a job that makes some up."""
    return spec.generation is None or (rows.made is not None and rows.made.status == "ready")


def _generation_results(spec: JobSpec, rows: JobRows) -> dict[str, Any]:
    """What came of a job that makes up personas; nothing for any other."""
    if spec.generation is None:
        return {}
    found = generation_result(rows.made, spec.generation.count, rows.made_set)
    return {"persona_set": found, "preparation": rows.asks}


def _gym_tally(spec: JobSpec, cell: GymCell, rows: JobRows) -> GymTally:
    tally = rows.tallies.get(cell.ordinal)
    planned = _planned(cell, rows)
    return GymTally(
        model=spec.models[cell.model].label,
        persona=cell.persona.id,
        task=cell.task.id,
        responses=GymResponses.of(planned=planned)
        if tally is None
        else GymResponses(
            planned=planned,
            answered=tally.answered,
            refused=tally.refused,
            failed=tally.failed,
            filtered=tally.filtered,
            no_answer=tally.no_answer,
        ),
    )
