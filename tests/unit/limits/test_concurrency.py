"""The limit of calls in flight, found on simulated servers."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.limits.concurrency import (
    LONGEST_REST_SECONDS,
    START,
    Latencies,
    Sample,
    State,
    is_failure,
    next_state,
)
from tests.unit.limits.simulated_server import Server, Simulation

DEADLINE = 120.0


def essays_and_judgements(dice: random.Random) -> tuple[float, int]:
    """A tenth are essays of 300 to 900 tokens at 20 ms each, the others single tokens."""
    if dice.random() < 0.1:
        tokens = dice.randint(300, 900)
        return tokens * 0.02, tokens
    return 0.2 * dice.uniform(0.7, 1.3), 1


def heavy_tailed(dice: random.Random) -> tuple[float, int]:
    """Mean 2 s, standard deviation 2 s, log-normal; the length of a reply says nothing of it."""
    return dice.lognormvariate(math.log(2) - math.log(2) / 2, math.sqrt(math.log(2))), 100


def follow(state: State, sample: Sample, demand: int = 512, ceiling: int = 512) -> State:
    return next_state(state, sample, demand=demand, ceiling=ceiling, deadline=DEADLINE)


class TestServers:
    @pytest.mark.parametrize("oblivious", [True, False])
    @pytest.mark.parametrize("slots", [1, 4, 64])
    def test_of_two_seconds_a_call_are_used_and_answer_nobody_who_has_gone(
        self, slots: int, oblivious: bool
    ) -> None:
        simulation = Simulation(Server(slots, oblivious=oblivious))
        outcome = simulation.run(600)
        assert outcome.share_used(slots, 60, 600) > 0.98
        assert outcome.wasted_after(0) == 0
        assert simulation.state.limit * 2.0 / slots < DEADLINE / 4

    @pytest.mark.parametrize("slots", [5, 85])
    def test_whose_slots_are_no_power_of_two_are_used(self, slots: int) -> None:
        assert Simulation(Server(slots)).run(300).share_used(slots, 60, 300) > 0.95

    @pytest.mark.parametrize("seconds", [8.0, 20.0])
    def test_with_one_slot_and_long_calls_are_not_asked_for_more_than_the_deadline_allows(
        self, seconds: float
    ) -> None:
        outcome = Simulation(Server(1, lambda _: (seconds, 500))).run(2400)
        assert outcome.wasted_after(60) == 0
        assert outcome.share_used(1, 60, 2400) > 0.95

    def test_that_refuse_what_does_not_fit_their_queue_are_rarely_asked_to(self) -> None:
        outcome = Simulation(Server(4, queue_limit=8)).run(300)
        assert outcome.share_used(4, 60, 300) > 0.95
        assert outcome.refused < 100  # of 600 answers

    def test_of_many_slots_and_200_ms_are_all_used_after_two_seconds(self) -> None:
        simulation = Simulation(Server(512, lambda _: (0.2, 1)))
        assert simulation.run(20).share_used(512, 2, 20) > 0.98

    @pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
    @pytest.mark.parametrize("calls", [heavy_tailed, essays_and_judgements])
    def test_without_a_bound_are_used_however_long_their_calls_take(
        self, calls: Callable[[random.Random], tuple[float, int]], seed: int
    ) -> None:
        simulation = Simulation(Server(5000, calls), seed=seed)
        assert simulation.run(200).share_used(512, 60, 200) > 0.9

    @pytest.mark.parametrize("seed", range(3))
    def test_of_one_slot_with_calls_of_all_lengths_keep_nobody_beyond_the_deadline(self, seed: int) -> None:
        outcome = Simulation(Server(1, essays_and_judgements), seed=seed).run(600)
        assert outcome.wasted_after(60) == 0
        assert outcome.share_used(1, 60, 600) > 0.9


class TestNextState:
    def test_doubles_where_calls_take_as_long_as_before(self) -> None:
        assert follow(State(), Sample(1, 8, 0, 8.0)) == State(8, 4)
        assert follow(State(8, 4), Sample(1, 8, 0, 8.0, 8.0, 8.0)) == State(16, 8)

    def test_returns_where_twice_the_calls_take_twice_as_long_and_then_rests(self) -> None:
        after = follow(State(8, 4), Sample(1, 8, 0, 16.0, 16.0, 8.0))
        assert (after.limit, after.before, after.rest_seconds) == (4, 0, 2.0)
        assert follow(after, Sample(1, 8, 0, 8.0)) == after
        assert follow(after, Sample(2, 8, 0, 8.0)).limit == 5

    def test_does_not_rise_beyond_what_is_wanted_or_allowed(self) -> None:
        answered = Sample(1, 8, 0, 8.0)
        assert follow(State(), answered, demand=4) == State()
        assert follow(State(), answered, ceiling=4) == State()
        assert follow(State(), answered, ceiling=6) == State(6, 4)

    def test_learns_nothing_from_a_trial_that_nobody_took_part_in(self) -> None:
        assert follow(State(8, 4), Sample(1, 8, 0, 8.0, 8.0, 8.0), demand=3) == State(4)

    def test_halves_where_more_than_a_tenth_of_the_calls_end_in_overload(self) -> None:
        assert follow(State(64), Sample(1, 100, 11, 89.0)).limit == 32
        assert follow(State(64), Sample(1, 100, 10, 90.0)).limit >= 64
        assert follow(State(1), Sample(1, 1, 1)).limit == 1

    def test_takes_a_failed_trial_back_and_no_more_where_it_ends_in_overload(self) -> None:
        assert follow(State(10, 8), Sample(1, 20, 5, 15.0)).limit == 8

    def test_tries_less_where_calls_come_near_their_deadline(self) -> None:
        slow = Sample(100, 16, 0, 16 * 40.0)
        assert follow(State(16), slow) == State(12, 16)
        by_themselves = Sample(100, 12, 0, 12 * 40.0, 12 * 40.0, 12 * 40.0)
        after = follow(State(12, 16), by_themselves)
        assert (after.limit, after.slow) == (16, True)
        assert follow(after, slow).limit > 16

    @given(
        limit=st.integers(1, 600),
        before=st.integers(0, 600),
        ended=st.integers(0, 2000),
        overloaded=st.integers(0, 50),
        latency=st.floats(0.001, 200),
        pace=st.floats(0.1, 10),
        demand=st.integers(0, 2000),
        ceiling=st.integers(1, 600),
    )
    def test_stays_within_its_bounds(
        self,
        limit: int,
        before: int,
        ended: int,
        overloaded: int,
        latency: float,
        pace: float,
        demand: int,
        ceiling: int,
    ) -> None:
        state = State(limit, before)
        took = latency * max(0, ended - overloaded)
        sample = Sample(30, ended, min(ended, overloaded), took, took, took * pace)
        after = follow(state, sample, demand, ceiling)
        assert 1 <= after.limit <= max(limit, before, ceiling)
        assert after.rest_seconds <= LONGEST_REST_SECONDS


class TestLatencies:
    def test_of_calls_that_take_no_measurable_time_raise_the_limit(self) -> None:
        seen = Latencies(0.0)
        for _ in range(8):
            seen.answered(1.0, 0.0, 1)
        assert follow(State(), seen.take()).limit > START

    def test_compare_calls_of_the_same_length_only(self) -> None:
        seen = Latencies(0.0)
        seen.answered(1.0, 0.5, 1)
        seen.answered(10.0, 9.0, 600)
        seen.begin(10.0, State(START), State(8, START))
        seen.answered(11.0, 0.6, 1)
        seen.answered(11.0, 0.4, 40)
        assert seen.take() == Sample(0, 2, 0, 1.0, 0.6, 0.5)
        assert seen.take() == Sample()

    def test_leave_out_what_started_before_the_change(self) -> None:
        seen = Latencies(0.0)
        seen.begin(10.0, State(8), State(4))
        seen.answered(11.0, 2.0, 1)
        seen.overload(11.0, 2.0)
        seen.answered(11.0, 0.5, 1)
        seen.overload(11.0, 0.5)
        assert seen.take() == Sample(0, 2, 1, 0.5)

    def test_count_an_overload_from_before_the_limit_rose(self) -> None:
        seen = Latencies(0.0)
        seen.begin(10.0, State(4), State(8, 4))
        seen.overload(11.0, 5.0)
        assert seen.take().overloaded == 1

    def test_forget_what_a_failed_trial_took(self) -> None:
        seen = Latencies(0.0)
        seen.answered(1.0, 1.0, 1)
        seen.begin(1.0, State(4), State(8, 4))
        seen.answered(4.0, 3.0, 1)
        assert is_failure(State(8, 4), State(4))
        seen.begin(4.0, State(8, 4), State(4))
        seen.answered(6.0, 1.5, 1)
        assert seen.take().expected == 1.0
