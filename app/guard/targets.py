"""Where requests to URLs that users gave may go: to public addresses over HTTPS, and to what the operator allows."""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from app.guard.addresses import IPAddress, IPNetwork, is_public, untranslated

AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]
"""An entry of :func:`socket.getaddrinfo`."""
LookUp = Callable[[str, int], Awaitable[list[AddressInfo]]]

LOOK_UP_SECONDS = 5.0
"""For a name, where a URL is only saved."""
LOOK_UPS = 128
"""Look-ups at a time, on threads of their own: a user's name server may take half a minute for each, so there are more threads than
attempts to deliver messages."""
LONGEST_LABEL = 63
"""Characters between two dots of a host's name (RFC 1035)."""
LONGEST_NAME = 253
PORTS = {"http": 80, "https": 443}
PORTS_END = 2**16

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})

_ALLOWING = "the operator can allow it: ASSAY_ALLOWED_NETWORKS"
_URL = re.compile(
    r"""(?P<scheme>https?)://
        (?P<user>[^/?\#]*@)?
        (?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)
        (?::(?P<port>[0-9]{1,5}))?
        (?P<path>/[^?\#]*)?
        (?P<query>\?[^\#]*)?
        (?P<fragment>\#.*)?""",
    re.VERBOSE | re.IGNORECASE,
)
"""Narrower than the standards: what two programs might read in two ways is no URL here."""
_CHARACTERS = re.compile(r"[\x21-\x5b\x5d-\x7e]+")
_LABEL = re.compile(rf"(?!-)[a-z0-9_-]{{1,{LONGEST_LABEL}}}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class TargetRefusedError(ConnectionError):
    """Nothing is sent there; the message says why, for people."""


class Target(NamedTuple):
    """What a URL names.

    Attributes:
        scheme: ``http`` or ``https``.
        host: A name in lower case, or an address without brackets.
        port: The port that it names or implies.
    """

    scheme: str
    host: str
    port: int


_look_ups = ThreadPoolExecutor(LOOK_UPS, thread_name_prefix="look-ups")


async def _look_up(host: str, port: int) -> list[AddressInfo]:
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    return [*await asyncio.get_running_loop().run_in_executor(_look_ups, ask)]


@dataclass(frozen=True, slots=True)
class Guard:
    """Says to which URLs and addresses requests may be sent.

    Attributes:
        networks: The operator's: these addresses may be reached though they are private, and without TLS.
        hosts: The operator's, each ``host`` or ``host:port``, for which only the form of the URL is checked.
        look_up: Finds a name's addresses.
    """

    networks: tuple[IPNetwork, ...] = ()
    hosts: Collection[str] = frozenset()
    look_up: LookUp = _look_up

    def with_loopback(self) -> "Guard":
        """One that also lets through URLs that name this machine by its loopback address, not by a name that leads to it."""
        return replace(self, hosts=frozenset({*self.hosts, *LOOPBACK_HOSTS}))

    def target(self, url: str) -> Target:
        """What a user's URL names, if requests may go there as far as can be told without looking anything up.

        Raises:
            TargetRefusedError: If they may not.
        """
        target = parse_target(url)
        if self._trusts(target):
            return target
        if target.scheme != "https" and not self.networks:
            raise TargetRefusedError(f"only https:// ({_ALLOWING})")
        address = _literal("127.0.0.1" if target.host == "localhost" else target.host)
        if address is not None and not self.permits(target, address):
            raise TargetRefusedError(_refusal(target, address))
        return target

    def permits(self, target: Target, address: IPAddress) -> bool:
        """Whether a request to a target may go to an address."""
        plain = untranslated(address)
        allowed = any(plain in network for network in self.networks if network.version == plain.version)
        return allowed or self._trusts(target) or (target.scheme == "https" and is_public(address))

    async def resolve(self, target: Target) -> list[AddressInfo]:
        """The addresses to which a request to a target may go, to be connected to without asking again.

        Raises:
            TargetRefusedError: If there is none.
            OSError: If its name is not known.
        """
        found = await self.look_up(target.host, target.port)
        permitted = [entry for entry in found if self.permits(target, _address(entry))]
        if not permitted:
            raise TargetRefusedError(f"the host resolves to addresses that are not allowed ({_ALLOWING})")
        return permitted

    async def check(self, url: str) -> Target:
        """Checks a URL that is to be saved. A name that nobody knows yet passes: each connection asks again.

        Raises:
            TargetRefusedError: If requests may not go there.
        """
        target = self.target(url)
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                await self.resolve(target)
        except TargetRefusedError:
            raise
        except (OSError, UnicodeError):
            pass  # TimeoutError is one too
        return target

    def _trusts(self, target: Target) -> bool:
        return target.host in self.hosts or f"{target.host}:{target.port}" in self.hosts


def parse_target(url: str) -> Target:
    """What a URL names, if it is one that can be read in one way only.

    Raises:
        TargetRefusedError: If it is not.
    """
    if _CHARACTERS.fullmatch(url) is None:
        raise TargetRefusedError("must be a URL of visible ASCII characters without a backslash")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise TargetRefusedError("must be an absolute https:// URL")
    if parts["user"] is not None or parts["fragment"] is not None:
        raise TargetRefusedError("must not contain a user, password or fragment")
    scheme, host = parts["scheme"].lower(), parts["host"].lower().strip("[]")
    port = int(parts["port"] or PORTS[scheme])
    if not 0 < port < PORTS_END:
        raise TargetRefusedError("has an invalid port")
    if _literal(host) is None and not _is_name(host):
        raise TargetRefusedError("has an invalid host; write the address in its usual form")
    return Target(scheme, host, port)


def _is_name(host: str) -> bool:
    """Whether this can only be a name: resolvers read ``127.1``, ``0x7f.1`` and ``2130706433`` as addresses."""
    labels = host.split(".")
    return (
        len(host) <= LONGEST_NAME
        and all(_LABEL.fullmatch(label) for label in labels)
        and _NUMBER.fullmatch(labels[-1]) is None
    )


def _refusal(target: Target, address: IPAddress) -> str:
    if is_public(address):
        return f"only https:// ({_ALLOWING})"
    return f"a private address ({_ALLOWING})" if target.scheme == "https" else f"not allowed ({_ALLOWING})"


def _address(entry: AddressInfo) -> IPAddress:
    """The address of an entry; a zone, which only a private one has, does not count."""
    return ipaddress.ip_address(str(entry[4][0]).partition("%")[0])


def _literal(host: str) -> IPAddress | None:
    """The address that a host is, if it is one in its usual form."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
