"""A job's models in groups, by the attributes that its request gives them."""

from app.db.jobs.jobs import JobRow
from app.domain.results.contract import Results
from app.domain.results.model_groups import ModelGroups, model_groups
from app.services.jobs.text_sources import attributes_of


def groups_of(job: JobRow, results: Results) -> ModelGroups:
    """A job's models, alone and in groups."""
    return ModelGroups(
        job=job.id,
        simulated=results.simulated,
        groups=model_groups(results.cells, attributes_of(job, results.source)),
    )
