"""`/healthz`: the process lives. `/readyz`: it can reach what it needs."""

import asyncio
from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.api.answer import Answer
from app.api.dependencies import ServicesDep
from app.api.openapi import UNREAD, answers_with
from app.db.health import answers as database_answers

router = APIRouter(tags=["health"], responses=UNREAD)

PATIENCE_SECONDS = 3.0


class Health(Answer):
    """Whether the service can do its work."""

    status: Literal["ok", "unavailable"]
    parts: dict[str, str] = Field(default_factory=dict)


@router.get("/healthz", responses=answers_with(Health), summary="Is the process alive?")
async def healthz() -> Response:
    """Answers as long as the process does."""
    return JSONResponse({"status": "ok", "parts": {}})


@router.get(
    "/readyz",
    responses=answers_with(Health) | answers_with(Health, 503),
    summary="Can it work?",
)
async def readyz(services: ServicesDep) -> Response:
    """Whether the database and the queue can be reached; and whether the database keeps tenants apart, without which it can work all the same."""
    database, queue = await asyncio.gather(
        database_answers(services.engine, PATIENCE_SECONDS), _answers(services.redis)
    )
    parts = {"database": _state(answers=database), "queue": _state(answers=queue)}
    if services.wall.stands is not None:
        parts["tenant_wall"] = "ok" if services.wall.stands else "off"
    if database and queue:
        return JSONResponse({"status": "ok", "parts": parts})
    return JSONResponse({"status": "unavailable", "parts": parts}, HTTPStatus.SERVICE_UNAVAILABLE)


async def _answers(redis: Redis) -> bool:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await redis.execute_command("PING")  # type: ignore[no-untyped-call] # redis-py leaves it untyped
    except (RedisError, OSError):
        return False
    return True


def _state(*, answers: bool) -> str:
    return "ok" if answers else "unreachable"
