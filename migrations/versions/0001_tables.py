"""the tables"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.rls import enable_rls

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

# fmt: off
TABLES = (
    "api_keys", "calls", "connections", "exceeded_bounds", "grades", "jobs", "persona_sets", "question_sets",
    "replies", "reused_replies", "rubric_sets", "schedules", "second_verdicts", "tenant_limits", "uploads",
    "verdicts", "webhooks", "annotations", "batches", "budgets", "cells", "exemplars", "flags",
    "idempotency_keys", "job_results", "job_sets", "labelling_rounds", "named_baselines", "preparations",
    "schedule_runs", "share_links", "upload_parts", "upload_records", "webhook_deliveries", "batch_files",
    "reservations", "responses", "shards", "unread_replies", "batch_calls", "shard_reuse", "shard_usage",
)
# fmt: on
"""All tables, each after those that it refers to."""


def upgrade() -> None:
    """Create them, each tenant with its own rows."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("former_prefix", sa.Text(), nullable=True),
        sa.Column("former_digest", sa.LargeBinary(), nullable=True),
        sa.Column("former_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("nanos_limit", sa.BigInteger(), nullable=True),
        sa.Column("nanos", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sign_outs", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("pepper", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "scopes <@ ARRAY['read', 'submit', 'admin'] AND scopes <> '{}'", name=op.f("ck_api_keys_scopes")
        ),
        sa.CheckConstraint(
            "num_nulls(former_prefix, former_digest, former_expires_at) IN (0, 3)", name=op.f("ck_api_keys_former")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
    )
    op.create_index("ix_api_keys_former_prefix", "api_keys", ["former_prefix"], unique=True)
    op.create_index("ix_api_keys_prefix", "api_keys", ["prefix"], unique=True)
    op.create_index(
        "ix_api_keys_tenant_newest",
        "api_keys",
        ["tenant", sa.literal_column("created_at DESC"), sa.literal_column("id DESC")],
    )
    op.create_table(
        "calls",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("shard_id", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("cell_id", sa.BigInteger(), nullable=True),
        sa.Column("run", sa.SmallInteger(), nullable=True),
        sa.Column("item", sa.SmallInteger(), nullable=True),
        sa.Column("unit", sa.SmallInteger(), nullable=True),
        sa.Column("trait", sa.SmallInteger(), nullable=True),
        sa.Column("judge", sa.SmallInteger(), nullable=True),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("http_status", sa.SmallInteger(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_input_tokens", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("maybe_paid", sa.Boolean(), nullable=False),
        sa.Column("latency_ms", sa.Double(), nullable=False),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("model_snapshot", sa.Text(), nullable=True),
        sa.Column("system_fingerprint", sa.Text(), nullable=True),
        sa.Column("provider_request_id", sa.Text(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("persona", sa.SmallInteger(), nullable=True),
        sa.Column("task", sa.Text(), nullable=True),
        sa.Column("last_unit", sa.SmallInteger(), nullable=True),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_calls")),
    )
    op.create_index("ix_calls_failed", "calls", ["job_id"], postgresql_where=sa.text("outcome <> 'ok'"))
    op.create_index("ix_calls_shard_id", "calls", ["shard_id"])
    op.create_table(
        "connections",
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("is_current", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("sealed_key", sa.Text(), nullable=True),
        sa.Column("key_hint", sa.Text(), nullable=True),
        sa.Column("limits", postgresql.JSONB(), nullable=False),
        sa.Column("prices", postgresql.JSONB(), nullable=False),
        sa.Column("models", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("batches", sa.Boolean(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "updated_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("families", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("stream", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint("kind IN ('openai', 'anthropic', 'completions')", name=op.f("ck_connections_kind")),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_connections")),
    )
    op.create_index("ix_connections_tenant", "connections", ["tenant", "name"])
    op.create_index(
        "uq_connections_current", "connections", ["tenant", "name"], unique=True, postgresql_where=sa.text("is_current")
    )
    op.create_table(
        "exceeded_bounds",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("nanos", sa.BigInteger(), nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "model", name=op.f("pk_exceeded_bounds")),
    )
    op.create_table(
        "grades",
        sa.Column("cell_id", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("judge", sa.SmallInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("score", sa.SmallInteger(), nullable=True),
        sa.Column("raw", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("suspicion", sa.Text(), nullable=True),
        sa.Column("thoughts", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("unread", sa.Text(), nullable=True),
        sa.Column("repair_raw", sa.Text(), nullable=True),
        sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name=op.f("ck_grades_score")),
        sa.CheckConstraint(
            "status IN ('scored', 'refused', 'unparsed', 'filtered', 'failed')", name=op.f("ck_grades_status")
        ),
        sa.PrimaryKeyConstraint("cell_id", "run", "item", "judge", name=op.f("pk_grades")),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=True),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        sa.Column("request", postgresql.JSONB(), nullable=False),
        sa.Column("spec", postgresql.JSONB(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(), nullable=False),
        sa.Column("planned_responses", sa.Integer(), nullable=False),
        sa.Column("expected_verdicts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finalize_failures", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("priority", sa.Text(), server_default=sa.text("'normal'"), nullable=False),
        sa.Column("traceparent", sa.Text(), nullable=True),
        sa.Column("tags", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("models", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("tasks", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("scores", postgresql.JSONB(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("unpriced_calls", sa.BigInteger(), nullable=True),
        sa.Column("imported_from", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("warnings", postgresql.JSONB(), nullable=True),
        sa.Column("resumptions", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("resumed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reader", sa.Text(), nullable=True),
        sa.Column("rereads", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint("priority IN ('low', 'normal', 'high')", name=op.f("ck_jobs_priority")),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'paused', 'cancelling', 'finalizing', 'completed', 'failed', 'cancelled')",
            name=op.f("ck_jobs_status"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_finished_at", "jobs", ["finished_at"], postgresql_where=sa.text("finished_at IS NOT NULL"))
    op.create_index(
        "ix_jobs_tenant_name", "jobs", ["tenant", sa.literal_column("lower(left(coalesce(name, id), 100))"), "id"]
    )
    op.create_index(
        "ix_jobs_tenant_newest", "jobs", ["tenant", sa.literal_column("created_at DESC"), sa.literal_column("id DESC")]
    )
    op.create_index("ix_jobs_tenant_score", "jobs", ["tenant", sa.literal_column("coalesce(score, -1)"), "id"])
    op.create_index(
        "ix_jobs_tenant_unfinished",
        "jobs",
        ["tenant"],
        postgresql_where=sa.text("status NOT IN ('completed', 'failed', 'cancelled')"),
    )
    op.create_index("ix_jobs_tenant_usd", "jobs", ["tenant", sa.literal_column("coalesce(usd, -1)"), "id"])
    op.create_index(
        "ix_jobs_unfinished",
        "jobs",
        ["status"],
        postgresql_where=sa.text("status NOT IN ('completed', 'failed', 'cancelled')"),
    )
    op.create_table(
        "persona_sets",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("content", postgresql.JSONB(), nullable=False),
        sa.Column("diversity", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("posted", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_persona_sets")),
    )
    op.create_index("ix_persona_sets_newest", "persona_sets", ["tenant", "created_at", "id"])
    op.create_table(
        "question_sets",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("content", postgresql.JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("posted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_question_sets")),
    )
    op.create_index("ix_question_sets_newest", "question_sets", ["tenant", "created_at", "id"])
    op.create_table(
        "replies",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.Column("shard_id", sa.BigInteger(), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_input_tokens", sa.Integer(), nullable=True),
        sa.Column("model_snapshot", sa.Text(), nullable=True),
        sa.Column("system_fingerprint", sa.Text(), nullable=True),
        sa.Column("thoughts", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("pk_replies")),
    )
    op.create_index("ix_replies_asked_at", "replies", ["asked_at"])
    op.create_index("ix_replies_job_id", "replies", ["job_id"])
    op.create_table(
        "reused_replies",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("shard_id", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("cell_id", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("unit", sa.SmallInteger(), nullable=True),
        sa.Column("trait", sa.SmallInteger(), nullable=True),
        sa.Column("judge", sa.SmallInteger(), nullable=True),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("model_snapshot", sa.Text(), nullable=True),
        sa.Column("system_fingerprint", sa.Text(), nullable=True),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("origin IN ('same_job', 'other_job')", name=op.f("ck_reused_replies_origin")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reused_replies")),
        sa.UniqueConstraint(
            "cell_id",
            "run",
            "item",
            "unit",
            "trait",
            "judge",
            "stage",
            name=op.f("uq_reused_replies_cell_id"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_index("ix_reused_replies_shard_id", "reused_replies", ["shard_id"])
    op.create_table(
        "rubric_sets",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("content", postgresql.JSONB(), nullable=False),
        sa.Column("posted", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_rubric_sets")),
    )
    op.create_index("ix_rubric_sets_newest", "rubric_sets", ["tenant", "created_at", "id"])
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=False),
        sa.Column("job", postgresql.JSONB(), nullable=False),
        sa.Column("figure", sa.Text(), nullable=False),
        sa.Column("anchors", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("run_usd", sa.Double(), nullable=True),
        sa.Column("total_usd", sa.Double(), nullable=True),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("paused_reason", sa.Text(), nullable=True),
        sa.Column("next_due", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("put_off_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("removed_usd", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("simulated", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.CheckConstraint(
            "paused_reason IN ('by_user', 'budget_used_up', 'key_ended')", name=op.f("ck_schedules_paused_reason")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
    )
    op.create_index(
        "ix_schedules_next_due", "schedules", ["next_due"], postgresql_where=sa.text("next_due IS NOT NULL")
    )
    op.create_index(
        "ix_schedules_tenant_newest",
        "schedules",
        ["tenant", sa.literal_column("created_at DESC"), sa.literal_column("id DESC")],
    )
    op.create_table(
        "second_verdicts",
        sa.Column("cell_id", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("unit", sa.SmallInteger(), nullable=False),
        sa.Column("trait", sa.SmallInteger(), nullable=False),
        sa.Column("judge", sa.SmallInteger(), nullable=False),
        sa.Column("alone", sa.Boolean(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("score", sa.SmallInteger(), nullable=True),
        sa.Column("raw", sa.Text(), nullable=True),
        sa.Column("thoughts", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("unread", sa.Text(), nullable=True),
        sa.Column("repair_raw", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name=op.f("ck_second_verdicts_score")),
        sa.CheckConstraint(
            "status IN ('scored', 'not_applicable', 'refused', 'unparsed', 'filtered', 'failed')",
            name=op.f("ck_second_verdicts_status"),
        ),
        sa.PrimaryKeyConstraint(
            "cell_id", "run", "item", "unit", "trait", "judge", "alone", name=op.f("pk_second_verdicts")
        ),
    )
    op.create_table(
        "tenant_limits",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("models", sa.ARRAY(sa.Text()), nullable=True),
        sa.Column("nanos_limit", sa.BigInteger(), nullable=True),
        sa.Column("nanos", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_tenant_limits")),
    )
    op.create_table(
        "uploads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("tail", sa.LargeBinary(), nullable=False),
        sa.Column("skipping", sa.Boolean(), nullable=False),
        sa.Column("error_count", sa.Integer(), nullable=False),
        sa.Column("errors", postgresql.JSONB(), nullable=False),
        sa.Column("rules", postgresql.JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("file_metadata", postgresql.JSONB(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("format", sa.Text(), nullable=True),
        sa.Column("unpacked", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reading_until", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("status IN ('receiving', 'reading', 'ready', 'invalid')", name=op.f("ck_uploads_status")),
        sa.CheckConstraint("received <= size", name=op.f("ck_uploads_received")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
    )
    op.create_index("ix_uploads_expires_at", "uploads", ["expires_at"])
    op.create_index("ix_uploads_newest", "uploads", ["tenant", "created_at", "id"])
    op.create_table(
        "verdicts",
        sa.Column("cell_id", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("unit", sa.SmallInteger(), nullable=False),
        sa.Column("trait", sa.SmallInteger(), nullable=False),
        sa.Column("judge", sa.SmallInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("score", sa.SmallInteger(), nullable=True),
        sa.Column("raw", sa.Text(), nullable=True),
        sa.Column("group_size", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("suspicion", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("thoughts", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("unread", sa.Text(), nullable=True),
        sa.Column("repair_raw", sa.Text(), nullable=True),
        sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name=op.f("ck_verdicts_score")),
        sa.CheckConstraint(
            "status IN ('scored', 'not_applicable', 'refused', 'unparsed', 'filtered', 'failed')",
            name=op.f("ck_verdicts_status"),
        ),
        sa.PrimaryKeyConstraint("cell_id", "run", "item", "unit", "trait", "judge", name=op.f("pk_verdicts")),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("events", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("former_secret", sa.Text(), nullable=True),
        sa.Column("former_secret_until", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("disabled_reason IN ('by_user', 'gone')", name=op.f("ck_webhooks_disabled_reason")),
        sa.CheckConstraint(
            "(former_secret IS NULL) = (former_secret_until IS NULL)", name=op.f("ck_webhooks_former_secret")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index(
        "ix_webhooks_tenant_newest",
        "webhooks",
        ["tenant", sa.literal_column("created_at DESC"), sa.literal_column("id DESC")],
    )
    op.create_table(
        "annotations",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Text(), nullable=True),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("unit", sa.SmallInteger(), nullable=True),
        sa.Column("other_cell", sa.Integer(), nullable=True),
        sa.Column("other_run", sa.SmallInteger(), nullable=True),
        sa.Column("other_item", sa.SmallInteger(), nullable=True),
        sa.Column("other_unit", sa.SmallInteger(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("score", sa.SmallInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("(answer = 'scored') = (score IS NOT NULL)", name=op.f("ck_annotations_score")),
        sa.CheckConstraint(
            "(answer IN ('first', 'second', 'equal')) = (other_cell IS NOT NULL)", name=op.f("ck_annotations_pair")
        ),
        sa.CheckConstraint(
            "answer IN ('scored', 'not_applicable', 'first', 'second', 'equal')", name=op.f("ck_annotations_answer")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_annotations_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotations")),
    )
    op.create_index("ix_annotations_job", "annotations", ["job_id", "id"])
    op.create_index(
        "ix_annotations_subject",
        "annotations",
        [
            "job_id",
            "annotator",
            "dimension",
            "cell",
            "run",
            "item",
            "unit",
            "other_cell",
            "other_run",
            "other_item",
            "other_unit",
        ],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_index("ix_annotations_tenant", "annotations", ["tenant", "id"])
    op.create_table(
        "batches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'formed'"), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=True),
        sa.Column("submissions", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("formed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("errors", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cut", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("give_up_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("state IN ('formed', 'submitting', 'submitted', 'ended')", name=op.f("ck_batches_state")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_batches_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("connection", "provider_id", name=op.f("uq_batches_connection")),
    )
    op.create_index("ix_batches_job_id", "batches", ["job_id"])
    op.create_index("ix_batches_open", "batches", ["due_at"], postgresql_where=sa.text("state <> 'ended'"))
    op.create_index(
        "ix_batches_submitting",
        "batches",
        ["connection"],
        unique=True,
        postgresql_where=sa.text("state = 'submitting'"),
    )
    op.create_table(
        "budgets",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("calls_limit", sa.BigInteger(), nullable=True),
        sa.Column("tokens_limit", sa.BigInteger(), nullable=True),
        sa.Column("nanos_limit", sa.BigInteger(), nullable=True),
        sa.Column("calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("nanos", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("under_tenant", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("exceeded", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_budgets_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_budgets")),
    )
    op.create_index("ix_budgets_key_id", "budgets", ["key_id"], postgresql_where=sa.text("key_id IS NOT NULL"))
    op.create_index("ix_budgets_under_tenant", "budgets", ["tenant"], postgresql_where=sa.text("under_tenant"))
    op.create_table(
        "cells",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("persona", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_cells_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cells")),
        sa.UniqueConstraint("job_id", "ordinal", name=op.f("uq_cells_job_id")),
    )
    op.create_table(
        "exemplars",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("set_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("reasoner", sa.Text(), nullable=True),
        sa.Column("content", postgresql.JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "set_id"],
            ["question_sets.tenant", "question_sets.id"],
            name=op.f("fk_exemplars_tenant_question_sets"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "set_id", "place", "key", name=op.f("pk_exemplars")),
    )
    op.create_index("ix_exemplars_key", "exemplars", ["tenant", "key"])
    op.create_table(
        "flags",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("unit", sa.SmallInteger(), nullable=True),
        sa.Column("dimension", sa.Text(), nullable=True),
        sa.Column("score", sa.SmallInteger(), nullable=True),
        sa.Column("not_applicable", sa.Boolean(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("score IS NULL OR NOT not_applicable", name=op.f("ck_flags_score")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_flags_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flags")),
    )
    op.create_index("ix_flags_newest", "flags", ["tenant", "created_at", "id"])
    op.create_index(
        "ix_flags_subject",
        "flags",
        ["job_id", "cell", "run", "item", "unit", "annotator"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("webhook_id", sa.Text(), nullable=True),
        sa.Column("schedule_id", sa.Text(), nullable=True),
        sa.CheckConstraint("num_nonnulls(job_id, webhook_id, schedule_id) = 1", name=op.f("ck_idempotency_keys_made")),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_idempotency_keys_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["schedules.id"],
            name=op.f("fk_idempotency_keys_schedule_id_schedules"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_idempotency_keys_webhook_id_webhooks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "job_results",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("completeness", sa.Text(), nullable=False),
        sa.Column("results", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_results_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_job_results")),
    )
    op.create_table(
        "job_sets",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("set_id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("made", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_job_sets_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "set_id", name=op.f("pk_job_sets")),
    )
    op.create_index("ix_job_sets_set_id", "job_sets", ["tenant", "set_id"])
    op.create_table(
        "labelling_rounds",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("things", postgresql.JSONB(), nullable=False),
        sa.Column("strata", postgresql.JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("answers_each", sa.SmallInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('sentences', 'responses', 'pairs')", name=op.f("ck_labelling_rounds_kind")),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_labelling_rounds_job_id_jobs"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_labelling_rounds")),
    )
    op.create_index(
        "ix_labelling_rounds_draw", "labelling_rounds", ["job_id", "kind", "dimension", "size", "seed"], unique=True
    )
    op.create_table(
        "named_baselines",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_named_baselines_job_id_jobs")),
        sa.PrimaryKeyConstraint("tenant", "name", name=op.f("pk_named_baselines")),
    )
    op.create_index("ix_named_baselines_job_id", "named_baselines", ["job_id"])
    op.create_table(
        "preparations",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("persona", sa.SmallInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("ask", sa.SmallInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("content", postgresql.JSONB(), nullable=False),
        sa.Column("dropped", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("dropped_by", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.CheckConstraint("(status = 'ready') = (error IS NULL)", name=op.f("ck_preparations_error")),
        sa.CheckConstraint(
            "kind IN ('personas', 'environments', 'questions', 'exemplars')", name=op.f("ck_preparations_kind")
        ),
        sa.CheckConstraint("status IN ('incomplete', 'ready', 'failed')", name=op.f("ck_preparations_status")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_preparations_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "persona", "kind", "task", "item", "ask", name=op.f("pk_preparations")),
    )
    op.create_table(
        "schedule_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("due", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("missed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("anchor_job_id", sa.Text(), nullable=True),
        sa.Column("design", sa.Text(), nullable=True),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("anchor", sa.Double(), nullable=True),
        sa.Column("anchor_low", sa.Double(), nullable=True),
        sa.Column("anchor_high", sa.Double(), nullable=True),
        sa.Column("anchors", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("alarms", postgresql.JSONB(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.Column("left_out", sa.Integer(), nullable=True),
        sa.Column("coverage", sa.Double(), nullable=True),
        sa.Column("anchor_n", sa.Integer(), nullable=True),
        sa.Column("anchor_left_out", sa.Integer(), nullable=True),
        sa.Column("anchor_coverage", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "(state IN ('due', 'running')) = (ended_at IS NULL)", name=op.f("ck_schedule_runs_ended_at")
        ),
        sa.CheckConstraint(
            "state IN ('due', 'running', 'measured', 'failed', 'skipped', 'missed')",
            name=op.f("ck_schedule_runs_state"),
        ),
        sa.ForeignKeyConstraint(
            ["schedule_id"], ["schedules.id"], name=op.f("fk_schedule_runs_schedule_id_schedules"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule_runs")),
        sa.UniqueConstraint("schedule_id", "due", name=op.f("uq_schedule_runs_schedule_id")),
    )
    op.create_index(
        "ix_schedule_runs_active",
        "schedule_runs",
        ["schedule_id"],
        postgresql_where=sa.text("state IN ('due', 'running')"),
    )
    op.create_table(
        "share_links",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("responses", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_share_links_job_id_jobs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_share_links")),
        sa.UniqueConstraint("digest", name=op.f("uq_share_links_digest")),
    )
    op.create_index("ix_share_links_job_id", "share_links", ["job_id"])
    op.create_table(
        "upload_parts",
        sa.Column("upload_id", sa.Text(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.id"], name=op.f("fk_upload_parts_upload_id_uploads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("upload_id", "start", name=op.f("pk_upload_parts")),
    )
    op.create_table(
        "upload_records",
        sa.Column("upload_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("persona", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("item", sa.Text(), nullable=True),
        sa.Column("run", sa.Integer(), nullable=True),
        sa.Column("instruction", sa.Integer(), nullable=True),
        sa.Column("question", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("thoughts", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("unit_starts", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("unit_ends", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("judged", postgresql.JSONB(), nullable=True),
        sa.Column("notes", postgresql.JSONB(), nullable=True),
        sa.Column("conversation", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.id"], name=op.f("fk_upload_records_upload_id_uploads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("upload_id", "ordinal", name=op.f("pk_upload_records")),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("attempted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("http_status", sa.SmallInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint("(state = 'waiting') = (ended_at IS NULL)", name=op.f("ck_webhook_deliveries_ended_at")),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'given_up')", name=op.f("ck_webhook_deliveries_state")),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_webhook_deliveries_webhook_id_webhooks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index(
        "ix_webhook_deliveries_due", "webhook_deliveries", ["due_at"], postgresql_where=sa.text("state = 'waiting'")
    )
    op.create_index(
        "ix_webhook_deliveries_ended",
        "webhook_deliveries",
        ["ended_at"],
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )
    op.create_index(
        "ix_webhook_deliveries_newest",
        "webhook_deliveries",
        ["webhook_id", sa.literal_column("created_at DESC"), sa.literal_column("id DESC")],
    )
    op.create_table(
        "batch_files",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("file_id", sa.Text(), nullable=True),
        sa.Column("made_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("failures", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["batches.id"], name=op.f("fk_batch_files_batch_id_batches"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_files")),
    )
    op.create_index("ix_batch_files_batch_id", "batch_files", ["batch_id"])
    op.create_index("ix_batch_files_unneeded", "batch_files", ["due_at"], postgresql_where=sa.text("batch_id IS NULL"))
    op.create_table(
        "reservations",
        sa.Column("call_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("shard_id", sa.BigInteger(), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("nanos", sa.BigInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), server_default=sa.text("'default'"), nullable=False),
        sa.Column("model", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("alone", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["budgets.job_id"], name=op.f("fk_reservations_job_id_budgets"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_reservations")),
    )
    op.create_index("ix_reservations_job_id", "reservations", ["job_id"])
    op.create_table(
        "responses",
        sa.Column("cell_id", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("item", sa.SmallInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("instruction", sa.SmallInteger(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("unit_starts", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("unit_ends", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("verdicts_due", sa.Integer(), nullable=False),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("thoughts", sa.Text(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.Column("notes", postgresql.JSONB(), nullable=True),
        sa.Column("conversation", sa.Text(), nullable=True),
        sa.CheckConstraint("(status = 'failed') = (text IS NULL)", name=op.f("ck_responses_text")),
        sa.CheckConstraint(
            "status IN ('answered', 'refused', 'filtered', 'no_answer', 'failed')", name=op.f("ck_responses_status")
        ),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.id"], name=op.f("fk_responses_cell_id_cells"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("cell_id", "run", "item", name=op.f("pk_responses")),
    )
    op.create_table(
        "shards",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("cell_id", sa.BigInteger(), nullable=True),
        sa.Column("run_start", sa.SmallInteger(), nullable=False),
        sa.Column("run_stop", sa.Integer(), nullable=False),
        sa.Column("planned_responses", sa.Integer(), nullable=False),
        sa.Column("done", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("announced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("responses_answered", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("responses_failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("verdicts_due", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("verdicts_answered", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("verdicts_failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("kind", sa.Text(), server_default=sa.text("'responses'"), nullable=False),
        sa.Column("persona", sa.SmallInteger(), nullable=True),
        sa.Column("prerequisite_id", sa.BigInteger(), nullable=True),
        sa.Column("environments_planned", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("questions_planned", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("exemplars_planned", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("planned_exactly", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("personas_planned", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("retries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts_before", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("parked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("answered", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("on_the_wire", sa.Integer(), nullable=True),
        sa.CheckConstraint("(kind = 'preparation') = (persona IS NOT NULL)", name=op.f("ck_shards_persona")),
        sa.CheckConstraint("(kind = 'responses') = (cell_id IS NOT NULL)", name=op.f("ck_shards_cell")),
        sa.CheckConstraint("kind IN ('responses', 'preparation')", name=op.f("ck_shards_kind")),
        sa.ForeignKeyConstraint(["cell_id"], ["cells.id"], name=op.f("fk_shards_cell_id_cells"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_shards_job_id_jobs"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["prerequisite_id"], ["shards.id"], name=op.f("fk_shards_prerequisite_id_shards"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shards")),
    )
    op.create_index("ix_shards_answered", "shards", ["job_id"], postgresql_where=sa.text("answered AND NOT done"))
    op.create_index("ix_shards_cell_id", "shards", ["cell_id"])
    op.create_index("ix_shards_job_id", "shards", ["job_id", "done", "announced_at"])
    op.create_index("ix_shards_leased", "shards", ["job_id"], postgresql_where=sa.text("lease_owner IS NOT NULL"))
    op.create_index("ix_shards_open", "shards", ["announced_at"], postgresql_where=sa.text("NOT done"))
    op.create_index("ix_shards_prerequisite_id", "shards", ["prerequisite_id"])
    op.create_table(
        "unread_replies",
        sa.Column("cell_id", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.SmallInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=False),
        sa.Column("finish_reason", sa.Text(), nullable=False),
        sa.Column("thoughts", sa.Text(), nullable=True),
        sa.Column("provider_finish_reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["cell_id"], ["cells.id"], name=op.f("fk_unread_replies_cell_id_cells"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cell_id", "run", "path", name=op.f("pk_unread_replies")),
    )
    op.create_table(
        "batch_calls",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("shard_id", sa.BigInteger(), nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("connection", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("custom_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("nanos", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("tenant", sa.Text(), server_default=sa.text("'default'"), nullable=False),
        sa.Column("waits", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["batches.id"], name=op.f("fk_batch_calls_batch_id_batches"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["shard_id"], ["shards.id"], name=op.f("fk_batch_calls_shard_id_shards"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batch_calls")),
        sa.UniqueConstraint("shard_id", "path", name=op.f("uq_batch_calls_shard_id")),
    )
    op.create_index("ix_batch_calls_batch_id", "batch_calls", ["batch_id", "custom_id"])
    op.create_index(
        "ix_batch_calls_waiting",
        "batch_calls",
        ["job_id", "connection", "model", "id"],
        postgresql_where=sa.text("batch_id IS NULL"),
    )
    op.create_table(
        "shard_reuse",
        sa.Column("shard_id", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("same_job", sa.Integer(), nullable=False),
        sa.Column("other_job", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("unpriced", sa.Integer(), nullable=False),
        sa.Column("oldest", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["shard_id"], ["shards.id"], name=op.f("fk_shard_reuse_shard_id_shards"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("shard_id", "stage", "model", name=op.f("pk_shard_reuse")),
    )
    op.create_table(
        "shard_usage",
        sa.Column("shard_id", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("failed_calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("usd", sa.Double(), nullable=True),
        sa.Column("unpriced_calls", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["shard_id"], ["shards.id"], name=op.f("fk_shard_usage_shard_id_shards"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("shard_id", "stage", "model", name=op.f("pk_shard_usage")),
    )
    op.execute("ALTER TABLE upload_parts ALTER COLUMN data SET STORAGE EXTERNAL")  # may be compressed already
    for table in TABLES:
        enable_rls(table)


def downgrade() -> None:
    """Drop them."""
    for table in reversed(TABLES):
        op.drop_table(table)
