"""The command that tests a model: `assay check`."""

from typing import Literal, get_args

import click
from click.exceptions import Exit

from persona_assay.terminal.options import AS_JSON, URL, client_of
from persona_assay.terminal.outcome import print_json, told_errors
from persona_assay.types import CheckIn

Role = Literal["judge", "model", "persona_agent"]


@click.command()
@click.argument("model", metavar="CONNECTION/MODEL")
@click.option(
    "--as",
    "as_",
    type=click.Choice(get_args(Role)),
    default="judge",
    help="Role in a job; decides which parameters are sent.",
)
@click.option("--family", help="A model of the same family, if the name does not show it.")
@click.option("--profile", help="A judge model's profile, such as prometheus-2.")
@click.option("--call/--no-call", default=True, help="Make a call, or only show what a job would send.")
@URL
@AS_JSON
def check(
    model: str, as_: Role, family: str | None, profile: str | None, url: str, *, call: bool, as_json: bool
) -> None:
    """Test a model with one short call.

    A judge gives verdicts on two opposite sentences and a neutral one; then it is tested which forms of replies its server enforces.

    CONNECTION/MODEL is the model as named in jobs. Exit status: 0 if it answered or was not called, 1 if it did not answer.
    """
    asked: CheckIn = {"model": model, "role": as_, "call": call}
    if family is not None:
        asked["family"] = family
    if profile is not None:
        asked["profile"] = profile
    with told_errors(), client_of(url) as client:
        found = client.check_model(asked)
        if as_json:
            print_json(found)
        else:
            from persona_assay.terminal.consoles import printable  # noqa: PLC0415

            for finding in found["findings"]:
                click.echo(f"{'✓' if finding['good'] else '!'} {printable(finding['text'])}")
    if found["works"] is False:
        raise Exit(1)


COMMANDS = (check,)
