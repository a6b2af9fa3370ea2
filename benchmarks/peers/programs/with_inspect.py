"""Inspect AI: a task whose samples are the prompts, and whose scorer reads the number; its log is its result."""

import os
import sys

from inspect_ai import Task, eval  # type: ignore[import-not-found]  # noqa: A004
from inspect_ai.dataset import FieldSpec, json_dataset  # type: ignore[import-not-found]
from inspect_ai.scorer import pattern  # type: ignore[import-not-found]
from inspect_ai.solver import generate  # type: ignore[import-not-found]


def main(calls: str, output: str, base_url: str, in_flight: int) -> None:
    """Judges every prompt, as many at once as samples and connections allow, with nothing shown meanwhile."""
    os.environ |= {"STUB_BASE_URL": base_url, "STUB_API_KEY": "none"}
    judging = Task(
        dataset=json_dataset(calls, FieldSpec(input="prompt", target="expected")),
        solver=generate(),
        scorer=pattern(r"(\d)"),
    )
    logs = eval(
        judging,
        model="openai-api/stub/judge",
        temperature=0,
        max_connections=in_flight,
        max_samples=in_flight,
        log_dir=output,
        log_realtime=False,
        score_display=False,
        display="none",
    )
    if any(log.status != "success" for log in logs):
        sys.exit(f"Inspect: {[log.error for log in logs]}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
