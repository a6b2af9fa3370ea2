"""A worker process that calls the simulator as fast as the shared limiter lets it: ``python -m … redis simulator rate tasks``."""

import asyncio
import sys

from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, Model, Usage
from app.limits.redis_limiter import RedisRateLimiter
from app.llm.connections.connections import Connection, ConnectionLimits, Connections
from app.llm.gateway import Gateway
from app.ports import CallOutcome, LimiterUnavailableError, ModelCallError, Observation
from app.redis_server import RedisServer

CONNECTION, MODEL = "paced", "sim-judge"


async def work(redis_url: str, simulator_url: str, per_minute: float, tasks: int) -> None:
    """Calls until it is killed."""
    limits = ConnectionLimits(requests_per_minute=per_minute)
    connection = Connection(CONNECTION, "openai", f"{simulator_url}/v1", SecretStr("any"), limits)
    connections = Connections({CONNECTION: connection})
    gateway = Gateway(connections)
    limiter = RedisRateLimiter(RedisServer(redis_url).client(5), connections.limits)
    await limiter.begin()
    request = ChatRequest(Model("judge", CONNECTION, MODEL), None, "Hello", "job_1/limits/a1")

    async def call() -> None:
        while True:
            try:
                slot = await limiter.admit(CONNECTION, MODEL, Usage())
                try:
                    began = asyncio.get_running_loop().time()
                    reply = await gateway.complete(request)
                    took = asyncio.get_running_loop().time() - began
                    limiter.observe(CONNECTION, MODEL, Observation(CallOutcome.ANSWERED, took, reply.usage))
                finally:
                    slot.release()
            except (LimiterUnavailableError, ModelCallError):
                await asyncio.sleep(0.1)

    await asyncio.gather(*(call() for _ in range(tasks)))


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
