"""How a job's sentences are judged, as a request says it."""

from pydantic import Field, model_validator

from app.domain.contract import Body
from app.domain.jobs.draft import GroupingDraft
from app.domain.judging.grouping import CHECK_MINIMUM, CHECK_SHARE, MOST_SENTENCES


class JudgingCheckIn(Body):
    """The sample that is judged sentence by sentence as well, drawn by the job's seed. It can't be left out."""

    share: float = Field(CHECK_SHARE, gt=0, le=1, allow_inf_nan=False, description="Share of the responses.")
    minimum: int = Field(
        CHECK_MINIMUM,
        ge=1,
        le=1_000_000,
        description="At least so many responses, or all where there are fewer.",
    )


class VersionsIn(Body):
    """Versions of the rules by which texts are read, for a job that is to be compared with an older one."""

    segmenter: str | None = Field(None, max_length=100, description="What splits texts into sentences.")
    refusals: str | None = Field(None, max_length=100, description="What tells refusals from responses.")
    injections: str | None = Field(
        None, max_length=100, description="What recognises texts that address the judge."
    )

    def chosen(self) -> dict[str, str]:
        """Those that were named, by kind."""
        return self.model_dump(exclude_none=True)


class JudgingIn(Body):
    """How sentences are judged."""

    sentences_per_call: int = Field(
        1,
        ge=1,
        le=MOST_SENTENCES,
        description="Sentences of a response that a judge is asked about in one call, at most. 1 is the papers' way; with"
        " more, with a prompt of this project's own, `judging_check` in the results says how far the verdicts differ.",
    )
    check: JudgingCheckIn | None = Field(
        None, description="Of a job with several sentences a call: what is judged one by one as well."
    )

    @model_validator(mode="after")
    def _has_something_to_check(self) -> "JudgingIn":
        if self.check is not None and self.sentences_per_call == 1:
            raise ValueError("sentences are judged one by one already: there is nothing to check")
        return self

    def to_draft(self) -> GroupingDraft | None:
        """How sentences are grouped, if they are."""
        if self.sentences_per_call == 1:
            return None
        check = self.check or JudgingCheckIn()
        return GroupingDraft(self.sentences_per_call, check.share, check.minimum)
