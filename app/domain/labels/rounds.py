"""Draws what people are shown, and in which order: blinded, stratified, the same again under the same seed."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import combinations
from typing import NamedTuple

from app.domain.labels.annotation import Place

MOST_THINGS = 2_000
"""Of one round: PersonaGym's study has 100 personas, three models and five tasks."""
MOST_ANSWERS_EACH = 1_000
"""Of one of its things, where that is bounded."""


FEWEST_PILOT_LABELS = 20
"""With fewer, where people and judges differ most is mostly guessed."""


class Allocation(StrEnum):
    """How a round's sentences are divided over the strata."""

    EVEN = "even"
    NEYMAN = "neyman"


class Pilot(NamedTuple):
    """What earlier rounds' labels say.

    Attributes:
        labels: How many there are.
        spreads: By task and score the standard deviation of how far people and judges are apart; what is not there has no label.
    """

    labels: int
    spreads: Mapping[tuple[str, int], float]


NO_PILOT = Pilot(0, {})


class LabellingKind(StrEnum):
    """What people label."""

    SENTENCES = "sentences"
    RESPONSES = "responses"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that may be drawn.

    Attributes:
        place: Where it is.
        text_hash: Names its text; two that say the same make no pair.
    """

    place: Place
    text_hash: str


@dataclass(frozen=True, slots=True)
class Stratum:
    """Sentences of one task to which the judges gave the same score.

    Attributes:
        task: The task's id.
        score: The mean of the judges' scores, rounded.
        available: How many there are.
        candidates: Some of them, in the order in which they are drawn.
    """

    task: str
    score: int
    available: int
    candidates: Sequence[Candidate]


class GradedResponse(NamedTuple):
    """A response that may be drawn.

    Attributes:
        task: The task's id.
        model: The model's index in the specification.
        available: How many there are of this task and model.
        place: Where it is.
    """

    task: str
    model: int
    available: int
    place: Place


@dataclass(frozen=True, slots=True)
class DrawnStratum:
    """What was drawn of a stratum, or of two between which pairs are made.

    Attributes:
        task: The task's id.
        scores: The mean of the judges' scores, rounded: one, of a pair two, of responses none.
        drawn: How many.
        available: Of how many.
        spread: The pilot's, where the round is divided by it.
        model: Of responses, the model's label.
    """

    task: str
    scores: tuple[int, ...]
    drawn: int
    available: int
    spread: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """What people are shown: sentences, responses, or pairs in the order of their places, and what they were drawn from."""

    things: tuple[tuple[Place, ...], ...]
    strata: tuple[DrawnStratum, ...]


def draw_sentences(strata: Sequence[Stratum], size: int) -> Sample:
    """As many of each score as of any other, as far as there are so many, and within a score of each task.

    Low scores are rare: of sentences drawn evenly, people would see hardly any on which they could contradict the judge.
    """
    by_score: dict[int, list[Stratum]] = defaultdict(list)
    for stratum in strata:
        by_score[stratum.score].append(stratum)
    shares = _even([sum(len(each.candidates) for each in found) for found in by_score.values()], size)
    things: list[tuple[Place, ...]] = []
    drawn: list[DrawnStratum] = []
    for found, share in zip(by_score.values(), shares, strict=True):
        for stratum, count in zip(found, _even([len(each.candidates) for each in found], share), strict=True):
            things += [(candidate.place,) for candidate in stratum.candidates[:count]]
            drawn.append(DrawnStratum(stratum.task, (stratum.score,), count, stratum.available))
    return Sample(tuple(things), tuple(drawn))


def draw_where_labels_help(
    strata: Sequence[Stratum],
    size: int,
    spreads: Mapping[tuple[str, int], float],
    drawn: Mapping[Place, tuple[str, int]],
) -> Sample:
    """Each next sentence from the stratum in which one label more makes the estimate's variance the least.

    That is Neyman's (1934) division in whole numbers: by N · S / √(n (n + 1)) (Wright, 2012). A stratum without a label has the
    mean spread. Within a stratum chance decides, so that all rounds together are one sample of it.

    Args:
        strata: With candidates of which earlier rounds may have drawn some.
        size: How many sentences.
        spreads: The pilot's.
        drawn: What earlier rounds have drawn, each with its task and score.
    """
    left = [[each for each in stratum.candidates if each.place not in drawn] for stratum in strata]
    mean = sum(spreads.values()) / max(1, len(spreads))
    apart = [spreads.get((stratum.task, stratum.score), mean) for stratum in strata]
    known = Counter(drawn.values())
    before = [known[stratum.task, stratum.score] for stratum in strata]
    taken = [0] * len(strata)

    def gain(n: int) -> tuple[bool, float]:
        labels, weight = before[n] + taken[n], strata[n].available * apart[n]
        return labels == 0, weight / math.sqrt(max(1, labels) * (labels + 1))

    for _ in range(size):
        having = [n for n, found in enumerate(left) if taken[n] < len(found)]
        if not having:
            break
        taken[max(having, key=gain)] += 1
    things = [(each.place,) for found, count in zip(left, taken, strict=True) for each in found[:count]]
    return Sample(
        tuple(things),
        tuple(
            DrawnStratum(stratum.task, (stratum.score,), count, stratum.available, spread)
            for stratum, count, spread in zip(strata, taken, apart, strict=True)
        ),
    )


def draw_responses(candidates: Sequence[GradedResponse], size: int, models: Sequence[str]) -> Sample:
    """The first of them, by task and model.

    Args:
        candidates: In the order in which they are drawn, at least one of each task and model.
        size: How many responses.
        models: The models' labels.
    """
    strata: dict[tuple[str, int], list[Place]] = {(each.task, each.model): [] for each in candidates}
    available = {(each.task, each.model): each.available for each in candidates}
    for each in candidates[:size]:
        strata[each.task, each.model].append(each.place)
    drawn = [
        DrawnStratum(key[0], (), len(places), available[key], model=models[key[1]])
        for key, places in strata.items()
    ]
    return Sample(tuple((place,) for places in strata.values() for place in places), tuple(drawn))


def draw_pairs(strata: Sequence[Stratum], size: int) -> Sample:
    """As many of each two different scores as of any other, within a task; no sentence twice if it can be helped.

    The atomic paper's pairs are two sentences with different scores (section 4.3); which, it does not say.
    """
    kinds = [
        (one, other)
        for one, other in combinations(sorted(strata, key=lambda each: (each.task, each.score)), 2)
        if one.task == other.task
    ]
    used: dict[tuple[str, int], int] = defaultdict(int)
    found: dict[int, list[tuple[Place, ...]]] = {n: [] for n in range(len(kinds))}
    seen: set[tuple[Place, ...]] = set()
    open_kinds = list(found)
    while open_kinds and len(seen) < size:
        for n in tuple(open_kinds):
            pair = _next_pair(kinds[n], used, seen) if len(seen) < size else None
            if pair is None:
                open_kinds.remove(n)
            else:
                seen.add(pair)
                found[n].append(pair)
    drawn = [
        DrawnStratum(one.task, (one.score, other.score), len(found[n]), one.available * other.available)
        for n, (one, other) in enumerate(kinds)
    ]
    return Sample(tuple(pair for pairs in found.values() for pair in pairs), tuple(drawn))


def _next_pair(
    kind: tuple[Stratum, Stratum], used: dict[tuple[str, int], int], seen: set[tuple[Place, ...]]
) -> tuple[Place, ...] | None:
    """A pair that has not been drawn; from each stratum its sentences come in turn, again from the first after the last."""
    for _ in range(max(len(each.candidates) for each in kind) * 2):
        chosen = []
        for stratum in kind:
            turn = used[stratum.task, stratum.score]
            used[stratum.task, stratum.score] += 1
            chosen.append(stratum.candidates[turn % len(stratum.candidates)])
        one, other = chosen
        pair = (min(one.place, other.place), max(one.place, other.place))
        if one.text_hash != other.text_hash and pair not in seen:
            return pair
    return None


def _even(available: Sequence[int], size: int) -> list[int]:
    """How many to take of each, as evenly as there are; the first ones get what can't be divided."""
    taken = [0] * len(available)
    while size > 0:
        having = [n for n, count in enumerate(available) if count > taken[n]]
        if not having:
            break
        share = max(1, size // len(having))
        for n in having:
            more = min(share, available[n] - taken[n], size)
            taken[n] += more
            size -= more
    return taken


def order_for(annotator: str, round_id: str, count: int) -> list[int]:
    """The order in which somebody is shown a round's things, by their indexes: another one for everybody."""
    return sorted(range(count), key=lambda n: _draw(round_id, annotator, n))


def is_turned(annotator: str, round_id: str, index: int) -> bool:
    """Whether somebody is shown a pair's second sentence first, as half of all are."""
    return _draw(round_id, annotator, index, "turned")[0] % 2 == 1


def _draw(*key: object) -> bytes:
    return sha256("\0".join(map(str, key)).encode()).digest()


def strata_of(rows: Sequence[tuple[str, int, int, Candidate]]) -> list[Stratum]:
    """Strata from (task, score, available, candidate) in the order in which they are drawn."""
    found: dict[tuple[str, int], list[Candidate]] = defaultdict(list)
    available: Mapping[tuple[str, int], int] = {(task, score): count for task, score, count, _ in rows}
    for task, score, _, candidate in rows:
        found[task, score].append(candidate)
    return [Stratum(*key, available[key], found[key]) for key in sorted(found)]
