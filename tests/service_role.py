"""A database in which services work as a role that owns no table, as in docker-compose.yml."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import sql

from tests.databases import Databases

SERVICE = "svc"
PASSWORD = "päss/word%41"


@dataclass(frozen=True, slots=True)
class Urls:
    """SQLAlchemy URLs of one database."""

    owner: str
    service: str


@contextmanager
def database_for_service(databases: Databases, template: str, owner: str = "postgres") -> Iterator[Urls]:
    """A database of the current schema, which belongs to the usual owner; nothing has been granted yet.

    Args:
        databases: Makes it.
        template: What it is made from.
        owner: As whom the migrations connect; ``postgres`` is the superuser.
    """
    try:
        with databases.new("serviced", template=template) as url:
            yield Urls(
                url.replace("assay@", f"{owner}@", 1),
                url.replace("assay@", f"{SERVICE}:p%C3%A4ss%2Fword%2541@", 1),
            )
    finally:
        for role in (f"{SERVICE}_tenant", SERVICE):
            databases.maintenance.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))
