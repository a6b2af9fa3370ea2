"""JSON Lines exports: one object a line, texts as they are."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from app.domain.judged import JudgedResponse
from app.reports.columns import (
    CELL_COLUMNS,
    JUDGING_CHECK_COLUMNS,
    PERSONA_SCORE_COLUMNS,
    VERDICT_COLUMNS,
    Column,
)
from app.reports.rows import Row, cell_rows, chunks, judging_check_rows, persona_score_rows

_LINE_BREAKS = {ord(character): f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}
"""JSON may hold these as they are, but many readers end a line at them."""


async def rows(responses: AsyncIterator[JudgedResponse]) -> AsyncIterator[bytes]:
    """One line for each verdict, its keys those of ``VERDICT_COLUMNS``; missing values are null."""
    async for chunk in chunks(responses):
        yield await asyncio.to_thread(_encode, VERDICT_COLUMNS, chunk)


def cells(results: Mapping[str, Any]) -> bytes:
    """One line for each cell, its keys those of ``CELL_COLUMNS``; missing values are null."""
    return _encode(CELL_COLUMNS, cell_rows(results))


def persona_scores(results: Mapping[str, Any]) -> bytes:
    """One line for each task score and PersonaScore, its keys those of ``PERSONA_SCORE_COLUMNS``."""
    return _encode(PERSONA_SCORE_COLUMNS, persona_score_rows(results))


def judging_check(results: Mapping[str, Any]) -> bytes:
    """One line for each judge, over all tasks and for each of them, its keys those of ``JUDGING_CHECK_COLUMNS``."""
    return _encode(JUDGING_CHECK_COLUMNS, judging_check_rows(results))


def _encode(columns: tuple[Column, ...], lines: Iterable[Row]) -> bytes:
    names = [column.name for column in columns]
    text = "".join(
        json.dumps(dict(zip(names, line, strict=True)), ensure_ascii=False, allow_nan=False) + "\n"
        for line in lines
    )
    return text.translate(_LINE_BREAKS).encode()
