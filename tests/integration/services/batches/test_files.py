"""What workers that die leave at a provider: no file, and nothing that is asked for twice."""

import json
import urllib.request
from collections.abc import AsyncGenerator
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.batches import batches
from app.db.batches import files as batch_files
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply
from app.ports import AnswersIncompleteError, FailureKind, ModelCallError
from app.services.batches import advance as advance_module
from app.services.batches import files as service_module
from app.services.batches import shards as batched_shard_module
from app.services.batches.advance import advance_batch
from app.services.batches.caller import MOST_ROUNDS
from app.services.batches.files import delete_batch_file
from app.services.batches.shards import FIRST_WAIT_SECONDS
from tests.integration.jobs import execute, scalar
from tests.integration.services.batches.test_batches import (
    ROUNDS,
    Service,
    batched_job,
    connection,
    dying_once,
    service,
    simulator,
    survived,
)

__all__ = ["connection", "service", "simulator"]

INCOMPLETE = AnswersIncompleteError(
    "1 of 2 answers came", kind=FailureKind.RETRY, code="answers_incomplete", maybe_paid=True
)


def files(service: Service) -> list[str]:
    """The names of the files that the provider has."""
    request = urllib.request.Request(
        f"{service.simulator.url}/v1/files", headers={"authorization": "Bearer any"}
    )
    with urllib.request.urlopen(request) as answer:
        return [file["filename"] for file in json.load(answer)["data"]]


async def until_tidy(service: Service, engine: AsyncEngine) -> None:
    for _ in range(5):
        await execute(engine, "UPDATE batch_files SET due_at = clock_timestamp()")
        await service.step()


