"""A short part of `make fuzz`."""

import re
from collections.abc import Callable
from random import Random

import pytest

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import UNPARSED, Verdict, VerdictStatus
from tests.e2e.stack import Stack
from tests.fuzz import replies
from tests.fuzz.__main__ import BLOCK, try_block
from tests.fuzz.bundles import export_bundle
from tests.fuzz.files import check_block
from tests.fuzz.replies import WrongNumberError, check_doubtful, check_plain, check_spoiled


def first_digit(reply: str, scale: Scale) -> Verdict:
    """How a careless reader would do it."""
    found = re.search(r"\d", reply)
    in_scale = found is not None and scale.minimum <= int(found[0]) <= scale.maximum
    return Verdict(VerdictStatus.SCORED, int(found[0])) if found and in_scale else UNPARSED


class TestFuzz:
    def test_no_reply_and_no_instrument_file_is_read_as_what_it_does_not_say(self) -> None:
        assert try_block(7, 0) == BLOCK

    @pytest.mark.parametrize("check", [check_plain, check_doubtful, check_spoiled])
    def test_a_reader_that_takes_the_first_digit_is_found_out(
        self, check: Callable[[Random], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(replies, "parse_verdict", first_digit)
        draws = [Random(f"7/{number}") for number in range(1_000)]
        with pytest.raises(WrongNumberError):
            list(map(check, draws))


class TestFiles:
    def test_every_changed_file_is_read_or_refused(self, common_stack: Stack) -> None:
        bundle = export_bundle(str(common_stack.api.base_url))
        ends = check_block(bundle, 7, 0, 400)
        assert ends.total() == 400
        assert set(ends) <= {"read", "refused", "crashed", "beyond a limit"}
        assert ends["read"]
        assert ends["refused"]
