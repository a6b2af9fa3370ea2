"""Using replies again: which of a job's calls need not be made where an equal request has been answered already."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.domain.errors import FieldError
from app.domain.providers.model import Model, Stage, Takes
from app.domain.providers.parameters import sent_parameters

KEPT_DAYS = 30
"""For how many days replies are kept for other jobs, unless the operator says otherwise."""


class ReuseScope(StrEnum):
    """Whose replies a stage of a job may use."""

    OFF = "off"
    IN_JOB = "in_job"
    """Those of the job itself: identical judge calls are made once."""
    ACROSS_JOBS = "across_jobs"
    """Those of the tenant's other jobs too."""


class ReplyOrigin(StrEnum):
    """Where a reused reply comes from."""

    SAME_JOB = "same_job"
    OTHER_JOB = "other_job"


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a job wants to be spared.

    Attributes:
        judging: For judges at temperature 0; others are asked anew each time.
        generation: For the models under test; never ``IN_JOB``, as every text of a job is one of its own.
        max_age_days: Replies of other jobs that were asked for longer ago are not used.
    """

    judging: ReuseScope = ReuseScope.OFF
    generation: ReuseScope = ReuseScope.OFF
    max_age_days: int = 0

    @property
    def wanted(self) -> bool:
        """Whether any reply may be used again."""
        return self.judging is not ReuseScope.OFF or self.generation is not ReuseScope.OFF

    def of(self, stage: Stage) -> ReuseScope:
        """Whose replies a stage may use; a preparation's replies are its own."""
        if stage is Stage.JUDGING:
            return self.judging
        return self.generation if stage is Stage.GENERATION else ReuseScope.OFF


NO_REUSE = Reuse()


def reuse_problems(reuse: Reuse, judges: Sequence[Model], *, provided: bool) -> Iterator[FieldError]:
    """What of a job's wishes can have no effect."""
    if reuse.judging is not ReuseScope.OFF and judges and not any(_at_zero(judge) for judge in judges):
        yield FieldError(
            "/reuse/judging",
            "only replies of judges with temperature 0 can be reused; the job has no such judge",
        )
    if reuse.generation is not ReuseScope.OFF and provided:
        yield FieldError("/reuse/generation", "has no effect on existing texts")


def _at_zero(judge: Model) -> bool:
    return sent_parameters(judge.parameters, judge.takes or Takes()).values.get("temperature") == 0


def reply_key(request: bytes, *, only_job: str | None, place: Sequence[str | int] = ()) -> bytes:
    """Names a reply by what was asked for.

    Args:
        request: Digest of the request as its provider sees it.
        only_job: The job whose own the reply is; ``None`` if other jobs may use it.
        place: Which of a job's texts it is, for those that must not become one and the same: different for any two
            texts of a job, and the same in every job that asks for the same.
    """
    canonical = json.dumps([request.hex(), only_job, *place], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).digest()
