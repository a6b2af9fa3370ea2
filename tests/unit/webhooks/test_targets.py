import ipaddress

import pytest

from app.webhooks.targets import TargetRefusedError, is_public, parse_target

PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
    *("192.0.0.8", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
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
            ("https://example.com:99999/", "not a URL"),
            ("https://example.com:0/", "not a URL"),
            ("https://a..b/", "no host"),
            ("https://.example.com/", "no host"),
            (f"https://{'a' * 64}.example.com/", "no host"),
            ("http://example.com/", "only https"),
            ("https://user:word@example.com/", "leave out user"),
            ("https://example.com/#part", "leave out user"),
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
            parse_target(url, ())

    @pytest.mark.parametrize("url", ["https://example.com/hook?key=1", "https://example.com:8443/hook"])
    def test_https_goes_to_any_port(self, url: str) -> None:
        assert str(parse_target(url, ())) == url

    @pytest.mark.parametrize("allowed", [{"localhost"}, {"localhost:9000"}])
    def test_the_operators_hosts_need_neither_tls_nor_a_public_address(self, allowed: set[str]) -> None:
        assert parse_target("http://localhost:9000/hook", allowed).port == 9000

    def test_a_host_that_is_allowed_with_a_port_is_not_with_another(self) -> None:
        with pytest.raises(TargetRefusedError, match="only https"):
            parse_target("http://localhost:9001/hook", {"localhost:9000"})
