"""Results of which a test writes down only what it is about."""

import json
from typing import Any

from app.domain.metrics.cell import UnitCounts
from app.domain.results.contract import Results
from app.domain.results.coverage import Coverage
from app.domain.results.missing import NOT_CORRECTED
from app.domain.results.results import ResponseStatuses

NO_UNITS = UnitCounts.of().model_dump()
NO_RESPONSES = ResponseStatuses.of().model_dump()
NOTHING_MISSING = {
    "coverage": Coverage.of(1, 0, 1).model_dump(),
    "corrected": NOT_CORRECTED.model_dump(exclude_unset=True),
}
NOTHING: dict[str, Any] = {
    "job": "job_x",
    "name": None,
    "completeness": "full",
    "simulated": True,
    "personas": [],
    "dimensions": [],
    "cells": [],
    "totals": [],
    "judges": [],
    "persona_scores": [],
    "started_at": None,
    "computed_at": "2026-11-21T04:25:47Z",
    "usage": {
        "calls": 0,
        "failed_calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "cached_input_tokens": 0,
        "by_model": [],
    },
    "cost": {"usd": None, "unpriced_calls": 0},
    "manifest": {},
}
CELL: dict[str, Any] = {
    "model": "m",
    "persona": "p",
    "task": "essay",
    "dimension": "E",
    "level": "high",
    "simulated": True,
    "scale": {"minimum": 1, "maximum": 5, "levels": ["low", "neutral", "high"]},
    "runs": 30,
    "generation": NO_RESPONSES,
    "metrics": {},
    "units": NO_UNITS,
    "responses": {"total": 30, "without_scored_unit": 0, "with_one_scored_unit": 0},
    "runs_used": 30,
    **NOTHING_MISSING,
    "by_judge": {},
}
TOTAL: dict[str, Any] = {
    "simulated": True,
    "generation": NO_RESPONSES,
    "metrics": {},
    "units": NO_UNITS,
    **NOTHING_MISSING,
}


def read(document: dict[str, Any]) -> Results:
    """The results that are stored so; whatever is not said is as in those of a job without any responses."""
    return Results.read(json.dumps(NOTHING | document))
