"""Real small language models as judges: the first line that a reader of the report sees says not to trust them."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from app.domain.judging.judged_response import JudgedResponse
from app.domain.judging.verdict import Unread, VerdictStatus, parse_verdict
from app.domain.results.judge_sanity import Evidence, JudgeAndDimension, JudgedUnits, judge_warnings
from app.domain.results.verdict_agreement import JointScores, verdict_agreement
from app.domain.results.warnings import ResultWarning, headline
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.krippendorff import NO_SCORE
from app.instruments.loader import load_atomic
from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import response_of, results_of
from tests.unit.results_sample import read

REAL: Any = yaml.safe_load(
    (Path(__file__).parents[3] / "golden" / "real_judges.yaml").read_text(encoding="utf-8")
)
LARGER, SMALLER, SMALLEST = REAL["judges"]
DIMENSIONS = load_atomic().dimensions


def warnings_about(judges: Sequence[str]) -> list[ResultWarning]:
    """The warnings about these judges, by all that each of them said."""
    units = {JudgeAndDimension(judge, id_): JudgedUnits() for judge in judges for id_ in ("E", "A")}
    scores: dict[str, list[list[int]]] = {}
    for response in REAL["responses"]:
        dimension = DIMENSIONS[response["persona"][0]]
        for _, *replies in response["sentences"]:
            given = dict(zip(REAL["judges"], replies, strict=False))
            row = []
            for judge in judges:
                verdict = parse_verdict(given[judge], dimension) if judge in given else None
                row.append(NO_SCORE if verdict is None or verdict.score is None else verdict.score - 1)
                if verdict is not None:
                    own = units[JudgeAndDimension(judge, dimension.id)]
                    own.replies += 1
                    own.contradicting += verdict.unread is Unread.CONTRADICTION
                    own.not_applicable += verdict.status is VerdictStatus.NOT_APPLICABLE
                    own.scores.update([] if verdict.score is None else [verdict.score])
            scores.setdefault(response["persona"], []).append(row)
    cells = [
        JointScores(
            persona,
            "social_media_post",
            persona[0],
            DIMENSIONS[persona[0]].scale,
            np.array(rows),
            np.ones(len(rows), dtype=np.int64),
        )
        for persona, rows in scores.items()
    ]
    agreement = verdict_agreement(cells, judges, PersonaSample(list(scores), 0)) if judges[1:] else ()
    labels = {id_: each.display_name for id_, each in DIMENSIONS.items()}
    return list(judge_warnings(Evidence(units, labels, agreement)))


async def no_responses() -> AsyncIterator[JudgedResponse]:
    nothing: tuple[JudgedResponse, ...] = ()
    for response in nothing:
        yield response


@pytest.mark.parametrize(
    ("judges", "codes", "conclusion"),
    [
        (
            [LARGER, SMALLER],
            {"one_score", "chance_agreement", "never_not_applicable"},
            f"The judges {LARGER} and {SMALLER} cannot be trusted.",
        ),
        # The number of one option with the words of another.
        ([SMALLEST], {"contradicting_replies"}, f"The judge {SMALLEST} cannot be trusted."),
    ],
)
async def test_the_first_line_says_not_to_trust_them(
    judges: list[str], codes: set[str], conclusion: str
) -> None:
    warnings = warnings_about(judges)
    assert {each.code for each in warnings} == codes
    first = headline(warnings, 1)
    assert first == conclusion
    results = read(results_of([response_of("Yes.", ("Yes.", 5))])).model_copy(
        update={"headline": first, "warnings": warnings}
    )
    results.model_fields_set.update({"headline", "warnings"})
    text = Page(await html_report(json.loads(results.document()), no_responses())).text
    title = results.name or results.job
    shown = text.rpartition("fidelity report")[2].strip().removeprefix(title).strip()
    assert shown.startswith(first)
    assert shown.removeprefix(first).strip().startswith(warnings[0].message)


def test_the_share_of_contradicting_replies_is_that_of_people_who_read_them() -> None:
    (warning,) = warnings_about([SMALLEST])
    # 129 of 181 in the audit of all replies; the file has 127 of them.
    assert warning.value == pytest.approx(129 / 181, abs=0.02)
