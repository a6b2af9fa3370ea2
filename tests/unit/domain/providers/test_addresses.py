"""Network addresses."""

import pytest

from app.domain.providers.addresses import is_loopback, is_private


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1", "localhost"])
def test_only_this_machine_reaches(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.7", "::ffff:10.0.0.1", "localhost.example.org", "", "/tmp/a.sock"]
)
def test_others_may_reach(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("10.1.2.3", True),
        ("fd00::1", True),
        ("vllm", True),
        ("gpu.internal", True),
        ("gpu.local.", True),
        ("8.8.8.8", False),
        ("api.openai.com", False),
    ],
)
def test_a_private_host_shows_by_its_name_or_address(host: str, private: bool) -> None:
    assert is_private(host) == private
