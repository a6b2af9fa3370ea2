"""Which models the operator allows a tenant: ``connection/model``, or ``connection/*`` for all of a connection."""

from collections.abc import Collection, Sequence

ALL = "*"


def is_allowed(allowed: Collection[str] | None, connection: str, model: str) -> bool:
    """Whether a model may be used, by the name of its connection and its own; ``None`` allows all."""
    return allowed is None or f"{connection}/{ALL}" in allowed or f"{connection}/{model}" in allowed


def models_of(
    allowed: Collection[str] | None, connection: str, offered: Sequence[str] | None
) -> Sequence[str] | None:
    """The models of a connection that may be used, of those that it offers; ``None`` for all in both."""
    if is_allowed(allowed, connection, ALL) or allowed is None:
        return offered
    of_it = [name.partition("/")[2] for name in allowed if name.startswith(f"{connection}/")]
    return of_it if offered is None else [model for model in offered if model in of_it]
