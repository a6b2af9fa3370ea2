"""`/healthz`: the process lives. `/readyz`: it can reach what it needs."""

import asyncio
from collections.abc import Awaitable
from http import HTTPStatus

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from redis.asyncio import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.api import answers
from app.api.dependencies import ServicesDep
from app.api.openapi import answers_with
from app.db.health import ping

router = APIRouter(tags=["health"])

PATIENCE_SECONDS = 3.0


@router.get("/healthz", responses=answers_with(answers.Health), summary="Is the process alive?")
async def healthz() -> Response:
    """Answers as long as the process does."""
    return JSONResponse({"status": "ok", "parts": {}})


@router.get(
    "/readyz",
    responses=answers_with(answers.Health) | answers_with(answers.Health, 503),
    summary="Can it work?",
)
async def readyz(services: ServicesDep) -> Response:
    """Whether the database and the queue can be reached."""
    database, queue = await asyncio.gather(_state(ping(services.engine)), _state(_ping(services.redis)))
    parts = {"database": database, "queue": queue}
    if database == queue == "ok":
        return JSONResponse({"status": "ok", "parts": parts})
    return JSONResponse({"status": "unavailable", "parts": parts}, HTTPStatus.SERVICE_UNAVAILABLE)


async def _ping(redis: Redis) -> None:
    await redis.execute_command("PING")  # type: ignore[no-untyped-call] # redis-py leaves it untyped


async def _state(check: Awaitable[object]) -> str:
    try:
        await asyncio.wait_for(check, PATIENCE_SECONDS)
    except (SQLAlchemyError, RedisError, OSError, TimeoutError):
        return "unreachable"
    return "ok"
