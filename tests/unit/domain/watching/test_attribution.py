import numpy as np

from app.domain.watching.attribution import Cause, Drift, Measured, References, newest_drift, references_after

PERSONAS = 20


def simulated(
    runs: int,
    model_at: int | None = None,
    judge_at: int | None = None,
    *,
    seed: int = 0,
    anchored: bool = True,
) -> list[Measured]:
    """A model that falls by 0.06, a judge that becomes 0.06 milder, on its anchors a little more or less by persona."""
    generator = np.random.default_rng(seed)
    own = generator.normal(0.06, 0.02, PERSONAS)
    found = []
    for run in range(runs):
        moved = judge_at is not None and run >= judge_at
        fell = model_at is not None and run >= model_at
        anchors = 0.7 + generator.normal(0, 0.004, PERSONAS) + (own if moved else 0.0)
        value = 0.8 + generator.normal(0, 0.008) - 0.06 * fell + 0.06 * moved
        if anchored:
            found.append(Measured(value, float(anchors.mean()), tuple(anchors)))
        else:
            found.append(Measured(value))
    return found


def alarms(runs: list[Measured]) -> list[tuple[int, Drift]]:
    """After how many runs there is each alarm."""
    since, found = References(), []
    for count in range(1, len(runs) + 1):
        for drift in newest_drift(runs[:count], since, 365.25, 0.002):
            found.append((count, drift))
            since = references_after(since, drift.cause, drift.change.first)
    return found


class TestNewestDrift:
    def test_a_model_that_falls_is_told_from_its_judge(self) -> None:
        ((count, drift),) = alarms(simulated(80, model_at=40))
        assert drift.cause is Cause.MODEL
        assert 40 < count <= 46
        assert drift.change.shift < -0.04

    def test_a_judge_that_moves_is_told_from_its_model(self) -> None:
        ((count, drift),) = alarms(simulated(120, judge_at=40))
        assert drift.cause is Cause.JUDGE
        assert 40 < count <= 44
        assert drift.change.shift > 0.04

    def test_both_at_different_times_are_two_alarms(self) -> None:
        found = alarms(simulated(120, model_at=80, judge_at=40))
        assert [drift.cause for _, drift in found] == [Cause.JUDGE, Cause.MODEL]
        found = alarms(simulated(120, model_at=40, judge_at=80))
        assert [drift.cause for _, drift in found] == [Cause.MODEL, Cause.JUDGE]

    def test_both_at_the_same_run_are_told_though_the_figure_stands_still(self) -> None:
        """The model falls as far as the judge becomes milder."""
        found = alarms(simulated(80, model_at=40, judge_at=40))
        assert {drift.cause for _, drift in found} == {Cause.JUDGE, Cause.MODEL}

    def test_neither_is_no_alarm(self) -> None:
        assert alarms(simulated(200)) == []

    def test_without_anchors_it_is_not_known_which(self) -> None:
        for runs in (simulated(60, model_at=40, anchored=False), simulated(60, judge_at=40, anchored=False)):
            ((_, drift),) = alarms(runs)
            assert drift.cause is Cause.UNKNOWN

    def test_after_an_alarm_the_new_level_is_the_reference(self) -> None:
        """A second fall from there is another alarm; the first is not told again."""
        runs = simulated(120, model_at=40)
        runs[80:] = [Measured(run.value - 0.06, run.anchor, run.anchors) for run in runs[80:]]
        found = [drift.change.first for _, drift in alarms(runs)]
        assert len(found) == 2
        assert abs(found[0] - 40) <= 1
        assert abs(found[1] - 80) <= 1
