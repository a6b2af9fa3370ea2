"""Where messages may be sent: to public addresses over HTTPS, and to the hosts that the operator names."""

import ipaddress
from collections.abc import Collection

import httpx2

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All of the public internet that has addresses of version 6."""
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""Stands for addresses of version 4 where there is no other way to them (RFC 6052)."""
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")

PORTS = {"http": 80, "https": 443}
PORTS_END = 2**16


class TargetRefusedError(Exception):
    """Nothing is sent there; the message says why, for people."""


LONGEST_LABEL = 63
"""Characters between two dots of a host's name (RFC 1035)."""


def parse_target(url: str, allowed: Collection[str]) -> httpx2.URL:
    """A receiver's URL, if messages may be sent there as far as that can be told without asking for its addresses.

    Args:
        url: What the user gave.
        allowed: The operator's hosts, each ``host`` or ``host:port``: also without TLS, and at private addresses.

    Raises:
        TargetRefusedError: If they may not.
    """
    try:
        target = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as error:
        raise TargetRefusedError("not a URL") from error
    if target.scheme not in PORTS or not target.host:
        raise TargetRefusedError("give an absolute https:// URL")
    if not all(0 < len(label) <= LONGEST_LABEL for label in target.host.removesuffix(".").split(".")):
        raise TargetRefusedError("not a URL: there can be no host of that name")
    if not 0 < port_of(target) < PORTS_END:
        raise TargetRefusedError("not a URL: there is no such port")
    if target.userinfo or target.fragment:
        raise TargetRefusedError("leave out user, password and fragment; messages are signed")
    if is_allowed(target, allowed):
        return target
    if target.scheme != "https":
        raise TargetRefusedError("only https:// (the operator can allow this host: ASSAY_WEBHOOK_HOSTS)")
    address = _literal(target.host)
    if target.host == "localhost" or (address is not None and not is_public(address)):
        raise TargetRefusedError("a private address (the operator can allow this host: ASSAY_WEBHOOK_HOSTS)")
    return target


def is_allowed(target: httpx2.URL, allowed: Collection[str]) -> bool:
    """Whether the operator names the host, or the host with this port."""
    host = target.host.lower()
    return host in allowed or f"{host}:{port_of(target)}" in allowed


def port_of(target: httpx2.URL) -> int:
    """The port that a URL names or implies."""
    return PORTS[target.scheme] if target.port is None else target.port


def is_public(address: IPAddress) -> bool:
    """Whether an address is somebody's on the internet: no loopback, no private network, no cloud's own service."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        if inner is None and address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
        tunnelled = address.sixtofour is not None or address.teredo is not None
        return address in _UNICAST and address.is_global and not tunnelled
    return address.is_global and not address.is_multicast and address not in _PROTOCOLS


def _literal(host: str) -> IPAddress | None:
    """The address that a host is, if it is one."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
