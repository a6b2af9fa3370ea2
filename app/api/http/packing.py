"""Tells which clients can unpack gzip."""

import re

from starlette.requests import Request


def takes_gzip(request: Request) -> bool:
    """Whether the client can unpack gzip."""
    offered = request.headers.get("accept-encoding", "").lower().replace(" ", "").split(",")
    # A weight of 0, which may have three decimals, refuses it.
    return any(re.fullmatch(r"gzip(;q=(?!0(\.0*)?$).*)?", part) is not None for part in offered)
