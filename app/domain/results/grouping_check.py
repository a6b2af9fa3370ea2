"""How far verdicts on several sentences a call agree with those on one: figures of the sample that has both.

They say what grouping does to a judge; the metrics of a job are made of its grouped verdicts alone.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from app.domain.contract import Answer, Number
from app.domain.instruments.dimension import Scale
from app.domain.judging.grouping import Grouping
from app.domain.judging.verdict import Verdict
from app.domain.metrics.metric import FloatArray, Metric
from app.domain.results.paired_verdicts import Clusters, Pair, PairedVerdicts, Position


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence that one judge has judged both ways.

    Attributes:
        judge: The judge's label.
        task: Id of the task that the response belongs to.
        scale: Of the dimension that was judged.
        level: The persona's level on it.
        response: Which response it is from.
        grouped: The verdict with other sentences in the same call; always one that counts.
        alone: The verdict on the sentence alone, whatever it is.
        suspicious: Whether the grouped verdict is doubtful (:mod:`app.domain.judging.prompt_injection`).
    """

    judge: str
    task: str
    scale: Scale
    level: str
    response: Position
    grouped: Verdict
    alone: Verdict
    suspicious: bool = False


class JudgingAgreement(Answer):
    """How well one judge's grouped and single verdicts agree, over all tasks (`task` is `null`) or in one; n counts sentences."""

    judge: str
    task: str | None
    scale: dict[str, int] = Field(description="`minimum` and `maximum`; each scale has its own row.")
    sentences: int = Field(description="Judged both ways.")
    responses: int
    left_out: int = Field(
        description="Sentences whose single verdict could not be parsed; excluded from all values."
    )
    suspicious: int = Field(
        description="Sentences whose grouped verdict has a `suspicion`; included in all values."
    )
    exact_agreement: Metric
    mean_absolute_difference: Metric
    mean_difference: Metric = Field(description="Grouped minus alone, in points of the scale.")
    quadratic_kappa: Metric
    acc_grouped: Metric = Field(description="Share of sentences in character when judged in groups.")
    acc_alone: Metric
    acc_difference: Metric


CHECK_METRICS = tuple(
    name for name, field in JudgingAgreement.model_fields.items() if field.annotation is Metric
)


class JudgingCheck(Answer):
    """For a sample, verdicts on several sentences per call beside verdicts on one per call. The latter are used in no other value."""

    sentences_per_call: int
    sample: dict[str, Number] = Field(
        description="`share` and `minimum` as asked for, the `responses` drawn, and how many they were `drawn_from`."
    )
    responses: int = Field(description="Responses with sentences judged both ways; refusals have none.")
    sentences: int
    asked_alone: dict[str, int] = Field(
        description="Sentences judged alone because their part of a group's reply was unusable, by status."
    )
    agreement: list[JudgingAgreement]


_GroupKey = tuple[str, str, int, int]
"""Judge, task (empty for all of them), and the ends of the scale."""


class CheckedSentences:
    """Takes the sentences that were judged both ways as they are read, and keeps of them how often what was found."""

    def __init__(self) -> None:
        self._groups: dict[_GroupKey, PairedVerdicts] = defaultdict(PairedVerdicts)
        self._suspicious: Counter[_GroupKey] = Counter()
        self._responses = Clusters()

    def add(self, sentence: CheckedSentence) -> None:
        """Takes a sentence. Those of a response come one after another, the responses always in the same order."""
        response = self._responses.number(sentence.response)
        pair = Pair(sentence.scale, sentence.level, sentence.grouped, sentence.alone)
        for task in ("", sentence.task):
            key = sentence.judge, task, sentence.scale.minimum, sentence.scale.maximum
            self._groups[key].add(pair, response)
            self._suspicious[key] += sentence.suspicious

    def check(self, grouping: Grouping, asked_alone: Mapping[str, int]) -> JudgingCheck:
        """How far the two ways agree.

        Args:
            grouping: How the job groups sentences.
            asked_alone: Sentences whose group's reply could not be used for them, by what became of it.
        """
        weights = self._responses.weights(grouping.seed, "judging check")
        return JudgingCheck(
            sentences_per_call=grouping.sentences,
            sample={
                "share": grouping.check_share,
                "minimum": grouping.check_minimum,
                "responses": grouping.checked,
                "drawn_from": grouping.drawn_from,
            },
            responses=self._responses.count,
            sentences=sum(group.sentences for key, group in self._groups.items() if not key[1]),
            asked_alone={
                status: asked_alone.get(status, 0) for status in ("unparsed", "refused", "failed", "filtered")
            },
            agreement=[self._agreement(key, weights) for key in sorted(self._groups)],
        )

    def _agreement(self, key: _GroupKey, weights: FloatArray) -> JudgingAgreement:
        judge, task, minimum, maximum = key
        group = self._groups[key]
        found = group.figures(maximum - minimum, weights)
        return JudgingAgreement(
            judge=judge,
            task=task or None,
            scale={"minimum": minimum, "maximum": maximum},
            sentences=group.sentences,
            responses=group.responses,
            left_out=group.sentences - found.sentences,
            suspicious=self._suspicious[key],
            exact_agreement=found.exact_agreement,
            mean_absolute_difference=found.mean_absolute_difference,
            mean_difference=found.mean_difference,
            quadratic_kappa=found.quadratic_kappa,
            acc_grouped=found.acc_first,
            acc_alone=found.acc_second,
            acc_difference=found.acc_difference,
        )
