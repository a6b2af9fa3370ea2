"""In what the sides of a comparison or a gate differ besides their models: judges, prompts, rubrics, exemplars, rules, dates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import combinations
from typing import Any, Literal, NamedTuple

from app.domain.jobs.specification import JobSpec
from app.domain.personagym.prompts import rubric_outline
from app.instruments.published import released_texts
from app.services.results.baselines import ATOMIC, PERSONAGYM, SOURCES

APART = timedelta(days=1)
"""Jobs that ended further apart are said to be: a judge may have changed behind its name."""


_Of = Literal["verdicts", "grades", "both"]


@dataclass(frozen=True, slots=True)
class Judged:
    """How a side was asked and judged, and when.

    Attributes:
        judges: Labels, or as a paper names them.
        at: When its job ended; ``None`` for published figures.
        rubrics: Hashes of PersonaGym's rubrics by the task's title.
        released: The tasks among these whose rubric is the released one.
        exemplars: Hash of the exemplars; ``None`` where it is not known.
        source: Which paper published it, if one did.
        imported: The judges whose verdicts were imported, each with where they are from.
        judging: The judges' parameters, in the order of ``judges``.
        sentences_per_call: Sentences that a judge was asked about at a time, at most.
        protocol: How judges were told what is data, by hash.
        instruments: What the atomic questions and prompts were, by hash.
        prompts: Hashes of the atomic tasks' prompts and scoring prompts by title.
        rules: The versions of the rules by which its texts were read.
        refusals: Who told refusals from answers: the rules alone, or which judge, by which question and about which texts; ``None``
            where it is not known.
        sampling: The models' parameters; ``None`` for texts that exist.
    """

    judges: Sequence[str]
    at: datetime | None
    rubrics: Mapping[str, str]
    released: frozenset[str] = frozenset()
    exemplars: str | None = None
    source: str | None = None
    imported: Sequence[str] = ()
    judging: str | None = None
    sentences_per_call: int | None = None
    protocol: str | None = None
    instruments: str | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    rules: str | None = None
    refusals: str | None = None
    sampling: str | None = None


class Difference(NamedTuple):
    """In what sides differ that are compared.

    Attributes:
        what: In a few words.
        of: What it touches.
        note: The same for readers of a comparison.
        decides: Whether no gate decides for it; else it is only told.
    """

    what: str
    of: _Of
    note: str
    decides: bool = True

    def touches(self, *, grades: bool) -> bool:
        """Whether it touches figures from grades, or else from verdicts."""
        return self.of in {"both", "grades" if grades else "verdicts"}


def judged(
    spec: JobSpec, manifest: Mapping[str, Any], at: datetime | None, model: str | None = None
) -> Judged:
    """How a job's responses were asked for and judged.

    Args:
        spec: The job's.
        manifest: Likewise.
        at: When it ended.
        model: The label of the model in question; ``None`` for all.
    """
    by_label = sorted(spec.judges, key=lambda judge: judge.label)
    judges, used = [judge.label for judge in by_label], spec.instrument
    sampled = [(each.parameters, each.system) for each in spec.models if model in {None, each.label}]
    side = Judged(
        judges,
        None,
        {},
        judging=_hash(*(judge.parameters for judge in by_label)) if spec.asked_judges else None,
        sentences_per_call=1 if spec.grouping is None else spec.grouping.sentences,
        protocol=(spec.hardening.content_hash if spec.hardening else "paper") if spec.asked_judges else None,
        instruments=used.content_hash if spec.tasks else None,
        prompts={task.title: _hash(task.prompt, task.scoring_prompt) for task in spec.tasks},
        rules=f"{used.segmenter} {' '.join(used.leave_out)} {used.refusals} {manifest.get('instrument', {}).get('replies', used.replies)}",
        refusals=spec.refusals_told_by,
        sampling=None if spec.provided else _hash(*sorted({repr(each) for each in sampled})),
    )
    imported = [
        f"{judge.label} ({', '.join(filter(None, (judge.imported.source, judge.imported.date)))})"
        for judge in spec.judges
        if judge.imported is not None
    ]
    if not spec.asked_judges:  # neither when nor by which rubrics they judged is the job's
        return replace(side, imported=imported)
    if spec.gym is None:
        return replace(side, at=at, imported=imported)
    prompts, tasks = spec.gym.prompts, [each.task for each in spec.gym.tasks]
    outlines = {task.title: rubric_outline(prompts, task) for task in tasks}
    hashes = {title: sha256(outline.encode()).hexdigest() for title, outline in outlines.items()}
    known = released_texts().rubrics
    released = frozenset(task.title for task in tasks if hashes[task.title] == known.get(task.id))
    exemplars = manifest.get("personagym", {}).get("exemplars", {}).get("sha256")
    return replace(side, at=at, rubrics=hashes, released=released, exemplars=exemplars, imported=imported)


def _hash(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()


def published(*, scores_only: bool) -> Judged:
    """By what published figures were judged, as far as the papers tell."""
    id_ = PERSONAGYM if scores_only else ATOMIC
    source = next(each for each in SOURCES if each.id == id_)
    return Judged(source.judges or [], None, {}, source=id_, sentences_per_call=1)


def notes_on_published(own: Judged) -> dict[str, list[str]]:
    """How what judged a job differs from what judged the figures of each paper, by the paper's id."""
    return {
        paper: list(
            _beside_published(
                "what is published", published(scores_only=paper == PERSONAGYM), "this job", own
            )
        )
        for paper in (ATOMIC, PERSONAGYM)
    }


