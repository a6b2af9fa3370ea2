"""The command that tries a model: `assay check`."""

from typing import Annotated, Literal

import typer

from app.terminal.options import DEFAULT_URL, AsJson, Url, client_of
from app.terminal.outcome import print_json, told_errors
from persona_assay.types import CheckIn


def check(
    model: Annotated[
        str,
        typer.Argument(metavar="CONNECTION/MODEL", help="The model, as a job names it.", show_default=False),
    ],
    as_: Annotated[
        Literal["judge", "model", "persona_agent"],
        typer.Option("--as", help="As what a job would call it: that decides which parameters it is sent."),
    ] = "judge",
    family: Annotated[
        str | None,
        typer.Option(help="A model of the same family, where the name does not say it.", show_default=False),
    ] = None,
    call: Annotated[
        bool, typer.Option("--call/--no-call", help="Make a call, or only say what a job would send.")
    ] = True,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Tries a model with one short call and says what a job would meet.

    Exit status: 0 if it answered, or was not called, 1 if it did not answer.
    """
    asked: CheckIn = {"model": model, "role": as_, "call": call}
    if family is not None:
        asked["family"] = family
    with told_errors(), client_of(url) as client:
        found = client.check_model(asked)
        if as_json:
            print_json(found)
        else:
            for finding in found["findings"]:
                typer.echo(f"{'✓' if finding['good'] else '!'} {finding['text']}")
    if found["works"] is False:
        raise typer.Exit(1)


COMMANDS = (check,)
