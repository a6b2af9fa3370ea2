"""Databases for tests, made from a template and dropped however the test ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import psycopg
from psycopg import sql

from embedded.postgres import EmbeddedPostgres

OWNER = "assay"
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Databases:
    """Makes databases on one server.

    The maintenance connection is a superuser's: a database's owner may not disconnect an autovacuum worker, so that its
    `DROP DATABASE … WITH (FORCE)` fails whenever one happens to be at work.
    """

    server: EmbeddedPostgres
    maintenance: psycopg.Connection

    @contextmanager
    def new(self, prefix: str, *, template: str | None = None) -> Iterator[str]:
        """The SQLAlchemy URL of a database of its own, dropped at the end with whoever is connected."""
        name = f"{prefix}_{next(_numbers)}"
        make = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER))
        if template is not None:
            make += sql.SQL(" TEMPLATE {} STRATEGY file_copy").format(sql.Identifier(template))
        self.maintenance.execute(make)
        try:
            yield self.server.url(name)
        finally:
            self.maintenance.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def superuser(self, database: str) -> Iterator[psycopg.Connection]:
        """A superuser's connection to a database."""
        url = libpq_url(self.server.url(database))
        with psycopg.connect(url, user="postgres", autocommit=True) as connection:
            yield connection


@contextmanager
def databases_on(server: EmbeddedPostgres) -> Iterator[Databases]:
    """Makes databases on a started server."""
    url = libpq_url(server.url("postgres"))
    with psycopg.connect(url, user="postgres", autocommit=True) as maintenance:
        yield Databases(server, maintenance)


def libpq_url(url: str) -> str:
    """A SQLAlchemy URL in the form that psycopg itself takes."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)
