"""How every command speaks and ends: errors as messages, JSON, exit statuses.

Imports of weight stand where they are needed, so that every command starts fast.
"""

import contextlib
import json
import signal
from collections.abc import Iterator, Mapping
from typing import Any, cast

import typer
from typer.core import TyperGroup

from persona_assay import AssayError, ProblemError

Json = Mapping[str, Any]

JOB_FAILED = GATE_FAILED = 1
INCONCLUSIVE = 2
ERROR = 3
INTERRUPTED = 128 + signal.SIGINT

WRONG_USAGE = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""What the library raises for whatever is wrong with a command line: it shows only the class of wrong values, derived from it."""


class CommandError(Exception):
    """The command cannot be done; the message says why, and what to do about it."""


class Commands(TyperGroup):
    """The commands, of which wrong usage ends like every other error.

    Its usual status, 2, is what "inconclusive" ends with, and a misspelt option must never look like a verdict.
    """

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Reads what stands before the command."""
        with _wrong_usage_is_an_error():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Reads what stands behind the command, and runs it."""
        with _wrong_usage_is_an_error():
            return super().invoke(ctx)


@contextlib.contextmanager
def _wrong_usage_is_an_error() -> Iterator[None]:
    try:
        yield
    except WRONG_USAGE as error:
        vars(error)["exit_code"] = ERROR
        raise


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
    except (CommandError, AssayError) as error:
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
