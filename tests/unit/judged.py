"""Responses, verdicts and grades of which tests name only what they are about."""

from typing import Any

from app.domain.judging.judged_response import (
    AskedItem,
    JudgedResponse,
    ResponseGrade,
    UnitVerdict,
    mean_score,
)
from app.domain.judging.verdict import VerdictStatus
from app.domain.providers.model import FinishReason

REPLY: dict[str, Any] = {
    "error": None,
    "reused": None,
    "suspicion": None,
    "finish_reason": None,
    "thoughts": None,
}
RESPONSE: dict[str, Any] = {
    "run": 0,
    "instruction": 0,
    "iteration": 0,
    "status": "answered",
    "error": None,
    "finish_reason": FinishReason.STOP,
    "usage": None,
    "thoughts": None,
    "units": (),
    "question": None,
    "grades": (),
    "reused": None,
    "persona_description": "someone",
    "persona_traits": (),
    "figures": (),
}


def a_verdict(
    judge: str,
    dimension: str,
    status: VerdictStatus,
    score: int | None = None,
    raw: str | None = None,
    in_character: bool | None = None,
    **more: Any,
) -> UnitVerdict:
    """A judge's verdict of a call of its own."""
    said = {"score": score, "raw": raw, "in_character": in_character, "group_size": 1}
    return UnitVerdict(judge=judge, dimension=dimension, status=status, **(REPLY | said | more))


def a_grade(judge: str, status: VerdictStatus, **more: Any) -> ResponseGrade:
    """A judge's grade of a response."""
    return ResponseGrade(judge=judge, status=status, **(REPLY | more))


def a_response(*, item: str, item_text: str, **more: Any) -> JudgedResponse:
    """A response with what follows from its other fields."""
    given = RESPONSE | more
    return JudgedResponse(
        item=AskedItem(item, item_text),
        refusal=given["status"] == "refused",
        score=mean_score(given["grades"]),
        **given,
    )
