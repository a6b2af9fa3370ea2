"""Judges that cannot be trusted are named, others are not."""

from collections import Counter
from collections.abc import Mapping

import pytest

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import Metric
from app.domain.results.judge_sanity import (
    Evidence,
    JudgeAndDimension,
    JudgedUnits,
    by_chance,
    chance_interval,
    judge_warnings,
)
from app.domain.results.warnings import headline


def warned(units: JudgedUnits, dimension: str | None = "E") -> Mapping[str, float | None]:
    """The warnings about one judge: the figure by code."""
    found = judge_warnings(Evidence({JudgeAndDimension("a/judge", dimension): units}, {"E": "extraversion"}))
    return {each.code: each.value for each in found}


@pytest.mark.parametrize(
    ("scores", "share"),
    [
        ({5: 257, 4: 16}, 257 / 273),
        ({1: 18, 2: 2}, 18 / 20),
        ({5: 89, 4: 11}, None),
        ({3: 19}, None),  # too few sentences to say anything
    ],
)
def test_one_score_for_nearly_all_sentences(scores: dict[int, int], share: float | None) -> None:
    assert warned(JudgedUnits(Counter(scores))).get("one_score") == share


def test_one_score_on_several_dimensions_is_summed_up_in_one_line() -> None:
    units = {
        JudgeAndDimension("a/judge", "E"): JudgedUnits(Counter({5: 30})),
        JudgeAndDimension("a/judge", "N"): JudgedUnits(Counter({1: 30})),
        JudgeAndDimension("a/judge", "A"): JudgedUnits(Counter({5: 27, 4: 3})),
        JudgeAndDimension("b/judge", "A"): JudgedUnits(Counter({5: 30})),
        JudgeAndDimension("a/judge", "O"): JudgedUnits(Counter({5: 40})),
    }
    labels = {"E": "extraversion", "N": "neuroticism", "A": "agreeableness", "O": "openness"}
    found = list(judge_warnings(Evidence(units, labels)))
    line = "a/judge gives the score 5 in 97 % of 100 verdicts on extraversion, agreeableness and openness."
    assert [each.summary for each in found] == [line, None, line, None, line]
    assert found[0].message == "a/judge gives the score 5 to 100 % of 30 sentences on extraversion."


@pytest.mark.parametrize(
    ("replies", "unreadable", "expected"),
    [
        (3, 1, False),
        (3, 2, True),
        (1, 1, False),
        (2, 2, True),
        (2, 1, False),
        (40, 20, False),
        (40, 21, True),
    ],
)
def test_most_replies_unreadable(replies: int, unreadable: int, *, expected: bool) -> None:
    units = {JudgeAndDimension("a/judge", "E"): JudgedUnits(replies=replies, unreadable=unreadable)}
    found = list(judge_warnings(Evidence(units, {"E": "extraversion"})))
    assert [each.code for each in found] == expected * ["unreadable_replies"]
    assert [each.n for each in found] == expected * [replies]
    assert headline(found, 1) == ("The judge a/judge cannot be trusted." if expected else None)


@pytest.mark.parametrize(
    ("scores", "not_applicable", "share"),
    [
        ({}, 25, 1.0),
        ({5: 20}, 200, 200 / 220),
        ({5: 257, 4: 16}, 3, 257 / 276),
        ({5: 30}, 10, None),  # 75 % of the answers
        ({}, 19, None),
    ],
)
def test_not_applicable_counts_as_an_answer(
    scores: dict[int, int], not_applicable: int, share: float | None
) -> None:
    assert warned(JudgedUnits(Counter(scores), not_applicable)).get("one_score") == share


def test_not_applicable_to_nearly_all_sentences_is_named_in_words() -> None:
    units = {JudgeAndDimension("a/judge", "E"): JudgedUnits(Counter({5: 2}), 38)}
    (found,) = judge_warnings(Evidence(units, {"E": "extraversion"}))
    assert found.message == (
        "a/judge gives the answer “not applicable” to 95 % of 40 sentences on extraversion."
    )
    assert headline([found], 1) == "The judge a/judge cannot be trusted."


def test_one_score_for_nearly_all_answers_is_named_as_grades() -> None:
    assert warned(JudgedUnits(Counter({5: 30})), dimension=None) == {"one_score": 1.0}


@pytest.mark.parametrize(
    ("scored", "not_applicable", "expected"), [(200, 0, True), (199, 0, False), (500, 1, False)]
)
def test_never_not_applicable(scored: int, not_applicable: int, *, expected: bool) -> None:
    found = warned(JudgedUnits(Counter({1: scored // 2, 5: scored - scored // 2}), not_applicable))
    assert ("never_not_applicable" in found) is expected


def test_imported_judges_may_have_lacked_the_option_not_applicable() -> None:
    units = {JudgeAndDimension("a/judge", "E"): JudgedUnits(Counter({1: 150, 5: 150}))}
    (found,) = judge_warnings(Evidence(units, {"E": "extraversion"}))
    assert found.code == "never_not_applicable"
    assert not list(judge_warnings(Evidence(units, {"E": "extraversion"}, imported={"a/judge"})))


@pytest.mark.parametrize(("contradicting", "expected"), [(5, False), (6, True)])
def test_replies_that_contradict_themselves(contradicting: int, *, expected: bool) -> None:
    found = warned(JudgedUnits(Counter({1: 40, 5: 50}), 4, replies=100, contradicting=contradicting))
    assert ("contradicting_replies" in found) is expected


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [
        (Metric.of(0.069, 273), True),  # without a stored interval: 0.069 ± 1.96 / √273 = 0.069 ± 0.119
        (Metric.of(0.3, 273), False),
        (Metric.of(0.3, 273).within(Interval(-0.01, 0.6)), True),
        (Metric.of(-0.5, 273), False),  # worse than chance is no chance agreement
    ],
)
def test_agreement_by_chance(kappa: Metric, *, expected: bool) -> None:
    assert (chance_interval(kappa) is not None) is expected
    assert (by_chance(kappa, kappa.n, "sentences") is not None) is expected


def test_judges_that_give_everything_one_score_agree_by_chance_whatever_kappa() -> None:
    assert by_chance(Metric.missing("no_variation: x"), 30, "sentences") is not None
    assert by_chance(Metric.missing("no_variation: x"), 19, "sentences") is None


def test_the_headline_names_the_judges() -> None:
    found = list(
        judge_warnings(
            Evidence(
                {
                    JudgeAndDimension(judge, "E"): JudgedUnits(Counter({5: 40}))
                    for judge in ("a/one", "b/two")
                },
                {"E": "extraversion"},
            )
        )
    )
    assert headline(found, 1) == "The judges a/one and b/two cannot be trusted."
    assert headline([], 1) is None
