"""the tables before the first release"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.rls import enable_rls

revision: str = '20261124_0800'
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TABLES_OF_TENANTS = (
    'annotations', 'api_keys', 'batch_calls', 'batch_files', 'batches', 'budgets', 'calls', 'cells',
    'connections', 'grades', 'idempotency_keys', 'job_results', 'job_sets', 'jobs', 'labelling_rounds',
    'persona_sets', 'preparations', 'question_sets', 'replies', 'reservations', 'responses', 'reused_replies',
    'second_verdicts', 'shard_reuse', 'shard_usage', 'shards', 'verdicts', 'webhook_deliveries', 'webhooks',
)


def upgrade() -> None:
    """Makes all tables."""
    op.create_table('api_keys',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('scopes', sa.ARRAY(sa.Text()), nullable=False),
    sa.Column('prefix', sa.Text(), nullable=False),
    sa.Column('digest', sa.LargeBinary(), nullable=False),
    sa.Column('former_prefix', sa.Text(), nullable=True),
    sa.Column('former_digest', sa.LargeBinary(), nullable=True),
    sa.Column('former_expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('requests_per_minute', sa.Integer(), nullable=True),
    sa.Column('nanos_limit', sa.BigInteger(), nullable=True),
    sa.Column('nanos', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_used_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('sign_outs', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.CheckConstraint("scopes <@ ARRAY['read', 'submit', 'admin'] AND scopes <> '{}'", name=op.f('ck_api_keys_scopes')),
    sa.CheckConstraint('num_nulls(former_prefix, former_digest, former_expires_at) IN (0, 3)', name=op.f('ck_api_keys_former')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_api_keys'))
    )
    op.create_index('ix_api_keys_former_prefix', 'api_keys', ['former_prefix'], unique=True)
    op.create_index('ix_api_keys_prefix', 'api_keys', ['prefix'], unique=True)
    op.create_index('ix_api_keys_tenant_newest', 'api_keys', ['tenant', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False)
    op.create_table('calls',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('stage', sa.Text(), nullable=False),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('cell_id', sa.BigInteger(), nullable=True),
    sa.Column('run', sa.SmallInteger(), nullable=True),
    sa.Column('item', sa.SmallInteger(), nullable=True),
    sa.Column('unit', sa.SmallInteger(), nullable=True),
    sa.Column('trait', sa.SmallInteger(), nullable=True),
    sa.Column('judge', sa.SmallInteger(), nullable=True),
    sa.Column('attempt', sa.SmallInteger(), nullable=False),
    sa.Column('outcome', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=True),
    sa.Column('http_status', sa.SmallInteger(), nullable=True),
    sa.Column('input_tokens', sa.Integer(), nullable=True),
    sa.Column('output_tokens', sa.Integer(), nullable=True),
    sa.Column('cached_input_tokens', sa.Integer(), nullable=True),
    sa.Column('usd', sa.Double(), nullable=True),
    sa.Column('maybe_paid', sa.Boolean(), nullable=False),
    sa.Column('latency_ms', sa.Double(), nullable=False),
    sa.Column('finish_reason', sa.Text(), nullable=True),
    sa.Column('model_snapshot', sa.Text(), nullable=True),
    sa.Column('system_fingerprint', sa.Text(), nullable=True),
    sa.Column('provider_request_id', sa.Text(), nullable=True),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('persona', sa.SmallInteger(), nullable=True),
    sa.Column('task', sa.Text(), nullable=True),
    sa.Column('last_unit', sa.SmallInteger(), nullable=True),
    sa.Column('batch_id', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_calls'))
    )
    op.create_index('ix_calls_shard_id', 'calls', ['shard_id'], unique=False)
    op.create_table('connections',
    sa.Column('version', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('is_current', sa.Boolean(), server_default=sa.text('true'), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('base_url', sa.Text(), nullable=False),
    sa.Column('sealed_key', sa.Text(), nullable=True),
    sa.Column('key_hint', sa.Text(), nullable=True),
    sa.Column('limits', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('prices', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('models', sa.ARRAY(sa.Text()), nullable=True),
    sa.Column('batches', sa.Boolean(), nullable=False),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.CheckConstraint("kind IN ('openai', 'anthropic')", name=op.f('ck_connections_kind')),
    sa.PrimaryKeyConstraint('version', name=op.f('pk_connections'))
    )
    op.create_index('ix_connections_tenant', 'connections', ['tenant', 'name'], unique=False)
    op.create_index('uq_connections_current', 'connections', ['tenant', 'name'], unique=True, postgresql_where=sa.text('is_current'))
    op.create_table('grades',
    sa.Column('cell_id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('judge', sa.SmallInteger(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('score', sa.SmallInteger(), nullable=True),
    sa.Column('raw', sa.Text(), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('suspicion', sa.Text(), nullable=True),
    sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name=op.f('ck_grades_score')),
    sa.CheckConstraint("status IN ('scored', 'refused', 'unparsed', 'failed')", name=op.f('ck_grades_status')),
    sa.PrimaryKeyConstraint('cell_id', 'run', 'item', 'judge', name=op.f('pk_grades'))
    )
    op.create_table('jobs',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('status_reason', sa.Text(), nullable=True),
    sa.Column('error', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('request', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('spec', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('simulated', sa.Boolean(), nullable=False),
    sa.Column('metadata', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('planned_responses', sa.Integer(), nullable=False),
    sa.Column('expected_verdicts', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('finalize_failures', sa.SmallInteger(), server_default='0', nullable=False),
    sa.Column('priority', sa.Text(), server_default=sa.text("'normal'"), nullable=False),
    sa.CheckConstraint("priority IN ('low', 'normal', 'high')", name=op.f('ck_jobs_priority')),
    sa.CheckConstraint("status IN ('queued', 'running', 'paused', 'cancelling', 'finalizing', 'completed', 'failed', 'cancelled')", name=op.f('ck_jobs_status')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_jobs'))
    )
    op.create_index('ix_jobs_finished_at', 'jobs', ['finished_at'], unique=False, postgresql_where=sa.text('finished_at IS NOT NULL'))
    op.create_index('ix_jobs_tenant_newest', 'jobs', ['tenant', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False)
    op.create_index('ix_jobs_unfinished', 'jobs', ['status'], unique=False, postgresql_where=sa.text("status NOT IN ('completed', 'failed', 'cancelled')"))
    op.create_table('persona_sets',
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('content', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('diversity', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    sa.Column('posted', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('tenant', 'id', name=op.f('pk_persona_sets'))
    )
    op.create_index('ix_persona_sets_newest', 'persona_sets', ['tenant', 'created_at', 'id'], unique=False)
    op.create_table('question_sets',
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('content', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('posted', sa.Boolean(), nullable=False),
    sa.PrimaryKeyConstraint('tenant', 'id', name=op.f('pk_question_sets'))
    )
    op.create_index('ix_question_sets_newest', 'question_sets', ['tenant', 'created_at', 'id'], unique=False)
    op.create_table('replies',
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('key', sa.LargeBinary(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('shared', sa.Boolean(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), nullable=False),
    sa.Column('asked_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('text', sa.Text(), nullable=True),
    sa.Column('input_tokens', sa.Integer(), nullable=True),
    sa.Column('output_tokens', sa.Integer(), nullable=True),
    sa.Column('cached_input_tokens', sa.Integer(), nullable=True),
    sa.Column('model_snapshot', sa.Text(), nullable=True),
    sa.Column('system_fingerprint', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('tenant', 'key', name=op.f('pk_replies'))
    )
    op.create_index('ix_replies_asked_at', 'replies', ['asked_at'], unique=False)
    op.create_index('ix_replies_job_id', 'replies', ['job_id'], unique=False)
    op.create_table('reused_replies',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('stage', sa.Text(), nullable=False),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('cell_id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('unit', sa.SmallInteger(), nullable=True),
    sa.Column('trait', sa.SmallInteger(), nullable=True),
    sa.Column('judge', sa.SmallInteger(), nullable=True),
    sa.Column('origin', sa.Text(), nullable=False),
    sa.Column('input_tokens', sa.Integer(), nullable=True),
    sa.Column('output_tokens', sa.Integer(), nullable=True),
    sa.Column('usd', sa.Double(), nullable=True),
    sa.Column('model_snapshot', sa.Text(), nullable=True),
    sa.Column('system_fingerprint', sa.Text(), nullable=True),
    sa.Column('asked_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("origin IN ('same_job', 'other_job')", name=op.f('ck_reused_replies_origin')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_reused_replies')),
    sa.UniqueConstraint('cell_id', 'run', 'item', 'unit', 'trait', 'judge', name=op.f('uq_reused_replies_cell_id'), postgresql_nulls_not_distinct=True)
    )
    op.create_index('ix_reused_replies_shard_id', 'reused_replies', ['shard_id'], unique=False)
    op.create_table('second_verdicts',
    sa.Column('cell_id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('unit', sa.SmallInteger(), nullable=False),
    sa.Column('trait', sa.SmallInteger(), nullable=False),
    sa.Column('judge', sa.SmallInteger(), nullable=False),
    sa.Column('alone', sa.Boolean(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('score', sa.SmallInteger(), nullable=True),
    sa.Column('raw', sa.Text(), nullable=True),
    sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name=op.f('ck_second_verdicts_score')),
    sa.CheckConstraint("status IN ('scored', 'not_applicable', 'refused', 'unparsed', 'failed')", name=op.f('ck_second_verdicts_status')),
    sa.PrimaryKeyConstraint('cell_id', 'run', 'item', 'unit', 'trait', 'judge', 'alone', name=op.f('pk_second_verdicts'))
    )
    op.create_table('verdicts',
    sa.Column('cell_id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('unit', sa.SmallInteger(), nullable=False),
    sa.Column('trait', sa.SmallInteger(), nullable=False),
    sa.Column('judge', sa.SmallInteger(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('score', sa.SmallInteger(), nullable=True),
    sa.Column('raw', sa.Text(), nullable=True),
    sa.Column('group_size', sa.SmallInteger(), server_default=sa.text('1'), nullable=False),
    sa.Column('suspicion', sa.Text(), nullable=True),
    sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name=op.f('ck_verdicts_score')),
    sa.CheckConstraint("status IN ('scored', 'not_applicable', 'refused', 'unparsed', 'failed')", name=op.f('ck_verdicts_status')),
    sa.PrimaryKeyConstraint('cell_id', 'run', 'item', 'unit', 'trait', 'judge', name=op.f('pk_verdicts'))
    )
    op.create_table('webhooks',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('events', sa.ARRAY(sa.Text()), nullable=False),
    sa.Column('secret', sa.Text(), nullable=False),
    sa.Column('disabled_reason', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('former_secret', sa.Text(), nullable=True),
    sa.Column('former_secret_until', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("disabled_reason IN ('by_user', 'gone')", name=op.f('ck_webhooks_disabled_reason')),
    sa.CheckConstraint('(former_secret IS NULL) = (former_secret_until IS NULL)', name=op.f('ck_webhooks_former_secret')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhooks'))
    )
    op.create_index('ix_webhooks_tenant_newest', 'webhooks', ['tenant', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False)
    op.create_table('annotations',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('annotator', sa.Text(), nullable=False),
    sa.Column('dimension', sa.Text(), nullable=True),
    sa.Column('cell', sa.Integer(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('unit', sa.SmallInteger(), nullable=True),
    sa.Column('other_cell', sa.Integer(), nullable=True),
    sa.Column('other_run', sa.SmallInteger(), nullable=True),
    sa.Column('other_item', sa.SmallInteger(), nullable=True),
    sa.Column('other_unit', sa.SmallInteger(), nullable=True),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('score', sa.SmallInteger(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.CheckConstraint("(answer = 'scored') = (score IS NOT NULL)", name=op.f('ck_annotations_score')),
    sa.CheckConstraint("(answer IN ('first', 'second', 'equal')) = (other_cell IS NOT NULL)", name=op.f('ck_annotations_pair')),
    sa.CheckConstraint("answer IN ('scored', 'not_applicable', 'first', 'second', 'equal')", name=op.f('ck_annotations_answer')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_annotations_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_annotations'))
    )
    op.create_index('ix_annotations_job', 'annotations', ['job_id', 'id'], unique=False)
    op.create_index('ix_annotations_subject', 'annotations', ['job_id', 'annotator', 'dimension', 'cell', 'run', 'item', 'unit', 'other_cell', 'other_run', 'other_item', 'other_unit'], unique=True, postgresql_nulls_not_distinct=True)
    op.create_index('ix_annotations_tenant', 'annotations', ['tenant', 'id'], unique=False)
    op.create_table('batches',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('calls', sa.Integer(), nullable=False),
    sa.Column('state', sa.Text(), server_default=sa.text("'formed'"), nullable=False),
    sa.Column('provider_id', sa.Text(), nullable=True),
    sa.Column('submissions', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('failures', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('formed_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('submitted_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('due_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('lease_expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('errors', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('cut', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.CheckConstraint("state IN ('formed', 'submitting', 'submitted', 'ended')", name=op.f('ck_batches_state')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_batches_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batches')),
    sa.UniqueConstraint('connection', 'provider_id', name=op.f('uq_batches_connection'))
    )
    op.create_index('ix_batches_job_id', 'batches', ['job_id'], unique=False)
    op.create_index('ix_batches_open', 'batches', ['due_at'], unique=False, postgresql_where=sa.text("state <> 'ended'"))
    op.create_index('ix_batches_submitting', 'batches', ['connection'], unique=True, postgresql_where=sa.text("state = 'submitting'"))
    op.create_table('budgets',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('calls_limit', sa.BigInteger(), nullable=True),
    sa.Column('tokens_limit', sa.BigInteger(), nullable=True),
    sa.Column('nanos_limit', sa.BigInteger(), nullable=True),
    sa.Column('calls', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('tokens', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('nanos', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('key_id', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_budgets_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', name=op.f('pk_budgets'))
    )
    op.create_index('ix_budgets_key_id', 'budgets', ['key_id'], unique=False, postgresql_where=sa.text('key_id IS NOT NULL'))
    op.create_table('cells',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('ordinal', sa.Integer(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('persona', sa.Text(), nullable=False),
    sa.Column('task', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_cells_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cells')),
    sa.UniqueConstraint('job_id', 'ordinal', name=op.f('uq_cells_job_id'))
    )
    op.create_table('idempotency_keys',
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('body_hash', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('webhook_id', sa.Text(), nullable=True),
    sa.CheckConstraint('num_nonnulls(job_id, webhook_id) = 1', name=op.f('ck_idempotency_keys_made')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_idempotency_keys_job_id_jobs'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['webhook_id'], ['webhooks.id'], name=op.f('fk_idempotency_keys_webhook_id_webhooks'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('tenant', 'key', name=op.f('pk_idempotency_keys'))
    )
    op.create_table('job_results',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('completeness', sa.Text(), nullable=False),
    sa.Column('results', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_results_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', name=op.f('pk_job_results'))
    )
    op.create_table('job_sets',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('set_id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('made', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_sets_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'set_id', name=op.f('pk_job_sets'))
    )
    op.create_index('ix_job_sets_set_id', 'job_sets', ['tenant', 'set_id'], unique=False)
    op.create_table('labelling_rounds',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('dimension', sa.Text(), nullable=False),
    sa.Column('size', sa.Integer(), nullable=False),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('things', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('strata', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.CheckConstraint("kind IN ('sentences', 'pairs')", name=op.f('ck_labelling_rounds_kind')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_labelling_rounds_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_labelling_rounds'))
    )
    op.create_index('ix_labelling_rounds_draw', 'labelling_rounds', ['job_id', 'kind', 'dimension', 'size', 'seed'], unique=True)
    op.create_table('preparations',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('persona', sa.SmallInteger(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('task', sa.Text(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('ask', sa.SmallInteger(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('content', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('dropped', sa.Integer(), nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('dropped_by', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    sa.CheckConstraint("(status = 'ready') = (error IS NULL)", name=op.f('ck_preparations_error')),
    sa.CheckConstraint("kind IN ('personas', 'environments', 'questions', 'exemplars')", name=op.f('ck_preparations_kind')),
    sa.CheckConstraint("status IN ('incomplete', 'ready', 'failed')", name=op.f('ck_preparations_status')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_preparations_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'persona', 'kind', 'task', 'item', 'ask', name=op.f('pk_preparations'))
    )
    op.create_table('webhook_deliveries',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('webhook_id', sa.Text(), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=True),
    sa.Column('payload', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
    sa.Column('attempts', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('due_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('attempted_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('http_status', sa.SmallInteger(), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.CheckConstraint("(state = 'waiting') = (ended_at IS NULL)", name=op.f('ck_webhook_deliveries_ended_at')),
    sa.CheckConstraint("state IN ('waiting', 'delivered', 'given_up')", name=op.f('ck_webhook_deliveries_state')),
    sa.ForeignKeyConstraint(['webhook_id'], ['webhooks.id'], name=op.f('fk_webhook_deliveries_webhook_id_webhooks'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_deliveries'))
    )
    op.create_index('ix_webhook_deliveries_due', 'webhook_deliveries', ['due_at'], unique=False, postgresql_where=sa.text("state = 'waiting'"))
    op.create_index('ix_webhook_deliveries_ended', 'webhook_deliveries', ['ended_at'], unique=False, postgresql_where=sa.text('ended_at IS NOT NULL'))
    op.create_index('ix_webhook_deliveries_newest', 'webhook_deliveries', ['webhook_id', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False)
    op.create_table('batch_files',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('batch_id', sa.BigInteger(), nullable=True),
    sa.Column('file_id', sa.Text(), nullable=True),
    sa.Column('made_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('due_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('failures', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_batch_files_batch_id_batches'), ondelete='SET NULL'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batch_files'))
    )
    op.create_index('ix_batch_files_batch_id', 'batch_files', ['batch_id'], unique=False)
    op.create_index('ix_batch_files_unneeded', 'batch_files', ['due_at'], unique=False, postgresql_where=sa.text('batch_id IS NULL'))
    op.create_table('reservations',
    sa.Column('call_id', sa.Uuid(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), nullable=False),
    sa.Column('tokens', sa.BigInteger(), nullable=False),
    sa.Column('nanos', sa.BigInteger(), nullable=False),
    sa.Column('tenant', sa.Text(), server_default=sa.text("'default'"), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['budgets.job_id'], name=op.f('fk_reservations_job_id_budgets'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('call_id', name=op.f('pk_reservations'))
    )
    op.create_index('ix_reservations_job_id', 'reservations', ['job_id'], unique=False)
    op.create_table('responses',
    sa.Column('cell_id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('instruction', sa.SmallInteger(), nullable=True),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('text', sa.Text(), nullable=True),
    sa.Column('unit_starts', sa.ARRAY(sa.Integer()), nullable=False),
    sa.Column('unit_ends', sa.ARRAY(sa.Integer()), nullable=False),
    sa.Column('verdicts_due', sa.Integer(), nullable=False),
    sa.Column('finish_reason', sa.Text(), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('input_tokens', sa.Integer(), nullable=True),
    sa.Column('output_tokens', sa.Integer(), nullable=True),
    sa.CheckConstraint("(status = 'failed') = (text IS NULL)", name=op.f('ck_responses_text')),
    sa.CheckConstraint("status IN ('answered', 'refused', 'failed')", name=op.f('ck_responses_status')),
    sa.ForeignKeyConstraint(['cell_id'], ['cells.id'], name=op.f('fk_responses_cell_id_cells'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('cell_id', 'run', 'item', name=op.f('pk_responses'))
    )
    op.create_table('shards',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('cell_id', sa.BigInteger(), nullable=True),
    sa.Column('run_start', sa.SmallInteger(), nullable=False),
    sa.Column('run_stop', sa.Integer(), nullable=False),
    sa.Column('planned_responses', sa.Integer(), nullable=False),
    sa.Column('done', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('announced_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('lease_token', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('lease_owner', sa.Text(), nullable=True),
    sa.Column('lease_expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('failures', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('responses_answered', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('responses_failed', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('verdicts_due', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('verdicts_answered', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('verdicts_failed', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('kind', sa.Text(), server_default=sa.text("'responses'"), nullable=False),
    sa.Column('persona', sa.SmallInteger(), nullable=True),
    sa.Column('prerequisite_id', sa.BigInteger(), nullable=True),
    sa.Column('environments_planned', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('questions_planned', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('exemplars_planned', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('planned_exactly', sa.Boolean(), server_default=sa.text('true'), nullable=False),
    sa.Column('personas_planned', sa.Integer(), server_default=sa.text('0'), nullable=False),
    sa.Column('retries', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('attempts_before', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('parked', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('answered', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.CheckConstraint("(kind = 'preparation') = (persona IS NOT NULL)", name=op.f('ck_shards_persona')),
    sa.CheckConstraint("(kind = 'responses') = (cell_id IS NOT NULL)", name=op.f('ck_shards_cell')),
    sa.CheckConstraint("kind IN ('responses', 'preparation')", name=op.f('ck_shards_kind')),
    sa.ForeignKeyConstraint(['cell_id'], ['cells.id'], name=op.f('fk_shards_cell_id_cells'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_shards_job_id_jobs'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['prerequisite_id'], ['shards.id'], name=op.f('fk_shards_prerequisite_id_shards'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_shards'))
    )
    op.create_index('ix_shards_cell_id', 'shards', ['cell_id'], unique=False)
    op.create_index('ix_shards_job_id', 'shards', ['job_id', 'done', 'announced_at'], unique=False)
    op.create_index('ix_shards_open', 'shards', ['announced_at'], unique=False, postgresql_where=sa.text('NOT done'))
    op.create_index('ix_shards_prerequisite_id', 'shards', ['prerequisite_id'], unique=False)
    op.create_table('batch_calls',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('batch_id', sa.BigInteger(), nullable=True),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('path', sa.Text(), nullable=False),
    sa.Column('custom_id', sa.Text(), nullable=False),
    sa.Column('attempt', sa.SmallInteger(), nullable=False),
    sa.Column('request', sa.Text(), nullable=False),
    sa.Column('tokens', sa.BigInteger(), nullable=False),
    sa.Column('nanos', sa.BigInteger(), nullable=False),
    sa.Column('answer', sa.Text(), nullable=True),
    sa.Column('tenant', sa.Text(), server_default=sa.text("'default'"), nullable=False),
    sa.Column('waits', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_batch_calls_batch_id_batches'), ondelete='SET NULL'),
    sa.ForeignKeyConstraint(['shard_id'], ['shards.id'], name=op.f('fk_batch_calls_shard_id_shards'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batch_calls')),
    sa.UniqueConstraint('shard_id', 'path', name=op.f('uq_batch_calls_shard_id'))
    )
    op.create_index('ix_batch_calls_batch_id', 'batch_calls', ['batch_id', 'custom_id'], unique=False)
    op.create_index('ix_batch_calls_waiting', 'batch_calls', ['job_id', 'connection', 'model', 'id'], unique=False, postgresql_where=sa.text('batch_id IS NULL'))
    op.create_table('shard_reuse',
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('stage', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('same_job', sa.Integer(), nullable=False),
    sa.Column('other_job', sa.Integer(), nullable=False),
    sa.Column('input_tokens', sa.BigInteger(), nullable=False),
    sa.Column('output_tokens', sa.BigInteger(), nullable=False),
    sa.Column('usd', sa.Double(), nullable=True),
    sa.Column('unpriced', sa.Integer(), nullable=False),
    sa.Column('oldest', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['shard_id'], ['shards.id'], name=op.f('fk_shard_reuse_shard_id_shards'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('shard_id', 'stage', 'model', name=op.f('pk_shard_reuse'))
    )
    op.create_table('shard_usage',
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('stage', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('calls', sa.Integer(), nullable=False),
    sa.Column('failed_calls', sa.Integer(), nullable=False),
    sa.Column('input_tokens', sa.BigInteger(), nullable=False),
    sa.Column('output_tokens', sa.BigInteger(), nullable=False),
    sa.Column('cached_input_tokens', sa.BigInteger(), nullable=False),
    sa.Column('usd', sa.Double(), nullable=True),
    sa.Column('unpriced_calls', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['shard_id'], ['shards.id'], name=op.f('fk_shard_usage_shard_id_shards'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('shard_id', 'stage', 'model', name=op.f('pk_shard_usage'))
    )
    for table in TABLES_OF_TENANTS:
        enable_rls(table)


def downgrade() -> None:
    """Removes them all."""
    op.drop_table('shard_usage')
    op.drop_table('shard_reuse')
    op.drop_table('batch_calls')
    op.drop_table('shards')
    op.drop_table('responses')
    op.drop_table('reservations')
    op.drop_table('batch_files')
    op.drop_table('webhook_deliveries')
    op.drop_table('preparations')
    op.drop_table('labelling_rounds')
    op.drop_table('job_sets')
    op.drop_table('job_results')
    op.drop_table('idempotency_keys')
    op.drop_table('cells')
    op.drop_table('budgets')
    op.drop_table('batches')
    op.drop_table('annotations')
    op.drop_table('webhooks')
    op.drop_table('verdicts')
    op.drop_table('second_verdicts')
    op.drop_table('reused_replies')
    op.drop_table('replies')
    op.drop_table('question_sets')
    op.drop_table('persona_sets')
    op.drop_table('jobs')
    op.drop_table('grades')
    op.drop_table('connections')
    op.drop_table('calls')
    op.drop_table('api_keys')
