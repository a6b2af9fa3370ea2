"""Sends HTTP requests to the very addresses that the guard has checked."""

import httpx2

from app.guard.targets import Guard

MOST_ADDRESSES = 3
"""Addresses of a name that are tried for one request."""


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Looks each request's host up by itself, so that nobody can have the name stand for another address meanwhile.

    No environment's proxy stands between, as it would look names up again.

    Args:
        guard: Says which addresses may be connected to.
        limits: Of the connections. One that is kept belongs to an address: keep them only for requests to a single host,
            as another name at the same address has another certificate.
    """

    def __init__(self, guard: Guard, limits: httpx2.Limits) -> None:
        self._guard = guard
        self._http = httpx2.AsyncHTTPTransport(trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request to the first of its host's addresses that lets itself be connected to.

        Raises:
            TargetRefusedError: If there is none to which it may go.
            OSError: If the name is not known.
        """
        target = self._guard.target(str(request.url))
        found = await self._guard.resolve(target)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))[:MOST_ADDRESSES]
        for address in addresses[:-1]:
            try:
                return await self._http.handle_async_request(_pinned(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._http.handle_async_request(_pinned(request, addresses[-1]))

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._http.aclose()


def _pinned(request: httpx2.Request, address: str) -> httpx2.Request:
    """The request to an address; its host stays in its head, and is the name that the certificate has to carry."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
