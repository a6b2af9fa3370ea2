"""Network addresses."""

from ipaddress import IPv6Address, ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address, which may also be ``localhost``, the one name that always means it."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
