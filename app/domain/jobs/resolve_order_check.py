"""From a request to judge sentences in other orders to what a specification says of it."""

from collections.abc import Callable, Iterable

from app.domain.instruments.dimension import Dimension
from app.domain.jobs.request import JudgingIn
from app.domain.judging.order_check import OrderCheck, can_be_reordered

_POINTER = "/judging/order_check"


def resolve_order_check(
    wanted: JudgingIn,
    seed: int,
    dimensions: Iterable[Dimension],
    *,
    judged: bool,
    fail: Callable[[str, str], None],
) -> OrderCheck | None:
    """Which sentences are judged again; ``None`` where none are.

    Args:
        wanted: What the job asks for.
        seed: The job's.
        dimensions: Those on which its personas' sentences are judged.
        judged: Whether any of the job's tasks has its sentences judged.
        fail: Notes what is wrong with a field.
    """
    if wanted.order_check is None:
        return None
    if not judged:
        fail(_POINTER, "none of the job's tasks has its sentences judged")
    for dimension in dimensions:
        if not can_be_reordered(dimension):
            scale = dimension.scale
            fail(
                _POINTER,
                f"the options of dimension {dimension.id!r} can't be put in another order: each score from {scale.minimum} to"
                f" {scale.maximum} needs one option of the form '{scale.minimum}) …'",
            )
    return OrderCheck(wanted.order_check.share, seed)
