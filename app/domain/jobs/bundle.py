"""Reproduction bundles: a finished job in one zip file, from which another installation computes its results again.

``bundle.json``, the last file, names the others with their hashes. Version 1 has ``job.json``, ``specification.json``, ``results.json``,
``sets.jsonl`` and a file of JSON Lines for each table.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.domain.contract import Answer
from app.domain.jobs.budget import Budget
from app.domain.jobs.contract import Job, JobError
from app.domain.jobs.priority import Priority
from app.domain.jobs.request import BudgetIn
from app.domain.jobs.status import TERMINAL, JobStatus

VERSION = 1
HEADER, JOB, SPECIFICATION, RESULTS, SETS = (
    "bundle.json",
    "job.json",
    "specification.json",
    "results.json",
    "sets.jsonl",
)
TABLES = "tables/"
OF_JOB = ("preparations",)
OF_SHARDS = ("shard_usage", "shard_reuse", "calls")
OF_CELLS = ("responses", "verdicts", "second_verdicts", "grades", "reused_replies")
ROWS = ("cells", "shards", *OF_JOB, *OF_SHARDS, *OF_CELLS)
"""The tables of a bundle, in the order in which they are written."""
MOST_BYTES = 2**28
"""Of a bundle."""
MOST_UNPACKED = 100
"""How many times as long its files may be together; verdicts shrink to a thirtieth."""
MOST_LINE_BYTES = MOST_DOCUMENT_BYTES = 32 * 2**20
"""Of a line, and of a file that is read as a whole."""


NOT_IN_BUNDLES = "not in bundles"
"""Stands for the secret of key words, which would let whoever has a bundle foretell those of the installation's other jobs."""


def with_secret(specification: dict[str, Any], secret: str) -> dict[str, Any]:
    """A stored specification with another secret of its judges' key words; the same one where it has none."""
    hardening = specification.get("hardening")
    if not hardening or not hardening.get("secret"):
        return specification
    return specification | {"hardening": hardening | {"secret": secret}}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class BundleFile(_Strict):
    """One of a bundle's files."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]


class BundleHeader(_Strict):
    """What a bundle is of."""

    format: Literal["persona-assay-bundle"]
    version: Annotated[int, Field(ge=1)]
    release: str
    job: Annotated[str, Field(pattern=r"^job_[0-9a-hjkmnp-tv-z]{26}$")]
    simulated: bool
    replies: bool
    files: dict[str, BundleFile]


class _Model(BaseModel):
    model: str
    label: str | None = None


class _ImportedJudge(BaseModel):
    imported: str


class _Task(BaseModel):
    task: str


class _Request(BaseModel):
    """What is read of a stored request, whoever wrote it."""

    models: list[str | _Model] | None = None
    judges: list[str | _Model | _ImportedJudge] | None = None
    tasks: list[str | _Task] | None = None
    responses: dict[str, Any] | list[dict[str, Any]] | None = None
    thresholds: list[str] | None = None
    minimum_coverage: float | None = None
    reuse: dict[str, str] | None = None
    budget: BudgetIn | None = None


def _readable(request: dict[str, Any]) -> dict[str, Any]:
    _Request.model_validate(request)
    return request


class BundleJob(BaseModel):
    """What a bundle has of a job beside its specification and rows."""

    model_config = ConfigDict(extra="forbid")

    name: str | None
    status: JobStatus
    status_reason: str | None
    error: JobError | None
    request: Annotated[dict[str, Any], AfterValidator(_readable)]
    metadata: dict[str, str]
    priority: Priority
    tags: list[str]
    planned_responses: int
    expected_verdicts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime
    reader: str | None = None
    budget: BudgetIn | None = None

    @property
    def limits(self) -> Budget:
        """The limits that the job had last, or those of its submission in bundles that don't say."""
        found = self.budget or _Request.model_validate(self.request).budget
        return Budget() if found is None else found.to_budget()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be done for it."""
        return self.status in TERMINAL


class BundleSet(_Strict):
    """A set that the job made or named."""

    id: str
    name: str | None
    content: Any
    made: bool


class ImportedJob(Answer):
    """A job that was imported from a bundle."""

    job: Job
    responses: int
    verdicts: int
    calls: int
    recomputed: Literal["equal"] = Field(
        "equal", description="The results were computed again from the rows and are those of the bundle."
    )
