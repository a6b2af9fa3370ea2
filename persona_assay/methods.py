"""Makes a client's methods from the operations, so that each is written once."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from persona_assay.calls import Call

F = TypeVar("F", bound=Callable[..., Any])


def described(method: F, operation: Callable[..., Call[Any]], answers: Any = None) -> F:
    """A method with the name, the words and the parameters of its operation.

    Args:
        method: The method.
        operation: What makes its calls.
        answers: What it gives, where that is not what the call does.
    """
    signature = inspect.signature(operation)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    given = answers if answers is not None else get_args(signature.return_annotation)[0]
    described_as = signature.replace(
        parameters=[itself, *signature.parameters.values()], return_annotation=given
    )
    vars(method)["__signature__"] = described_as
    method.__name__, method.__doc__ = operation.__name__, operation.__doc__
    return method
