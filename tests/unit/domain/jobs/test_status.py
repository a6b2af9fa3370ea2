from app.domain.jobs.status import (
    ACTIVE,
    ENDING,
    RESUMABLE,
    RETRIABLE,
    STOPPED,
    TERMINAL,
    TRANSITIONS,
    JobStatus,
    before,
)


class TestTransitions:
    def test_every_state_has_its_followers(self) -> None:
        assert set(TRANSITIONS) == set(JobStatus)

    def test_nothing_follows_a_terminal_state_and_only_there(self) -> None:
        assert all(TRANSITIONS[state] <= {JobStatus.QUEUED} for state in TERMINAL)
        assert not TRANSITIONS[JobStatus.CANCELLED]
        assert {state for state in JobStatus if state.is_terminal} == TERMINAL

    def test_every_state_can_be_reached_and_every_job_can_end(self) -> None:
        def reachable(start: JobStatus) -> set[JobStatus]:
            found = {start}
            while more := {after for state in found for after in TRANSITIONS[state]} - found:
                found |= more
            return found

        assert reachable(JobStatus.QUEUED) == set(JobStatus)
        assert all(reachable(state) & TERMINAL for state in JobStatus)

    def test_each_state_is_active_or_stopped_or_over(self) -> None:
        assert {*ACTIVE, *STOPPED, *TERMINAL} == set(JobStatus)
        assert len(ACTIVE) + len(STOPPED) + len(TERMINAL) == len(JobStatus)
        assert {*RESUMABLE, *ENDING} == STOPPED
        assert JobStatus.PAUSED in RESUMABLE
        assert {JobStatus.COMPLETED, JobStatus.FAILED} == RETRIABLE - RESUMABLE

    def test_a_move_leaves_the_states_that_its_end_may_follow(self) -> None:
        assert before(JobStatus.PAUSED) == [JobStatus.QUEUED, JobStatus.RUNNING]
        assert set(before(JobStatus.CANCELLING)) == ACTIVE | RESUMABLE
        assert before(JobStatus.FINALIZING) == [JobStatus.QUEUED, JobStatus.RUNNING]
        assert [before(end) for end in (JobStatus.COMPLETED, JobStatus.CANCELLED)] == [
            [JobStatus.FINALIZING],
            [JobStatus.CANCELLING],
        ]

    def test_calls_start_only_in_active_states(self) -> None:
        assert (
            {state for state in JobStatus if state.may_call}
            == ACTIVE
            == {JobStatus.QUEUED, JobStatus.RUNNING}
        )
