"""Fills the placeholders of an instrument's templates."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{([a-z_ ]+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with every placeholder that has a value filled in.

    In one pass, so that braces inside the values, which are untrusted, stay what they are.
    """
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)
