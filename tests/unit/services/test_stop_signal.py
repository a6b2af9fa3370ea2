import asyncio

import pytest

from app.services.stop_signal import StoppedError, StopReason, StopSignal


class TestStopSignal:
    async def test_whoever_waits_stops_at_once(self) -> None:
        stop = StopSignal()

        async def wait() -> None:
            with stop.interruptible():
                await asyncio.sleep(60)

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
            await asyncio.sleep(0.01)
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
                await asyncio.sleep(60)

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
