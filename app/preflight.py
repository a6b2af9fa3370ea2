"""``python -m app.preflight`` says in words, once, why the service's processes would not start.

Run before them, it spares an orchestrator from starting each of them again and again. The API that it checks for listens for other machines,
so there has to be an API key.
"""

import asyncio

from app.bootstrap import configure_logging, load_key_ring, load_operator_connections
from app.db.engine import connect
from app.db.start import UnusableDatabaseError, check_database
from app.services.keys.api_keys import no_keys_yet
from app.services.keys.authenticator import ApiKeyAuthenticator
from app.settings import Settings, StartError, load_settings


async def check(settings: Settings) -> None:
    """Checks what each process checks when it starts.

    Raises:
        StartError: One of them would not start.
    """
    unreachable = await settings.require_redis().why_unreachable()
    if unreachable is not None:
        raise StartError(f"REDIS_URL: Redis can't be used: {unreachable}")
    load_operator_connections(settings)
    load_key_ring(settings)
    pepper = settings.read_key_pepper()
    if pepper is None:
        raise StartError("ASSAY_KEY_PEPPER is not set; `openssl rand -hex 32` makes one")
    engine = connect(
        settings.require_database_url(),
        pool_size=1,
        application_name="assay preflight",
        pooler=settings.database_pooler,
    )
    keyring = ApiKeyAuthenticator(engine, pepper)
    try:
        state = await check_database(engine, settings.database_pooler)
        if state is None:
            raise StartError("the database can't be reached")
        if not state.usable:
            raise StartError(f"the database is {state.value}")
        if not await keyring.any_exist():
            raise StartError(no_keys_yet("does not start for other machines"))
    except UnusableDatabaseError as error:
        raise StartError(str(error)) from error
    finally:
        await keyring.close()
        await engine.dispose()


def main() -> None:
    """Ends with 0 where they would start, else with 1 and the reason on standard error: in words, as nobody but a person reads it."""
    try:
        settings = load_settings()
        configure_logging(settings)
        asyncio.run(check(settings))
    except StartError as error:
        raise SystemExit(f"The service can't start: {error}") from error


if __name__ == "__main__":
    main()
