"""Whether the database answers."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine


async def ping(engine: AsyncEngine) -> None:
    """Asks the database for nothing.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: If it does not answer.
    """
    async with engine.connect() as connection:
        await connection.execute(text("SELECT FROM jobs LIMIT 0"))
