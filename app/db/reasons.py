"""Why the database can't be used, in words that an operator reads.

They hold no host, no name, no row and no secret: `/readyz` shows them to everybody, and logs keep them.
"""

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

POOLER = "it is behind a connection pooler; see ASSAY_DATABASE_POOLER"

_BY_STATE = {
    "08P01": f"it did not accept a PostgreSQL connection: {POOLER}",
    "25006": "it is read-only at the moment",
    "26000": f"it does not know a prepared statement of ours: {POOLER}",
    "42P05": f"it has a prepared statement of ours already: {POOLER}",
    "28P01": "it refused the password",
    "28000": "it refused the login",
    "3D000": "there is no such database",
    "40001": "another transaction was in the way",
    "40P01": "deadlock with another transaction",
    "53100": "its disk is full",
    "53200": "its memory is full",
    "53300": "it has too many connections",
    "55P03": "another transaction held a lock for too long",
    "57014": "the statement was cancelled",
    "57P01": "it is being stopped",
    "57P03": "it is starting or stopping",
}
_BY_WORDS = (
    ("unsupported startup parameter", f"the connection was refused: {POOLER}"),
    ("password authentication failed", "it refused the password"),
    ("no password supplied", "it requires a password"),
    ("no pg_hba.conf entry", "it refused the login"),
    ("does not exist", "there is no such database or role"),
    ("too many", "it has too many connections"),
    ("no more connections", "it has too many connections"),
    ("remaining connection slots", "it has too many connections"),
    ("no space left", "its disk is full"),
    ("starting up", "it is starting or stopping"),
    ("shutting down", "it is starting or stopping"),
    ("certificate", "its TLS certificate is not trusted"),
    ("connection refused", "connection refused"),
    ("no such file", "there is no such socket"),
    ("translate host name", "its host name is unknown"),
    ("name or service not known", "its host name is unknown"),
    ("timeout", "no answer in time"),
    ("closed", "the connection was lost"),
    ("lost", "the connection was lost"),
)
"""What libpq says in lower case where an error has no SQLSTATE: those of connecting have none."""


def reason(error: BaseException) -> str:
    """Why the database can't be used."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    if isinstance(error, PoolTimeoutError):
        return "all connections of this process are in use"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state in _BY_STATE:
        return _BY_STATE[state]
    said = str(error).lower()
    return next((shown for found, shown in _BY_WORDS if found in said), "it can't be reached")
