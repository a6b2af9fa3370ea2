"""Ways to write addresses that no user's URL may lead to, and resolvers that change their minds."""

from app.guard.targets import AddressInfo, LookUp

HOSTS = (
    # as they are
    *("127.0.0.1", "127.0.0.53", "127.255.255.254", "localhost", "LOCALHOST", "0.0.0.0"),
    *(
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
    ),
    *("192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    # in other numbers
    *("2130706433", "017700000001", "0x7f000001", "0x7F.0x0.0x0.0x1", "0177.0.0.1", "0177.0000.0000.0001"),
    *("127.1", "127.0.1", "0", "127.0.0.01", "0x7f.1", "127.0.0.0x1", "00127.0.0.1", "127.0.0.1.1"),
    # as names
    *(
        "127.0.0.1.",
        "localhost.",
        "%31%32%37.0.0.1",
        "127。0。0。1",
        "①②⑦.⓪.⓪.①",
        "127\uff0e0\uff0e0\uff0e1",
        "ⓛocalhost",
    ),
    *("local\thost", "127.0.0.1%00.example.com", "127.0.0.1 ", " 127.0.0.1", "127.0.0.1\r\nx: y"),
    # in version 6
    *(
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[0000::0001]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
    ),
    *(
        "[64:ff9b::7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
    ),
    *("[fe80::1]", "[fe80::1%25lo]", "[::1%25lo]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]", "::1"),
    # with something in front
    *(
        "example.com@127.0.0.1",
        "example.com:80@127.0.0.1",
        "example.com\\@127.0.0.1",
        "example.com%40127.0.0.1",
    ),
    *(
        "127.0.0.1\\@example.com",
        "127.0.0.1#@example.com",
        "127.0.0.1?@example.com",
        "/127.0.0.1",
        "[127.0.0.1]",
    ),
)


def answers(*addresses: str) -> LookUp:
    """A resolver that names one address after the other, and the last one for ever."""
    waiting = list(addresses)

    async def look_up(_host: str, port: int) -> list[AddressInfo]:
        address = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return [(10, 1, 6, "", (address, port, 0, 0)) if ":" in address else (2, 1, 6, "", (address, port))]

    return look_up
