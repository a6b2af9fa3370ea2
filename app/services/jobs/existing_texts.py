"""Texts that exist before their job: how they are split and read, and the verdicts that they call for.

They come in the request (a :class:`NewResponse` each, split here) or stay in the database, where another job has them
(:class:`CopiedText`: split already, copied there). Another source of stored texts is a loader beside
:func:`app.services.jobs.text_sources.stored_texts` that offers :class:`app.domain.jobs.stored_texts.StoredTexts`, and a
statement beside :mod:`app.db.jobs.copied_texts` that copies them.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from app.db.jobs.copied_texts import CopiedText
from app.db.jobs.new_jobs import NewResponse, NewShard
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import runaway
from app.domain.jobs.brought_answers import NOT_ANSWERED
from app.domain.jobs.personagym_plan import BroughtAnswer, estimate_brought, merged
from app.domain.jobs.plan import AtomicCell, Cell, GymCell, estimate_provided, gym, shards_of_provided
from app.domain.jobs.resolve import Resolution
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.jobs.stage_estimate import StageEstimate
from app.domain.jobs.text_source import StoredText
from app.domain.judging.order_check import ORDERS
from app.domain.judging.thoughts import split_thoughts
from app.domain.providers.model import ONLY_THOUGHTS
from app.services.jobs.planning import Check

Due = Callable[[str, int], int]
"""The verdicts and grades that a text calls for, by its status and number of sentences."""
ExistingText = NewResponse | CopiedText
Position = tuple[int, int, int]
"""(cell ordinal, run, item): what names a response in its job."""

MAX_UNITS = 32_767
"""Sentences of one text: they are numbered by two-byte integers."""


def existing_texts(rules: Rules, resolution: Resolution, check: Check) -> tuple[ExistingText, ...]:
    """The rows of texts that exist already.

    Raises:
        InvalidJobError: If one has too many sentences, or none has an answer.
    """
    rows: list[ExistingText] = []
    for n, placed in enumerate(resolution.provided):
        check()
        due = partial(_due, resolution.spec, resolution.cells[placed.cell], placed.item)
        if placed.text is None:
            rows.append(_missing(placed))
        elif isinstance(placed.text, StoredText):
            rows.append(_copied(placed, placed.text, due))
        else:
            rows.append(_sent(rules, n, placed, placed.text, due))
    if rows and all(row.status == "no_answer" for row in rows):
        raise InvalidJobError([FieldError("/responses", "no text has an answer, only thoughts")])
    return tuple(rows)


def _copied(placed: ProvidedResponse, stored: StoredText, due: Due) -> CopiedText:
    """A text that another job has; what its model said for it, a refusal or nothing, stays what it was."""
    return CopiedText(
        cell=placed.cell,
        run=placed.run,
        item=placed.item,
        instruction=placed.instruction,
        status=stored.status,
        sentences=stored.sentences,
        verdicts_due=due(stored.status, stored.sentences),
        key=stored.key,
        spans=stored.spans,
    )


def _sent(rules: Rules, n: int, placed: ProvidedResponse, text: str, due: Due) -> NewResponse:
    """A text that came in the request, with its thoughts apart and its sentences found."""
    thoughts, answer = split_thoughts(text)
    message = runaway(answer, MAX_UNITS)
    units = () if message is not None else rules.segmenter.segment(answer, MAX_UNITS)
    if len(units) > MAX_UNITS:
        message = f"more than {MAX_UNITS:,} sentences"
    if message is not None:
        raise InvalidJobError([FieldError(f"/responses/{n}/text", message)])
    status, why = _provided_status(rules, thoughts, answer)
    return NewResponse(
        cell=placed.cell,
        run=placed.run,
        item=placed.item,
        instruction=placed.instruction,
        status=status,
        text=answer,
        unit_starts=[unit.start for unit in units],
        unit_ends=[unit.end for unit in units],
        verdicts_due=due(status, len(units)),
        thoughts=thoughts,
        error=why,
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
    return 0 if status == "no_answer" else judges * (1 + units * len(cell.dimensions))


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
    due: Counter[tuple[int, int]] = Counter()
    unanswered: Counter[tuple[int, int]] = Counter()
    for row in rows:
        due[row.cell, row.run] += row.verdicts_due
        unanswered[row.cell, row.run] += row.status == "no_answer"
    return tuple(
        NewShard(
            s.cell,
            s.run_start,
            s.run_stop,
            s.responses,
            after=resolution.cells[s.cell].person if isinstance(resolution.cells[s.cell], GymCell) else None,
            responses_answered=s.responses
            - sum(unanswered[s.cell, run] for run in range(s.run_start, s.run_stop)),
            verdicts_due=sum(due[s.cell, run] for run in range(s.run_start, s.run_stop)),
        )
        for s in shards_of_provided(resolution.spec, resolution.cells, resolution.provided)
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
        elif isinstance(row, NewResponse) and row.status != "no_answer":
            sentences = units if row.status == "answered" else 0
            answers.append(BroughtAnswer(row.cell, row.run, row.item, len(row.text), sentences))
    of_atomic = estimate_provided(spec, cells, atomic_units)
    if spec.gym is None:
        return of_atomic
    return merged([*of_atomic, *estimate_brought(spec, spec.gym, gym(cells), answers)])
