from dataclasses import replace

import pytest

from app.domain.providers.model import Model, ModelParameters, Stage
from app.domain.providers.reuse import NO_REUSE, Reuse, ReuseScope, reply_key, reuse_problems

AT_ZERO = Model("a judge", "acme", "judge", ModelParameters(temperature=0.0))
BY_CHANCE = replace(AT_ZERO, parameters=ModelParameters(temperature=0.5))
JUDGING = Reuse(judging=ReuseScope.IN_JOB)
TEXTS = Reuse(generation=ReuseScope.ACROSS_JOBS)
PLACE = ("a model", "E-low", "essay", "essay", "You are {persona}.", 0)


def pointers(reuse: Reuse, *judges: Model, provided: bool = False) -> list[str]:
    return [problem.pointer for problem in reuse_problems(reuse, judges, provided=provided)]


class TestScopes:
    def test_a_job_asks_for_nothing_unless_it_says_so(self) -> None:
        assert not NO_REUSE.wanted
        assert all(NO_REUSE.of(stage) is ReuseScope.OFF for stage in Stage)

    def test_each_stage_has_its_own_and_preparations_have_none(self) -> None:
        both = Reuse(ReuseScope.IN_JOB, ReuseScope.ACROSS_JOBS)
        wanted = {stage: both.of(stage) for stage in Stage if both.of(stage) is not ReuseScope.OFF}
        assert wanted == {Stage.JUDGING: ReuseScope.IN_JOB, Stage.GENERATION: ReuseScope.ACROSS_JOBS}

    @pytest.mark.parametrize("reuse", [JUDGING, TEXTS])
    def test_any_scope_is_a_wish(self, reuse: Reuse) -> None:
        assert reuse.wanted


class TestProblems:
    def test_judges_that_are_drawn_by_chance_give_nothing_to_use_again(self) -> None:
        assert pointers(JUDGING, BY_CHANCE) == ["/reuse/judging"]
        assert pointers(JUDGING, BY_CHANCE, AT_ZERO) == []
        assert pointers(TEXTS, BY_CHANCE) == []

    def test_without_judges_there_is_another_error_to_tell(self) -> None:
        assert pointers(JUDGING) == []

    def test_existing_texts_are_not_generated(self) -> None:
        assert pointers(TEXTS, AT_ZERO, provided=True) == ["/reuse/generation"]
        assert pointers(JUDGING, AT_ZERO, provided=True) == []


class TestReplyKey:
    def test_it_is_the_same_for_the_same(self) -> None:
        assert reply_key(b"asked", only_job=None, place=PLACE) == reply_key(
            b"asked", only_job=None, place=PLACE
        )

    @pytest.mark.parametrize("part", range(len(PLACE)))
    def test_texts_in_different_places_are_different(self, part: int) -> None:
        elsewhere = [*PLACE[:part], 1 if part == len(PLACE) - 1 else "another", *PLACE[part + 1 :]]
        assert reply_key(b"asked", only_job=None, place=PLACE) != reply_key(
            b"asked", only_job=None, place=elsewhere
        )

    def test_what_is_asked_for_and_whose_it_is_make_others(self) -> None:
        keys = [
            reply_key(asked, only_job=job) for asked in (b"one", b"two") for job in (None, "job_1", "job_2")
        ]
        assert len(set(keys)) == 6

    def test_a_part_that_looks_like_two_is_one(self) -> None:
        assert reply_key(b"", only_job=None, place=("a", "b")) != reply_key(
            b"", only_job=None, place=('a","b',)
        )
