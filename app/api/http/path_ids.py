"""Ids in paths and bodies: a text that is none can name nothing, so nothing else ever sees it."""

import re
from collections.abc import Callable

from app.services.errors import NotFoundError


def id_check(what: str, form: str) -> Callable[[str], str]:
    """What returns a text that may be an id, and raises :class:`NotFoundError` for any other.

    Args:
        what: What the id names, for people.
        form: The id's form, a regular expression; see :func:`app.services.identifiers.id_form`.
    """
    pattern = re.compile(form)

    def check(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise NotFoundError(f"{what} not found")
        return text

    return check
