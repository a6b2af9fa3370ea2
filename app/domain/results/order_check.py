"""How far a judge's verdicts depend on the order of its options: figures of the sentences that it judged again.

They say what the order does to a judge; the metrics of a job are made of its verdicts as it was asked first.
"""

from collections import defaultdict
from dataclasses import dataclass

from pydantic import Field

from app.domain.contract import Answer
from app.domain.judging.grouped_reply import USABLE
from app.domain.judging.order_check import ORDERS, Order, OrderCheck
from app.domain.metrics.metric import FloatArray, Metric
from app.domain.results.paired_verdicts import Clusters, Pair, PairedVerdicts, Position


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence that a judge has judged again.

    Attributes:
        judge: The judge's label.
        order: How the options stood.
        dimension: Id of the dimension that was judged.
        response: Which response it is from.
        pair: The verdict that counts, whatever it is, and the one in this order.
    """

    judge: str
    order: Order
    dimension: str
    response: Position
    pair: Pair


class OrderAgreement(Answer):
    """How well one judge's verdicts in one order agree with the verdicts used, over all dimensions (`null`) or on one."""

    judge: str
    order: Order = Field(
        description="Of the options: `repeated` as they were, which shows the judge's own noise; `reversed` from the highest"
        " score to the lowest; `shuffled` with each number before other words."
    )
    dimension: str | None
    scale: dict[str, int] = Field(description="`minimum` and `maximum`; each scale has its own row.")
    sentences: int = Field(description="Judged both ways.")
    responses: int
    left_out: int = Field(
        description="Sentences whose verdict in this order could not be parsed; excluded from all values."
    )
    exact_agreement: Metric = Field(description="Share of the sentences with the same verdict.")
    mean_absolute_difference: Metric
    mean_difference: Metric = Field(
        description="Verdicts used − verdicts in this order, in points of the scale: the order's effect on "
        "MEAN."
    )
    quadratic_kappa: Metric
    acc_as_asked: Metric = Field(description="Share of sentences in character by the verdicts used.")
    acc_in_order: Metric
    acc_difference: Metric = Field(
        description="Verdicts used − verdicts in this order: the order's effect on ACC_atom."
    )


ORDER_METRICS = tuple(
    name for name, field in OrderAgreement.model_fields.items() if field.annotation is Metric
)


class OrderCheckResult(Answer):
    """For a sample, verdicts with the options in other orders beside the verdicts used. The former are in no other value."""

    share: float = Field(description="Share of the sentences, as requested.")
    responses: int = Field(description="Responses with sentences judged again; refusals have none.")
    agreement: list[OrderAgreement] = Field(
        description="By judge, order and dimension. Intervals are over responses."
    )


_Key = tuple[str, int, str, int, int]
"""Judge, place of the order, dimension (empty for all of them), and the ends of the scale."""


class Readings:
    """Takes the sentences that were judged again as they are read, and keeps of them how often what was found."""

    def __init__(self) -> None:
        self._groups: dict[_Key, PairedVerdicts] = defaultdict(PairedVerdicts)
        self._responses = Clusters()

    def add(self, reading: Reading) -> None:
        """Takes a sentence. Those of a response come one after another; without a verdict that says something it is left out."""
        pair = reading.pair
        if pair.first.status not in USABLE:
            return
        response = self._responses.number(reading.response)
        for dimension in ("", reading.dimension):
            key = (
                reading.judge,
                ORDERS.index(reading.order),
                dimension,
                pair.scale.minimum,
                pair.scale.maximum,
            )
            self._groups[key].add(pair, response)

    def result(self, check: OrderCheck) -> OrderCheckResult:
        """How far the verdicts agree."""
        weights = self._responses.weights(check.seed, "order check")
        return OrderCheckResult(
            share=check.share,
            responses=self._responses.count,
            agreement=[self._agreement(key, weights) for key in sorted(self._groups)],
        )

    def _agreement(self, key: _Key, weights: FloatArray) -> OrderAgreement:
        judge, order, dimension, minimum, maximum = key
        group = self._groups[key]
        found = group.figures(maximum - minimum, weights)
        return OrderAgreement(
            judge=judge,
            order=ORDERS[order],
            dimension=dimension or None,
            scale={"minimum": minimum, "maximum": maximum},
            sentences=group.sentences,
            responses=group.responses,
            left_out=group.sentences - found.sentences,
            exact_agreement=found.exact_agreement,
            mean_absolute_difference=found.mean_absolute_difference,
            mean_difference=found.mean_difference,
            quadratic_kappa=found.quadratic_kappa,
            acc_as_asked=found.acc_first,
            acc_in_order=found.acc_second,
            acc_difference=found.acc_difference,
        )
