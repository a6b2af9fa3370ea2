"""Pages that move: the parts of a page that have changed, as server-sent events."""

import json
from collections.abc import AsyncIterator, Mapping

from fastapi.responses import StreamingResponse

from app import clock

Parts = Mapping[str, str]
"""Parts of a page, as HTML, by the id of the element that each replaces."""

RECONNECT_MILLISECONDS = 2000
KEEP_ALIVE_SECONDS = 15.0
"""Proxies close connections on which nothing comes for long."""


def live(parts: AsyncIterator[Parts]) -> StreamingResponse:
    """A stream of events: ``part`` for each part that is new or has changed, ``end`` when there is nothing to wait for.

    Args:
        parts: What the page shows, at least every few seconds, whether it has changed or not.
    """
    # Nothing between us and the reader may hold events back or keep them.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(_events(parts), media_type="text/event-stream", headers=headers)


async def _events(shown: AsyncIterator[Parts]) -> AsyncIterator[str]:
    yield f"retry: {RECONNECT_MILLISECONDS}\n\n"
    known: dict[str, str] = {}
    told = clock.monotonic()
    async for parts in shown:
        changed = {id_: html for id_, html in parts.items() if known.get(id_) != html}
        for id_, html in changed.items():
            yield f"event: part\ndata: {json.dumps({'id': id_, 'html': html})}\n\n"
        if not changed and clock.monotonic() - told >= KEEP_ALIVE_SECONDS:
            yield ": still here\n\n"
        elif not changed:
            continue
        known |= changed
        told = clock.monotonic()
    yield "event: end\ndata: over\n\n"