class TestFiles:
    @pytest.mark.parametrize(
        ("owner", "name"),
        [
            (batch_files, "begin"),
            (batch_files, "uploaded"),
            (batches, "begin_submission"),
            (batches, "submitted"),
            (batches, "end"),
            (service_module, "_delete"),
            (batch_files, "forget"),
        ],
        ids=lambda value: getattr(value, "__name__", str(value)).rpartition(".")[2],
    )
    async def test_are_not_left_at_the_provider_whoever_dies(
        self,
        engine: AsyncEngine,
        service: Service,
        monkeypatch: pytest.MonkeyPatch,
        owner: Any,
        name: str,
    ) -> None:
        died = dying_once(monkeypatch, owner, name)
        job = await batched_job(service)
        await survived(service, job)
        await until_tidy(service, engine)
        assert died
        assert files(service) == []
        assert set(service.asked(job).values()) == {1}

    async def test_are_there_as_long_as_their_batch_is(self, engine: AsyncEngine, service: Service) -> None:
        job = await batched_job(service)
        await service.until_submitted()
        async with engine.begin() as connection:
            assert await batch_files.due(connection) == []
        assert len(files(service)) == 1
        await service.completed(job)
        await until_tidy(service, engine)
        assert files(service) == []
        assert not await scalar(engine, "SELECT count(*) FROM batch_files")

    async def test_that_cannot_be_deleted_are_tried_again_and_then_left(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refused = ModelCallError("HTTP 403", kind=FailureKind.JOB, code="http_403", status=403)
        asked = AsyncMock(side_effect=refused)
        monkeypatch.setattr(service_module, "MOST_FAILURES", 2)
        monkeypatch.setattr(service.gateway, "delete_file", asked)
        id_ = uuid4()
        await execute(
            engine,
            "INSERT INTO batch_files (id, tenant, connection) VALUES (:id, 'default', 'simulated')",
            id=id_,
        )
        for failures in (1, 2):
            await delete_batch_file(service.deps, id_)
            assert await scalar(engine, "SELECT failures FROM batch_files") == failures
        await delete_batch_file(service.deps, id_)
        assert not await scalar(engine, "SELECT count(*) FROM batch_files")
        assert asked.await_count == 3

    async def test_that_are_not_to_be_found_may_still_be_on_their_way_for_a_while(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        insert = (
            "INSERT INTO batch_files (id, tenant, connection, made_at)"
            " VALUES (:id, 'default', 'simulated', clock_timestamp() - make_interval(secs => :age))"
        )
        young, old = uuid4(), uuid4()
        await execute(engine, insert, id=young, age=10)
        await execute(engine, insert, id=old, age=service_module.LONGEST_UPLOAD_SECONDS + 10)
        for id_ in (young, old):
            await delete_batch_file(service.deps, id_)
        assert await scalar(engine, "SELECT array_agg(id) FROM batch_files") == [young]


class TestBrokenDownloads:
    async def test_are_repeated_and_nothing_is_asked_twice(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, connection: str
    ) -> None:
        answers = service.gateway.answers
        broken: list[str] = []

        async def breaking(where: str, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
            given = 0
            async for answer in answers(where, provider_id):
                if given == 1 and provider_id not in broken:
                    broken.append(provider_id)
                    raise INCOMPLETE
                given += 1
                yield answer

        monkeypatch.setattr(service.gateway, "answers", breaking)
        job = await batched_job(service, connection)
        assert (await service.completed(job)).completeness == "full"
        assert broken
        assert set(service.asked(job).values()) == {1}

    async def test_that_stay_so_count_as_perhaps_paid_in_the_end(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = service.gateway.answers
        monkeypatch.setattr(batches, "MOST_FAILURES", 3)
        monkeypatch.setattr(advance_module, "LONGEST_BACKOFF_SECONDS", 0.01)
        broken: list[str] = []

        async def breaking(where: str, provider_id: str) -> AsyncGenerator[tuple[str, str]]:
            broken.append(provider_id)
            async for answer in answers(where, provider_id):
                if provider_id == broken[0]:
                    yield answer
                    raise INCOMPLETE
                yield answer

        monkeypatch.setattr(service.gateway, "answers", breaking)
        job = await batched_job(service)
        assert (await service.completed(job)).completeness == "full"
        assert broken.count(broken[0]) == 4
        lost = await execute(engine, "SELECT maybe_paid, usd FROM calls WHERE code = 'batch_lost'")
        assert [(row.maybe_paid, row.usd) for row in lost] == [(True, 0.0)]


class TestRateLimitsInAnswers:
    async def test_are_waited_for_and_are_no_failures_of_the_item(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(batched_shard_module, "FIRST_WAIT_SECONDS", 0.001)
        decode, limited = service.gateway.decode, 0

        def limiting(where: str, answer: str) -> ChatReply:
            nonlocal limited
            if limited < 2 * (MOST_ROUNDS + 1):
                limited += 1
                raise ModelCallError("HTTP 429", kind=FailureKind.RETRY, code="rate_limited", status=429)
            return decode(where, answer)

        monkeypatch.setattr(service.gateway, "decode", limiting)
        job = await batched_job(service)
        assert (await service.completed(job)).completeness == "full"
        assert await scalar(engine, "SELECT max(attempt) FROM calls") == MOST_ROUNDS + 2

    async def test_have_the_next_batch_wait(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def limiting(where: str, answer: str) -> ChatReply:
            raise ModelCallError("HTTP 429", kind=FailureKind.RETRY, code="rate_limited", status=429)

        monkeypatch.setattr(service.gateway, "decode", limiting)
        await batched_job(service)
        waiting = (
            "SELECT max(extract(epoch FROM due_at - clock_timestamp())) FROM batches WHERE state = 'formed'"
        )
        for _ in range(ROUNDS):
            await service.step()
            if (seconds := await scalar(engine, waiting)) and seconds > 10:
                break
        assert 10 < seconds <= FIRST_WAIT_SECONDS


class TestOurErrors:
    async def test_are_not_counted_as_the_providers(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        away = ModelCallError("HTTP 503", kind=FailureKind.RETRY, code="http_503", status=503)
        asked = AsyncMock(side_effect=[away, away, away, away, RuntimeError, away])
        monkeypatch.setattr(service.gateway, "has_ended", asked)
        job = await batched_job(service, iterations=1)
        await service.until_submitted()
        (batch_id,) = [row.id for row in await execute(engine, "SELECT id FROM batches")]
        counts = []
        for _ in range(6):
            await execute(engine, "UPDATE batches SET due_at = clock_timestamp()")
            await advance_batch(service.deps, batch_id)
            (row,) = await execute(engine, "SELECT failures, errors FROM batches")
            counts.append((row.failures, row.errors))
        assert counts == [(1, 0), (2, 0), (3, 0), (4, 0), (4, 1), (5, 0)]
        assert (await service.job(job)).status is JobStatus.RUNNING
