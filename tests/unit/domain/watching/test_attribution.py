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
    personas: int = PERSONAS,
) -> list[Measured]:
    """A model that falls by 0.06, a judge that becomes 0.06 milder, on its anchors a little more or less by persona."""
    generator = np.random.default_rng(seed)
    own = generator.normal(0.06, 0.02, personas)
    found = []
    for run in range(runs):
        moved = judge_at is not None and run >= judge_at
        fell = model_at is not None and run >= model_at
        anchors = 0.7 + generator.normal(0, 0.004, personas) + (own if moved else 0.0)
        value = 0.8 + generator.normal(0, 0.008) - 0.06 * fell + 0.06 * moved
        if anchored:
            by_persona = {f"persona {n}": float(one) for n, one in enumerate(anchors)}
            found.append(Measured(value, float(anchors.mean()), by_persona))
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

    def test_a_model_that_falls_a_few_runs_after_its_judge_has_moved_is_told(self) -> None:
        found = alarms(simulated(60, model_at=46, judge_at=40))
        assert [(drift.cause, drift.change.first) for _, drift in found] == [
            *((Cause.JUDGE, 40), (Cause.MODEL, 46)),
        ]

    def test_both_at_the_same_run_are_told_though_the_figure_stands_still(self) -> None:
        """The model falls as far as the judge becomes milder."""
        found = alarms(simulated(80, model_at=40, judge_at=40))
        assert {drift.cause for _, drift in found} == {Cause.JUDGE, Cause.MODEL}

    def test_it_does_not_matter_in_what_order_personas_are_nor_that_one_lacks_its_figure_in_a_run(
        self,
    ) -> None:
        """Their levels lie far apart. Rows of a database have their keys in an order of their own."""
        apart = {f"persona {n}": 0.04 * n for n in range(PERSONAS)}
        runs = [
            Measured(run.value, run.anchor, {name: one + apart[name] for name, one in run.anchors.items()})
            for run in simulated(80, model_at=40, judge_at=40)
        ]
        found = alarms(runs)
        assert {drift.cause for _, drift in found} == {Cause.JUDGE, Cause.MODEL}
        turned = [
            Measured(
                run.value, run.anchor, dict(reversed(list(run.anchors.items()))) if n % 2 else run.anchors
            )
            for n, run in enumerate(runs)
        ]
        assert alarms(turned) == found
        turned[30] = Measured(runs[30].value, runs[30].anchor, dict(list(runs[30].anchors.items())[1:]))
        assert [(count, drift.cause) for count, drift in alarms(turned)] == [
            (count, drift.cause) for count, drift in found
        ]

    def test_of_one_persona_it_is_not_known_how_differently_the_judge_moves(self) -> None:
        """Its anchors move by 0.12 and the model's texts by 0.06, which may be the judge's doing."""
        runs = simulated(44, judge_at=40, personas=1)
        runs[40:] = [Measured(run.value, (run.anchor or 0.0) + 0.06, run.anchors) for run in runs[40:]]
        assert [drift.cause for _, drift in alarms(runs)] == [Cause.JUDGE, Cause.UNKNOWN]
        without = [Measured(run.value, run.anchor) for run in runs]
        assert [drift.cause for _, drift in alarms(without)] == [Cause.JUDGE, Cause.UNKNOWN]

    def test_of_two_personas_what_moves_beside_the_judge_is_not_told_as_a_model(self) -> None:
        """Once the judge has not moved on the anchors when it has on the model's texts, which is told as a model."""
        found = [
            {drift.cause for _, drift in alarms(simulated(44, judge_at=40, seed=seed, personas=2))}
            for seed in range(40)
        ]
        assert all(Cause.JUDGE in causes for causes in found)
        assert sum(Cause.MODEL in causes for causes in found) == 1
        assert sum(Cause.UNKNOWN in causes for causes in found) == 3

    def test_of_five_personas_both_at_once_are_told_as_often_as_welchs_test_does(self) -> None:
        """By the personas' degrees of freedom alone it would be half as often."""
        found = [
            {
                drift.cause
                for _, drift in alarms(simulated(44, model_at=40, judge_at=40, seed=seed, personas=5))
            }
            for seed in range(40)
        ]
        assert sum(causes == {Cause.JUDGE, Cause.MODEL} for causes in found) >= 30

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
