"""`assay tenants`: sets tenants' spending caps and allowed models, and pauses tenants, directly in the database.

No API key can set these limits, whatever its scopes; they apply to every key of the tenant.
"""

import re
from typing import TYPE_CHECKING

import click

from app.terminal.keys import Opened, check_usd, done
from persona_assay.terminal.options import AS_JSON
from persona_assay.terminal.outcome import CommandError, Commands, print_json, say, told_errors
from persona_assay.terminal.quantities import counted

if TYPE_CHECKING:
    from app.domain.keys.contract import LimitsOfTenant
    from app.services.keys.api_keys import KeyDependencies

_MODEL = re.compile(r"[^/\s]+/\S+")


def group(opened: Opened) -> click.Group:
    """The commands.

    Args:
        opened: Gives access to the database within a block.
    """
    tenants = Commands(
        name="tenants",
        help="Manage tenants' spending caps and allowed models, and pause tenants.",
        no_args_is_help=True,
    )

    @tenants.command()
    @click.argument("tenant")
    @click.option("--usd", type=float, help="Spending cap for all jobs of the tenant, in US dollars.")
    @click.option("--no-cap", is_flag=True, help="Remove the spending cap.")
    @click.option(
        "--model",
        "models",
        metavar="CONNECTION/MODEL",
        multiple=True,
        help="An allowed model; CONNECTION/* for all of a connection; repeatable.",
    )
    @click.option("--all-models", is_flag=True, help="Allow all models.")
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
        """Set a tenant's limits and show them.

        Limits that are not given stay unchanged. A cap counts jobs submitted from now on.
        """
        from app.services.keys.tenant_limits import LimitChanges, change_limits  # noqa: PLC0415

        with told_errors():
            _check(tenant, usd, models, no_cap=no_cap, all_models=all_models)
            changes = LimitChanges(
                usd, usd is not None or no_cap, list(models) or None, bool(models) or all_models
            )
            _show(done(opened, lambda deps: change_limits(deps.engine, tenant, changes)), as_json=as_json)

    @tenants.command(name="reset-bounds")
    @click.argument("tenant")
    @click.option(
        "--model", metavar="CONNECTION/MODEL", help="Only this model; by default all of the tenant's models."
    )
    @AS_JSON
    def reset_bounds(tenant: str, model: str | None, *, as_json: bool) -> None:
        """Let models that billed calls beyond their worst case take many calls at a time again."""
        from app.services.keys.tenant_limits import reset_bounds  # noqa: PLC0415

        with told_errors():
            found = done(opened, lambda deps: reset_bounds(deps.engine, tenant, model))
            if as_json:
                print_json({"models": found})
            else:
                click.echo("\n".join(found) or "no model of the tenant exceeded its bounds")

    @tenants.command()
    @click.argument("tenant")
    def pause(tenant: str) -> None:
        """Pause all jobs of a tenant and refuse new ones. Calls in flight are recorded."""
        from app.services.keys.tenant_limits import pause_tenant  # noqa: PLC0415

        with told_errors():
            _check_name(tenant)
            count = done(opened, lambda deps: pause_tenant(deps.engine, tenant))
            click.echo(f"{tenant} is paused · {counted(count, 'job')} stopped")

    @tenants.command()
    @click.argument("tenant")
    def resume(tenant: str) -> None:
        """Resume a tenant and the jobs that its pause stopped."""
        from app.services.keys.tenant_limits import resume_tenant  # noqa: PLC0415

        with told_errors():
            _check_name(tenant)
            count = done(opened, lambda deps: resume_tenant(deps.engine, tenant))
            click.echo(f"{tenant} is not paused · {counted(count, 'job')} resumed")

    @tenants.command(name="list")
    @AS_JSON
    def list_(*, as_json: bool) -> None:
        """List tenants with limits, and what they have spent."""
        with told_errors():
            found = done(opened, _list)
            if as_json:
                print_json({"data": [limits.model_dump(exclude_unset=True) for limits in found]})
            else:
                for limits in found:
                    click.echo(_told(limits))

    return tenants


async def _list(deps: "KeyDependencies") -> "list[LimitsOfTenant]":
    from app.db.keys.tenant_limits import list_limits  # noqa: PLC0415
    from app.services.keys.tenant_limits import show_limits  # noqa: PLC0415

    async with deps.engine.connect() as connection:
        return [show_limits(row) for row in await list_limits(connection)]


def _check_name(tenant: str) -> None:
    if not tenant.strip() or not tenant.isprintable():
        raise CommandError("TENANT must be one line of text")


def _check(
    tenant: str, usd: float | None, models: tuple[str, ...], *, no_cap: bool, all_models: bool
) -> None:
    _check_name(tenant)
    check_usd(usd)
    if usd is not None and no_cap:
        raise CommandError("use either --usd or --no-cap")
    if models and all_models:
        raise CommandError("use either --model or --all-models")
    for name in models:
        if not _MODEL.fullmatch(name):
            raise CommandError(f"--model {name!r} must have the form connection/model or connection/*")


def _show(limits: "LimitsOfTenant", *, as_json: bool) -> None:
    if as_json:
        print_json(limits.model_dump(exclude_unset=True))
        return
    click.echo(_told(limits))
    if limits.uncapped_jobs:
        say(
            f"{limits.uncapped_jobs:,} unfinished jobs from before the cap do not count against it: pause or cancel them"
            " to stop their spending"
        )


def _told(limits: "LimitsOfTenant") -> str:
    """A tenant's limits in one line."""
    cap = limits.spending
    money = "no spending cap" if cap is None else f"${cap.usd_spent:,.2f} of ${cap.usd_limit:,.2f} spent"
    models = "all models" if limits.models is None else ", ".join(limits.models) or "no models"
    return f"{limits.tenant} · {money} · {models}{' · paused' if limits.paused else ''}"
