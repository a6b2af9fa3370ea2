"""What comparisons say of judges' rubrics, exemplars and dates, where they differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import combinations
from typing import Any

from app.domain.jobs.specification import JobSpec
from app.domain.personagym.prompts import rubric_outline
from app.instruments.published import released_texts
from app.services.results.baselines import ATOMIC, PERSONAGYM, SOURCES

APART = timedelta(days=1)
"""Jobs that ended further apart are said to be: a judge may have changed behind its name."""


@dataclass(frozen=True, slots=True)
class Judged:
    """By what a side was judged, and when.

    Attributes:
        judges: Labels; ``None`` where the paper does not tell.
        at: When its job ended; ``None`` for published figures.
        rubrics: Hashes of PersonaGym's rubrics by the task's title.
        released: The tasks among these whose rubric is the released one.
        exemplars: Hash of the exemplars; ``None`` where it is not known.
        source: Which paper published it, if one did.
        imported: The judges whose verdicts were imported, each with where they are from.
    """

    judges: Sequence[str] | None
    at: datetime | None
    rubrics: Mapping[str, str]
    released: frozenset[str] = frozenset()
    exemplars: str | None = None
    source: str | None = None
    imported: Sequence[str] = ()


def judged(spec: JobSpec, manifest: Mapping[str, Any], at: datetime | None) -> Judged:
    """By what a job's responses were judged."""
    judges = sorted(judge.label for judge in spec.judges)
    imported = [
        f"{judge.label} ({', '.join(filter(None, (judge.imported.source, judge.imported.date)))})"
        for judge in spec.judges
        if judge.imported is not None
    ]
    if not spec.asked_judges:  # neither when nor by which rubrics they judged is the job's
        return Judged(judges, None, {}, imported=imported)
    if spec.gym is None:
        return Judged(judges, at, {}, imported=imported)
    prompts, tasks = spec.gym.prompts, [each.task for each in spec.gym.tasks]
    outlines = {task.title: rubric_outline(prompts, task) for task in tasks}
    hashes = {title: sha256(outline.encode()).hexdigest() for title, outline in outlines.items()}
    known = released_texts().rubrics
    released = frozenset(task.title for task in tasks if hashes[task.title] == known.get(task.id))
    exemplars = manifest.get("personagym", {}).get("exemplars", {}).get("sha256")
    return Judged(judges, at, hashes, released, exemplars, imported=imported)


def published(*, scores_only: bool) -> Judged:
    """By what published figures were judged, as far as the papers tell."""
    id_ = PERSONAGYM if scores_only else ATOMIC
    source = next(each for each in SOURCES if each.id == id_)
    return Judged(source.judges, None, {}, source=id_)


def notes_on_judging(sides: Mapping[str, Judged]) -> Iterator[str]:
    """Whose verdicts were imported, and where rubrics, exemplars or dates of these differ.

    Args:
        sides: By the names that they have in the answer.
    """
    for name, side in sides.items():
        if side.imported:
            told = "; ".join(side.imported)
            yield f"{name} has imported verdicts, of {told}. Their dates and rubrics are not compared."
    titles = dict.fromkeys(title for side in sides.values() for title in side.rubrics)
    differing = [
        title
        for title in titles
        if len({side.rubrics[title] for side in sides.values() if title in side.rubrics}) > 1
    ]
    if differing:
        yield f"The rubrics of {', '.join(differing)} differ, which may explain a difference in their scores."
    if len({side.exemplars for side in sides.values()} - {None}) > 1:
        yield "The exemplars differ, which may explain a difference in PersonaGym's scores."
    dates = sorted(side.at for side in sides.values() if side.at is not None)
    if dates and dates[-1] - dates[0] > APART:
        when = "; ".join(f"{name} {side.at:%Y-%m-%d}" for name, side in sides.items() if side.at is not None)
        yield f"They were judged at different dates ({when}): a judge may have changed behind its name."
    for (one, a), (other, b) in combinations(sides.items(), 2):
        if (a.source is None) != (b.source is None):
            yield from _beside_published(*((one, a, other, b) if a.source else (other, b, one, a)))


def _beside_published(name: str, theirs: Judged, other: str, own: Judged) -> Iterator[str]:
    """How what judged a job differs from what judged published figures."""
    source = next(each for each in SOURCES if each.id == theirs.source)
    when = "" if own.at is None else f" on {own.at:%Y-%m-%d}"
    by = "judges that it does not name" if theirs.judges is None else ", ".join(theirs.judges)
    yield (
        f"{name} was judged for a paper of {source.year} by {by}; {other}{when} by {', '.join(own.judges or [])}."
    )
    if theirs.source != PERSONAGYM:
        return
    others = [title for title in own.rubrics if title not in own.released]
    if others:
        yield f"{other} has other rubrics than PersonaGym's released ones for {', '.join(others)}."
    yield f"{other} has other exemplars than {name}: those of the paper are not released."
