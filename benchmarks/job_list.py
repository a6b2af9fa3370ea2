"""Pages of a list of jobs: 10,000 ended jobs of four tenants, 7,000 of them one tenant's, read over HTTP in each order.

The jobs are put into the tables of a stack without workers. A minute.
"""

import argparse
import json
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import psycopg

from benchmarks.whole_job import Json, machine, percentiles, timed
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

ASKED: dict[str, Json] = {
    "newest": {},
    "name": {"sort": "name"},
    "-cost": {"sort": "-cost"},
    "-score": {"sort": "-score"},
    "one tag": {"tag": "tag 7"},
    "rare model, by score": {"model": "model 49", "sort": "-score"},
    "text in one job": {"q": "job 9,973"},
    "text in none": {"q": "no such words"},
    "archived": {"archived": "true"},
}
COPY = (
    "INSERT INTO jobs (id, tenant, name, status, request, spec, simulated, metadata, planned_responses, expected_verdicts,"
    " created_at, finished_at, tags, notes, archived_at, models, tasks, scores, score, usd, unpriced_calls)"
    " SELECT 'job_' || lpad(n::text, 26, '0'), CASE WHEN n %% 10 < 7 THEN tenant ELSE 'tenant ' || n %% 3 END,"
    " 'job ' || to_char(n, 'FM999,999'), 'completed', request, spec, simulated, metadata, 540, 9000,"
    " now() - n * interval '1 minute', now(), ARRAY['tag ' || n %% 10, 'tag ' || n %% 97], repeat('a note on it ', n %% 30),"
    " CASE WHEN n %% 20 = 0 THEN now() END, ARRAY['model ' || n %% 50, 'model ' || n %% 7], tasks,"
    ' \'[{"model": "m", "metric": "acc_atom", "value": 0.5, "n": 45}]\', random(), random(), 0'
    " FROM jobs, generate_series(1, %s) AS n WHERE id = %s"
)


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument(
        "--pages", type=int, default=50, help="pages of 20 jobs in each order, one after the other"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as directory:
        Path(directory).chmod(0o711)  # passable: Postgres may have to run as another account
        config = StackConfig(host="127.0.0.1", port=0, data_dir=Path(directory), workers=0)
        with Supervisor(config) as supervisor, httpx2.Client(base_url=supervisor.urls.api, timeout=60) as api:
            body = {"personas": ["big-five"], "tasks": ["essay"], "models": ["simulated/sim-faithful"]}
            job = api.post("/v1/jobs", json=body).raise_for_status().json()["id"]
            url = supervisor.urls.database.replace("postgresql+psycopg", "postgresql")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(COPY.encode(), (options.jobs, job))
                connection.execute(b"VACUUM ANALYZE jobs")
            figures = {name: _walk(api, query, options.pages) for name, query in ASKED.items()}
    print(json.dumps({"machine": machine(), "jobs": options.jobs, "page_ms": figures}, indent=2))


def _walk(api: httpx2.Client, query: Json, pages: int) -> Json:
    """How long pages take, one after the other; from the first one on again where there are no more."""
    taken, cursor = [], None
    for _ in range(pages):
        asked = urlencode(query | ({} if cursor is None else {"after": cursor}))
        seconds, page = timed(api, f"/v1/jobs?{asked}")
        taken.append(seconds)
        cursor = page["next_cursor"]
    return percentiles(taken)


if __name__ == "__main__":
    main()
