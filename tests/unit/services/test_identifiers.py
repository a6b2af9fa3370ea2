from itertools import pairwise
from uuid import RFC_4122

import pytest

from app import clock
from app.services.identifiers import new_uuid


class TestNewUuid:
    def test_is_a_uuid_of_version_7(self) -> None:
        made = new_uuid()
        assert (made.version, made.variant) == (7, RFC_4122)

    def test_is_made_once(self) -> None:
        assert len({new_uuid() for _ in range(10_000)}) == 10_000

    def test_begins_with_the_milliseconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clock, "time_ns", lambda: 0x017F22E279B0_000000 // 2**24 * 10**6)
        assert str(new_uuid()).startswith("017f22e2-79b0-7000-")

    def test_sorts_by_time_to_a_quarter_of_a_microsecond(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moments = iter(range(1_700_000_000_000_000_000, 1_700_000_000_003_000_000, 250))
        monkeypatch.setattr(clock, "time_ns", lambda: next(moments))
        made = [new_uuid() for _ in range(12_000)]
        assert all(earlier < later for earlier, later in pairwise(made))
