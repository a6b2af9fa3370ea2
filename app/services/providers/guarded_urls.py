"""Validates URLs in requests that the service itself will call."""

from app.domain.errors import FieldError, InvalidJobError
from app.guard.targets import Guard, Target, TargetRefusedError


async def check_url(guard: Guard, pointer: str, url: str) -> Target:
    """What a URL names, looked up and checked before it is saved.

    Raises:
        InvalidJobError: If nothing may be sent there.
    """
    try:
        return await guard.check(url)
    except TargetRefusedError as error:
        raise InvalidJobError([FieldError(pointer, str(error))]) from error
