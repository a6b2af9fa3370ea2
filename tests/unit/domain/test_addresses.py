"""Network addresses."""

import pytest

from app.domain.addresses import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1", "localhost"])
def test_only_this_machine_reaches(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.7", "::ffff:10.0.0.1", "localhost.example.org", "", "/tmp/a.sock"]
)
def test_others_may_reach(host: str) -> None:
    assert not is_loopback(host)
