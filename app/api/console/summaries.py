"""What a page says of a job in a few words and a single bar."""

from collections.abc import Mapping
from typing import Any

from app.db.jobs.jobs import JobRow
from app.domain.jobs.verdicts_request import imported_judges

Json = Mapping[str, Any]

NAMED_MODELS = 3
"""Models that are named; of more, how many there are."""


def whole(progress: Json) -> dict[str, Any]:
    """All stages together."""
    names = ("total", "pending", "running", "succeeded", "failed")
    found: dict[str, Any] = {name: sum(stage[name] for stage in progress.values()) for name in names}
    return found | {"estimated": any(stage["estimated"] for stage in progress.values())}


def summary(request: Json) -> str:
    """What a job does, by the body with which it was submitted."""
    models = [label(model) for model in request.get("models") or []]
    tasks = [_task(task).replace("_", " ") for task in request.get("tasks") or []]
    if "generate" in request:
        return "generates personas"
    texts = (
        f"texts of {request['responses']['job']}, judged again"
        if "job" in (request.get("responses") or {})
        else "existing texts"
    )
    marks = "imported verdicts" if imported_judges(request) else ""
    parts = [_listed(models) or texts, _listed(tasks), marks]
    return " · ".join(filter(None, parts))


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED_MODELS
    return ", ".join(names[:NAMED_MODELS]) + (f" and {more} more" if more > 0 else "")


def label(model: str | Json) -> str:
    """How results name a model of a job's body."""
    return model if isinstance(model, str) else str(model.get("label") or model["model"])


def job_words(job: JobRow) -> str:
    """Return a job's name, the end of its id and its date, which together tell it from others of its models."""
    return f"{job.name or 'Job'} · {job.id[-6:]} · {job.created_at:%Y-%m-%d}"


def _task(task: str | Json) -> str:
    return task if isinstance(task, str) else str(task["task"])
