"""The data model.

What remains to be done is never stored: it is the difference between a job's plan (``cells``, ``shards``) and the
rows of ``responses`` and ``verdicts``, whose primary keys are natural, so that writing one twice has no effect.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.domain.jobs.priority import Priority
from app.domain.jobs.status import TERMINAL, JobStatus

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """All tables; constraint names are fixed so that migrations can name them."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own protocol
        str: Text,
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB,
        float: Double,
    }


def status_list(statuses: Collection[JobStatus]) -> str:
    """Statuses of jobs as SQL lists them, in the order of their life."""
    return ", ".join(f"'{status}'" for status in JobStatus if status in statuses)


_PRIORITIES = ", ".join(f"'{priority}'" for priority in Priority)


class Job(Base):
    """A job as it was asked for, and where it stands."""

    __tablename__ = "jobs"
    __table_args__ = (
        CheckConstraint(f"status IN ({status_list(list(JobStatus))})", name="status"),
        CheckConstraint(f"priority IN ({_PRIORITIES})", name="priority"),
        Index("ix_jobs_tenant_newest", "tenant", text("created_at DESC"), text("id DESC")),
        Index("ix_jobs_tenant_name", "tenant", text("lower(left(coalesce(name, id), 100))"), "id"),
        Index("ix_jobs_tenant_usd", "tenant", text("coalesce(usd, -1)"), "id"),
        Index("ix_jobs_tenant_score", "tenant", text("coalesce(score, -1)"), "id"),
        Index("ix_jobs_finished_at", "finished_at", postgresql_where=text("finished_at IS NOT NULL")),
        Index(
            "ix_jobs_unfinished",
            "status",
            postgresql_where=text(f"status NOT IN ({status_list(TERMINAL)})"),
        ),
        Index(
            "ix_jobs_tenant_unfinished",
            "tenant",
            postgresql_where=text(f"status NOT IN ({status_list(TERMINAL)})"),
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    name: Mapped[str | None]
    status: Mapped[str]
    status_reason: Mapped[str | None]
    error: Mapped[dict[str, Any] | None]
    request: Mapped[dict[str, Any]]
    """The body of the POST, with existing texts left out (they are rows of ``responses``)."""
    spec: Mapped[dict[str, Any]]
    """The resolved specification; workers run from this alone."""
    simulated: Mapped[bool]
    """Whether a simulated model or judge takes part."""
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata")
    priority: Mapped[str] = mapped_column(server_default=text("'normal'"))
    planned_responses: Mapped[int]
    expected_verdicts: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finalize_failures: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    """How often computing the results has failed by an internal error."""
    traceparent: Mapped[str | None]
    """The trace of the request that submitted it, as the W3C header writes it; its shards go on with it."""
    tags: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    notes: Mapped[str | None]
    archived_at: Mapped[datetime | None]
    models: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    """Labels of its models, and ids of its tasks, as its cells have them; by these, and what follows, jobs are listed."""
    tasks: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    scores: Mapped[list[Any] | None] = mapped_column(JSONB)
    """Of a job that has ended, its models' figures (:class:`app.domain.results.model_scores.ModelScore`)."""
    score: Mapped[float | None]
    """The highest of them."""
    usd: Mapped[float | None]
    """What it took, once it has ended, as far as that is known."""
    unpriced_calls: Mapped[int | None] = mapped_column(BigInteger)
    warnings: Mapped[list[Any] | None] = mapped_column(JSONB)
    """Of a job that has ended, reasons to doubt its results (:class:`app.domain.results.warnings.ResultWarning`)."""
    imported_from: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Where a job was computed that came as a bundle; see :class:`app.domain.jobs.contract.ImportedFrom`."""
    resumptions: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    """Resumptions after an outage since a call was last answered."""
    resumed_at: Mapped[datetime | None]
    """When the job was last resumed or reopened."""
    reader: Mapped[str | None]
    """Version of the rules that last read all stored replies again; null where the specification's stands."""
    rereads: Mapped[int] = mapped_column(server_default="0")
    """Times that verdicts were replaced by reading their replies again."""


class Budget(Base):
    """What a job may spend, and what it has spent for certain: its calls whose outcome is recorded.

    Money is in billionths of a US dollar, rounded up call by call, so that no sum of fractions hides a cent.
    """

    __tablename__ = "budgets"
    __table_args__ = (
        Index("ix_budgets_key_id", "key_id", postgresql_where=text("key_id IS NOT NULL")),
        Index("ix_budgets_under_tenant", "tenant", postgresql_where=text("under_tenant")),
    )

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    tenant: Mapped[str]
    key_id: Mapped[str | None]
    """The API key whose spending cap the job has to keep besides, if the key has one."""
    under_tenant: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the tenant had a spending cap when the job was submitted, so that all its calls count against it."""
    calls_limit: Mapped[int | None] = mapped_column(BigInteger)
    tokens_limit: Mapped[int | None] = mapped_column(BigInteger)
    nanos_limit: Mapped[int | None] = mapped_column(BigInteger)
    calls: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    tokens: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    nanos: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    exceeded: Mapped[int] = mapped_column(server_default=text("0"))
    """Calls that were billed beyond their reservation."""


class Reservation(Base):
    """The worst case of one call of a job with a budget, from before it is sent until its row of ``calls`` settles it.

    What a worker was about when it died stays reserved: its calls may have been sent, and paid.
    """

    __tablename__ = "reservations"
    __table_args__ = (Index("ix_reservations_job_id", "job_id"),)

    call_id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str] = mapped_column(server_default=text("'default'"))
    """The default is for workers of a release that knew no other; it goes with the next one."""
    job_id: Mapped[str] = mapped_column(ForeignKey("budgets.job_id", ondelete="CASCADE"))
    shard_id: Mapped[int] = mapped_column(BigInteger)
    lease_token: Mapped[int] = mapped_column(BigInteger)
    tokens: Mapped[int] = mapped_column(BigInteger)
    nanos: Mapped[int] = mapped_column(BigInteger)
    model: Mapped[str] = mapped_column(server_default=text("''"))
    """``connection/name``."""
    alone: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether the model takes one call at a time, because it exceeded its bound; see :class:`ExceededBound`."""


class ExceededBound(Base):
    """A model that billed a call beyond its reservation, until an operator resets it.

    It takes one call at a time under the tenant's limits, and reserves the largest bill seen.
    """

    __tablename__ = "exceeded_bounds"

    tenant: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    """``connection/name``."""
    tokens: Mapped[int] = mapped_column(BigInteger)
    nanos: Mapped[int] = mapped_column(BigInteger)
    repeats: Mapped[int]
    """Bills beyond the largest one seen before, since the model takes one call at a time."""


class IdempotencyKey(Base):
    """Which job, webhook or schedule a client's ``Idempotency-Key`` made, and a hash of the body that it came with."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (CheckConstraint("num_nonnulls(job_id, webhook_id, schedule_id) = 1", name="made"),)

    tenant: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_hash: Mapped[str]
    job_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    webhook_id: Mapped[str | None] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    schedule_id: Mapped[str | None] = mapped_column(ForeignKey("schedules.id", ondelete="CASCADE"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Cell(Base):
    """All runs of one model × persona × task; see :class:`app.domain.jobs.plan.Cell`."""

    __tablename__ = "cells"
    __table_args__ = (UniqueConstraint("job_id", "ordinal"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    ordinal: Mapped[int]
    model: Mapped[str]
    """The model's label."""
    persona: Mapped[str]
    task: Mapped[str]


class Shard(Base):
    """A piece of work, leased to one worker at a time: a slice of a cell's runs, or a persona's preparation.

    A preparation finds environments, questions and exemplars for one persona, shared by all models. The shards that
    need them name it as their prerequisite and are not announced before it is done.

    ``lease_token`` is the fencing token: it grows with every claim, and writes that carry an older one are refused.
    The counts are filled in once, by the query that finds the shard complete.
    """

    __tablename__ = "shards"
    __table_args__ = (
        CheckConstraint("kind IN ('responses', 'preparation')", name="kind"),
        CheckConstraint("(kind = 'responses') = (cell_id IS NOT NULL)", name="cell"),
        CheckConstraint("(kind = 'preparation') = (persona IS NOT NULL)", name="persona"),
        Index("ix_shards_job_id", "job_id", "done", "announced_at"),
        Index("ix_shards_open", "announced_at", postgresql_where=text("NOT done")),
        Index("ix_shards_answered", "job_id", postgresql_where=text("answered AND NOT done")),
        # Without the lease's end, so that renewals change no index.
        Index("ix_shards_leased", "job_id", postgresql_where=text("lease_owner IS NOT NULL")),
        Index("ix_shards_prerequisite_id", "prerequisite_id"),
        Index("ix_shards_cell_id", "cell_id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(server_default=text("'responses'"))
    cell_id: Mapped[int | None] = mapped_column(ForeignKey("cells.id", ondelete="CASCADE"))
    persona: Mapped[int | None] = mapped_column(SmallInteger)
    """Index among the job's personas, of a preparation; 0 where personas are still to be made."""
    prerequisite_id: Mapped[int | None] = mapped_column(ForeignKey("shards.id", ondelete="CASCADE"))
    run_start: Mapped[int] = mapped_column(SmallInteger)
    run_stop: Mapped[int]
    planned_responses: Mapped[int]
    environments_planned: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    questions_planned: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    exemplars_planned: Mapped[int] = mapped_column(server_default=text("0"))
    """Steps of a preparation by their kind: rows of ``preparations`` that end one."""
    personas_planned: Mapped[int] = mapped_column(server_default=text("0"))
    """Personas that the preparation shall make up, all in a single step."""
    planned_exactly: Mapped[bool] = mapped_column(server_default=text("true"))
    """Whether what is planned is known; until a persona's environments are, it may be estimated."""
    done: Mapped[bool] = mapped_column(server_default=text("false"))
    announced_at: Mapped[datetime | None]
    lease_token: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    lease_owner: Mapped[str | None]
    lease_expires_at: Mapped[datetime | None]
    on_the_wire: Mapped[int | None]
    """Calls sent and not yet answered at the last renewal of the lease; ``NULL`` before the first."""
    failures: Mapped[int] = mapped_column(server_default=text("0"))
    """How often a worker gave the shard up because of an internal error."""
    retries: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How often what had failed in it was opened again."""
    attempts_before: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """Highest attempt before the last retry: the calls' attempts are counted on from it, so that no id comes twice."""
    responses_answered: Mapped[int] = mapped_column(server_default=text("0"))
    responses_failed: Mapped[int] = mapped_column(server_default=text("0"))
    verdicts_due: Mapped[int] = mapped_column(server_default=text("0"))
    verdicts_answered: Mapped[int] = mapped_column(server_default=text("0"))
    verdicts_failed: Mapped[int] = mapped_column(server_default=text("0"))
    """Due, answered and failed count sentence verdicts and rubric grades together."""
    parked: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether all that is missing is asked for in batches; the counts are those of the moment when it was parked."""
    answered: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether a batch that has ended holds answers for it."""


class ShardUsage(Base):
    """What a finished shard's calls took, by stage and model; filled in once, when it ends."""

    __tablename__ = "shard_usage"

    shard_id: Mapped[int] = mapped_column(ForeignKey("shards.id", ondelete="CASCADE"), primary_key=True)
    stage: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    calls: Mapped[int]
    """Attempts, successful or not."""
    failed_calls: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(BigInteger)
    output_tokens: Mapped[int] = mapped_column(BigInteger)
    cached_input_tokens: Mapped[int] = mapped_column(BigInteger)
    usd: Mapped[float | None]
    """Null where no call has a known price."""
    unpriced_calls: Mapped[int]
    """Calls that cost, or may have cost, something unknown."""


class Response(Base):
    """The text for one item in one run of a cell, with the spans of its atomic units."""

    __tablename__ = "responses"
    __table_args__ = (
        CheckConstraint(
            "status IN ('answered', 'refused', 'filtered', 'no_answer', 'failed')", name="status"
        ),
        CheckConstraint("(status = 'failed') = (text IS NULL)", name="text"),
    )

    cell_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("cells.id", ondelete="CASCADE"), primary_key=True
    )
    run: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    item: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    tenant: Mapped[str]
    instruction: Mapped[int | None] = mapped_column(SmallInteger)
    status: Mapped[str]
    text: Mapped[str | None]
    unit_starts: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    unit_ends: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    verdicts_due: Mapped[int]
    """Rows of ``verdicts`` (units × traits × judges) and ``grades`` (judges) that the response calls for, and those of
    ``second_verdicts`` that check them."""
    finish_reason: Mapped[str | None]
    error: Mapped[str | None]
    """Why there is no text, or none to be judged; or why its refusal check failed."""
    input_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    reasoning_tokens: Mapped[int | None]
    """Of the output tokens, where the provider says so."""
    thoughts: Mapped[str | None]
    """What the model thought before it wrote the text; empty where its provider keeps that to itself."""
    notes: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    """What is odd about the text (:class:`app.domain.judging.text_notes.TextNotes`); null if nothing."""
    conversation: Mapped[str | None]
    """Its conversation, if it is an existing text that is a turn of one."""


class Verdict(Base):
    """One judge's verdict on one unit for one trait."""

    __tablename__ = "verdicts"
    __table_args__ = (
        CheckConstraint(
            "status IN ('scored', 'not_applicable', 'refused', 'unparsed', 'filtered', 'failed')",
            name="status",
        ),
        CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name="score"),
    )

    cell_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    item: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    unit: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    trait: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """Index among the persona's traits."""
    judge: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """Index among the job's judges."""
    tenant: Mapped[str]
    status: Mapped[str]
    score: Mapped[int | None] = mapped_column(SmallInteger)
    raw: Mapped[str | None]
    """The judge's reply; null where it was not asked, or where no call succeeded. Of several sentences' the part about this one."""
    group_size: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"))
    """Sentences that the judge was asked about in the same call; 1 where alone."""
    error: Mapped[str | None]
    """Code and words of the last attempt if no call succeeded, or of the follow-up if that failed."""
    suspicion: Mapped[str | None]
    """What makes the verdict doubtful: the ``text`` that addresses the judge, its ``reply`` without the key word, or ``both``."""
    finish_reason: Mapped[str | None]
    """Why the judge's last reply ended; of several sentences' that of all of it."""
    thoughts: Mapped[str | None]
    """As of a response; of several sentences' with the first one of them."""
    unread: Mapped[str | None]
    """Why the judge's first reply could not be read (:class:`app.domain.judging.verdict.Unread`); null where it could."""
    repair_raw: Mapped[str | None]
    """The judge's reply to the follow-up request; null where there was none."""


class SecondVerdict(Base):
    """A judge's other reading of a sentence, where there is one. No metric is made of it.

    Where ``alone``, it is a check beside the one in ``verdicts``: of a job that groups sentences that of the sentence by
    itself, of one that checks the order of options one with them in an order. Otherwise it is the grouped one, which could not
    be used, so that ``verdicts`` has, or is to have, that of the sentence by itself.
    """

    __tablename__ = "second_verdicts"
    __table_args__ = (
        CheckConstraint(
            "status IN ('scored', 'not_applicable', 'refused', 'unparsed', 'filtered', 'failed')",
            name="status",
        ),
        CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name="score"),
    )

    cell_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    item: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    unit: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    trait: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    judge: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """As of a verdict; of a reading with the options in an order its number (:mod:`app.domain.judging.order_check`)."""
    alone: Mapped[bool] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    status: Mapped[str]
    score: Mapped[int | None] = mapped_column(SmallInteger)
    raw: Mapped[str | None]
    finish_reason: Mapped[str | None]
    """See ``verdicts``, also for the next four."""
    thoughts: Mapped[str | None]
    unread: Mapped[str | None]
    repair_raw: Mapped[str | None]
    error: Mapped[str | None]


class Grade(Base):
    """One judge's grade of one PersonaGym response by its question's rubric."""

    __tablename__ = "grades"
    __table_args__ = (
        CheckConstraint("status IN ('scored', 'refused', 'unparsed', 'filtered', 'failed')", name="status"),
        CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name="score"),
    )

    cell_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    item: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    judge: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """Index among the job's judges."""
    tenant: Mapped[str]
    status: Mapped[str]
    score: Mapped[int | None] = mapped_column(SmallInteger)
    raw: Mapped[str | None]
    """The judge's reply, justification and all; null where it was not asked or never answered."""
    error: Mapped[str | None]
    """Why there is no reply, or none to the follow-up."""
    suspicion: Mapped[str | None]
    """As of a verdict, like the next four."""
    finish_reason: Mapped[str | None]
    thoughts: Mapped[str | None]
    unread: Mapped[str | None]
    repair_raw: Mapped[str | None]


