"""Counts of the replies that a judge was asked to repeat as a number."""

from pydantic import Field

from app.domain.contract import Answer


class JudgeRepairs(Answer):
    """Follow-up requests to one judge."""

    judge: str
    unread: int = Field(description="Verdicts and grades whose first reply could not be read.")
    repaired: int = Field(description="Of these, those that the second reply gave.")
