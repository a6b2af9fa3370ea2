"""The client on asyncio, used like the other one, so that the same tests hold for both."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

from persona_assay import AssayClient, AsyncAssayClient


class Blocking:
    """Waits for whatever an asynchronous client's methods give."""

    def __init__(self, client: AsyncAssayClient, runner: asyncio.Runner) -> None:
        self._client, self._runner = client, runner

    def __enter__(self) -> AssayClient:
        return cast("AssayClient", self)

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.close())
        self._runner.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*arguments: Any, **options: Any) -> Any:
            found = method(*arguments, **options)
            return self._runner.run(found) if inspect.iscoroutine(found) else self._each(found)

        return call

    def _each(self, entries: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> tuple[bool, Any]:
            try:
                return True, await anext(entries)
            except StopAsyncIteration:
                return False, None

        while (found := self._runner.run(following()))[0]:
            yield found[1]


def blocking(url: str, **options: Any) -> Blocking:
    """An asynchronous client that behaves like the other one."""
    return Blocking(AsyncAssayClient(url, **options), asyncio.Runner())
