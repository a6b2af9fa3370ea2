import asyncio
import ipaddress
import socket
import threading
from dataclasses import replace

import pytest

from app.guard.addresses import is_public, parse_networks
from app.guard.targets import AddressInfo, Guard, TargetRefusedError

PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
    *("192.0.0.8", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16", "192.88.99.1"),
    *("::", "::1", "fe80::1", "fd00::1", "fec0::1", "ff02::1", "2001:db8::1", "::127.0.0.1"),
    *("::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:a00:1::", "2001::1"),
]
PUBLIC = [
    "93.184.215.14",
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
    "::ffff:93.184.215.14",
    "64:ff9b::808:808",
]


class TestAddresses:
    @pytest.mark.parametrize("address", PRIVATE)
    def test_what_is_not_on_the_internet_is_not_public(self, address: str) -> None:
        assert not is_public(ipaddress.ip_address(address))

    @pytest.mark.parametrize("address", PUBLIC)
    def test_others_are_also_where_they_are_written_in_version_6(self, address: str) -> None:
        assert is_public(ipaddress.ip_address(address))


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            ("nonsense", "absolute"),
            ("ftp://example.com/", "absolute"),
            ("https://", "absolute"),
            ("file:///etc/passwd", "absolute"),
            ("https://example.com:99999/", "invalid port"),
            ("https://example.com:0/", "invalid port"),
            ("https://a..b/", "invalid host"),
            ("https://.example.com/", "invalid host"),
            (f"https://{'a' * 64}.example.com/", "invalid host"),
            ("http://example.com/", "only https"),
            ("https://user:word@example.com/", "must not contain a user"),
            ("https://example.com/#part", "must not contain a user"),
            ("https://localhost/", "private"),
            ("https://LOCALHOST:8443/", "private"),
            ("https://127.0.0.1/", "private"),
            ("https://[::1]/", "private"),
            ("https://169.254.169.254/latest/meta-data", "private"),
            ("https://[::ffff:10.0.0.1]/", "private"),
        ],
    )
    def test_what_may_not_be_sent_to_is_refused_with_the_reason(self, url: str, reason: str) -> None:
        with pytest.raises(TargetRefusedError, match=reason):
            Guard().target(url)

    @pytest.mark.parametrize("url", ["https://example.com/hook?key=1", "https://example.com:8443/hook"])
    def test_https_goes_to_any_port(self, url: str) -> None:
        assert Guard().target(url).host == "example.com"

    @pytest.mark.parametrize("allowed", [{"localhost"}, {"localhost:9000"}])
    def test_the_operators_hosts_need_neither_tls_nor_a_public_address(self, allowed: set[str]) -> None:
        assert Guard(hosts=allowed).target("http://localhost:9000/hook").port == 9000

    def test_a_host_that_is_allowed_with_a_port_is_not_with_another(self) -> None:
        with pytest.raises(TargetRefusedError, match="only https"):
            Guard(hosts={"localhost:9000"}).target("http://localhost:9001/hook")


class TestNetworks:
    guard = Guard(parse_networks("127.0.0.0/8, fd00::/8,203.0.113.7"))

    @pytest.mark.parametrize(
        "url",
        [
            *(
                "http://127.0.0.1:8000/v1",
                "http://localhost:8000/v1",
                "https://127.9.9.9/",
                "http://[fd00::1]/",
            ),
            *("http://[::ffff:127.0.0.1]/", "http://203.0.113.7/v1", "https://example.com/v1"),
        ],
    )
    def test_what_the_operator_allows_is_reached_also_without_tls(self, url: str) -> None:
        assert self.guard.target(url)

    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            ("http://93.184.215.14/", "only https"),
            ("http://10.0.0.1/", "not allowed"),
            ("https://10.0.0.1/", "private"),
        ],
    )
    def test_everything_else_is_as_without_them(self, url: str, reason: str) -> None:
        with pytest.raises(TargetRefusedError, match=reason):
            self.guard.target(url)

    async def test_without_tls_a_name_has_to_stand_for_an_allowed_address(self) -> None:
        def named(address: str) -> Guard:
            async def look_up(_host: str, port: int) -> list[AddressInfo]:
                return [(2, 1, 6, "", (address, port))]

            return replace(self.guard, look_up=look_up)

        assert await named("127.0.0.1").check("http://vllm.internal/v1")
        with pytest.raises(TargetRefusedError, match="not allowed"):
            await named("93.184.215.14").check("http://vllm.internal/v1")

    @pytest.mark.parametrize("text", ["everything", "10.0.0.1/8", "10.0.0.0/8;127.0.0.1"])
    def test_what_is_no_network_is_an_error(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"does not appear|host bits"):
            parse_networks(text)


class TestLookUps:
    async def test_slow_name_servers_hold_up_nobody_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answered = threading.Event()

        def tarpit(*_: object, **__: object) -> list[AddressInfo]:
            answered.wait(60)
            raise socket.gaierror

        monkeypatch.setattr(socket, "getaddrinfo", tarpit)
        checks = [asyncio.create_task(Guard().check(f"https://slow-{n}.example/")) for n in range(100)]
        try:
            assert await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 20) == "done"
        finally:
            answered.set()
        await asyncio.gather(*checks)