class UnreadReply(Base):
    """A judge's reply that could not be read, stored before the judge is asked once more.

    A worker that dies in between does not ask the first question again. Rows are deleted when their shard ends.
    """

    __tablename__ = "unread_replies"

    cell_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("cells.id", ondelete="CASCADE"), primary_key=True
    )
    run: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    path: Mapped[str] = mapped_column(primary_key=True)
    """Path of the first call (:meth:`app.services.execution.call_rows.CallKey.path`)."""
    tenant: Mapped[str]
    raw: Mapped[str]
    finish_reason: Mapped[str]
    thoughts: Mapped[str | None]
    provider_finish_reason: Mapped[str | None]


class Preparation(Base):
    """One ask of a step of a preparation: finding personas, a persona's environments or questions, or exemplars.

    A row holds everything that the step has so far, so the last row of a step is its outcome and a step that was
    interrupted goes on after its last row. What was given with the job has a single row, of ask 0.
    """

    __tablename__ = "preparations"
    __table_args__ = (
        CheckConstraint("kind IN ('personas', 'environments', 'questions', 'exemplars')", name="kind"),
        CheckConstraint("status IN ('incomplete', 'ready', 'failed')", name="status"),
        CheckConstraint("(status = 'ready') = (error IS NULL)", name="error"),
    )

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    persona: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """Index among the job's personas."""
    kind: Mapped[str] = mapped_column(primary_key=True)
    task: Mapped[str] = mapped_column(primary_key=True)
    """The task's id; empty for personas, and for environments, which serve all tasks."""
    item: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """The question's index, of exemplars; 0 for the others."""
    ask: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    """How many times the reasoner has been asked, this time included."""
    tenant: Mapped[str]
    status: Mapped[str]
    content: Mapped[list[Any]] = mapped_column(JSONB)
    """Personas, environments, questions, or the five exemplars from score 1 to 5: all that the step has after this ask."""
    dropped: Mapped[int]
    """What the step's replies gave and was not used: environments outside the pool, repeated questions."""
    dropped_by: Mapped[dict[str, Any]] = mapped_column(server_default=text("'{}'"))
    """The same by reason, of personas."""
    error: Mapped[str | None]
    """What is missing, and why."""
    reply: Mapped[str | None]
    """The beginning of this ask's reply, if it lacks something that was asked for."""


