import asyncio

import pytest

from app.services.execution.stop_signal import AbandonedError, StoppedError, StopReason, StopSignal


class TestStopSignal:
    async def test_whoever_waits_stops_at_once(self) -> None:
        stop = StopSignal()

        async def wait() -> None:
            with stop.interruptible():
                await asyncio.Event().wait()

        waiting = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        stop.set(StopReason.SHUTDOWN)
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoppedError] * 3

    async def test_whoever_does_not_wait_goes_on(self) -> None:
        stop = StopSignal()

        async def work() -> str:
            with stop.interruptible():
                pass
            await asyncio.sleep(0)
            return "done"

        working = asyncio.create_task(work())
        await asyncio.sleep(0)
        stop.set(StopReason.SHUTDOWN)
        assert await working == "done"

    async def test_nothing_waits_after_a_stop(self) -> None:
        stop = StopSignal()
        stop.set(StopReason.LEASE_LOST)
        with pytest.raises(StoppedError, match="lease_lost"), stop.interruptible():
            raise AssertionError("must not be reached")

    async def test_the_first_reason_counts(self) -> None:
        stop = StopSignal()
        stop.set(StopReason.LEASE_LOST)
        stop.set(StopReason.SHUTDOWN)
        assert stop.reason is StopReason.LEASE_LOST

    async def test_a_cancellation_from_elsewhere_stays_a_cancellation(self) -> None:
        stop = StopSignal()

        async def wait() -> None:
            with stop.interruptible():
                await asyncio.Event().wait()

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def test_a_slot_that_was_just_given_is_given_back(self) -> None:
        # The stop comes in the same turn of the loop as the slot.
        stop, slot = StopSignal(), asyncio.Semaphore(0)

        async def wait() -> None:
            with stop.interruptible():
                await slot.acquire()
            slot.release()

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        slot.release()
        stop.set(StopReason.SHUTDOWN)
        with pytest.raises(StoppedError):
            await waiting
        await asyncio.wait_for(slot.acquire(), 1)


async def fly(stop: StopSignal) -> None:
    with stop.on_the_wire():
        await asyncio.Event().wait()


class TestCut:
    async def test_every_call_on_the_wire_is_given_up_for_the_reason_of_the_stop(self) -> None:
        stop = StopSignal()
        calls = [asyncio.create_task(fly(stop)) for _ in range(3)]
        await asyncio.sleep(0)
        stop.set(StopReason.SHUTDOWN)
        assert stop.cut() == 3
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, AbandonedError)
            assert outcome.args == (StopReason.SHUTDOWN,)
        assert not any(call.cancelled() or call.cancelling() for call in calls)

    async def test_a_call_that_was_answered_is_not_among_them(self) -> None:
        stop = StopSignal()
        with stop.on_the_wire():
            pass
        assert stop.cut() == 0

    async def test_being_cancelled_by_others_is_another_matter_also_while_it_is_to_be_given_up(self) -> None:
        stop = StopSignal()
        call = asyncio.create_task(fly(stop))
        await asyncio.sleep(0)
        stop.give_up()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
