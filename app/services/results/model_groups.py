"""A job's models in groups, by the attributes that its request gives them."""

from app.db.jobs.jobs import JobRow
from app.domain.results.contract import Results
from app.domain.results.model_groups import Attributes, ModelGroups, model_groups


def attributes_of(job: JobRow) -> Attributes:
    """Those of a job's models, by label; they decide nothing of how it runs, so that its specification has none."""
    given = [each for each in job.request.get("models") or () if isinstance(each, dict)]
    # Not validated again: a later release may take less than the one that took the job.
    return {
        each.get("label") or each["model"]: each["attributes"] for each in given if each.get("attributes")
    }


def groups_of(job: JobRow, results: Results) -> ModelGroups:
    """A job's models, alone and in groups."""
    return ModelGroups(
        job=job.id, simulated=results.simulated, groups=model_groups(results.cells, attributes_of(job))
    )
