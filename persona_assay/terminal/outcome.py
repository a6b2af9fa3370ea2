"""How every command speaks and ends: errors as messages, JSON, exit statuses.

Imports of weight stand where they are needed, so that every command starts fast.
"""

import contextlib
import json
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import click
from click.exceptions import Exit

from persona_assay import AssayError, ProblemError

Json = Mapping[str, Any]

JOB_FAILED = GATE_FAILED = 1
INCONCLUSIVE = 2
ERROR = 3
INTERRUPTED = 128 + signal.SIGINT


class CommandError(Exception):
    """The command cannot be done; the message says why, and what to do about it."""


class Commands(click.Group):
    """The commands in the order in which they were added, of which wrong usage and interrupts end with statuses of their own.

    The usual status of wrong usage, 2, is what "inconclusive" ends with, and a misspelt option must never look like a verdict. That of an
    interrupt, 1, is a failed job's.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order in which the help lists them."""
        return list(self.commands)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Reads what stands before the command."""
        with _own_statuses():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Reads what stands behind the command, and runs it."""
        with _own_statuses():
            return super().invoke(ctx)


@contextlib.contextmanager
def _own_statuses() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        vars(error)["exit_code"] = ERROR  # of this error alone, not of its class
        raise
    except (KeyboardInterrupt, click.Abort):  # what a question makes of the first
        say("interrupted")
        raise Exit(INTERRUPTED) from None


@contextlib.contextmanager
def told_errors() -> Iterator[None]:
    """Turns expected errors into a message on standard error and an exit status."""
    try:
        yield
    except ProblemError as error:
        from persona_assay.terminal.consoles import err  # noqa: PLC0415
        from persona_assay.terminal.listings import problem_view  # noqa: PLC0415

        err().print(problem_view(error), soft_wrap=True)
        raise Exit(ERROR) from error
    except (CommandError, AssayError) as error:
        say(f"Error: {error}")
        raise Exit(ERROR) from error


def exit_by(job: Json) -> None:
    """Ends the command with the status that tells how the job ended."""
    if job["status"] != "completed":
        from persona_assay.terminal.consoles import err  # noqa: PLC0415
        from persona_assay.terminal.listings import failure_view  # noqa: PLC0415

        err().print(failure_view(job))
        raise Exit(JOB_FAILED)


def print_json(value: Json) -> None:
    """Prints the service's JSON on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str) -> None:
    """Says something to the person at the terminal, on standard error."""
    click.echo(text, err=True)
