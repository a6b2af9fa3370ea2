"""Finds the stored texts that a job names as its source."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import copied_texts, jobs, preparations
from app.db.jobs.copied_texts import Words
from app.db.jobs.jobs import JobRow
from app.db.jobs.preparations import StoredStep
from app.db.sets import exemplars, sets
from app.domain.instruments.instrument import splits_alike
from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import runaway
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.plan import AtomicCell, Cell, GymCell, cells_of
from app.domain.jobs.qa_request import QaIn
from app.domain.jobs.request import JobIn, PersonaIn
from app.domain.jobs.source_request import JobTextsIn
from app.domain.jobs.specification import JobSpec, decode_spec
from app.domain.jobs.stored_texts import StoredTexts, choose
from app.domain.jobs.text_source import StoredText, TextSource
from app.domain.jobs.verdicts_request import MOST_UNITS
from app.domain.judging.text_notes import split_text
from app.domain.personagym.specification import question_item
from app.domain.providers.model import FinishReason
from app.domain.results.contract import SourceOfTexts
from app.domain.results.model_groups import Attributes
from app.services.long_texts import on_a_thread

JUDGED = frozenset({"answered", "refused"})

Key = tuple[int, int, int]


def attributes_of(job: JobRow, source: TextSource | SourceOfTexts | None) -> Attributes:
    """Those of a job's models, by label; they decide nothing of how it runs, so that its specification has none.

    Those of a job on another job's texts were copied with these.
    """
    if source is not None:
        return source.attributes
    given = [each for each in job.request.get("models") or () if isinstance(each, dict)]
    # Not validated again: a later release may take less than the one that took the job.
    return {
        each.get("label") or each["model"]: each["attributes"] for each in given if each.get("attributes")
    }


async def stored_texts(
    engine: AsyncEngine, tenant: str, wanted: JobIn, catalog: Catalog
) -> StoredTexts | str:
    """The texts of the job that a request names, or why there are none to be taken.

    Args:
        engine: Where to look.
        tenant: Whose job it must be.
        wanted: The request.
        catalog: Has the segmenter that the request may name, by which the chosen texts are then split.
    """
    if wanted.source is None:
        raise ValueError("the request names no source")
    id_ = wanted.source.job
    async with engine.connect() as connection:
        job = await jobs.get_job(connection, tenant, id_)
        encoded = None if job is None else await jobs.get_spec(connection, tenant, id_)
        if job is None or encoded is None:
            return f"there is no job {id_!r}"
        if not job.status.is_terminal:
            return f"job {id_} is {job.status}; its texts can be judged again when it has ended"
        spec = decode_spec(encoded)
        cells = await on_a_thread(tenant, lambda: cells_of(spec))
        questions = await preparations.questions_of_job(connection, tenant, id_)
        texts: list[StoredText] = []
        async for some in copied_texts.read_rows(connection, tenant, id_, len(cells)):
            texts += _texts(spec, cells, some, questions)
    offered = StoredTexts(
        id_,
        spec,
        [text for text in texts if text.status != "failed"],
        [text for text in texts if text.status == "failed"],
        attributes_of(job, spec.source),
    )
    chosen = {
        name: wanted.chosen_rules[name] for name in ("segmenter", "leave_out") if name in wanted.chosen_rules
    }
    instrument = replace(spec.instrument, **chosen)
    if (
        splits_alike(instrument, spec.instrument)
        or instrument.segmenter not in catalog.rules.known["segmenter"]
    ):
        return offered
    if spec.given_units is not None and instrument.segmenter == spec.instrument.segmenter:
        return f"the sentences of job {id_} were given, so none can be left out: remove judging.leave_out"
    rules = Rules(
        catalog.rules.segmenter.load(instrument.segmenter),
        catalog.rules.refusals.load(catalog.instrument.refusals),
        catalog.rules.injections.load(catalog.instrument.injections),
        instrument.leave_out,
    )
    return await _split_anew(engine, tenant, wanted.source, rules, offered)


async def exemplars_of_source(engine: AsyncEngine, tenant: str, job_id: str) -> frozenset[str]:
    """Keys of the exemplars by which a job's PersonaGym answers were graded, as far as its question sets keep them."""
    async with engine.connect() as connection:
        found = [
            await exemplars.keys_of_set(connection, tenant, set_id)
            for set_id in await sets.sets_of_job(connection, tenant, job_id)
        ]
    return frozenset().union(*found)


