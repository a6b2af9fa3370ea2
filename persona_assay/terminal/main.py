"""`assay`: the command line, a client of the service's HTTP interface.

The commands that run a service are those of the distribution `persona-assay-server`; where that is installed, they are found
by its entry point. Heavy imports happen inside the commands that need them, so that every command starts fast.
Exit statuses: 0 done, 1 the job failed or was cancelled, or the gate failed, 2 the gate is inconclusive, 3 an error
(reported on standard error; includes wrong usage), 130 interrupted.
"""

import sys
from functools import cached_property
from importlib.metadata import entry_points

import click
from click.exceptions import Exit

from persona_assay.terminal import (
    bridging,
    browsing,
    checking,
    controlling,
    deciding,
    importing,
    reading,
    scheduling,
    submitting,
)
from persona_assay.terminal.outcome import ERROR, Commands, say
from persona_assay.version import VERSION

COMMANDS: tuple[click.Command, ...] = (
    *submitting.COMMANDS,
    *importing.COMMANDS,
    *browsing.COMMANDS,
    *checking.COMMANDS,
    *reading.COMMANDS,
    *deciding.COMMANDS,
    *bridging.COMMANDS,
    *controlling.COMMANDS,
    *scheduling.COMMANDS,
)
SERVER_GROUP = "persona_assay.commands"
"""The entry points of this group return a command line: these commands, and more."""
SERVER_COMMANDS = ("up", "demo", "migrate", "init", "doctor", "keys", "tenants")

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}
HELP = "Measure how faithfully language models stay in character, sentence by sentence."


class ClientCommands(Commands):
    """The commands of the client, and the server's where it is installed."""

    @cached_property
    def _server(self) -> click.Group | None:
        for point in entry_points(group=SERVER_GROUP):
            found: click.Group = point.load()()
            return found
        return None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, the server's included."""
        return super().list_commands(ctx) if self._server is None else self._server.list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name; the server is looked for only where the client has none."""
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        if self._server is not None:
            return self._server.get_command(ctx, cmd_name)
        if cmd_name in SERVER_COMMANDS:
            say(
                f"Error: `assay {cmd_name}` needs persona-assay-server. Install it with `pip install persona-assay-server`,"
                " or run `uvx persona-assay-server up`"
            )
            raise Exit(ERROR)
        return None


def command_line(kind: type[Commands]) -> Commands:
    """An `assay` that has no commands yet.

    Args:
        kind: Its class.
    """
    group = kind("assay", help=HELP, no_args_is_help=True, context_settings=SETTINGS)
    return click.version_option(VERSION, prog_name="persona-assay")(group)


def run(commands: Commands) -> None:
    """Runs a command line; every expected error becomes a message and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character still shows the rest
    commands(prog_name="assay")


def main() -> None:
    """Runs `assay`."""
    commands = command_line(ClientCommands)
    for command in COMMANDS:
        commands.add_command(command)
    run(commands)
