"""Texts that exist before their job: how they are split and read, and the verdicts that they call for.

They come in the request (a :class:`NewResponse` each, split here) or stay in the database, where another job has them
(:class:`CopiedText`: split already, copied there). Another source of stored texts is a loader beside
:func:`app.services.jobs.text_sources.stored_texts` that offers :class:`app.domain.jobs.stored_texts.StoredTexts`, and a
statement beside :mod:`app.db.jobs.copied_texts` that copies them.
"""

from collections.abc import Iterable
from dataclasses import replace

from app.db.jobs.copied_texts import CopiedText
from app.db.jobs.new_jobs import NewResponse, NewShard
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import runaway, units_at
from app.domain.jobs.brought_answers import NOT_ANSWERED
from app.domain.jobs.personagym_plan import BroughtAnswer, estimate_brought, merged
from app.domain.jobs.plan import (
    AtomicCell,
    Cell,
    GymCell,
    ShardPlan,
    estimate_provided,
    gym,
    shards_of_provided,
)
from app.domain.jobs.resolve import Resolution
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.jobs.stage_estimate import EXPECTED_UNIT_CHARACTERS, StageEstimate
from app.domain.jobs.text_source import StoredText
from app.domain.jobs.verdicts_request import MOST_UNITS
from app.domain.judging.imported import count_problems, refused_elsewhere
from app.domain.judging.order_check import ORDERS
from app.domain.judging.text_notes import judged_units, notes_on
from app.domain.judging.thoughts import split_thoughts
from app.domain.providers.model import ONLY_THOUGHTS
from app.services.jobs.imported_rows import (
    doubtful_sentences,
    given_spans,
    imported_grades,
    imported_verdicts,
)
from app.services.jobs.planning import Check
from app.services.jobs.text_sources import JUDGED

ExistingText = NewResponse | CopiedText
Position = tuple[int, int, int]
"""(cell ordinal, run, item): what names a response in its job."""


def existing_texts(rules: Rules, resolution: Resolution, check: Check) -> tuple[ExistingText, ...]:
    """The rows of texts that exist already.

    Raises:
        InvalidJobError: If one has too many sentences, or none has an answer.
    """
    rows: list[ExistingText] = []
    errors: list[FieldError] = []
    spec = resolution.spec
    for n, placed in enumerate(resolution.provided):
        check()
        cell = resolution.cells[placed.cell]
        if isinstance(placed.text, StoredText):
            rows.append(_copied(spec, cell, placed, placed.text))
        elif placed.text is None and not placed.units and not placed.verdicts:
            rows.append(_missing(placed))
        else:
            sent = _sent(rules, spec, cell, placed, placed.text, f"/responses/{n}")
            if isinstance(sent, NewResponse):
                rows.append(sent)
            else:
                errors += sent
    if errors:
        raise InvalidJobError(errors)
    if rows and all(row.status == "no_answer" for row in rows):
        raise InvalidJobError([FieldError("/responses", "no text has an answer, only thoughts")])
    return tuple(rows)


def _copied(spec: JobSpec, cell: Cell, placed: ProvidedResponse, stored: StoredText) -> CopiedText:
    """A text that another job or an upload has; what its model said for it, a refusal or nothing, stays what it was."""
    as_one = stored.upload is not None and spec.given_units == "responses"
    sentences = min(stored.sentences, 1) if as_one else stored.sentences
    refused = stored.status == "refused"
    verdicts = imported_verdicts(spec, cell, placed, sentences, refused=refused)
    said = stored.elsewhere
    graded = isinstance(cell, GymCell) and stored.status != "no_answer"
    return CopiedText(
        cell=placed.cell,
        run=placed.run,
        item=placed.item,
        instruction=placed.instruction,
        status=stored.status,
        sentences=sentences,
        verdicts_due=_due(spec, cell, placed.item, stored.status, sentences),
        key=stored.key,
        spans=stored.spans,
        notes=stored.notes,
        upload=stored.upload,
        whole=as_one,
        verdicts=verdicts,
        doubtful=said.doubtful_in(whole=as_one) if verdicts and stored.status == "answered" else (),
        grades=imported_grades(spec, placed, doubtful=said.doubtful_text) if graded else (),
    )


