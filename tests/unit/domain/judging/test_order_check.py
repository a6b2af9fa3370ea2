"""Which sentences are judged again, and how the options stand then."""

from statistics import fmean
from typing import Any

import pytest

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.jobs.plan import estimate, estimate_provided, shards_of
from app.domain.jobs.request import JudgingIn, OrderCheckIn
from app.domain.jobs.resolve import Resolution
from app.domain.jobs.stage_estimate import StageEstimate
from app.domain.judging.order_check import (
    ORDERS,
    Order,
    OrderCheck,
    asked,
    can_be_reordered,
    number_of,
    order_of,
)
from app.domain.judging.verdict import NOT_APPLICABLE, UNPARSED, Verdict, VerdictStatus
from app.domain.providers.model import Stage
from tests.job_requests import a_persona, a_response
from tests.unit.domain.job_samples import POLITICS, draft, resolved, wrong

EXISTING: dict[str, Any] = {
    "models": (),
    "instructions": None,
    "responses": (a_response("E-low", "essay", "I stay in."),),
}
WORDS = {1: "Very shy.", 2: "Rather shy.", 3: "Neither.", 4: "Rather bold.", 5: "Very bold."}
OPTIONS = "1) Very shy. 2) Rather shy. 3) Neither. 4) Rather bold. 5) Very bold. 9) None of the above."


def dimension(options: str = OPTIONS, scale: Scale | None = None) -> Dimension:
    return Dimension("B", "boldness", scale or Scale(), options)


def score(value: int) -> Verdict:
    return Verdict(VerdictStatus.SCORED, value)


def wanted() -> JudgingIn:
    return JudgingIn(order_check=OrderCheckIn(share=0.5))


def plan_of(job: Resolution) -> dict[Stage, StageEstimate]:
    return {found.stage: found for found in estimate(job.spec, job.cells)}


class TestSample:
    def test_it_is_the_same_whenever_it_is_drawn_and_another_for_another_seed(self) -> None:
        place = [
            (cell, run, item, unit)
            for cell in range(3)
            for run in range(5)
            for item in range(4)
            for unit in range(9)
        ]
        first, again, other = ([OrderCheck(0.3, seed).draws(*one) for one in place] for seed in (7, 7, 8))
        assert first == again != other

    @pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
    def test_it_is_as_large_as_asked_for(self, share: float) -> None:
        check = OrderCheck(share, 0)
        found = fmean(check.draws(0, run, 0, unit) for run in range(400) for unit in range(50))
        assert found == pytest.approx(share, abs=4 * (share * (1 - share) / 20_000) ** 0.5)

    def test_a_share_of_one_is_every_sentence(self) -> None:
        assert OrderCheck(1.0, 0).drawn(3, 1, 2, 1_000) == 1_000
        assert OrderCheck(1e-12, 0).drawn(3, 1, 2, 1_000) == 0


class TestOptions:
    def test_repeated_they_are_as_they_were(self) -> None:
        assert asked(dimension(), Order.REPEATED, 0).dimension == dimension()

    def test_reversed_each_keeps_its_number_and_what_is_no_score_stays_last(self) -> None:
        found = asked(dimension(), Order.REVERSED, 0)
        assert found.dimension.options == (
            "5) Very bold. 4) Rather bold. 3) Neither. 2) Rather shy. 1) Very shy. 9) None of the above."
        )
        assert found.meant(score(4)) == score(4)

    def test_shuffled_a_number_means_the_words_behind_it(self) -> None:
        drawn = set()
        for unit in range(300):
            found = asked(dimension(), Order.SHUFFLED, 0, 1, 2, 3, unit)
            labels = found.dimension.option_labels
            assert list(labels) == [1, 2, 3, 4, 5, 9]
            assert labels[9] == "None of the above"
            for number in WORDS:
                meant = found.meant(score(number)).score
                assert meant is not None
                assert labels[number] == WORDS[meant].strip(".")
            drawn.add(found.dimension.options)
        assert OPTIONS not in drawn
        assert len(drawn) > 100  # of 119

    @pytest.mark.parametrize("verdict", [NOT_APPLICABLE, UNPARSED])
    def test_a_verdict_without_a_score_stays_what_it_is(self, verdict: Verdict) -> None:
        assert asked(dimension(), Order.SHUFFLED, 0).meant(verdict) == verdict

    def test_lines_and_words_around_the_options_stay(self) -> None:
        found = asked(
            dimension("Choose:\n1) Low\n2) High\n0) Unclear", Scale(1, 2, ("l", "h"), 0)), Order.REVERSED, 0
        )
        assert found.dimension.options == "Choose:\n2) High\n1) Low\n0) Unclear"

    @pytest.mark.parametrize(
        "options",
        [
            "(A) shy (B) bold",
            "1) a 2) b 3) c 4) d 9) none",
            "1) a 2) b 3) c 4) d 5) e 5) f",
            "from 1 to 5",
            "1. a\n2. b",
        ],
    )
    def test_some_can_t_be_put_in_another_order(self, options: str) -> None:
        assert can_be_reordered(dimension())
        assert not can_be_reordered(dimension(options))


class TestRequests:
    def test_it_is_in_the_specification_of_the_jobs_that_ask_for_it(self) -> None:
        assert resolved().spec.order_check is None
        assert resolved(judging=wanted(), seed=5).spec.order_check == OrderCheck(0.5, 5)

    def test_options_that_can_t_be_reordered_are_refused_where_they_are_judged(self) -> None:
        persona = a_persona("red", "a voter", {"p": "left"})
        job = draft(
            dimensions=(POLITICS,),
            personas=("E-low", persona),
            tasks=("social_media_post",),
            judging=wanted(),
        )
        assert wrong(job) == {
            "/judging/order_check": "the options of dimension 'p' can't be put in another order: each score from 1 to 5 needs"
            " one option of the form '1) …'"
        }
        assert resolved(dimensions=(POLITICS,), judging=wanted()).spec.order_check

    def test_a_plan_counts_three_calls_more_for_each_sentence_of_the_sample(self) -> None:
        usual, checked = (plan_of(resolved(judging=judging)) for judging in (None, wanted()))
        again = checked.pop(Stage.CHECKING)
        assert checked == usual
        assert again.calls == again.verdicts == pytest.approx(3 * 0.5 * usual[Stage.JUDGING].calls, abs=1)
        assert again.usage.input_tokens == pytest.approx(
            1.5 * usual[Stage.JUDGING].usage.input_tokens, rel=0.01
        )

    def test_its_calls_count_where_runs_are_cut_into_shards(self) -> None:
        every = JudgingIn(order_check=OrderCheckIn(share=1.0))
        usual, checked = (
            len(shards_of(job.spec, job.cells))
            for job in (resolved(iterations=1000), resolved(iterations=1000, judging=every))
        )
        assert checked == pytest.approx(4 * usual, rel=0.15)

    def test_of_existing_texts_it_counts_the_very_sentences(self) -> None:
        job = resolved(**EXISTING, judging=wanted())
        check = job.spec.order_check
        assert check is not None
        _, again = estimate_provided(job.spec, job.cells, [(0, 0, 0, 40), (0, 1, 0, 7)])
        assert again.calls == 3 * (check.drawn(0, 0, 0, 40) + check.drawn(0, 1, 0, 7)) > 0


def test_every_reading_has_a_number_of_its_own_beyond_the_judges() -> None:
    numbers = {number_of(judge, order, 3): (judge, order) for judge in range(3) for order in ORDERS}
    assert sorted(numbers) == list(range(3, 12))
    assert all((number % 3, order_of(number, 3)) == said for number, said in numbers.items())
