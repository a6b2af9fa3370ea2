"""How every command speaks and ends: errors as messages, JSON, exit statuses.

Imports of weight stand where they are needed, so that every command starts fast.
"""

import contextlib
import json
import signal
from collections.abc import Iterator
from typing import Any

import typer

from app.client.errors import ClientError, ProblemError

Json = dict[str, Any]

JOB_FAILED, ERROR = 1, 3
INTERRUPTED = 128 + signal.SIGINT


@contextlib.contextmanager
def told_errors() -> Iterator[None]:
    """Turns expected errors into a message on standard error and an exit status."""
    try:
        yield
    except ProblemError as error:
        from app.terminal.consoles import err  # noqa: PLC0415
        from app.terminal.listings import problem_view  # noqa: PLC0415

        err().print(problem_view(error), soft_wrap=True)
        raise typer.Exit(ERROR) from error
    except ClientError as error:
        say(f"Error: {error}")
        raise typer.Exit(ERROR) from error
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(INTERRUPTED) from None


def exit_by(job: Json) -> None:
    """Ends the command with the status that tells how the job ended."""
    if job["status"] != "completed":
        from app.terminal.consoles import err  # noqa: PLC0415
        from app.terminal.listings import failure_view  # noqa: PLC0415

        err().print(failure_view(job))
        raise typer.Exit(JOB_FAILED)


def print_json(value: Json) -> None:
    """Prints the service's JSON on standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str) -> None:
    """Says something to the person at the terminal, on standard error."""
    typer.echo(text, err=True)
