"""`/healthz`: the process lives. `/readyz`: the API can serve, and jobs would run."""

import asyncio
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Literal, TypeVar

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.api.http.dependencies import Services, ServicesDep
from app.api.http.openapi import UNREAD, answers_with
from app.db.health import within
from app.db.revision import SchemaState, schema_state
from app.domain.contract import Answer
from app.redis_server import reason as redis_reason

Answered = TypeVar("Answered")

router = APIRouter(tags=["health"], responses=UNREAD)

ANSWER_SECONDS = 3.0
"""How long a part may take to answer."""


class Health(Answer):
    """Whether the service is ready."""

    status: Literal["ok", "degraded", "unavailable"] = Field(
        description="`unavailable` if the API can't serve, `degraded` if jobs don't run as they should."
    )
    parts: dict[str, str] = Field(
        default_factory=dict, description="Each part's status: `ok`, or what is wrong."
    )


@router.get("/healthz", operation_id="getHealth", responses=answers_with(Health), summary="Liveness")
async def healthz() -> Response:
    """Answers as long as the process runs."""
    return JSONResponse({"status": "ok", "parts": {}})


@router.get(
    "/readyz",
    operation_id="getReadiness",
    responses=answers_with(Health) | answers_with(Health, 503),
    summary="Readiness",
)
async def readyz(services: ServicesDep) -> Response:
    """Whether the API can serve, and whether jobs would run.

    `unavailable` (503): the database can't be reached or written, or its schema does not match this release.
    `degraded` (200): the API serves, but the queue, the workers, the sweeper or a process's writer fails.

    Each part that is not `ok` states why. `row_level_security` tells whether Postgres separates tenants; the service works
    without it.
    """
    database, schema, queue, workers, troubles = await asyncio.gather(
        services.database.trouble(ANSWER_SECONDS),
        _schema(services),
        _queue(services.redis),
        _of_redis(services.ready_workers()),
        _of_redis(services.troubles()),
    )
    parts = {"database": database or "ok", "queue": _said(queue)}
    if schema is not None:
        parts["schema"] = schema.value
    if services.row_level_security.stands is not None:
        parts["row_level_security"] = "ok" if services.row_level_security.stands else "off"
    services.states.note(parts)  # without the workers: they begin after the API, as they should
    if workers is not None:
        parts["workers"] = "ok" if workers else "none is ready"
    parts |= troubles or {}
    if database is not None or schema is None or not schema.usable:
        return JSONResponse({"status": "unavailable", "parts": parts}, HTTPStatus.SERVICE_UNAVAILABLE)
    status = "ok" if workers and troubles == {} else "degraded"
    return JSONResponse({"status": status, "parts": parts})


async def _schema(services: Services) -> SchemaState | None:
    """How the tables stand to this release; ``None`` where the database does not say."""
    try:
        return await within(schema_state(services.probe), ANSWER_SECONDS)
    except (SQLAlchemyError, OSError, TimeoutError):
        return None


async def _queue(redis: Redis) -> str | None:
    """Why Redis does not answer; ``None`` if it does."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await redis.execute_command("PING")  # type: ignore[no-untyped-call] # redis-py leaves it untyped
    except (RedisError, OSError) as error:
        return redis_reason(error)
    return None


async def _of_redis(asking: Awaitable[Answered]) -> Answered | None:
    """Return what Redis answers; ``None`` if it does not."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asking
    except (RedisError, OSError):
        return None


def _said(reason: str | None) -> str:
    return "ok" if reason is None else f"unreachable: {reason}"
