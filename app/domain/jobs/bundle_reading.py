"""What rows of a bundle say that follows from texts and replies in it: sentences and verdicts are made again and compared."""

from collections.abc import Callable, Mapping
from typing import Any

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.segmentation import Segmenter
from app.domain.jobs.specification import JobSpec
from app.domain.judging.hardening import AS_IN_THE_PAPERS
from app.domain.judging.verdict import Verdict, VerdictStatus, parse_verdict
from app.domain.personagym.grades import read_final_score
from app.domain.providers.model import FinishReason

MOST_SIGNS = 2_000_000
"""Full stops, exclamation and question marks of texts that are split again: about 16 s, and the papers' 64,800 texts have half as many."""
_MARKED = {FinishReason.REFUSAL, FinishReason.CONTENT_FILTER}
Row = Mapping[str, Any]


class ReadAgain:
    """Reads a job's texts and replies again.

    Args:
        spec: The job's specification.
        segmenter: The one that it names; ``None`` where this release does not know it.
        replies: Whether judges' replies are read by the rules of the release that read them first.
    """

    def __init__(self, spec: JobSpec, segmenter: Segmenter | None, *, replies: bool) -> None:
        self._spec = spec
        self._segmenter = None if spec.given_units is not None else segmenter
        self._replies = replies and spec.hardening is None
        self._signs = 0

    def sentences(self, row: Row) -> bool:
        """Whether the sentences of a checked response are those that its text is split into, as far as that can be said."""
        text = row.get("text")
        if self._segmenter is None or row.get("status") != "answered" or not isinstance(text, str):
            return True
        self._signs += sum(map(text.count, ".?!"))
        if self._signs > MOST_SIGNS:
            return True
        units = self._segmenter.segment(text, len(row["unit_starts"]))
        return [(unit.start, unit.end) for unit in units] == list(
            zip(row["unit_starts"], row["unit_ends"], strict=True)
        )

    def verdict(self, row: Row, asked: Dimension | Scale) -> bool:
        """Whether a checked verdict is what its reply says; what was said of several sentences at once is not read again."""
        return row.get("group_size") != 1 or self._says(
            row, lambda reply, cut_off: parse_verdict(reply, asked, cut_off=cut_off)
        )

    def grade(self, row: Row) -> bool:
        """Whether a checked grade is what its reply says."""
        return self._says(row, lambda reply, cut_off: read_final_score(reply, cut_off=cut_off).verdict)

    def _says(self, row: Row, read: Callable[[str, bool], Verdict]) -> bool:
        repair, reason = row.get("repair_raw"), row.get("finish_reason")
        reply = row.get("raw") if repair is None else repair
        called = self._replies and self._spec.judges[row["judge"]].imported is None
        if not called or not isinstance(reply, str) or reason is None or reason in _MARKED:
            return True
        found = read(AS_IN_THE_PAPERS.read(reply).text, FinishReason(reason).cuts_off)
        return row.get("status") in list(VerdictStatus) and found == Verdict(
            VerdictStatus(row["status"]), row.get("score")
        )
