"""Reads responses with their units and verdicts: page by page for the API, as a stream for reports."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import response_cache
from app.db.execution.response_cache import Place
from app.db.jobs import jobs, preparations
from app.db.jobs.jobs import JobRow
from app.db.jobs.preparations import StoredStep
from app.db.jobs.retries import count_reopenings
from app.db.results import response_pages
from app.db.results.response_pages import GradeRecord, Judgements, Position, ResponseRecord, Said, Wanted
from app.db.results.sorted_responses import Mark, Sort, sorted_places
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.persona import traits_in_words
from app.domain.instruments.segmentation import texts_at
from app.domain.instruments.task import Item
from app.domain.jobs.plan import AtomicCell, Cell, GymCell, gym
from app.domain.jobs.specification import JobSpec
from app.domain.judging.hardening import showing
from app.domain.judging.judged_response import (
    AskedItem,
    JudgedResponse,
    JudgedUnit,
    LeftOutSentence,
    ResponseGrade,
    ResponseUsage,
    UnitVerdict,
    mean_score,
)
from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.response_figures import response_figures
from app.domain.judging.text_notes import TextNote, TextNotes
from app.domain.judging.verdict import Unread, VerdictStatus
from app.domain.personagym.grades import read_final_score
from app.domain.personagym.specification import question_item
from app.domain.providers.model import FinishReason
from app.domain.providers.reuse import ReplyOrigin
from app.services.errors import NotFoundError
from app.services.identifiers import response_id
from app.services.job_context import JobContext

Questions = Mapping[tuple[int, str], StoredStep]
"""PersonaGym's questions by persona and task."""

Origins = Mapping[Place, ReplyOrigin]
"""Whose replies those are that no call of the job was made for."""


MOST_VERDICTS, MOST_BYTES = 5_000, 1_000_000
"""Limits of a page: its verdicts, and the bytes of its texts and of the judges' replies."""

EXPORT_VERDICTS = 8_000
"""Verdicts of a page of an export; fewer would make its queries cost more per row."""

EXPORTS_BYTES, LEAST_EXPORT_BYTES = 4_000_000, 1_000_000
"""Limit of the pages of all exports together, which they share, and the least share of one."""

EXPORTS_AHEAD = 4
"""Pages are read ahead while the process has at most this many exports."""

FIRST_EXPORT_PAGE, LONGEST_EXPORT_PAGE = 200, 2_000
"""Responses."""


_NOTHING = Judgements()

_exports: set[object] = set()
"""The exports under way in this process."""

LOOKED_AT = 2_000
"""Responses of which a page of those that judges have marked is chosen, so that its cost is bounded however few there are."""

TEXTS_LOOKED_AT = 70_000
"""The same where only the text decides, which takes half a second: all of the papers' study."""

MOST_SORTED = 2_000_000
"""Verdicts planned of the responses that are sorted by what judges said: all are read for each page, so that its cost is bounded."""

APART = 2
"""Points between two judges' grades, or between people's and the judges' means, from which on they disagree: half of what lies between the
worst and the best."""


Arm = Literal["persona", "control"]


class CutOffError(Exception):
    """A job was deleted, or taken up again, while it was read."""


