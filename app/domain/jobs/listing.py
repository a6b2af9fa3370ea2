"""Which jobs a list has, and in which order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from app.domain.jobs.status import JobStatus

JobSort: TypeAlias = Literal["-created", "created", "name", "-name", "cost", "-cost", "score", "-score"]


class Archived(StrEnum):
    """Which jobs are listed by whether they are archived."""

    FALSE = "false"
    TRUE = "true"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs are listed: those that meet everything that is given.

    Attributes:
        archived: By whether they are archived.
        status: In this state.
        text: This is part of the name, id, notes, a tag or a model's label, in small letters or capitals.
        name: This is part of the name, likewise.
        tags: They have all of these.
        model: They have a model of this label.
        tasks: They have one of these tasks.
        metadata: They carry all of these labels.
    """

    archived: Archived = Archived.FALSE
    status: JobStatus | None = None
    text: str | None = None
    name: str | None = None
    tags: Sequence[str] = ()
    model: str | None = None
    tasks: Sequence[str] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
