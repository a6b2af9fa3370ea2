"""Whether a job's calls can be made in the way that it asks for."""

from collections.abc import Callable

from app.domain.jobs.execution import Execution
from app.domain.jobs.specification import JobSpec


def check_execution(
    spec: JobSpec, batch_problem: Callable[[str], str | None], fail: Callable[[str, str], None]
) -> None:
    """Says what keeps a job from being called in batches, if it shall be.

    Args:
        spec: The job.
        batch_problem: Says why a connection can't take batches, or ``None`` if it can.
        fail: Notes what is wrong with a field.
    """
    for connection in dict.fromkeys(model.connection for model in spec.batched):
        problem = batch_problem(connection)
        if problem is not None:
            fail("/execution", problem)
    if spec.execution is Execution.BATCH and spec.reuse.wanted:
        # Who wishes for what another asks for waits for it; a call in a batch may take a day.
        fail(
            "/execution",
            "calls in batches can't use replies again; leave out reuse, or use execution 'direct'",
        )