@dataclass(frozen=True, slots=True)
class ResponseFilter:
    """Which responses to show; ``None`` and ``False`` mean all.

    Attributes:
        model: A model's label.
        persona: A persona's id.
        task: A task's id.
        out_of_character: Only those of which a judge finds a sentence out of character.
        judges_disagree: Only those of which one judge finds a sentence in character and another finds it out of
            character, on the same dimension, or whose grades are :data:`APART` or more points apart.
        suspicious: Only those with a doubtful verdict or grade.
        people_gap: Only those to which, or to a sentence of which, people gave a score on average so many or more points from the
            judges'; ``None`` for all.
        arm: Whether those of the personas or those of the control arm.
        text: Only those whose text contains this, in small letters or capitals.
        flagged: Only those with a flag, or with one on a sentence.
        noted: Only those with this note.
    """

    model: str | None = None
    persona: str | None = None
    task: str | None = None
    out_of_character: bool = False
    judges_disagree: bool = False
    suspicious: bool = False
    people_gap: float | None = None
    arm: Arm = "persona"
    text: str | None = None
    flagged: bool = False
    noted: TextNote | None = None

    @property
    def by_judgement(self) -> bool:
        """Whether what judges or people said decides, so that most of what is looked at may not be shown."""
        marks = (self.out_of_character, self.judges_disagree, self.suspicious, self.flagged)
        return any(marks) or self.people_gap is not None

    @property
    def looked_at(self) -> int | None:
        """Of how many responses a page is chosen; ``None`` where all are shown."""
        if self.by_judgement:
            return LOOKED_AT
        return None if self.text is None and self.noted is None else TEXTS_LOOKED_AT

    def admits(self, context: JobContext, cell: Cell) -> bool:
        """Whether a cell's responses can be among them."""
        return (
            (self.model is None or context.spec.models[cell.model].label == self.model)
            and (self.persona is None or cell.persona.id == self.persona)
            and (self.task is None or cell.task.id == self.task)
        )


async def read_page(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    wanted: ResponseFilter,
    *,
    after: Position | None,
    limit: int,
    most_verdicts: int = MOST_VERDICTS,
    most_bytes: int = MOST_BYTES,
    figures: bool = False,
) -> tuple[list[JudgedResponse], Position | None]:
    """A page of responses, and the position after which the next one begins, if there is one.

    The page ends early at ``most_verdicts``, and at ``most_bytes`` of texts or of judges' replies; it has at least one response.
    A page of responses that judges have marked is chosen from the next :data:`LOOKED_AT` and may be short, or empty, before the
    last one. Only ``figures`` adds figures.
    """
    marked = _wanted(context, wanted, with_levels=wanted.by_judgement)
    async with engine.connect() as connection:
        until: Position | None = None
        if wanted.looked_at is not None:
            until = await response_pages.position_of(
                connection, job.tenant, job.id, marked.cells, after=after, number=wanted.looked_at
            )
        records = await response_pages.response_page(
            connection,
            job.tenant,
            job.id,
            marked,
            after=after,
            until=until,
            limit=limit + 1,
            most_bytes=most_bytes,
            graded=context.spec.gym is not None,
        )
        page = _fitting(context, records[:limit], most_verdicts)
        judged = await _with_judgements(connection, job, context, page, most_bytes)
    if figures:
        await asyncio.to_thread(_add_figures, context, judged)
    return judged, _position(page[len(judged) - 1]) if len(records) > len(judged) else until


async def read_sorted_page(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    wanted: ResponseFilter,
    sort: Sort,
    *,
    after: Mark | None,
    limit: int,
    most_verdicts: int = MOST_VERDICTS,
) -> tuple[list[JudgedResponse], Mark | None]:
    """The same in another order, and the mark after which the next page begins.

    Raises:
        InvalidJobError: If there is too much to be sorted.
    """
    marked = _wanted(context, wanted, with_levels=True)
    _check_sortable(job, context, wanted, marked, sort)
    number = LOOKED_AT if wanted.by_judgement else limit
    async with engine.connect() as connection:
        marks = await sorted_places(
            connection, job.tenant, job.id, marked, sort, after=after, number=number + 1
        )
        until = marks[number - 1] if len(marks) > number else None
        kept = marks[:number]
        if wanted.by_judgement:
            found = await response_pages.wanted_among(
                connection, job.tenant, job.id, marked, [mark.place for mark in kept]
            )
            kept = [mark for mark in kept if mark.place in found]
        records = await response_pages.responses_at(
            connection,
            job.tenant,
            job.id,
            [mark.place for mark in kept[:limit]],
            most_bytes=MOST_BYTES,
            graded=context.spec.gym is not None,
        )
        page = _fitting(context, records, most_verdicts)
        judged = await _with_judgements(connection, job, context, page, MOST_BYTES)
    await asyncio.to_thread(_add_figures, context, judged)
    if not judged or len(judged) == len(kept):
        return judged, until
    return judged, next(mark for mark in kept if mark.place == _position(page[len(judged) - 1]))


