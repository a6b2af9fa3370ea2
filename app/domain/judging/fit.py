"""How well a score fits a persona's level, and pairs of texts of which one fits and the other does not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain.instruments.dimension import Scale
from app.domain.judging.judged_response import JudgedResponse
from app.domain.judging.verdict import VerdictStatus

GRADES = Scale(1, 5, ("poor", "middling", "good"), 0)
"""PersonaGym's grades: a response is in character with 4 or 5."""
GOOD = "good"


@dataclass(frozen=True, slots=True)
class Scored:
    """What one judge gave a text: the sum of ``count`` scores, one for each scored sentence."""

    total: int
    count: int

    @property
    def mean(self) -> float:
        """The mean score."""
        return self.total / self.count

    def fits(self, scale: Scale, level: str) -> bool:
        """Whether the mean lies in the level."""
        return scale.levels[scale.level_index(self.total, self.count)] == level


def level_bounds(scale: Scale, level: str) -> tuple[float, float]:
    """A level's lower and upper bound."""
    return scale.bounds()[scale.levels.index(level)]


def reward(scale: Scale, level: str, score: float) -> float:
    """1 in the level, and less the farther away from it: 0 at the farther end of the scale."""
    low, high = level_bounds(scale, level)
    return 1 - max(low - score, score - high, 0) / max(low - scale.minimum, scale.maximum - high)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text, or a sentence of one, that every judge gave a score.

    Attributes:
        text: The text.
        response: The id of its response.
        model: Label of the model that wrote it.
        unit: The sentence; ``None`` for a whole text.
        scores: By judge, in the job's order.
    """

    text: str
    response: str
    model: str
    unit: int | None
    scores: Mapping[str, Scored]

    def fits(self, scale: Scale, level: str) -> bool | None:
        """Whether all judges find it in the level, or all out of it; ``None`` where they are not of one mind."""
        found = {each.fits(scale, level) for each in self.scores.values()}
        return found.pop() if len(found) == 1 else None

    def inside(self, scale: Scale, level: str) -> float:
        """How far it lies from the other levels; negative where it lies in one."""
        low, high = level_bounds(scale, level)
        ends = [(low, 1)] if low > scale.minimum else []
        ends += [(high, -1)] if high < scale.maximum else []
        # Rounded, as the bounds of levels are thirds: both ends of a scale lie equally far from its middle.
        return round(min((each.mean - end) * sign for each in self.scores.values() for end, sign in ends), 9)


@dataclass(frozen=True, slots=True)
class Preference:
    """Two texts for the same prompt.

    Attributes:
        chosen: The one in character.
        rejected: The one out of character.
        margin: By how much their scores differ, as a share of the scale; of several judges, of the one who sees the least difference.
    """

    chosen: Candidate
    rejected: Candidate
    margin: float


def preferences(
    candidates: Sequence[Candidate], scale: Scale, level: str, minimum_margin: float
) -> Iterator[Preference]:
    """Pairs of candidates for one prompt, each candidate in one pair at most: the one that fits best with the one that fits worst first.

    The order of the candidates decides between equals, so that the same candidates give the same pairs.
    """
    fitting: dict[bool | None, list[Candidate]] = {True: [], False: [], None: []}
    for each in candidates:
        fitting[each.fits(scale, level)].append(each)
    chosen = sorted(fitting[True], key=lambda each: -each.inside(scale, level))
    rejected = sorted(fitting[False], key=lambda each: each.inside(scale, level))
    for one, other in zip(chosen, rejected, strict=False):
        margin = min(
            abs(one.scores[judge].mean - other.scores[judge].mean) / scale.width for judge in one.scores
        )
        if margin >= minimum_margin and one.text != other.text:
            yield Preference(one, other, margin)


def text_candidates(
    response: JudgedResponse, dimension: str | None, judges: Sequence[str]
) -> Iterator[Candidate]:
    """The whole text, where each of these judges scored all that was to be scored of it.

    Args:
        response: The response.
        dimension: Of its sentences' scores; ``None`` for the grades of the whole text.
        judges: Labels of the judges that must have.
    """
    if response.text is None:
        return
    given: dict[str, list[int | None]] = {judge: [] for judge in judges}
    if dimension is None:
        for grade in response.grades:
            given.get(grade.judge, []).append(grade.score)
    for unit in response.units if dimension is not None else ():
        of_judges = {each.judge: each for each in unit.verdicts if each.dimension == dimension}
        for judge in judges:
            said = of_judges.get(judge)
            if said is None or said.status is not VerdictStatus.NOT_APPLICABLE:
                given[judge].append(None if said is None else said.score)
    scores = {judge: [score for score in all_ if score is not None] for judge, all_ in given.items()}
    if all(own and len(own) == len(given[judge]) for judge, own in scores.items()):
        summed = {judge: Scored(sum(own), len(own)) for judge, own in scores.items()}
        yield Candidate(response.text, response.id, response.model, None, summed)


def sentence_candidates(
    response: JudgedResponse, dimension: str, judges: Sequence[str]
) -> Iterator[Candidate]:
    """Its sentences to which each of these judges gave a score; none of a text that was not given."""
    for unit in response.units if response.text is not None else ():
        scores = {
            each.judge: Scored(each.score, 1)
            for each in unit.verdicts
            if each.dimension == dimension and each.score is not None
        }
        if scores.keys() >= set(judges):
            own = {judge: scores[judge] for judge in judges}
            yield Candidate(unit.text, response.id, response.model, unit.index, own)


def judged_on(response: JudgedResponse, *, grades: bool = True) -> Iterable[str | None]:
    """The dimensions of a response; ``None`` for the grades of a PersonaGym response, where they are wanted."""
    return (*response.levels, *((None,) if grades and response.question is not None else ()))