async def exemplars_of_answers(
    engine: AsyncEngine, tenant: str, wanted: JobIn, catalog: Catalog
) -> frozenset[str]:
    """Keys of the exemplars that existing answers to PersonaGym's questions may be graded by: made for these personas before."""
    sent = wanted.responses
    if not isinstance(sent, QaIn) and not (
        isinstance(sent, list) and any(each.question is not None for each in sent)
    ):
        return frozenset()
    async with engine.connect() as connection:
        descriptions = _descriptions(wanted, catalog)
        return await exemplars.keys_of_personas(connection, tenant, sorted(descriptions))


def _descriptions(wanted: JobIn, catalog: Catalog) -> set[str]:
    """Those of the personas that a request names, as far as there are any."""
    found = set()
    for each in wanted.personas:
        if isinstance(each, PersonaIn):
            found.add(each.description.strip())
            continue
        ids = catalog.persona_sets.get(each, (each,))
        known = catalog.kept.personas.get(each) or [
            catalog.personas[id_] for id_ in ids if id_ in catalog.personas
        ]
        found |= {persona.description.strip() for persona in known}
    return found


def _texts(
    spec: JobSpec,
    cells: Sequence[Cell],
    rows: Iterable[copied_texts.TextRow],
    questions: Mapping[tuple[int, str], StoredStep],
) -> Iterable[StoredText]:
    for row in rows:
        cell = cells[row.cell]
        step = questions.get((cell.person, cell.task.id)) if isinstance(cell, GymCell) else None
        asked = question_item(row.item, () if step is None else step.content, ())
        yield StoredText(
            model=spec.models[cell.model].label,
            persona=cell.persona.id,
            task=cell.task.id,
            item=(cell.items[row.item] if isinstance(cell, AtomicCell) else asked).id,
            run=row.run,
            instruction=row.instruction,
            status=row.status,
            sentences=row.sentences,
            key=(row.cell_id, row.run, row.item),
            question=asked.text or None,
        )


async def _split_anew(
    engine: AsyncEngine, tenant: str, wanted: JobTextsIn, rules: Rules, offered: StoredTexts
) -> StoredTexts | str:
    """The same with other sentences in the texts that the request chooses: of these alone the words are read."""
    chosen = choose(offered, wanted, lambda _pointer, _message: None).texts
    read = [text for text in chosen if text.status in JUDGED]
    split: dict[Key, _NewSplit] = {}
    async with engine.connect() as connection:
        async for words in copied_texts.read_words(connection, tenant, [text.key for text in read]):
            found = await on_a_thread(tenant, partial(_split, rules, words))
            if found is None:
                return f"a text has more than {MOST_UNITS:,} sentences by {rules.segmenter.name}"
            split |= found
    return replace(
        offered,
        texts=[
            replace(text, **split[text.key]._asdict()) if text.key in split else text
            for text in offered.texts
        ],
    )


class _NewSplit(NamedTuple):
    """What changes of a text that is split anew: fields of :class:`StoredText`."""

    sentences: int
    spans: tuple[str, str]
    notes: str | None


def _split(rules: Rules, words: Sequence[Words]) -> dict[Key, _NewSplit] | None:
    """Split texts; return what is found by their keys, or ``None`` if one has too many sentences."""
    found = {}
    for each in words:
        if runaway(each.text, MOST_UNITS):
            return None
        reason = None if each.finish_reason is None else FinishReason(each.finish_reason)
        units, notes = split_text(each.text, rules, MOST_UNITS, (reason, each.finish_word))
        if len(units) > MOST_UNITS:
            return None
        spans = (
            f"{{{','.join(str(unit.start) for unit in units)}}}",
            f"{{{','.join(str(unit.end) for unit in units)}}}",
        )
        found[each.cell_id, each.run, each.item] = _NewSplit(len(units), spans, notes.stored())
    return found
