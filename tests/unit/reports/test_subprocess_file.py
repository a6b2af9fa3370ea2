import os
import sys

import pytest

from app.reports import html
from app.reports.subprocess_file import ApartError, made_apart
from tests.unit.reports.page import html_report
from tests.unit.reports.sample import sample, stream


def process_id(_: object) -> bytes:
    return str(os.getpid()).encode()


def refuse(reason: str) -> bytes:
    raise ValueError(reason)


def vanish(_: object) -> bytes:
    sys.stdout.buffer.write(b"half a file")
    sys.stdout.flush()
    os._exit(7)


class TestApart:
    def test_it_is_made_by_another_process(self) -> None:
        assert int(made_apart(process_id, None)) != os.getpid()

    def test_what_goes_wrong_there_is_said_here(self) -> None:
        with pytest.raises(ApartError, match="exit status 1: ValueError: no such cell"):
            made_apart(refuse, "no such cell")

    def test_half_a_file_is_none(self) -> None:
        with pytest.raises(ApartError, match="exit status 7"):
            made_apart(vanish, None)


@pytest.mark.slow
class TestReport:
    async def test_a_large_one_is_rendered_apart_and_is_the_same_to_the_byte(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = sample()
        here = await html_report(job.results, stream(job.responses))
        monkeypatch.setattr(html, "APART_CHARACTERS", 0)
        apart: list[object] = []

        def seen(*given: object) -> bytes:
            apart.append(given)
            return made_apart(*given)  # type: ignore[arg-type] # as it came

        monkeypatch.setattr(html, "made_apart", seen)
        assert await html_report(job.results, stream(job.responses)) == here
        assert len(apart) == 1