def _check_sortable(
    job: JobRow, context: JobContext, wanted: ResponseFilter, marked: Wanted, sort: Sort
) -> None:
    if sort.endswith("length"):
        return
    if sort.endswith("score") and wanted.arm == "control":
        raise InvalidJobError(
            [FieldError("/query/sort", "the control arm has no persona to be in character")]
        )
    planned = job.expected_verdicts * len(marked.cells) // max(1, len(context.cells) + len(context.control))
    if planned > MOST_SORTED:
        why = f"has some {planned:,} verdicts to look at, and {MOST_SORTED:,} at most; choose a model, persona or task"
        raise InvalidJobError([FieldError("/query/sort", why)])


def _wanted(context: JobContext, wanted: ResponseFilter, *, with_levels: bool) -> Wanted:
    of_arm = context.cells if wanted.arm == "persona" else context.control
    cells = [cell for cell in of_arm if wanted.admits(context, cell)]
    return Wanted(
        cells=[cell.ordinal for cell in cells],
        levels=levels_in_scores(cells) if with_levels else {},
        out_of_character=wanted.out_of_character,
        judges_disagree=wanted.judges_disagree,
        apart=APART,
        suspicious=wanted.suspicious,
        people_gap=wanted.people_gap,
        dimensions={(cell.ordinal, n): each.id for cell in cells for n, each in enumerate(cell.dimensions)}
        if wanted.people_gap is not None
        else {},
        text=wanted.text,
        flagged=wanted.flagged,
        noted=wanted.noted,
    )


async def read_response(
    engine: AsyncEngine, job: JobRow, context: JobContext, place: Position
) -> JudgedResponse:
    """The response at a place of a job.

    Raises:
        NotFoundError: If there is none, or not yet.
    """
    found, _ = await read_at(engine, job, context, [place])
    if not found:
        raise NotFoundError("response not found")
    return found[0]


async def read_at(
    engine: AsyncEngine, job: JobRow, context: JobContext, places: Sequence[Position]
) -> tuple[list[JudgedResponse], bool]:
    """The responses at these places that there are, and whether there are more than make a page."""
    async with engine.connect() as connection:
        records = await response_pages.responses_at(
            connection,
            job.tenant,
            job.id,
            places,
            most_bytes=MOST_BYTES,
            graded=context.spec.gym is not None,
        )
        page = _fitting(context, records, MOST_VERDICTS)
        judged = await _with_judgements(connection, job, context, page, MOST_BYTES)
    await asyncio.to_thread(_add_figures, context, judged)
    return judged, len(judged) < len(records)


async def _with_judgements(
    connection: AsyncConnection,
    job: JobRow,
    context: JobContext,
    page: Sequence[ResponseRecord],
    most_bytes: int,
) -> list[JudgedResponse]:
    """The first responses of a page, up to the one with which the judges' replies reach ``most_bytes``."""
    keys = [_position(record) for record in page]
    found = await response_pages.judgements_of(
        connection, job.tenant, job.id, keys, graded=context.spec.gym is not None, most_bytes=most_bytes
    )
    end = next((n for n, key in enumerate(keys, 1) if found.get(key, _NOTHING).ends_page), len(keys))
    page, keys = page[:end], keys[:end]
    questions = await _questions(connection, job, context, page)
    origins: Origins = {}
    if context.spec.reuse.wanted:
        origins = await response_cache.origins(connection, job.tenant, job.id, keys)
    return await asyncio.to_thread(_all_judged, job, context, page, found, questions, origins)


def _fitting(
    context: JobContext, records: Sequence[ResponseRecord], most_verdicts: int
) -> Sequence[ResponseRecord]:
    """So many of the first of them, one at least, as make a page that is not too large."""
    judges, verdicts = len(context.spec.judges), 0
    for n, record in enumerate(records):
        if record.over:
            return records[:n]
        verdicts += len(record.unit_starts) * len(context.cell(record.cell).dimensions) * judges
        if verdicts > most_verdicts and n > 0:
            return records[:n]
    return records


