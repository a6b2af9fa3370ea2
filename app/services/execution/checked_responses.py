"""Judges a sample of the sentences again with the options in other orders, if the job asks for it.

What a judge says of a sentence beside the verdict that counts is a *second verdict*: here that of an order, for judges that
are asked about several sentences that of one alone. It is written, found again and asked for anew as verdicts are.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

from app.db.engine import single_statements
from app.db.execution import stored_rows
from app.db.execution.result_rows import ResponseRow, SecondVerdictRow
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import Item
from app.domain.judging import order_check
from app.domain.judging.order_check import ORDERS, Order
from app.domain.providers.model import Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.responses import Judgement, Missing, Responses


class Asked(NamedTuple):
    """Which judge is asked what, but for the sentences."""

    response: ResponseRow
    item: Item
    trait: int
    dimension: Dimension
    judge: int


class CheckedResponses(Responses):
    """The work of one claim on responses of whose sentences some are judged a second time."""

    second: frozenset[tuple[int, int, int, int, int, bool]] = frozenset()
    """(run, item, unit, trait, judge, alone) of the second verdicts that there were at the claim."""

    async def _read_stored(self) -> dict[tuple[int, int], ResponseRow]:
        if self.spec.grouping is not None or self.spec.order_check is not None:
            async with single_statements(self.deps.engine) as connection:
                self.second = frozenset(await stored_rows.stored_second_verdicts(connection, self.claim))
        return await super()._read_stored()

    @property
    def _order_check(self) -> order_check.OrderCheck | None:
        """The check, which is of sentences written as a persona."""
        return None if self.cell.control else self.spec.order_check

    def _verdicts_due(self, run: int, item: Item, status: str, units: int) -> int:
        due, check = super()._verdicts_due(run, item, status, units), self._order_check
        if check is None or status != "answered":
            return due
        again = len(ORDERS) * check.drawn(self.claim.cell, run, item.index, units)
        return due + super()._verdicts_due(run, item, status, again)

    def _asked(self, response: ResponseRow, item: Item) -> list[Asked]:
        return [
            Asked(response, item, trait, dimension, judge)
            for trait, dimension in self.cell.traits_of(item)
            for judge in range(len(self.spec.judges))
        ]

    def _judgements(
        self, response: ResponseRow, item: Item, units: Sequence[Unit], missing: Sequence[Missing]
    ) -> list[Coroutine[Any, Any, None]]:
        work, check = super()._judgements(response, item, units, missing), self._order_check
        if check is None:
            return work
        place = self.claim.cell, response.run, response.item
        drawn = [unit for unit in units if check.draws(*place, unit.index)]
        return work + [
            self._judge_in_order(one, unit, order, check.seed)
            for unit in drawn
            for one in self._asked(response, item)
            for order in ORDERS
        ]

    async def _judge_in_order(self, asked: Asked, unit: Unit, order: Order, seed: int) -> None:
        place = self.claim.cell, asked.response.run, asked.response.item, unit.index
        shown = order_check.asked(asked.dimension, order, seed, *place)
        number = order_check.number_of(asked.judge, order, len(self.spec.judges))
        said = await self._judge_again(asked._replace(dimension=shown.dimension), unit, number)
        if said is not None:
            self._record_again(asked, unit, number, said._replace(verdict=shown.meant(said.verdict)))

    async def _judge_again(self, asked: Asked, unit: Unit, number: int) -> Judgement | None:
        """What a judge says about a sentence alone; ``None`` if that was recorded before under this number in its place."""
        response, item, trait, dimension, judge = asked
        if (response.run, response.item, unit.index, trait, number, True) in self.second:
            return None
        key = CallKey(Stage.CHECKING, response.run, response.item, unit.index, trait, number)
        return await self._ask_alone(key, item, dimension, unit, judge)

    def _record_again(self, asked: Asked, unit: Unit, number: int, said: Judgement) -> None:
        row = self._second_row(asked, unit, number, said, alone=True)
        self.last_batch = self.deps.writer.add(self.claim, row)

    def _second_row(
        self, asked: Asked, unit: Unit, number: int, said: Judgement, *, alone: bool
    ) -> SecondVerdictRow:
        return SecondVerdictRow(
            cell_id=self.claim.cell_id,
            run=asked.response.run,
            item=asked.response.item,
            unit=unit.index,
            trait=asked.trait,
            judge=number,
            alone=alone,
            tenant=self.claim.tenant,
            status=said.verdict.status.value,
            score=said.verdict.score,
            raw=said.raw,
            finish_reason=said.finish_reason,
            thoughts=said.thoughts,
            unread=said.verdict.unread,
            repair_raw=said.repair_raw,
            error=said.error,
        )
