"""`assay keys`: creates, lists, rotates and revokes API keys directly in the database, for the service's operator.

This is the only way to create the first key. A key with the scope `admin` can manage keys over the API too.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from app import clock
from app.domain.keys.api_key import Scope
from persona_assay.terminal.outcome import CommandError, Commands, print_json, say, told_errors

if TYPE_CHECKING:
    from app.db.engine import Pooler
    from app.domain.keys.contract import NewApiKey
    from app.services.keys.api_keys import KeyDependencies

Json = dict[str, Any]

MOST_LISTED = 1000
MOST_USD = 1e9
MOST_REQUESTS = 1_000_000
LONGEST_NAME = 300
HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class KeyStore:
    """The database of keys.

    Attributes:
        database_url: The database.
        pepper: The secret that keys are hashed with.
        name: Where it is, for people, without a password.
        pooler: The connection pooler in front of the database; see :func:`app.db.engine.connect`.
    """

    database_url: str
    pepper: bytes | None
    name: str
    pooler: "Pooler" = "none"

    def __repr__(self) -> str:
        return "KeyStore()"  # no secret in a traceback


Opened = Callable[[], AbstractContextManager[KeyStore]]

KEY = click.argument("key", metavar="KEY")
TENANT = click.option("--tenant", default="default", help="Tenant that owns the keys.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def group(opened: Opened) -> click.Group:
    """The commands.

    Args:
        opened: Gives access to the keys within a block.
    """
    keys = Commands(name="keys", help="Manage API keys.", no_args_is_help=True)

    @keys.command()
    @click.option("--name", required=True, help="Who or what uses the key.")
    @click.option(
        "--scope",
        "scopes",
        type=click.Choice([scope.value for scope in Scope]),
        multiple=True,
        default=[Scope.SUBMIT.value],
        help="What the key may do; repeatable.",
    )
    @TENANT
    @click.option("--days", type=click.IntRange(1, 36_500), help="Days until the key expires.")
    @click.option(
        "--requests-per-minute", type=click.IntRange(1, MOST_REQUESTS), help="Rate limit of the key."
    )
    @click.option("--usd", type=float, help="Spending cap for all jobs of the key, in US dollars.")
    @AS_JSON
    def create(
        name: str,
        scopes: tuple[str, ...],
        tenant: str,
        days: int | None,
        requests_per_minute: int | None,
        usd: float | None,
        *,
        as_json: bool,
    ) -> None:
        """Create a key (shown only once).

        After the first key, every request needs one.
        """
        from app.domain.keys.contract import ApiKeyIn, SpendingIn  # noqa: PLC0415
        from app.services.keys.api_keys import create_key  # noqa: PLC0415

        with told_errors():
            _check(name, tenant, usd)
            end = None if days is None else clock.now() + timedelta(days=days)
            wanted = ApiKeyIn(
                name=name,
                scopes=[Scope(scope) for scope in dict.fromkeys(scopes)],
                expires_at=end,
                requests_per_minute=requests_per_minute,
                spending=None if usd is None else SpendingIn(usd_limit=usd),
            )
            made = done(opened, lambda deps: create_key(deps, tenant, wanted))
            _show_new(made, as_json=as_json)

    @keys.command(name="list")
    @TENANT
    @AS_JSON
    def list_(tenant: str, *, as_json: bool) -> None:
        """List keys, newest first."""
        with told_errors():
            found = done(opened, lambda deps: _list(deps, tenant))
            if as_json:
                print_json({"data": found})
                return
            from app.terminal.key_list import keys_view  # noqa: PLC0415
            from persona_assay.terminal.consoles import out  # noqa: PLC0415

            out().print(keys_view(found))

    @keys.command()
    @KEY
    @click.option(
        "--overlap-hours", type=click.FloatRange(min=0), default=24, help="How long the old key stays valid."
    )
    @TENANT
    @AS_JSON
    def rotate(key: str, overlap_hours: float, tenant: str, *, as_json: bool) -> None:
        """Replace a key with a new one (shown only once)."""
        from app.services.keys.api_keys import rotate_key  # noqa: PLC0415

        with told_errors():
            seconds = round(overlap_hours * HOUR_SECONDS)
            made = done(opened, lambda deps: rotate_key(deps, tenant, key, seconds))
            _show_new(made, as_json=as_json)

    @keys.command()
    @KEY
    @TENANT
    @AS_JSON
    def revoke(key: str, tenant: str, *, as_json: bool) -> None:
        """Revoke a key permanently, within a second."""
        from app.services.keys.api_keys import revoke_key  # noqa: PLC0415

        with told_errors():
            revoked = done(opened, lambda deps: revoke_key(deps.engine, tenant, key))
            if as_json:
                print_json(revoked.model_dump(mode="json"))
            else:
                click.echo(f"{key} revoked")

    return keys


def have_been_made(opened: Opened) -> bool:
    """Whether any key was ever created, so that every request needs one.

    Raises:
        CommandError: The database can't be used.
    """
    return bool(done(opened, _any_exist, told=False))


async def _any_exist(deps: "KeyDependencies") -> bool:
    from app.db.keys.api_keys import any_exist  # noqa: PLC0415

    async with deps.engine.connect() as connection:
        return await any_exist(connection)


def done(
    opened: Opened, operation: "Callable[[KeyDependencies], Awaitable[Any]]", *, told: bool = True
) -> Any:
    """Run an operation on the service's database, after telling which that is, and return its result.

    Raises:
        CommandError: It failed for an expected reason.
    """
    from app.db.health import is_away  # noqa: PLC0415
    from app.db.reasons import reason  # noqa: PLC0415
    from app.domain.errors import InvalidJobError  # noqa: PLC0415
    from app.services.errors import NotFoundError  # noqa: PLC0415
    from app.services.keys.api_keys import NoPepperError  # noqa: PLC0415

    with opened() as store:
        if told:
            say(f"Service: {store.name}")
        try:
            return asyncio.run(_with(store, operation))
        except NotFoundError as error:
            raise CommandError(str(error)) from error
        except NoPepperError as error:
            raise CommandError(str(error)) from error
        except InvalidJobError as error:
            raise CommandError("; ".join(each.message for each in error.errors)) from error
        except Exception as error:
            if is_away(error):
                raise CommandError(f"the database can't be used: {reason(error)}") from error
            raise


async def _with(store: KeyStore, operation: "Callable[[KeyDependencies], Awaitable[Any]]") -> Any:
    from app.db.engine import connect  # noqa: PLC0415
    from app.db.keys.api_keys import are_kept  # noqa: PLC0415
    from app.services.keys.api_keys import KeyDependencies  # noqa: PLC0415

    engine = connect(store.database_url, pool_size=1, application_name="assay keys", pooler=store.pooler)
    try:
        async with engine.connect() as connection:
            if not await are_kept(connection):
                raise CommandError("the database schema is not up to date: run `assay migrate` first")
        return await operation(KeyDependencies(engine, store.pepper))
    finally:
        await engine.dispose()


async def _list(deps: "KeyDependencies", tenant: str) -> list[Json]:
    from app.db.keys.api_keys import list_keys  # noqa: PLC0415
    from app.services.keys.api_keys import show_key  # noqa: PLC0415

    async with deps.engine.connect() as connection:
        found = await list_keys(connection, tenant, limit=MOST_LISTED, after=None)
    return [show_key(row).model_dump(mode="json") for row in found]


def _check(name: str, tenant: str, usd: float | None) -> None:
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise CommandError(f"--name must be one line of text, of at most {LONGEST_NAME} characters")
    if not tenant.strip() or not tenant.isprintable():
        raise CommandError("--tenant must be one line of text")
    check_usd(usd)


def check_usd(usd: float | None) -> None:
    """Checks a spending cap.

    Raises:
        CommandError: It is out of range.
    """
    if usd is not None and not 0 < usd <= MOST_USD:
        raise CommandError("--usd must be above 0 and at most 1 billion")


def _show_new(made: "NewApiKey", *, as_json: bool) -> None:
    """Print a key, alone on standard output for scripts."""
    if as_json:
        print_json(made.model_dump(mode="json"))
        return
    say(f"{made.id} · {made.name} · {', '.join(made.scopes)}. It is shown only this once:")
    click.echo(made.key)