def _add_figures(context: JobContext, page: Sequence[JudgedResponse]) -> None:
    """Gives each response its figures, which cost a twentieth of what else it takes to read one."""
    dimensions = context.dimensions
    for response in page:
        said = ((v.dimension, v.judge, v.score) for unit in response.units for v in unit.verdicts)
        response.figures = response_figures(said, dimensions, response.levels)


async def stream_pages(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    arm: Arm = "persona",
    *,
    figures: bool = False,
    model: str | None = None,
) -> AsyncGenerator[Sequence[JudgedResponse]]:
    """Every response of an arm, or of one of its models, in order, page by page; ``figures`` adds their figures.

    Beside many other exports, pages are small and not read ahead: each reader that takes nothing holds one.

    Raises:
        CutOffError: Before the last responses, if the job is not any longer what it was when the first were read.
    """
    async with engine.connect() as connection:
        reopenings = await count_reopenings(connection, job.tenant, job.id)

    async def read(after: Position | None, limit: int) -> tuple[list[JudgedResponse], Position | None]:
        page, following = await read_page(
            engine,
            job,
            context,
            ResponseFilter(arm=arm, model=model),
            after=after,
            limit=limit,
            most_verdicts=EXPORT_VERDICTS,
            most_bytes=max(LEAST_EXPORT_BYTES, EXPORTS_BYTES // len(_exports)),
            figures=figures,
        )
        if following is None:
            await _assert_whole(engine, job, reopenings)
        return page, following

    export = object()
    _exports.add(export)
    coming: asyncio.Task[tuple[list[JudgedResponse], Position | None]] | None = None
    after, limit = None, FIRST_EXPORT_PAGE
    try:
        while True:
            page, after = await (coming or read(after, limit))
            limit = _next_limit(page)
            coming = None
            if after is not None and len(_exports) <= EXPORTS_AHEAD:
                coming = asyncio.create_task(read(after, limit))
            yield page
            if after is None:
                return
    finally:
        _exports.remove(export)
        if coming is not None:
            coming.add_done_callback(_forget)
            coming.cancel()


async def stream_all(engine: AsyncEngine, job: JobRow, context: JobContext) -> AsyncIterator[JudgedResponse]:
    """The same, response by response."""
    async with contextlib.aclosing(stream_pages(engine, job, context)) as pages:
        async for page in pages:
            for response in page:
                yield response


def _forget(page: asyncio.Task[tuple[list[JudgedResponse], Position | None]]) -> None:
    """Retrieves the outcome of an unused page, which asyncio would report otherwise."""
    if not page.cancelled():
        page.exception()


def _next_limit(page: Sequence[JudgedResponse]) -> int:
    """How many responses to ask for after these. No more than doubled: after short ones there may come long ones."""
    verdicts = sum([len(unit.verdicts) for response in page for unit in response.units])
    return max(1, min(LONGEST_EXPORT_PAGE, 2 * len(page), EXPORT_VERDICTS * len(page) // max(1, verdicts)))


async def _assert_whole(engine: AsyncEngine, job: JobRow, reopenings: int) -> None:
    """Makes sure that what was read of a job is all that there was: rows vanish with it, and when it is retried."""
    async with engine.connect() as connection:
        there = await jobs.get_job(connection, job.tenant, job.id)
        if there is None or await count_reopenings(connection, job.tenant, job.id) != reopenings:
            raise CutOffError(job.id)


async def _questions(
    connection: AsyncConnection, job: JobRow, context: JobContext, page: Sequence[ResponseRecord]
) -> Questions:
    """What these responses' PersonaGym tasks ask."""
    cells = gym(context.cell(ordinal) for ordinal in {record.cell for record in page})
    if not cells:
        return {}
    wanted = {(cell.person, cell.task.id) for cell in cells}
    return await preparations.questions_of_job(connection, job.tenant, job.id, wanted)


def _position(record: ResponseRecord) -> Position:
    return record.cell, record.run, record.item


def levels_in_scores(cells: Sequence[Cell]) -> dict[tuple[int, int], tuple[int, int]]:
    """For each (cell, trait) the lowest and the highest score that is in character."""
    bounds: dict[tuple[int, int], tuple[int, int]] = {}
    for cell in cells:
        # In the control arm nobody has a level.
        for n, (dimension, trait) in enumerate(zip(cell.dimensions, cell.persona.traits, strict=False)):
            scale, level = dimension.scale, trait.level
            inside = [s for s in range(scale.minimum, scale.maximum + 1) if scale.level_of(s) == level]
            bounds[cell.ordinal, n] = (inside[0], inside[-1])
    return bounds


def _item(cell: Cell, record: ResponseRecord, questions: Questions) -> Item:
    if isinstance(cell, AtomicCell):
        return cell.items[record.item]
    step = questions.get((cell.person, cell.task.id))
    return question_item(record.item, () if step is None else step.content, cell.dimensions)


def _all_judged(
    job: JobRow,
    context: JobContext,
    page: Sequence[ResponseRecord],
    found: Mapping[Position, Judgements],
    questions: Questions,
    origins: Origins,
) -> list[JudgedResponse]:
    """The responses of a page; CPU only. Most judges say the same few words: equal verdicts are one object."""
    verdicts, words = _Verdicts(context), _Words(context)
    return [
        _judged(
            job, context, record, found.get(_position(record), _NOTHING), questions, origins, verdicts, words
        )
        for record in page
    ]


def _judged(
    job: JobRow,
    context: JobContext,
    record: ResponseRecord,
    found: Judgements,
    questions: Questions,
    origins: Origins,
    verdicts: "_Verdicts",
    words: "_Words",
) -> JudgedResponse:
    spec, cell = context.spec, context.cell(record.cell)
    of_gym = isinstance(cell, GymCell)
    item = _item(cell, record, questions)
    position = _position(record)
    texts = texts_at(record.text or "", record.unit_starts, record.unit_ends)
    spans = zip(record.unit_starts, record.unit_ends, strict=True)
    given = _by_unit(found, len(texts), verdicts, position, origins)
    grades = tuple(
        [
            _grade(context, record.text or "", grade, origins.get((*position, None, None, grade.judge)))
            for grade in found.grades
        ]
    )
    return JudgedResponse(
        id=response_id(job.id, *position),
        model=spec.models[cell.model].label,
        persona=cell.persona.id,
        levels={t.dimension: t.level for t in cell.persona.traits if t.dimension in item.dimensions},
        task=cell.task.id,
        item=AskedItem(item.id, item.text),
        run=record.run,
        instruction=record.instruction,
        iteration=_iteration(spec, record.run, gym=of_gym),
        status=record.status,
        text=None
        if record.text == "" and texts
        else record.text,  # sentences without words: it was not given
        refusal=record.status == "refused",
        error=record.error,
        finish_reason=_finish_reason(record.finish_reason),
        usage=None
        if record.input_tokens is None or record.output_tokens is None
        else ResponseUsage(record.input_tokens, record.output_tokens, record.reasoning_tokens),
        thoughts=record.thoughts,
        notes=(notes := TextNotes.of(record.notes)),
        left_out=_left_out(spec, record, notes),
        units=tuple(map(JudgedUnit, count(), spans, texts, given)),
        question=item.text if of_gym else None,
        grades=grades,
        score=mean_score(grades),
        reused=origins.get((*position, None, None, None)),
        persona_description="" if cell.control else cell.persona.description,
        persona_traits=() if cell.control else words[cell.person],
        conversation=record.conversation,
        imported_judges=words.imported,
    )


def _left_out(spec: JobSpec, record: ResponseRecord, notes: TextNotes | None) -> tuple[LeftOutSentence, ...]:
    found = notes.left_out(spec.instrument.leave_out) if notes else {}
    text = record.text or ""
    return tuple(LeftOutSentence(span, text[slice(*span)], why) for span, why in sorted(found.items()))


def _by_unit(
    found: Judgements, units: int, known: "_Verdicts", position: Position, origins: Origins
) -> Sequence[tuple[UnitVerdict, ...]]:
    """Each unit's verdicts; a big export has hundreds of thousands, of which most are one for each unit."""
    cell, _, _ = position
    if origins:
        places = [(*position, unit, *said[:2]) for unit, said in zip(found.units, found.said, strict=True)]
        verdicts = [
            known[cell, origins.get(place)][said] for place, said in zip(places, found.said, strict=True)
        ]
    else:
        called_for = known[cell, None]
        verdicts = [called_for[said] for said in found.said]
    if found.units == range(units):
        return list(zip(verdicts, strict=True))
    of_units: dict[int, list[UnitVerdict]] = {}
    for unit, verdict in zip(found.units, verdicts, strict=True):
        of_units.setdefault(unit, []).append(verdict)
    return [tuple(of_units.get(unit, ())) for unit in range(units)]


def _iteration(spec: JobSpec, run: int, *, gym: bool) -> int | None:
    if spec.provided:
        return None
    return run if gym else run % spec.iterations


def _grade(context: JobContext, text: str, record: GradeRecord, reused: ReplyOrigin | None) -> ResponseGrade:
    justification = None
    if record.raw is not None:
        shown = showing(context.spec.hardening, [text])
        justification = read_final_score(shown.read(record.raw).text).justification
    return ResponseGrade(
        judge=context.spec.judges[record.judge].label,
        status=VerdictStatus(record.status),
        score=record.score,
        justification=justification,
        raw=record.raw,
        error=record.error,
        reused=reused,
        suspicion=_suspicion(record.suspicion),
        finish_reason=_finish_reason(record.finish_reason),
        thoughts=record.thoughts,
        unread=_unread(record.unread),
        repair_raw=record.repair_raw,
    )


def _unread(stored: str | None) -> Unread | None:
    return None if stored is None else Unread(stored)


def _finish_reason(stored: str | None) -> FinishReason | None:
    return None if stored is None else FinishReason(stored)


def _suspicion(stored: str | None) -> Suspicion | None:
    return None if stored is None else Suspicion(stored)


class _Words(dict[int, tuple[str, ...]]):
    """The traits in words of a page's personas, by their index in the specification; and its imported judges."""

    def __init__(self, context: JobContext) -> None:
        super().__init__()
        self._spec = context.spec
        self.imported = tuple(judge.label for judge in context.spec.judges if judge.imported is not None)

    def __missing__(self, person: int) -> tuple[str, ...]:
        found = self[person] = traits_in_words(self._spec.personas[person], self._spec.dimensions)
        return found


class _Verdicts(dict[tuple[int, ReplyOrigin | None], "_OfCell"]):
    """The verdicts of a page by cell and whose replies they are."""

    def __init__(self, context: JobContext) -> None:
        super().__init__()
        self._context = context

    def __missing__(self, key: tuple[int, ReplyOrigin | None]) -> "_OfCell":
        ordinal, reused = key
        found = self[key] = _OfCell(self._context, self._context.cell(ordinal), reused)
        return found


class _OfCell(dict[Said, UnitVerdict]):
    """A cell's verdicts of one origin by what is stored of them; each is made when it is first looked up."""

    def __init__(self, context: JobContext, cell: Cell, reused: ReplyOrigin | None) -> None:
        super().__init__()
        self._context = context
        self._cell = cell
        self._reused = reused

    def __missing__(self, said: Said) -> UnitVerdict:
        trait, judge, status, score, raw, group_size, suspicion, finish_reason, thoughts, unread, *again = (
            said
        )
        repair, error = again
        dimension = self._cell.dimensions[trait]
        level = None if self._cell.control else self._cell.persona.traits[trait].level
        # They come in one array, for there is never both. A reply that a filter stopped has its reason.
        no_reply = status == VerdictStatus.FAILED or (
            status == VerdictStatus.FILTERED and finish_reason is None
        )
        verdict = self[said] = UnitVerdict(
            judge=self._context.spec.judges[judge].label,
            dimension=dimension.id,
            status=VerdictStatus(status),
            score=score,
            raw=None if no_reply else raw,
            error=raw if no_reply else error,
            in_character=None if score is None or level is None else dimension.scale.level_of(score) == level,
            group_size=group_size,
            reused=self._reused,
            suspicion=_suspicion(suspicion),
            finish_reason=_finish_reason(finish_reason),
            thoughts=thoughts,
            unread=_unread(unread),
            repair_raw=repair,
        )
        return verdict
