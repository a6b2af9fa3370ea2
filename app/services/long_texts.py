"""Parses long texts and bodies on a thread, one per tenant at a time, so that they do not block the event loop.

So however many long ones one tenant's models write, or it sends, another tenant's find a free thread.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

LONG_CHARACTERS = 4_000
"""Reading a text that is no longer takes the loop 10 ms at most, whatever it holds; a response of the atomic paper has about 2,000."""

_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""By tenant; there while somebody holds it or waits for it."""


async def read_text(tenant: str, text: str, read: Callable[[str], T]) -> T:
    """What a function makes of a text.

    Args:
        tenant: Whose text it is.
        text: Untrusted, of any length.
        read: Pure; may be called on a thread. It bounds what it reads: a thread, too, takes time from the loop.
    """
    if len(text) <= LONG_CHARACTERS:
        return read(text)
    return await on_a_thread(tenant, partial(read, text))


async def on_a_thread(tenant: str, work: Callable[[], T]) -> T:
    """What a function finds, on a thread, after what else is done so for the tenant.

    Args:
        tenant: Whom it is done for.
        work: Pure. It lets go of Python's lock again and again, as Python's own code does: what is one step in C is short.
    """
    turn = _turns.get(tenant)
    if turn is None:
        turn = _turns[tenant] = asyncio.Lock()
    async with turn:
        return await asyncio.to_thread(work)
