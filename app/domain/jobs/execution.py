"""How a job's calls are made."""

from enum import StrEnum

from app.domain.providers.model import Stage


class Execution(StrEnum):
    """The names are those of the HTTP contract."""

    DIRECT = "direct"
    """Each call by itself, answered at once."""
    BATCH = "batch"
    """Many calls at a time through the providers' batch endpoints: at half the price, within a day."""


BATCHED_STAGES = frozenset(
    {Stage.GENERATION, Stage.JUDGING, Stage.CHECKING, Stage.REPAIRING, Stage.REFUSAL_CHECK}
)
"""What prepares personas is called directly all the same: its few calls follow one another."""
