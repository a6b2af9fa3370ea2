"""Which IP addresses are on the internet, and which lead to somebody's own machines."""

import ipaddress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All of the public internet that has addresses of version 6."""
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""Stands for addresses of version 4 where there is no other way to them (RFC 6052)."""
_NOT_PUBLIC = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "192.0.0.0/24",  # protocols' own (RFC 6890), and a cloud's metadata
            "192.88.99.0/24",  # relays of 6to4, given up (RFC 7526)
            "168.63.129.16/32",  # Azure's own service to its machines, at an address like any other
        ),
    )
)


def is_public(address: IPAddress) -> bool:
    """Whether an address is somebody's on the internet: no loopback, no private network, no cloud's own service."""
    plain = untranslated(address)
    if isinstance(plain, ipaddress.IPv6Address):
        tunnelled = plain.sixtofour is not None or plain.teredo is not None
        return plain in _UNICAST and plain.is_global and not tunnelled
    kept_apart = any(plain in network for network in _NOT_PUBLIC)
    return plain.is_global and not plain.is_multicast and not kept_apart


def untranslated(address: IPAddress) -> IPAddress:
    """The address of version 4 that one of version 6 only stands for; any other as it is."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF) if address in _TRANSLATED else address


def parse_networks(text: str) -> tuple[IPNetwork, ...]:
    """Networks, or single addresses, with commas between.

    Raises:
        ValueError: If one is neither.
    """
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
