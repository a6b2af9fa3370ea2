"""Output and exit of every command: error messages, JSON, exit statuses.

Heavy imports happen where they are needed, so that every command starts fast.
"""

import contextlib
import json
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from persona_assay import AssayError, ProblemError

Json = Mapping[str, Any]

JOB_FAILED = GATE_FAILED = 1
INCONCLUSIVE = 2
ERROR = 3
INTERRUPTED = 128 + signal.SIGINT
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class CommandError(Exception):
    """The command failed; the message says why and what to do."""


class Commands(click.Group):
    """A command group in insertion order, with its own exit statuses for wrong usage and interrupts.

    click's status for wrong usage, 2, is that of "inconclusive" here, and a misspelt option must never look like a verdict. Its status for
    an interrupt, 1, is a failed job's.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the help."""
        return list(self.commands)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the options before the command."""
        with _own_statuses():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Parse the command's options and run it."""
        with _own_statuses():
            return super().invoke(ctx)


@contextlib.contextmanager
def _own_statuses() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        vars(error)["exit_code"] = ERROR  # of this error alone, not of its class
        raise
    except (KeyboardInterrupt, click.Abort):  # click turns Ctrl-C at a prompt into Abort
        say("Interrupted")
        raise Exit(INTERRUPTED) from None


@contextlib.contextmanager
def told_errors() -> Iterator[None]:
    """Turn expected errors into a message on standard error and an exit status."""
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
    """Exit with the status for the job's outcome."""
    if job["status"] != "completed":
        from persona_assay.terminal.consoles import err  # noqa: PLC0415
        from persona_assay.terminal.failures import failure_view  # noqa: PLC0415

        err().print(failure_view(job))
        raise Exit(JOB_FAILED)


def save_file(path: Path, content: bytes) -> None:
    """Writes a file.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def print_json(value: Json) -> None:
    """Print the service's JSON on standard output, with escapes for what a terminal would execute or reorder."""
    shown = json.dumps(value, ensure_ascii=False, indent=2)
    click.echo(_UNSAFE.sub(lambda char: f"\\u{ord(char[0]):04x}", shown))


def say(text: str) -> None:
    """Print a message on standard error."""
    click.echo(text, err=True)
