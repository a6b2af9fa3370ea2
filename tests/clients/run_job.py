"""Runs a job with the client that openapi-python-client makes; run by the generator's Python."""

import json
import os
import time

from persona_assay_client import Client
from persona_assay_client.api.jobs import get_job, get_results, submit_job
from persona_assay_client.models import JobDetail, JobIn, Problem, Results

assay = Client(base_url=os.environ["ASSAY_URL"])


def job_of(task: str) -> JobIn:
    return JobIn(
        personas=["E-high"],
        tasks=[task],
        models=["simulated/sim-faithful"],
        judges=["simulated/sim-judge"],
        instructions=[0],
        iterations=2,
    )


submitted = submit_job.sync(client=assay, body=job_of("essay"))
assert isinstance(submitted, JobDetail), submitted
job = submitted
while not job.finished_at:
    time.sleep(0.1)
    found = get_job.sync(client=assay, job_id=job.id)
    assert isinstance(found, JobDetail), found
    job = found
results = get_results.sync(client=assay, job_id=job.id)
assert isinstance(results, Results), results
refused = submit_job.sync(client=assay, body=job_of("esay"))
assert isinstance(refused, Problem), refused
told = {
    "job": job.id,
    "acc_atom": results.cells[0].metrics.to_dict()["acc_atom"]["value"],
    "refused": [field.pointer for field in refused.errors or ()],
}
print(json.dumps(told))  # noqa: T201 - what the test reads
