"""The bodies of a run's jobs."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.request import JobIn
from app.domain.validation import message

_OF_JUDGING = (
    "judges",
    "protocol",
    "judging",
    "versions",
    "rubrics",
    "priority",
    "execution",
    "seed",
)
"""What anchors are judged by as the schedule's job is."""


def run_job(job: Mapping[str, Any], most_usd: float | None) -> tuple[JobIn, dict[str, Any]]:
    """A run's job and its body.

    Args:
        job: The schedule's.
        most_usd: What it may spend besides its own budget's limits; ``None`` for no limit.

    Raises:
        InvalidJobError: If this release does not take it any more.
    """
    return _validated(_within(job, most_usd))


def anchor_job(
    job: Mapping[str, Any], anchors: Mapping[str, Any], most_usd: float | None
) -> tuple[JobIn, dict[str, Any]]:
    """The same of the job that judges the anchors.

    Raises:
        InvalidJobError: If this release does not take it any more.
    """
    body = {name: job[name] for name in _OF_JUDGING if name in job}
    if "judging" in body:  # whether a text is a refusal was decided in the job that made it
        body["judging"] = {name: value for name, value in body["judging"].items() if name != "refusals"}
    body |= {"name": "anchors", "responses": {"job": anchors["job"], "sample": dict(anchors["sample"])}}
    return _validated(_within(body, most_usd))


def _within(body: Mapping[str, Any], most_usd: float | None) -> dict[str, Any]:
    if most_usd is None:
        return dict(body)
    budget = dict(body.get("budget") or {})
    budget["usd"] = min(most_usd, budget.get("usd") or most_usd)
    return {**body, "budget": budget}


def _validated(body: dict[str, Any]) -> tuple[JobIn, dict[str, Any]]:
    try:
        return JobIn.model_validate(body), body
    except ValidationError as error:
        found = [
            FieldError("/" + "/".join(map(str, each["loc"])), message(each))
            for each in error.errors(include_url=False, include_input=False)
        ]
        raise InvalidJobError(found) from error
