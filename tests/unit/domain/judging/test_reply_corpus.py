"""Reads every labelled reply of the corpus and counts wrong and lost scores."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.grouped_reply import read_grouped
from app.domain.judging.verdict import Verdict, VerdictStatus, parse_verdict
from app.domain.personagym.grades import read_final_score
from app.domain.personagym.task import GRADE_SCALE
from app.instruments.loader import load_atomic

CORPUS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[3] / "golden" / "judge_replies.yaml").read_text(encoding="utf-8")
)
DIMENSIONS = load_atomic().dimensions

Label = int | str | None


class Reply(NamedTuple):
    kind: str
    asked: Dimension | Scale
    labels: tuple[Label, ...]
    text: str
    source: str

    def read(self) -> list[Label]:
        """Return what is read, in the form of a label."""
        if self.kind == "grouped":
            readings = read_grouped(self.text, len(self.labels), self.asked)
            return [as_label(reading.verdict, self.asked) if reading.usable else None for reading in readings]
        if self.kind == "grade":
            assert isinstance(self.asked, Scale)
            return [as_label(read_final_score(self.text, self.asked).verdict, self.asked)]
        return [as_label(parse_verdict(self.text, self.asked), self.asked)]


def as_label(verdict: Verdict, asked: Dimension | Scale) -> Label:
    if verdict.status is VerdictStatus.NOT_APPLICABLE:
        return (asked.scale if isinstance(asked, Dimension) else asked).not_applicable
    return verdict.score if verdict.status is VerdictStatus.SCORED else verdict.status.value


def asked_of(group: dict[str, Any]) -> Dimension | Scale:
    asked = group.get("asked")
    if asked is None:
        return GRADE_SCALE
    if isinstance(asked, str):
        return DIMENSIONS[asked]
    return Scale(**asked | ({"levels": tuple(asked["levels"])} if "levels" in asked else {}))


REPLIES = [
    Reply(
        group["kind"],
        asked_of(group),
        tuple(label) if isinstance(label, list) else (label,),
        text,
        group["source"],
    )
    for group in CORPUS
    for label, text in group["replies"]
]
REAL = ("model: ", "https://")
"""How the source of a public report's or a real model's reply begins."""
KINDS = ("sentence", "grade", "grouped")


@pytest.mark.parametrize("kind", KINDS)
def test_no_score_is_wrong_and_few_are_lost(kind: str) -> None:
    counts: Counter[str] = Counter()
    failures = []
    for reply in REPLIES:
        if reply.kind != kind:
            continue
        for label, read in zip(reply.labels, reply.read(), strict=True):
            counts["scored"] += isinstance(label, int)
            lost = isinstance(label, int) and not isinstance(read, int)
            wrong = read != label and not lost
            counts["lost"] += lost
            counts["wrong"] += wrong
            if lost or wrong:
                failures.append(f"{label} read as {read}: {reply.text!r}")
    print(f"{kind}: {dict(counts)}", *failures, sep="\n")  # noqa: T201 - shown by `pytest -s`
    assert counts["wrong"] == 0, "\n".join(failures)
    assert counts["lost"] <= 0.05 * counts["scored"], "\n".join(failures)


def test_corpus_is_large_distinct_and_of_known_origin() -> None:
    sizes = Counter(reply.kind for reply in REPLIES)
    assert sizes["sentence"] >= 500
    assert sizes["grade"] >= 200
    assert sizes["grouped"] >= 30
    keys = [(reply.kind, reply.asked, reply.text) for reply in REPLIES]
    assert len(keys) == len(set(keys))
    assert sum(reply.text.strip().isdecimal() for reply in REPLIES) <= 20
    real = Counter(reply.kind for reply in REPLIES if reply.source.startswith(REAL))
    assert all(reply.source == "constructed" for reply in REPLIES if not reply.source.startswith(REAL))
    assert real["sentence"] >= 500
    assert real["grade"] >= 200
    assert real["grouped"] >= 30
