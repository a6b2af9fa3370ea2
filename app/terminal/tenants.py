"""`assay tenants`: what tenants may spend and which models they may use, straight on the database, for whoever runs the service.

No key sets these limits, whatever its scopes; they hold for every key of the tenant.
"""

import re
from typing import TYPE_CHECKING, Any

import click

from app.terminal.keys import Opened, check_usd, done
from persona_assay.terminal.options import AS_JSON
from persona_assay.terminal.outcome import CommandError, Commands, print_json, say, told_errors

if TYPE_CHECKING:
    from app.services.keys.api_keys import KeyDependencies

Json = dict[str, Any]

_MODEL = re.compile(r"[^/\s]+/\S+")


def group(opened: Opened) -> click.Group:
    """The commands.

    Args:
        opened: Gives access to the database within a block.
    """
    tenants = Commands(name="tenants", help="What tenants may spend and use.", no_args_is_help=True)

    @tenants.command()
    @click.argument("tenant")
    @click.option("--usd", type=float, help="What its jobs may spend together.")
    @click.option("--no-cap", is_flag=True, help="Take its spending cap away.")
    @click.option(
        "--model",
        "models",
        metavar="CONNECTION/MODEL",
        multiple=True,
        help="A model that it may use; CONNECTION/* for all.",
    )
    @click.option("--all-models", is_flag=True, help="Let it use all models.")
    @AS_JSON
    def limit(
        tenant: str,
        usd: float | None,
        models: tuple[str, ...],
        *,
        no_cap: bool,
        all_models: bool,
        as_json: bool,
    ) -> None:
        """Sets a tenant's limits and prints them.

        What is not named stays. A cap counts the jobs that are submitted from then on.
        """
        from app.services.keys.tenant_limits import LimitChanges, change_limits  # noqa: PLC0415

        with told_errors():
            _check(tenant, usd, models, no_cap=no_cap, all_models=all_models)
            changes = LimitChanges(
                usd, usd is not None or no_cap, list(models) or None, bool(models) or all_models
            )
            _show(done(opened, lambda deps: change_limits(deps.engine, tenant, changes)), as_json=as_json)

    @tenants.command(name="list")
    @AS_JSON
    def list_(*, as_json: bool) -> None:
        """Lists the tenants that have limits, and what they have spent."""
        with told_errors():
            found = done(opened, _list)
            if as_json:
                print_json({"data": found})
            else:
                for limits in found:
                    click.echo(_told(limits))

    return tenants


async def _list(deps: "KeyDependencies") -> list[Json]:
    from app.db.keys.tenant_limits import list_limits  # noqa: PLC0415
    from app.services.keys.tenant_limits import limits_json  # noqa: PLC0415

    async with deps.engine.connect() as connection:
        return [limits_json(row) for row in await list_limits(connection)]


def _check(
    tenant: str, usd: float | None, models: tuple[str, ...], *, no_cap: bool, all_models: bool
) -> None:
    if not tenant.strip() or not tenant.isprintable():
        raise CommandError("TENANT is a line of text")
    check_usd(usd)
    if usd is not None and no_cap:
        raise CommandError("--usd and --no-cap exclude each other")
    if models and all_models:
        raise CommandError("--model and --all-models exclude each other")
    for name in models:
        if not _MODEL.fullmatch(name):
            raise CommandError(f"--model {name!r} is not of the form connection/model or connection/*")


def _show(limits: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(limits)
        return
    click.echo(_told(limits))
    if limits["uncapped_jobs"]:
        say(
            f"unfinished jobs from before there was a cap, which do not count against it: {limits['uncapped_jobs']:,};"
            " pause or cancel them"
        )


def _told(limits: Json) -> str:
    """A tenant's limits in a line."""
    cap = limits["spending"]
    money = (
        "no spending cap" if cap is None else f"${cap['usd_spent']:,.2f} of ${cap['usd_limit']:,.2f} spent"
    )
    models = "all models" if limits["models"] is None else ", ".join(limits["models"]) or "no models"
    return f"{limits['tenant']} · {money} · {models}"
