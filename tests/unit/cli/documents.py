"""Answers of the service, as small as the contract allows."""

from typing import Any

Json = dict[str, Any]


def stage(total: int, succeeded: int, *, failed: int = 0, estimated: bool = False) -> Json:
    pending = total - succeeded - failed
    return {
        "total": total,
        "pending": pending,
        "running": 0,
        "succeeded": succeeded,
        "failed": failed,
        "estimated": estimated,
    }


def job(status: str = "running", **changes: Any) -> Json:
    """A job that started at 12:00:00 and, if it has ended, did so ten seconds later."""
    ended = status in {"completed", "failed", "cancelled"}
    return {
        "id": "job_1",
        "object": "job",
        "name": "a test",
        "status": status,
        "status_reason": None,
        "completeness": "full" if status == "completed" else "partial",
        "simulated": False,
        "created_at": "2026-11-21T11:59:59Z",
        "started_at": "2026-11-21T12:00:00Z",
        "finished_at": "2026-11-21T12:00:10Z" if ended else None,
        "error": None,
        "progress": {"generation": stage(100, 40), "judging": stage(900, 260, failed=3, estimated=True)},
        "cost": {"usd": 0.0123, "unpriced_calls": 0},
        "on_the_wire": 0,
        "usage": {"by_model": []},
    } | changes


def metric(value: float | None, n: int = 1, reason: str | None = None) -> Json:
    return {"value": value, "n": n} | ({"reason": reason} if reason else {})


def metrics(cells: int) -> Json:
    return {
        "mean": metric(4.6, cells),
        "acc": metric(0.98, cells),
        "rc": metric(0.97, cells),
        "acc_atom": metric(0.91, cells),
        "ic_atom": metric(0.83, cells),
        "rc_atom": metric(0.87, cells),
    }


UNITS = {"total": 50, "scored": 44, "not_applicable": 6, "refused": 0, "unparsed": 0, "failed": 0}


def results(
    model: str = "openai/gpt-4o",
    *,
    tasks: tuple[str, ...] = ("essay", "questionnaire"),
    levels: tuple[str, ...] = ("high", "low"),
    simulated: bool = False,
    completeness: str = "full",
    **changes: Json,
) -> Json:
    """Results of one model, one cell for each level and task; ``changes`` are metrics that all totals share."""
    cells = [
        {
            "model": model,
            "persona": f"E-{level}",
            "task": task,
            "dimension": "E",
            "level": level,
            "simulated": simulated,
            "scale": {"minimum": 1, "maximum": 5},
            "generation": {"planned": 10, "answered": 9, "refused": 1},
        }
        for level in levels
        for task in tasks
    ]
    shared = {
        "simulated": simulated,
        "units": UNITS,
        "model": model,
        "generation": {"filtered": 0, "no_answer": 0},
        "coverage": {"share": 1.0},
    }
    totals: list[Json] = [{"by": ["model"], "cells": len(cells)}]
    totals += [{"by": ["model", "task"], "task": task, "cells": len(levels)} for task in tasks]
    totals += [
        {"by": ["model", "task", "level"], "task": cell["task"], "level": cell["level"], "cells": 1}
        for cell in cells
    ]
    return {
        "job": "job_1",
        "name": "a test",
        "completeness": completeness,
        "simulated": simulated,
        "cells": cells,
        "totals": [total | shared | {"metrics": metrics(total["cells"]) | changes} for total in totals],
        "persona_scores": [],
    }


def problem(status: int, detail: str, *errors: tuple[str, str]) -> Json:
    return {
        "status": status,
        "detail": detail,
        "code": "a_code",
        "errors": [{"pointer": pointer, "message": message} for pointer, message in errors],
        "request_id": "req_1",
    }
