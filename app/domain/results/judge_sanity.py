"""Checks whether a job's judges can be trusted."""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from app.domain.metrics.interval import Ends
from app.domain.metrics.metric import Metric
from app.domain.personagym.agreement import GradeAgreement
from app.domain.results.verdict_agreement import VerdictAgreement
from app.domain.results.warnings import ResultWarning

FEWEST = 20
"""Sentences or replies below which most checks are not made: of so few, one score for 90 % can be chance."""
_NORMAL = 1.96
CHANCE = "chance_agreement"


@dataclass(slots=True)
class JudgedUnits:
    """One judge's verdicts on one dimension, or its grades of PersonaGym answers.

    Attributes:
        scores: Number of units with each score.
        not_applicable: Units judged not applicable.
        replies: Replies, readable or not.
        unreadable: Those without a score or "not applicable".
        contradicting: Replies whose parts contradict each other.
    """

    scores: Counter[int] = field(default_factory=Counter)
    not_applicable: int = 0
    replies: int = 0
    unreadable: int = 0
    contradicting: int = 0


class JudgeAndDimension(NamedTuple):
    """What units are counted by; ``dimension`` is ``None`` for grades."""

    judge: str
    dimension: str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the checks look at: all verdicts of a job, those of the control arm included.

    Attributes:
        units: By judge and dimension.
        labels: The dimensions' display names.
        agreement: Agreement of the judges' verdicts.
        grade_agreement: Agreement of their grades.
        imported: Judges whose verdicts were imported; their options may have lacked "not applicable".
    """

    units: Mapping[JudgeAndDimension, JudgedUnits]
    labels: Mapping[str, str]
    agreement: Sequence[VerdictAgreement] = ()
    grade_agreement: Sequence[GradeAgreement] = ()
    imported: Container[str] = ()

    @property
    def judges(self) -> list[str]:
        """The judges, each once."""
        return list(dict.fromkeys(key.judge for key in self.units))

    def of(self, judge: str, *, sentences: bool = False) -> list[JudgedUnits]:
        """A judge's units; without grades if only ``sentences`` are wanted."""
        return [
            found
            for key, found in self.units.items()
            if key.judge == judge and not (sentences and key.dimension is None)
        ]


@dataclass(frozen=True, slots=True)
class Check:
    """A check of judges.

    Attributes:
        code: The warning's.
        limit: The value from which it warns.
        fewest: Units below which it is not made; of ``unreadable_replies``, unreadable ones.
        find: Finds what to warn of.
    """

    code: str
    limit: float
    fewest: int
    find: Callable[["Check", Evidence], Iterator[ResultWarning]]

    def warning(
        self,
        judges: Sequence[str],
        message: str,
        value: float | None,
        n: int,
        of: Literal["sentences", "grades", "all"] = "sentences",
        *,
        dimension: str | None = None,
        ci95: Ends | None = None,
        summary: str | None = None,
    ) -> ResultWarning:
        """Its warning."""
        return ResultWarning(
            code=self.code,
            message=message,
            summary=summary,
            of=of,
            judges=list(judges),
            dimension=dimension,
            value=value,
            ci95=ci95,
            n=n,
            limit=self.limit,
        )


def judge_warnings(evidence: Evidence) -> Iterator[ResultWarning]:
    """The warnings of all checks, check by check."""
    for check in CHECKS:
        yield from check.find(check, evidence)


def chance_interval(kappa: Metric) -> Ends | None:
    """κ's 95 % interval, if it includes 0: the stored one, or else κ ± 1.96 / √n.

    The latter is too wide rather than too narrow: of independent judges, κ varies at most as Pearson's r does.
    """
    if kappa.value is None:
        return None
    margin = _NORMAL / math.sqrt(kappa.n)
    low, high = kappa.ci95 or (max(-1.0, kappa.value - margin), min(1.0, kappa.value + margin))
    return (low, high) if low <= 0 <= high else None


def by_chance(kappa: Metric, things: int, of: str) -> str | None:
    """Say that two judges agree no better than chance; ``None`` if they do, or on fewer than :data:`FEWEST` things.

    Args:
        kappa: Their κ; missing if both gave everything the same score.
        things: How many sentences or answers both scored.
        of: What these are.
    """
    if things < FEWEST:
        return None
    if kappa.value is None:
        return f"both judges gave all of {things:,} {of} the same score"
    ends = chance_interval(kappa)
    if ends is None:
        return None
    return f"the judges {_no_better(kappa, ends, things, of)}"


def _no_better(kappa: Metric, ends: Ends, things: int, of: str) -> str:
    return (
        f"agree no better than chance on {things:,} {of}"
        f" (κ {kappa.value:.2f}, 95 % interval {ends[0]:.2f} to {ends[1]:.2f})"
    )


class _OneScore(NamedTuple):
    """A judge's most frequent answer on a dimension, or to PersonaGym's questions."""

    judge: str
    answer: str
    dimension: str | None
    times: int
    n: int


