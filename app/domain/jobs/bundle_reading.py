"""Compares a bundle's sentences and verdicts with what its texts and replies say."""

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.segmentation import Segmenter
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.stored_replies import Reading, Row, StoredReplies
from app.domain.judging.text_notes import TextNotes, judged_units
from app.domain.judging.verdict import Verdict, VerdictStatus

MOST_SIGNS = 2_000_000
"""Full stops, exclamation and question marks of texts that are split again: about 16 s, and the papers' 64,800 texts have half as many."""


class ReadAgain:
    """Reads a job's texts and replies again.

    Args:
        spec: The job's specification.
        segmenter: The one that it names; ``None`` where this release does not know it.
        replies: Whether this release's rules read the judges' replies.
    """

    def __init__(self, spec: JobSpec, segmenter: Segmenter | None, *, replies: bool) -> None:
        self._leave_out = spec.instrument.leave_out
        self._segmenter = None if spec.given_units is not None else segmenter
        self._stored = StoredReplies(spec) if replies and spec.hardening is None else None
        self._signs = 0

    def sentences(self, row: Row) -> bool:
        """Tell whether the units of a checked response are the sentences of its text; true where nobody can say."""
        text = row.get("text")
        if self._segmenter is None or row.get("status") != "answered" or not isinstance(text, str):
            return True
        self._signs += sum(map(text.count, ".?!"))
        if self._signs > MOST_SIGNS:
            return True
        notes = TextNotes.of(row.get("notes")) or TextNotes()
        most = len(row["unit_starts"]) + len(notes.left_out(self._leave_out))
        units = judged_units(self._segmenter.segment(text, most), notes, self._leave_out)
        return [(unit.start, unit.end) for unit in units] == list(
            zip(row["unit_starts"], row["unit_ends"], strict=True)
        )

    def verdict(self, row: Row, asked: Dimension | Scale) -> bool:
        """Tell whether a checked verdict is what its replies say."""
        return self._stored is None or _says(row, self._stored.verdict(row, asked))

    def grade(self, row: Row) -> bool:
        """Tell whether a checked grade is what its replies say."""
        return self._stored is None or _says(row, self._stored.grade(row))


def _says(row: Row, found: Reading | None) -> bool:
    if found is None or row.get("finish_reason") is None:
        return True
    return row.get("status") in list(VerdictStatus) and found.verdict == Verdict(
        VerdictStatus(row["status"]), row.get("score")
    )