def notes_on_judging(sides: Mapping[str, Judged]) -> Iterator[str]:
    """Whose verdicts were imported, and in what these differ.

    Args:
        sides: By the names that they have in the answer.
    """
    for name, side in sides.items():
        if side.imported:
            told = "; ".join(side.imported)
            yield f"{name} has imported verdicts, of {told}. Their dates and rubrics are not compared."
    yield from (each.note for each in differences(sides))
    for (one, a), (other, b) in combinations(sides.items(), 2):
        if (a.source is None) != (b.source is None):
            yield from _beside_published(*((one, a, other, b) if a.source else (other, b, one, a)))


def differences(sides: Mapping[str, Judged]) -> Iterator[Difference]:
    """In what sides differ, as far as is known of them, other than in their models.

    Args:
        sides: By the names that they have in the answer.
    """
    found = list(sides.values())
    yield from _of_judges(found)
    yield from _of_words(found)
    if _several(side.rules for side in found):
        yield _explains(
            "the versions of the segmenter, refusal rules or reply rules, or the sentences left out, differ",
            "both",
        )
    if _several(side.refusals for side in found):
        yield _explains("the checks for refusals by a judge differ", "both")
    if _several(side.sampling for side in found):
        yield _explains("the models' sampling parameters differ", "both")._replace(decides=False)
    dates = sorted(side.at for side in found if side.at is not None)
    if dates and dates[-1] - dates[0] > APART:
        when = "; ".join(f"{name} {side.at:%Y-%m-%d}" for name, side in sides.items() if side.at is not None)
        what = f"judged at different dates ({when})"
        note = f"They were {what}: a judge may have changed behind its name."
        yield Difference(what, "both", note, decides=False)


def _of_judges(found: Sequence[Judged]) -> Iterator[Difference]:
    """Papers' judges are told elsewhere."""
    if _several(side.judges for side in found if side.source is None):
        yield _explains("the judges differ", "both")
    elif _several(side.judging for side in found):
        yield _explains("the judges' parameters differ", "both")
    if _several(side.protocol for side in found):
        yield _explains("the judging protocols differ", "both")
    if _several(side.sentences_per_call for side in found):
        yield _explains("the number of sentences per judge call differs", "verdicts")


def _of_words(found: Sequence[Judged]) -> Iterator[Difference]:
    if _several(side.instruments for side in found):
        what = "the instruments differ"
        yield Difference(what, "verdicts", "The instruments differ: the prompts have different wording.")
    elif titles := _differing([side.prompts for side in found]):
        yield _explains(f"the prompts of {titles} differ", "verdicts")
    if titles := _differing([side.rubrics for side in found]):
        yield _explains(f"the rubrics of {titles} differ", "grades", " in their scores")
    if _several(side.exemplars for side in found):
        yield _explains("the exemplars differ", "grades", " in PersonaGym's scores")


def _explains(what: str, of: _Of, where: str = "") -> Difference:
    return Difference(what, of, f"{what[0].upper()}{what[1:]}, which may explain a difference{where}.")


def _several(values: Iterable[object]) -> bool:
    """Whether there are different ones, of those that are known."""
    return len({str(each) for each in values if each is not None}) > 1


def _differing(hashes: Sequence[Mapping[str, str]]) -> str:
    """The titles of the tasks whose hashes differ; empty where none do."""
    titles = dict.fromkeys(title for each in hashes for title in each)
    return ", ".join(title for title in titles if len({each[title] for each in hashes if title in each}) > 1)


def _beside_published(name: str, theirs: Judged, other: str, own: Judged) -> Iterator[str]:
    """How what judged a job differs from what judged published figures."""
    source = next(each for each in SOURCES if each.id == theirs.source)
    when = "" if own.at is None else f" on {own.at:%Y-%m-%d}"
    by, own_by = (", ".join(side.judges) for side in (theirs, own))
    yield f"{name} was judged for a paper of {source.year} by {by}; {other}{when} by {own_by}."
    if theirs.source != PERSONAGYM:
        return
    others = [title for title in own.rubrics if title not in own.released]
    if others:
        yield f"{other} has other rubrics than PersonaGym's released ones for {', '.join(others)}."
    yield f"{other} has other exemplars than {name}: those of the paper are not released."