class Call(Base):
    """One attempt at one call: the accounting of everything that may have cost money."""

    __tablename__ = "calls"
    __table_args__ = (
        Index("ix_calls_shard_id", "shard_id"),
        Index("ix_calls_failed", "job_id", postgresql_where=text("outcome <> 'ok'")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str]
    shard_id: Mapped[int] = mapped_column(BigInteger)
    stage: Mapped[str]
    connection: Mapped[str]
    model: Mapped[str]
    cell_id: Mapped[int | None] = mapped_column(BigInteger)
    persona: Mapped[int | None] = mapped_column(SmallInteger)
    """Of a preparation's call, which has no cell."""
    task: Mapped[str | None]
    """Likewise."""
    run: Mapped[int | None] = mapped_column(SmallInteger)
    item: Mapped[int | None] = mapped_column(SmallInteger)
    unit: Mapped[int | None] = mapped_column(SmallInteger)
    last_unit: Mapped[int | None] = mapped_column(SmallInteger)
    """Of a judge call about several sentences, whose first is ``unit``."""
    trait: Mapped[int | None] = mapped_column(SmallInteger)
    judge: Mapped[int | None] = mapped_column(SmallInteger)
    attempt: Mapped[int] = mapped_column(SmallInteger)
    outcome: Mapped[str]
    """``ok``, or what the failure meant: ``retry``, ``item``, ``filtered``, ``job``."""
    code: Mapped[str | None]
    detail: Mapped[str | None]
    """Of a failure: the provider's words, without keys and cut to 300 characters."""
    http_status: Mapped[int | None] = mapped_column(SmallInteger)
    input_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    cached_input_tokens: Mapped[int | None]
    usd: Mapped[float | None]
    maybe_paid: Mapped[bool]
    """Whether the provider may have charged for it: it answered, or we can't know that it did not."""
    latency_ms: Mapped[float]
    finish_reason: Mapped[str | None]
    model_snapshot: Mapped[str | None]
    system_fingerprint: Mapped[str | None]
    provider_request_id: Mapped[str | None]
    started_at: Mapped[datetime]
    batch_id: Mapped[int | None] = mapped_column(BigInteger)
    """The batch in which it was sent, if it was; its latency is then that of the batch."""
    reasoning_tokens: Mapped[int | None]
    """Of the output tokens, where the provider says so."""


class JobResult(Base):
    """A finished job's results and manifest, computed once, from the rows."""

    __tablename__ = "job_results"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    tenant: Mapped[str]
    completeness: Mapped[str]
    results: Mapped[str]
    """JSON text, served as it is."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ShareLink(Base):
    """A link by which a job is read without a key."""

    __tablename__ = "share_links"
    __table_args__ = (Index("ix_share_links_job_id", "job_id"), UniqueConstraint("digest"))

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    digest: Mapped[bytes]
    """Hash of the token, which nobody keeps."""
    description: Mapped[str | None]
    responses: Mapped[bool]
    """Whether it also gives all responses."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class NamedBaseline(Base):
    """A model of a job under a name of the tenant's own, to compare others with; the job stays as long as it has one."""

    __tablename__ = "named_baselines"
    __table_args__ = (Index("ix_named_baselines_job_id", "job_id"),)

    tenant: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    model: Mapped[str]
    """Its label."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