def _one_score(check: Check, evidence: Evidence) -> Iterator[ResultWarning]:
    found = list(_most_frequent(check, evidence))
    for each in found:
        judge, answer, dimension, times, n = each
        on = "answers" if dimension is None else f"sentences on {evidence.labels[dimension]}"
        message = f"{judge} gives {answer} to {100 * times / n:.0f} % of {n:,} {on}."
        of: Literal["sentences", "grades"] = "grades" if dimension is None else "sentences"
        alike = [other for other in found if other[:2] == each[:2] and other.dimension is not None]
        summary = _in_one_line(alike, evidence.labels) if dimension is not None and len(alike) > 1 else None
        yield check.warning([judge], message, times / n, n, of, dimension=dimension, summary=summary)


def _in_one_line(alike: Sequence[_OneScore], labels: Mapping[str, str]) -> str:
    times, n = sum(each.times for each in alike), sum(each.n for each in alike)
    names = [labels[each.dimension] for each in alike if each.dimension is not None]
    on = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{alike[0].judge} gives {alike[0].answer} in {100 * times / n:.0f} % of {n:,} verdicts on {on}."


def _most_frequent(check: Check, evidence: Evidence) -> Iterator[_OneScore]:
    for (judge, dimension), units in evidence.units.items():
        answers = Counter({f"the score {score}": count for score, count in units.scores.items()})
        answers["the answer “not applicable”"] = units.not_applicable
        n = answers.total()
        if n < check.fewest:
            continue
        answer, count = answers.most_common(1)[0]
        if count >= check.limit * n:
            yield _OneScore(judge, answer, dimension, count, n)


def _contradictions(check: Check, evidence: Evidence) -> Iterator[ResultWarning]:
    for judge in evidence.judges:
        own = evidence.of(judge)
        n, count = sum(each.replies for each in own), sum(each.contradicting for each in own)
        if n >= check.fewest and count > check.limit * n:
            message = (
                f"{judge} contradicts itself in {100 * count / n:.0f} % of {n:,} replies, for example by the number of"
                " one option with the words of another."
            )
            yield check.warning([judge], message, count / n, n, "all")


def _unreadable(check: Check, evidence: Evidence) -> Iterator[ResultWarning]:
    for judge in evidence.judges:
        own = evidence.of(judge)
        n, count = sum(each.replies for each in own), sum(each.unreadable for each in own)
        if count >= check.fewest and count > check.limit * n:
            message = f"{count:,} of {n:,} replies of {judge} cannot be read as a score."
            yield check.warning([judge], message, count / n, n, "all")


def _chance_agreement(check: Check, evidence: Evidence) -> Iterator[ResultWarning]:
    found: set[tuple[str, ...]] = set()
    # All sentences come first; a pair that agrees by chance there is not listed again for each dimension.
    for group in evidence.agreement:
        for pair in group.pairs if group.by in ([], ["dimension"]) else ():
            kappa = pair.quadratic_kappa
            ends = chance_interval(kappa) if kappa.n >= check.fewest else None
            if ends is None or pair.judges in found:
                continue
            found |= {pair.judges} if not group.by else set()
            on = "" if group.dimension is None else f" on {evidence.labels[group.dimension]}"
            message = f"{' and '.join(pair.judges)} {_no_better(kappa, ends, kappa.n, f'sentences{on}')}."
            yield check.warning(
                pair.judges, message, kappa.value, kappa.n, dimension=group.dimension, ci95=ends
            )
    graded: dict[tuple[str, str], list[Metric]] = {}
    for each in evidence.grade_agreement:
        if each.quadratic_kappa.n >= check.fewest:
            graded.setdefault(each.judges, []).append(each.quadratic_kappa)
    for judges, kappas in graded.items():
        # Tasks are small: only judges that agree by chance in each of them are named.
        best = max(kappas, key=lambda kappa: kappa.value or 0.0)
        ends = chance_interval(best)
        if ends is not None and all(map(chance_interval, kappas)):
            of = "answers, in the task in which they agree most"
            message = f"{' and '.join(judges)} {_no_better(best, ends, best.n, of)}."
            yield check.warning(judges, message, best.value, best.n, "grades", ci95=ends)


def _never_not_applicable(check: Check, evidence: Evidence) -> Iterator[ResultWarning]:
    for judge in evidence.judges:
        own = evidence.of(judge, sentences=True)
        n = sum(each.scores.total() for each in own)
        answered = judge in evidence.imported or any(each.not_applicable for each in own)
        if n >= check.fewest and not answered:
            message = (
                f"{judge} gave a score to all of {n:,} sentences and never answered “not applicable”; in most texts some"
                " sentences say nothing about the trait."
            )
            yield check.warning([judge], message, 0.0, n)


CHECKS = (
    Check("one_score", 0.9, FEWEST, _one_score),
    Check("contradicting_replies", 0.05, FEWEST, _contradictions),
    Check("unreadable_replies", 0.5, 2, _unreadable),
    Check(CHANCE, 0.0, FEWEST, _chance_agreement),
    Check("never_not_applicable", 0.0, 200, _never_not_applicable),
)
"""All checks, the gravest first."""