def _sent(
    rules: Rules, spec: JobSpec, cell: Cell, placed: ProvidedResponse, text: str | None, pointer: str
) -> NewResponse | list[FieldError]:
    """What came in the request of a text and of verdicts on it, or what is wrong with it."""
    thoughts, answer = split_thoughts(text or "")
    given = given_spans(spec, placed, answer, pointer)
    if isinstance(given, FieldError):
        return [given]
    if given.spans is None:
        message = runaway(answer, MOST_UNITS)
        units = () if message is not None else rules.segmenter.segment(answer, MOST_UNITS)
        if len(units) > MOST_UNITS:
            message = f"more than {MOST_UNITS:,} sentences"
        if message is not None:
            return [FieldError(f"{pointer}/text", message)]
    else:
        units = units_at(given.text, [start for start, _ in given.spans], [end for _, end in given.spans])
    notes = notes_on(given.text, units, rules)
    units = judged_units(units, notes, rules.leave_out)
    spans = [(unit.start, unit.end) for unit in units]
    known = {"text": placed.text is not None, "units": bool(placed.units)}
    if wrong := list(count_problems(placed.verdicts, len(spans), **known)):
        return wrong
    refused = refused_elsewhere(placed.verdicts)
    if refused is None:
        status, why = _provided_status(rules, thoughts, answer)
    else:
        status, why = "refused" if refused else "answered", None
    imported = imported_verdicts(spec, cell, placed, len(spans), refused=status == "refused")
    graded = isinstance(cell, GymCell) and status != "no_answer"
    return NewResponse(
        cell=placed.cell,
        run=placed.run,
        item=placed.item,
        instruction=placed.instruction,
        status=status,
        text=given.text,
        unit_starts=[start for start, _ in spans],
        unit_ends=[end for _, end in spans],
        verdicts_due=_due(spec, cell, placed.item, status, len(spans)),
        thoughts=thoughts,
        notes=notes.stored(),
        error=why,
        verdicts=imported,
        doubtful=doubtful_sentences(rules, given.text, spans) if imported and status == "answered" else (),
        grades=imported_grades(spec, placed, doubtful=rules.addresses_judge(given.text)) if graded else (),
        conversation=placed.conversation,
    )


def _missing(response: ProvidedResponse) -> NewResponse:
    """The row of a text that is not there: asked for by nobody, it can't be asked for again."""
    place = response.cell, response.run, response.item
    return NewResponse(*place, None, "no_answer", "", [], [], 0, error=NOT_ANSWERED)


def _due(spec: JobSpec, cell: Cell, item: int, status: str, units: int) -> int:
    """The verdicts and grades that an existing text gets, without those of the checks."""
    judges = len(spec.judges)
    if isinstance(cell, AtomicCell):
        return units * len(cell.items[item].dimensions) * judges
    return judges * (1 + units * len(cell.dimensions)) if status in JUDGED else 0


def _provided_status(rules: Rules, thoughts: str | None, answer: str) -> tuple[str, str | None]:
    """The status of an existing text, and why there is nothing to be judged."""
    if rules.refusals.is_refusal(answer):
        return "refused", None
    if thoughts is not None and not answer.strip():
        return "no_answer", ONLY_THOUGHTS
    return "answered", None


def with_checks(
    resolution: Resolution, rows: tuple[ExistingText, ...]
) -> tuple[Resolution, tuple[ExistingText, ...]]:
    """As :func:`with_sample` for existing texts, whose sentences are known; and their rows with the verdicts that this takes."""
    judged = [bool(cell.dimensions) for cell in resolution.cells]
    several = (r for r in rows if r.status == "answered" and judged[r.cell] and r.sentences > 1)
    resolution = with_sample(resolution, ((r.cell, r.run, r.item) for r in several))
    spec = resolution.spec
    if spec.grouping is None and spec.order_check is None:
        return resolution, rows
    grades = [len(spec.judges) if isinstance(cell, GymCell) else 0 for cell in resolution.cells]
    return resolution, tuple(
        replace(row, verdicts_due=_due_with_checks(spec, row, grades[row.cell]))
        if row.status == "answered"
        else row
        for row in rows
    )


