"""Counts of unreadable replies that were followed by a second request."""

from pydantic import Field

from app.domain.contract import Answer


class JudgeRepairs(Answer):
    """Verdicts and grades of one judge that it was asked for once more."""

    judge: str
    unread: int = Field(description="Verdicts and grades whose first reply could not be read.")
    repaired: int = Field(description="Of these, those that the second reply gave.")
    unparsed: int = Field(description="The others: no figure contains them.")
