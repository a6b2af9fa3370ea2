"""Existing texts that stay in the database: a source offers them by their names, a job chooses, samples and places them.

Their words are not read here: what is planned needs where they belong, their status and how many sentences they have.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.persona import Persona, Trait
from app.domain.instruments.task import AtomicTask
from app.domain.jobs.brought_answers import AskedQuestions
from app.domain.jobs.plan import AtomicCell, Cell
from app.domain.jobs.request import TaskIn
from app.domain.jobs.run_pairs import Names, run_pairs
from app.domain.jobs.source_request import FilterIn, JobTextsIn, SampleIn
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.jobs.text_source import MOST_NAMED, StoredText, TextSource, UploadedText
from app.domain.providers.model import Model
from app.domain.suggestion import did_you_mean

POINTER = "/responses"
MOST_TEXTS = 200_000
"""As many as a list may have."""
MOST_UPLOADED = 500_000
"""Of an upload: 1 GB of the atomic paper's texts are 455,000."""

Fail = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """What a source has.

    Attributes:
        id: The source's id.
        spec: The job of which they are: personas, tasks, dimensions, models and versions of rules are its own unless named.
        texts: The texts, in the order of their cells, runs and items.
        failed: Responses without a text, by the same names, with the status ``failed``.
        attributes: What is known of its models, by label.
    """

    id: str
    spec: JobSpec
    texts: Sequence[StoredText]
    failed: Sequence[StoredText] = ()
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UploadedTexts:
    """What an upload has.

    Attributes:
        rules: Versions of the rules by which its texts were read.
        texts: The responses; in place of its text each has where that is stored.
        place: What their numbers count, ``lines`` or ``rows`` of the file, or its ``records``.
    """

    rules: Mapping[str, str]
    texts: Sequence[UploadedText]
    place: str

    def __iter__(self) -> Iterator[tuple[str, UploadedText]]:
        """The responses, each with a pointer to it."""
        return ((f"{POINTER}/upload/{self.place}/{text.line}", text) for text in self.texts)

    def problems(self, instrument: InstrumentRef) -> Iterator[tuple[str, str]]:
        """What a job cannot use it for, by pointer."""
        judged = any(text.verdicts or text.grades for text in self.texts)
        for kind in ("segmenter", "refusals", *(("injections",) if judged else ())):
            wanted = getattr(instrument, kind)
            if self.rules[kind] != wanted:
                message = f"the upload was read by {self.rules[kind]}, not by {wanted}; name that version, or upload again"
                yield f"/versions/{kind}", message


@dataclass(frozen=True, slots=True)
class Chosen:
    """The texts that a job takes from a source.

    Attributes:
        texts: The texts.
        of: The job of which they are.
        source: What is kept of where they came from.
    """

    texts: Sequence[StoredText]
    of: JobSpec
    source: TextSource

    @property
    def personas(self) -> list[Persona]:
        """Those of the texts."""
        ids = {text.persona for text in self.texts}
        return [persona for persona in self.of.personas if persona.id in ids]

    def source_for(self, personas: Iterable[Persona]) -> TextSource:
        """What is kept of where they came from by a job that judges them by these personas."""
        judged = {persona.id: _identity(persona) for persona in personas}
        other = (each.id for each in self.personas if judged.get(each.id, _identity(each)) != _identity(each))
        return replace(self.source, other_personas=tuple(other))

    @property
    def tasks(self) -> list[AtomicTask]:
        """The atomic ones of the texts."""
        ids = {text.task for text in self.texts}
        return [task for task in self.of.tasks if task.id in ids]

    @property
    def gym_tasks(self) -> list[TaskIn]:
        """PersonaGym's of the texts, as a request would name them."""
        ids = {text.task for text in self.texts}
        gym = () if self.of.gym is None else self.of.gym.tasks
        return [TaskIn(task=task.id, atomic=task.atomic or None) for task in gym if task.id in ids]

    @property
    def models(self) -> list[Model]:
        """Those that wrote the texts."""
        labels = {text.model for text in self.texts}
        return [model for model in self.of.models if model.label in labels]


def _identity(persona: Persona) -> tuple[str, frozenset[Trait]]:
    return persona.description, frozenset(persona.traits)


def choose(offered: StoredTexts, wanted: JobTextsIn, fail: Fail) -> Chosen:
    """The texts that a request names, or a sample of them.

    Args:
        offered: What the source has.
        wanted: The request.
        fail: Is told what is wrong, by pointer.
    """
    for pointer, message in _unknown_names(offered, wanted.filter):
        fail(pointer, message)
    fits = _test_of(wanted.filter)
    texts = [text for text in offered.texts if fits(text)]
    if not texts:
        fail(
            f"{POINTER}/filter" if wanted.filter.chosen else f"{POINTER}/job",
            "there is no such text to judge",
        )
    if wanted.sample is not None:
        texts = drawn(texts, wanted.sample, offered.spec.personas)
    if len(texts) > MOST_TEXTS:
        fail(POINTER, f"{len(texts):,} texts; at most {MOST_TEXTS:,}: name fewer, or take a sample")
    source = TextSource(
        job=offered.id,
        filter=wanted.filter.chosen,
        sample=None if wanted.sample is None else wanted.sample.model_dump(),
        responses=len(texts),
        left_out=sum(map(fits, offered.failed)),
        attributes={
            label: offered.attributes[label]
            for label in dict.fromkeys(text.model for text in texts)
            if label in offered.attributes
        },
        refusals=offered.spec.refusals_told_by,
    )
    return Chosen(texts, offered.spec, source)


