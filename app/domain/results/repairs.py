"""Counts of unreadable replies that were followed by a second request."""

from collections.abc import Sequence

from pydantic import Field

from app.domain.contract import Answer


class Repairs(Answer):
    """Counts of follow-up requests and their outcome."""

    unread: int = Field(description="Verdicts and grades whose first reply could not be read.")
    repaired: int = Field(description="Those that the second reply gave.")
    unparsed: int = Field(description="The others: no figure contains them.")
    failed: int = Field(
        0, description="The unparsed ones whose follow-up request failed: there is no second reply."
    )


class JudgeRepairs(Repairs):
    """One judge's follow-up requests and their outcome."""

    judge: str


def sum_of(repairs: Sequence[JudgeRepairs]) -> Repairs:
    """Add up the counts of all judges."""
    return Repairs(
        unread=sum(each.unread for each in repairs),
        repaired=sum(each.repaired for each in repairs),
        unparsed=sum(each.unparsed for each in repairs),
        failed=sum(each.failed for each in repairs),
    )
