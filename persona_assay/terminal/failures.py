"""Why a job stopped or waits, in the service's words."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from persona_assay.terminal.consoles import printable
from persona_assay.terminal.quantities import counted

Json = Mapping[str, Any]

MOST_FAILURES = 5
"""Kinds of failed calls shown per job."""


def status_words(job: Json) -> str:
    """A job's status and the reason for it."""
    words = str(job["status"])
    if job["status"] == "completed" and job["completeness"] == "partial":
        words += ", partial"
    reason = job["status_reason"]
    return f"{words} ({printable(reason).replace('_', ' ')})" if reason else words


def failure_view(job: Json) -> Text:
    """Why a job did not complete: the cause, what to do, and the provider's words."""
    text = Text(f"Job {status_words(job)}", style="error")
    error = job["error"]
    if error:
        cause = error.get("cause") or error["detail"]
        text.append(f": {printable(cause)}.".replace("..", "."))
        if error.get("remedy"):
            follow = "resume" if job["status"] == "paused" else "retry"
            text.append(f"\n{printable(error['remedy'])}", style="default")
            resumes = job["status_reason"] == "provider_unreachable"
            when = "To resume it now" if resumes else "Then run"
            text.append(f"\n{when}: assay {follow} {job['id']}", style="default")
        whose = " in ".join(printable(error[part]) for part in ("model", "stage") if error.get(part))
        said = printable(error["detail"]) if error["detail"] != cause else ""
        if said:
            text.append("\n" + ": ".join(filter(None, (whose, said))), style="hint")
        elif whose:
            text.append(f"\nConcerns {whose}.", style="hint")
    for line in failure_lines(job):
        text.append(f"\n{line}", style="hint")
    return text


def failure_lines(job: Json) -> list[str]:
    """A line for each of the most frequent kinds of failed calls, but the one that stopped the job."""
    error = job["error"] or {}
    failures = [
        found
        for found in job.get("failures") or []
        if (found["model"], found["code"], found["detail"])
        != (error.get("model"), error.get("code"), error.get("detail"))
    ]
    lines = [
        f"{counted(found['calls'], 'failed call')} in {found['stage']} to {found['model']}:"
        f" {(found['detail'] or found['code']).removesuffix('.')}. {found.get('remedy', '')}".rstrip()
        for found in failures[:MOST_FAILURES]
    ]
    if len(failures) > MOST_FAILURES:
        lines.append(
            f"and {len(failures) - MOST_FAILURES:,} more kinds of failure: assay status {job['id']} --json"
        )
    return [printable(line) for line in lines]


def failed_asks_words(job: Json) -> list[str]:
    """The reasoner's unusable replies, such as ``sim/reasoner: 3 unusable replies for exemplars: …; last reply: "…"``."""
    return [
        printable(
            f"{found['model'] or 'The reasoner'}: {counted(found['asks'], 'unusable reply', 'unusable replies')} for {found['stage']}"
            + (f" of {found['task']}" if found["task"] else "")
            + (f", {found['given_up']:,} given up" if found["given_up"] else "")
            + f": {found['reason']}; "
            + (f'last reply: "{found["reply"]}"' if found["reply"] else "the last reply is empty")
        )
        for found in job.get("failed_asks") or ()
    ]


def retrying_words(job: Json) -> list[str]:
    """What is tried again and has never succeeded, such as ``Retrying: api.openai.com can't be resolved, 17 attempts``."""
    return [
        printable(f"Retrying: {found['cause']}, {counted(found['attempts'], 'attempt')}. {found['remedy']}")
        for found in job.get("retrying") or ()
    ]
