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


def is_private(host: str) -> bool:
    """Whether a host is on this machine or in a private network, as far as its name or address shows it."""
    if is_loopback(host) or ("." not in host.rstrip(".") and ":" not in host):
        return True
    try:
        return ip_address(host).is_private
    except ValueError:
        return host.rstrip(".").rpartition(".")[2] in {"local", "internal", "lan", "localhost"}