def _due_with_checks(spec: JobSpec, row: ExistingText, grades: int) -> int:
    """The verdicts and ``grades`` that an existing text gets, those of the checks included."""
    sentences, place = row.sentences, (row.cell, row.run, row.item)
    verdicts = row.verdicts_due - grades
    if spec.grouping is not None and spec.grouping.checks(*place, sentences):
        return grades + 2 * verdicts
    if spec.order_check is not None and sentences:
        again = len(ORDERS) * spec.order_check.drawn(*place, sentences)
        return grades + verdicts // sentences * (sentences + again)
    return row.verdicts_due


def shards_of_existing(resolution: Resolution, rows: tuple[ExistingText, ...]) -> tuple[NewShard, ...]:
    """Shards over existing texts know from the start what they hold, so progress has exact totals."""
    by_run: dict[tuple[int, int], list[ExistingText]] = {}
    for row in rows:
        by_run.setdefault((row.cell, row.run), []).append(row)
    return tuple(
        _shard(
            resolution,
            plan,
            [row for run in range(plan.run_start, plan.run_stop) for row in by_run.get((plan.cell, run), ())],
        )
        for plan in shards_of_provided(resolution.spec, resolution.cells, resolution.provided)
    )


def _shard(resolution: Resolution, plan: ShardPlan, rows: list[ExistingText]) -> NewShard:
    """A shard over these rows; nothing is left to do in it where no judge is called."""
    cell = resolution.cells[plan.cell]
    unanswered = sum(row.status == "no_answer" for row in rows)
    imported = [given for row in rows for given in row.verdicts]
    missing = sum(given.missing for given in imported)
    grades = [grade for row in rows for grade in row.grades]
    ungraded = sum(grade.score is None for grade in grades)
    return NewShard(
        plan.cell,
        plan.run_start,
        plan.run_stop,
        plan.responses,
        after=cell.person if isinstance(cell, GymCell) else None,
        responses_answered=plan.responses - unanswered,
        verdicts_due=sum(row.verdicts_due for row in rows),
        done=not resolution.spec.asked_judges,
        responses_failed=unanswered,
        verdicts_answered=sum(len(given.verdicts) for given in imported) - missing + len(grades) - ungraded,
        verdicts_failed=missing + ungraded,
    )


def with_sample(resolution: Resolution, responses: Iterable[Position]) -> Resolution:
    """The resolution with the responses drawn that are judged sentence by sentence too, where others are grouped."""
    spec = resolution.spec
    if spec.grouping is None:
        return resolution
    return replace(resolution, spec=replace(spec, grouping=spec.grouping.drawn(responses)))


def estimates_of_existing(resolution: Resolution, rows: Iterable[ExistingText]) -> list[StageEstimate]:
    """What judging existing texts takes, whose sentences are known."""
    spec, cells = resolution.spec, resolution.cells
    atomic_units, answers = [], []
    for row in rows:
        units = row.sentences
        if isinstance(cells[row.cell], AtomicCell):
            if row.status == "answered":
                atomic_units.append((row.cell, row.run, row.item, units))
        elif row.status in JUDGED:
            sentences = units if row.status == "answered" else 0
            characters = len(row.text) if isinstance(row, NewResponse) else units * EXPECTED_UNIT_CHARACTERS
            answers.append(BroughtAnswer(row.cell, row.run, row.item, characters, sentences))
    of_atomic = estimate_provided(spec, cells, atomic_units)
    if spec.gym is None:
        return of_atomic
    return merged([*of_atomic, *estimate_brought(spec, spec.gym, gym(cells), answers)])
