"""Jobs in a real database, without the API around them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution import shards
from app.db.execution.result_rows import CallRow, ResponseRow, VerdictRow
from app.db.execution.shards import Claim
from app.db.jobs.jobs import JobRow
from app.domain.instruments.rules import RuleBook
from app.domain.jobs.request import JobIn
from app.guard.targets import Guard
from app.instruments.grouped_loader import load_grouped
from app.instruments.hardened_loader import load_hardened
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from app.instruments.rules import RULES
from app.llm.connections.connections import Connections, load_connections
from app.llm.models.prices import GenaiPriceBook
from app.ports import Queue
from app.services.jobs.control import ControlDependencies
from app.services.jobs.submit import Submission, SubmissionDependencies, submit_job
from app.services.providers.catalog import make_catalog
from app.services.providers.connection_book import ConnectionBook
from app.vault.secret_cipher import SecretCipher
from tests.job_requests import a_job, a_model

TENANT = "default"
LEASE_SECONDS = 20.0
BATCH_CALLS = 100


@dataclass
class RecordingQueue:
    """A queue that nobody listens to."""

    waiting: int | None = 0

    shards: list[int] = field(default_factory=list)
    finals: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    files: list[UUID] = field(default_factory=list)

    async def announce_shards(self, shard_ids: Sequence[int]) -> None:
        self.shards += shard_ids

    async def announce_batches(self, batch_ids: Sequence[int]) -> None:
        self.batches += batch_ids

    async def announce_files(self, file_ids: Sequence[UUID]) -> None:
        self.files += file_ids

    async def length(self) -> int | None:
        return self.waiting

    async def announce_finalize(self, job_id: str) -> None:
        self.finals.append(job_id)


def simulated_connections(simulator_url: str = "http://127.0.0.1:9") -> Connections:
    """Those of a simulator; of one that is away unless stated otherwise."""
    return load_connections(None, {}, simulator_url)


def submission_dependencies(
    engine: AsyncEngine, queue: Queue, *, window: int = 16, rules: RuleBook = RULES
) -> SubmissionDependencies:
    connections = simulated_connections()
    return SubmissionDependencies(
        engine=engine,
        catalog=make_catalog(
            load_atomic(), load_personagym(), load_grouped(), load_hardened(), rules, connections
        ),
        queue=queue,
        window=window,
        max_planned_calls=1_000_000,
        confirm_calls_above=1_000_000,
        max_unfinished_jobs=1_000,
        prices=GenaiPriceBook(connections),
        book=ConnectionBook(engine, connections, Guard(), SecretCipher(())),
    )


def control_dependencies(
    engine: AsyncEngine, queue: Queue | None = None, window: int = 16
) -> ControlDependencies:
    """What controlling jobs takes where all connections are the simulator's."""
    queue = queue or RecordingQueue()
    rules = submission_dependencies(engine, queue).call_rules
    return ControlDependencies(engine, queue, window, rules, 1_000)


def draft(**changes: Any) -> JobIn:
    """One persona, the essay, one model, one judge, one instruction."""
    usual: dict[str, Any] = {
        "personas": ("E-low",),
        "tasks": ("essay",),
        "models": (a_model("simulated/sim-faithful"),),
        "judges": (a_model("simulated/sim-judge"),),
        "instructions": (1,),
        "iterations": 2,
    }
    return a_job(**(usual | changes))


async def new_job(
    engine: AsyncEngine,
    *,
    tenant: str = TENANT,
    queue: Queue | None = None,
    window: int = 16,
    capped_key: str | None = None,
    rules: RuleBook = RULES,
    **changes: Any,
) -> JobRow:
    """A submitted job."""
    deps = submission_dependencies(engine, queue or RecordingQueue(), window=window, rules=rules)
    submission = Submission(draft(**changes), {}, "a job", capped_key=capped_key)
    return await submit_job(deps, tenant, submission)


async def shard_ids(engine: AsyncEngine, job_id: str) -> list[int]:
    return [
        row.id
        for row in await execute(engine, "SELECT id FROM shards WHERE job_id = :job ORDER BY id", job=job_id)
    ]


async def take(engine: AsyncEngine, shard_id: int, owner: str = "a worker") -> Claim | None:
    async with engine.begin() as connection:
        found = await shards.claim(connection, shard_id, owner, LEASE_SECONDS)
    assert found is None or isinstance(found, Claim)
    return found


async def claimed(engine: AsyncEngine, job_id: str) -> Claim:
    """A claim on a job's first shard."""
    claim = await take(engine, (await shard_ids(engine, job_id))[0])
    assert claim is not None
    return claim


async def execute(engine: AsyncEngine, statement: str, **values: Any) -> list[Any]:
    async with engine.begin() as connection:
        result = await connection.execute(text(statement), values)
        return list(result) if result.returns_rows else []


async def scalar(engine: AsyncEngine, statement: str, **values: Any) -> Any:
    ((value,),) = await execute(engine, statement, **values)
    return value


async def expire(engine: AsyncEngine, claim: Claim) -> None:
    """Lets a lease run out."""
    await execute(
        engine,
        "UPDATE shards SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = :id",
        id=claim.shard_id,
    )


def response_row(
    claim: Claim, run: int = 0, *, item: int = 0, content: str = "One. Two.", due: int = 2
) -> ResponseRow:
    """An answer of two sentences."""
    return ResponseRow(
        cell_id=claim.cell_id,
        run=run,
        item=item,
        tenant=claim.tenant,
        instruction=0,
        status="answered",
        text=content,
        unit_starts=[0, 5][:due],
        unit_ends=[4, 9][:due],
        verdicts_due=due,
        finish_reason="stop",
        error=None,
        input_tokens=10,
        output_tokens=4,
    )


def verdict_row(claim: Claim, run: int = 0, unit: int = 0, *, score: int | None = 4) -> VerdictRow:
    return VerdictRow(
        cell_id=claim.cell_id,
        run=run,
        item=0,
        unit=unit,
        trait=0,
        judge=0,
        tenant=claim.tenant,
        status="failed" if score is None else "scored",
        score=score,
        raw=None if score is None else str(score),
    )


def call_row(claim: Claim, *, outcome: str = "ok", stage: str = "generation") -> CallRow:
    ok = outcome == "ok"
    return CallRow(
        id=uuid4(),
        tenant=claim.tenant,
        job_id=claim.job_id,
        shard_id=claim.shard_id,
        stage=stage,
        connection="simulated",
        model="sim-faithful",
        cell_id=claim.cell_id,
        run=0,
        item=0,
        unit=None,
        trait=None,
        judge=None,
        attempt=1,
        outcome=outcome,
        code=None if ok else "overloaded",
        http_status=200 if ok else 529,
        input_tokens=10 if ok else None,
        output_tokens=4 if ok else None,
        cached_input_tokens=0 if ok else None,
        usd=0.5 if ok else None,
        maybe_paid=ok,
        latency_ms=1.0,
        finish_reason=None,
        model_snapshot=None,
        system_fingerprint=None,
        provider_request_id=None,
        started_at=datetime.now(UTC),
    )


def whole_run(claim: Claim, run: int) -> list[ResponseRow | VerdictRow]:
    return [response_row(claim, run), verdict_row(claim, run, 0), verdict_row(claim, run, 1)]
