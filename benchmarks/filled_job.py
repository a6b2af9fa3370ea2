"""A job of the papers' whole study whose rows are put straight into the tables, as if workers had made them.

12 models × 15 personas × 3 tasks × 30 runs have 64,800 responses and 523,800 verdicts; asking a provider for them would take
minutes, and what is measured here comes after that.
"""

from typing import Any

import psycopg

from app.db.execution.shard_counts import COUNTS, GROUP_USAGE, STORE_USAGE

SENTENCES = {"questionnaire": 6, "essay": 15, "social_media_post": 22}
"""Of a response, by task."""

LEASED = 16
"""Shards that are being worked on in the middle of the job."""

_SENTENCE = "Well, a sentence like this one has about as many characters as what a model writes in an essay. "

_RESPONSES = """
CREATE TEMPORARY TABLE filled ON COMMIT DROP AS
SELECT c.id AS cell_id, c.tenant, c.job_id, c.model, s.id AS shard_id, run, item, n AS sentences
FROM shards s JOIN cells c ON c.id = s.cell_id
JOIN unnest(%(tasks)s::text[], %(sentences)s::int[]) AS t (task, n) ON t.task = c.task,
generate_series(s.run_start, s.run_stop - 1) run,
generate_series(0, s.planned_responses / (s.run_stop - s.run_start) - 1) item
WHERE s.id = ANY(%(shards)s);

INSERT INTO responses (cell_id, run, item, tenant, instruction, status, text, unit_starts, unit_ends, verdicts_due,
 finish_reason, input_tokens, output_tokens)
SELECT cell_id, run, item, tenant, run / %(iterations)s, 'answered', repeat(%(sentence)s, sentences),
 ARRAY(SELECT u * %(length)s FROM generate_series(0, sentences - 1) u),
 ARRAY(SELECT (u + 1) * %(length)s - 1 FROM generate_series(0, sentences - 1) u), sentences, 'stop', 200, 20 * sentences
FROM filled;
"""

_VERDICTS = """
INSERT INTO verdicts (cell_id, run, item, unit, trait, judge, tenant, status, score, raw)
SELECT cell_id, run, item, unit, 0, 0, tenant, CASE WHEN drawn > 5 THEN 'not_applicable' ELSE 'scored' END,
 CASE WHEN drawn > 5 THEN NULL ELSE drawn END, drawn::text
FROM (SELECT cell_id, run, item, unit, tenant, 1 + (random() * random() * 6)::int AS drawn
 FROM filled, generate_series(0, sentences - 1) unit) d
"""

_CALLS = """
INSERT INTO calls (id, tenant, job_id, shard_id, stage, connection, model, cell_id, run, item, unit, trait, judge, attempt,
 outcome, input_tokens, output_tokens, cached_input_tokens, maybe_paid, latency_ms, finish_reason, model_snapshot,
 provider_request_id, started_at)
SELECT uuidv7(), tenant, job_id, shard_id, CASE WHEN unit < 0 THEN 'generation' ELSE 'judging' END, 'simulated',
 CASE WHEN unit < 0 THEN model ELSE 'sim-judge' END, cell_id, run, item, nullif(unit, -1),
 CASE WHEN unit < 0 THEN NULL ELSE 0 END, CASE WHEN unit < 0 THEN NULL ELSE 0 END, 1, 'ok', 200, 1, 0, true, 200, 'stop',
 'sim-1', 'req_' || shard_id || run || item || unit, clock_timestamp()
FROM filled, generate_series(-1, sentences - 1) unit
"""

_COUNTS = f"""
UPDATE shards SET responses_answered = counted.answered, verdicts_due = counted.due, verdicts_answered = counted.judged,
 done = true, announced_at = clock_timestamp(), lease_token = greatest(lease_token, 1), lease_owner = NULL,
 lease_expires_at = NULL
FROM (SELECT s.id, r.answered, r.due, v.answered AS judged FROM shards s, {COUNTS} WHERE s.id = ANY(%(shards)s)) counted
WHERE shards.id = counted.id
"""

_LEASE = """
UPDATE shards SET announced_at = clock_timestamp(), lease_token = 1, lease_owner = 'benchmark',
 lease_expires_at = clock_timestamp() + interval '1 day' WHERE id = ANY(%(shards)s)
"""


class FilledJob:
    """A job that was submitted to a stack without workers, and what is put into its tables.

    Args:
        url: The database, as SQLAlchemy spells it.
        job_id: Which job; it must be new.
        iterations: Its runs under each instruction.
    """

    def __init__(self, url: str, job_id: str, iterations: int) -> None:
        self._url = url.replace("postgresql+psycopg://", "postgresql://", 1)
        self._job_id = job_id
        self._iterations = iterations

    def fill_half(self) -> None:
        """The job in its middle: half of its shards have ended, :data:`LEASED` are held and nearly so, the rest wait."""
        with psycopg.connect(self._url) as connection:
            shards = self._open_shards(connection)
            half = len(shards) // 2
            self._fill(connection, shards[:half])
            self._fill(connection, shards[half : half + LEASED])
            connection.execute(_COUNTS, {"shards": shards[:half]})
            connection.execute(_LEASE, {"shards": shards[half : half + LEASED]})
            connection.execute(f"{STORE_USAGE} WHERE shard_id = ANY(%s) {GROUP_USAGE}", [shards[:half]])
            connection.execute(
                "UPDATE jobs SET status = 'running', started_at = now() WHERE id = %s", [self._job_id]
            )
        self._analyze()

    def fill_rest(self) -> None:
        """The same job when its last shard has ended."""
        with psycopg.connect(self._url) as connection:
            shards = self._open_shards(connection)
            leased = [
                row[0]
                for row in connection.execute(
                    "SELECT id FROM shards WHERE job_id = %s AND lease_expires_at IS NOT NULL", [self._job_id]
                )
            ]
            self._fill(connection, sorted(set(shards) - set(leased)))
            connection.execute(_COUNTS, {"shards": shards})
            connection.execute(f"{STORE_USAGE} WHERE shard_id = ANY(%s) {GROUP_USAGE}", [shards])
            connection.execute(
                "UPDATE jobs SET status = 'finalizing', updated_at = now() WHERE id = %s", [self._job_id]
            )
        self._analyze()

    def _open_shards(self, connection: psycopg.Connection) -> list[int]:
        rows = connection.execute(
            "SELECT id FROM shards WHERE job_id = %s AND NOT done ORDER BY id", [self._job_id]
        )
        return [row[0] for row in rows]

    def _fill(self, connection: psycopg.Connection, shards: list[int]) -> None:
        values: dict[str, Any] = {
            "tasks": list(SENTENCES),
            "sentences": list(SENTENCES.values()),
            "shards": shards,
            "iterations": self._iterations,
            "sentence": _SENTENCE,
            "length": len(_SENTENCE),
        }
        with psycopg.ClientCursor(connection) as cursor:  # several statements at once
            cursor.execute(_RESPONSES, values)
        connection.execute(_VERDICTS)
        connection.execute(_CALLS)
        connection.execute("DROP TABLE filled")

    def _analyze(self) -> None:
        """What autovacuum does within a minute of so many new rows."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE responses, verdicts, calls, shards, shard_usage, cells, jobs")
