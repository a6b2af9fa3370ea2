"""The tables of schedules: what is run again when, and what came of it."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base

ACTIVE = "state IN ('due', 'running')"


class Schedule(Base):
    """A job that is run again and again."""

    __tablename__ = "schedules"
    __table_args__ = (
        CheckConstraint("paused_reason IN ('by_user', 'budget_used_up', 'key_ended')", name="paused_reason"),
        Index("ix_schedules_tenant_newest", "tenant", text("created_at DESC"), text("id DESC")),
        Index("ix_schedules_next_due", "next_due", postgresql_where=text("next_due IS NOT NULL")),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    name: Mapped[str | None]
    cron: Mapped[str]
    time_zone: Mapped[str]
    job: Mapped[dict[str, Any]]
    """The body of each run's job."""
    figure: Mapped[str]
    anchors: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    run_usd: Mapped[float | None]
    total_usd: Mapped[float | None]
    key_id: Mapped[str | None]
    """The API key that made it or changed it last: its runs end with the key, and count against its spending cap."""
    paused_reason: Mapped[str | None]
    next_due: Mapped[datetime | None]
    """Null while it is paused, and where it is never due again."""
    put_off_until: Mapped[datetime | None]
    """Until when it is not looked at, after an error of ours; what was due meanwhile is told as missed."""
    simulated: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether a model or judge of one of its runs was simulated; its jobs may be deleted."""
    removed_usd: Mapped[float] = mapped_column(server_default=text("0"))
    """What the runs have cost that are not kept any more."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ScheduleRun(Base):
    """A due time of a schedule and what became of it; the figures outlive the jobs."""

    __tablename__ = "schedule_runs"
    __table_args__ = (
        UniqueConstraint("schedule_id", "due"),
        CheckConstraint(
            "state IN ('due', 'running', 'measured', 'failed', 'skipped', 'missed')", name="state"
        ),
        CheckConstraint(f"({ACTIVE}) = (ended_at IS NULL)", name="ended_at"),
        Index("ix_schedule_runs_active", "schedule_id", postgresql_where=text(ACTIVE)),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    schedule_id: Mapped[str] = mapped_column(ForeignKey("schedules.id", ondelete="CASCADE"))
    due: Mapped[datetime]
    state: Mapped[str]
    reason: Mapped[str | None]
    missed: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    job_id: Mapped[str | None]
    """The run outlives its jobs."""
    anchor_job_id: Mapped[str | None]
    design: Mapped[str | None]
    """Hash of the job's specification: figures of another one are not compared."""
    value: Mapped[float | None]
    n: Mapped[int | None] = mapped_column(Integer)
    left_out: Mapped[int | None] = mapped_column(Integer)
    coverage: Mapped[float | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    anchor: Mapped[float | None]
    anchor_n: Mapped[int | None] = mapped_column(Integer)
    anchor_left_out: Mapped[int | None] = mapped_column(Integer)
    anchor_coverage: Mapped[float | None]
    anchor_low: Mapped[float | None]
    anchor_high: Mapped[float | None]
    anchors: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The anchors' figure by persona."""
    alarms: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'"))
    usd: Mapped[float | None]
    ended_at: Mapped[datetime | None]