def drawn(texts: Sequence[StoredText], sample: SampleIn, personas: Sequence[Persona]) -> list[StoredText]:
    """A systematic sample of the texts ordered by model, task, their persona's levels and persona, at random within.

    Each text is as likely as any other, so that means need no weights, and each of these groups has its share to within one;
    so it is with pairs of runs.
    """
    if sample.responses >= len(texts):
        return list(texts)
    together = [[n] for n in range(len(texts))] if sample.by == "responses" else _in_pairs(texts, sample.seed)
    wanted = max(1, round(sample.responses * len(together) / len(texts)))
    chance = Random(sample.seed)  # noqa: S311 - a sample, no secret
    levels = {each.id: sorted((t.dimension, t.level) for t in each.traits) for each in personas}
    first = [texts[numbers[0]] for numbers in together]
    order = sorted(
        range(len(together)),
        key=lambda n: (
            first[n].model,
            first[n].task,
            levels.get(first[n].persona, []),
            first[n].persona,
            chance.random(),
        ),
    )
    step = len(together) / wanted
    start = chance.random() * step
    taken = (together[order[int(start + k * step)]] for k in range(wanted))
    return [texts[n] for n in sorted(n for numbers in taken for n in numbers)]


def _in_pairs(texts: Sequence[StoredText], seed: int) -> list[list[int]]:
    """The numbers of the texts of each pair of runs, in the order of its first one."""
    runs: dict[Names, set[int]] = defaultdict(set)
    for text in texts:
        runs[text.model, text.persona, text.task].add(text.run)
    pairs = {names: run_pairs(seed, names, own) for names, own in runs.items()}
    found: dict[tuple[Names, int], list[int]] = defaultdict(list)
    for n, text in enumerate(texts):
        names = text.model, text.persona, text.task
        found[names, pairs[names][text.run]].append(n)
    return list(found.values())


def place(
    chosen: Sequence[StoredText], spec: JobSpec, cells: Iterable[Cell], asked: AskedQuestions, fail: Fail
) -> tuple[ProvidedResponse, ...]:
    """Where the texts belong in the plan of the job that judges them.

    Args:
        chosen: The texts.
        spec: The job.
        cells: Its cells.
        asked: The questions that the texts answer.
        fail: Is told of texts that belong nowhere, once for all texts of a persona, task or item.
    """
    by_name = {(spec.models[c.model].label, c.persona.id, c.task.id): c for c in cells}
    items = {
        (cell.persona.id, cell.task.id): {item.id: item.index for item in cell.items}
        if isinstance(cell, AtomicCell)
        else {words: n for n, words in enumerate(asked.of(cell.persona.id, cell.task.id))}
        for cell in by_name.values()
    }
    placed: list[ProvidedResponse] = []
    astray: Counter[tuple[str, str]] = Counter()
    for text in chosen:
        known = items.get((text.persona, text.task))
        name = text.item if text.question is None else text.question
        if known is None or name not in known:
            astray[_why_astray(text, spec, known)] += 1
            continue
        cell = by_name[text.model, text.persona, text.task]
        placed.append(ProvidedResponse(cell.ordinal, text.run, known[name], text.instruction, text))
    for (pointer, why), texts in astray.items():
        fail(pointer, f"{texts:,} of the chosen texts {why}; leave them out by responses.filter")
    return tuple(placed)


def _why_astray(text: StoredText, spec: JobSpec, items: Mapping[str, int] | None) -> tuple[str, str]:
    if all(persona.id != text.persona for persona in spec.personas):
        return "/personas", f"are of persona {text.persona!r}, which the job does not have"
    ids = [task.id for task in spec.tasks] + (
        [] if spec.gym is None else [task.id for task in spec.gym.tasks]
    )
    if text.task not in ids:
        return "/tasks", f"are of task {text.task!r}, which the job does not have"
    if items is None:
        return "/personas", f"are of persona {text.persona!r}, which has no traits to be judged"
    return (
        "/personas",
        f"answer item {text.item!r} of {text.task!r}, which persona {text.persona!r} does not have",
    )


def _test_of(wanted: FilterIn) -> Callable[[StoredText], bool]:
    """Whether a text is one that a filter names."""
    tests = [
        (name, frozenset(values))
        for name, values in (
            ("model", wanted.models),
            ("persona", wanted.personas),
            ("task", wanted.tasks),
            ("item", wanted.items),
            ("instruction", wanted.instructions),
            ("run", wanted.runs),
            ("status", wanted.status),
        )
        if values
    ]

    def fits(text: StoredText) -> bool:
        return all(getattr(text, name) in values for name, values in tests)

    return fits


def _unknown_names(offered: StoredTexts, wanted: FilterIn) -> Iterator[tuple[str, str]]:
    spec = offered.spec
    tasks = [task.id for task in spec.tasks]
    gym = () if spec.gym is None else spec.gym.tasks
    texts = [*offered.texts, *offered.failed]
    known: dict[str, tuple[str, Sequence[str | int]]] = {
        "models": ("model", [model.label for model in spec.models]),
        "personas": ("persona", [persona.id for persona in spec.personas]),
        "tasks": ("task", [*tasks, *(task.id for task in gym)]),
        "items": ("item", list(dict.fromkeys(t.item for t in texts if t.item is not None))),
        "instructions": ("instruction", sorted({t.instruction for t in texts if t.instruction is not None})),
        "runs": ("run", sorted({t.run for t in texts})),
    }
    for name, (kind, names) in known.items():
        there = frozenset(names)
        for n, each in enumerate(getattr(wanted, name)):
            if each not in there:
                some = ", ".join(map(str, names[:MOST_NAMED])) or "none"
                some += "…" if len(names) > MOST_NAMED else ""
                meant = did_you_mean(each, map(str, names[:1000])) if isinstance(each, str) else ""
                told = meant or f"; it has: {some}"
                yield f"{POINTER}/filter/{name}/{n}", f"job {offered.id} has no {kind} {each!r}{told}"
