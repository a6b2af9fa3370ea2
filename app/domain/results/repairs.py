"""Counts of unreadable replies that were followed by a second request."""

from pydantic import Field

from app.domain.contract import Answer


class JudgeRepairs(Answer):
    """One judge's follow-up requests and their outcome."""

    judge: str
    unread: int = Field(description="Verdicts and grades whose first reply could not be read.")
    repaired: int = Field(description="Of these, those that the second reply gave.")
    unparsed: int = Field(description="The others: no figure contains them.")
