import asyncio

from app.limits.in_flight import InFlight


class TestInFlight:
    async def test_keeps_the_calls_under_way_within_each_models_limit(self) -> None:
        limits = {"small": 2, "large": None}
        in_flight = InFlight(lambda _connection, model: limits[model])
        most = dict.fromkeys(limits, 0)
        running = dict.fromkeys(limits, 0)

        async def call(model: str) -> None:
            async with in_flight.slot("openai", model):
                running[model] += 1
                most[model] = max(most[model], running[model])
                await asyncio.sleep(0.001)
                running[model] -= 1

        await asyncio.gather(*(call(model) for model in limits for _ in range(10)))
        assert most == {"small": 2, "large": 10}
