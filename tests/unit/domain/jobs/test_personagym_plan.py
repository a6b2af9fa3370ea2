from typing import Any

import pytest

from app.domain.jobs.personagym_plan import PreparationPlan, estimate_gym, merged, preparations_of
from app.domain.jobs.plan import count_calls, estimate, gym, responses_per_run, shards_of
from app.domain.jobs.resolve import Resolution
from app.domain.providers.model import Stage
from tests.job_requests import a_model, a_task
from tests.unit.domain.jobs.test_personagym_resolve import ASKED, COWBOY, resolved


def calls(resolution: Resolution) -> dict[tuple[str, str], int]:
    assert resolution.spec.gym is not None
    found = estimate_gym(resolution.spec, resolution.spec.gym, gym(resolution.cells))
    return {(e.stage.value, e.model.label): e.calls for e in found}


def preparations(resolution: Resolution) -> list[PreparationPlan]:
    assert resolution.spec.gym is not None
    return preparations_of(resolution.spec, resolution.spec.gym)


class TestEstimate:
    def test_preparation_is_shared_by_all_models(self) -> None:
        two_tasks = (a_task("expected_action", questions=4), a_task("toxicity_control", runs=3))
        models = (a_model("acme/a"), a_model("acme/b"))
        assert calls(resolved(tasks=two_tasks, models=models)) == {
            ("environments", "sim/r"): 1,
            ("questions", "sim/r"): 2,
            ("exemplars", "sim/r"): 4 + 10,
            ("generation", "acme/a"): 4 + 3 * 10,
            ("generation", "acme/b"): 4 + 3 * 10,
            ("judging", "acme/j"): 2 * (4 + 3 * 10),
        }

    def test_sentences_of_atomic_tasks_are_judged_besides(self) -> None:
        task = a_task("expected_action", questions=5, atomic=True)
        # 5 answers, each graded once and split into 8 expected sentences.
        assert calls(resolved(tasks=(task,)))["judging", "acme/j"] == 5 + 5 * 8

    def test_each_answer_is_checked_for_a_refusal_if_every_text_is(self) -> None:
        job: dict[str, Any] = {"models": (a_model("acme/a"), a_model("acme/b")), "control": True}
        plain = calls(resolved(**job))
        asked = calls(resolved(**job, judging={"refusals": "judge_all"}))
        written = sum(n for (stage, _), n in plain.items() if stage == "generation")
        assert asked == plain | {("refusal_check", "acme/j"): written}
        assert calls(resolved(**job, judging={"refusals": "judge"})) == plain

    def test_given_questions_and_environments_cost_nothing(self) -> None:
        given = calls(resolved(questions={"cowboy": ASKED}))
        assert (given["environments", "sim/r"], given["questions", "sim/r"]) == (0, 0)
        assert given["exemplars", "sim/r"] == 2
        assert calls(resolved(environments=("Inn",)))["environments", "sim/r"] == 0

    def test_both_frameworks_share_the_stages_of_a_model(self) -> None:
        resolution = resolved(personas=("E-low",), tasks=("essay", "expected_action"), instructions=(1,))
        spec = resolution.spec
        assert spec.gym is not None
        both = merged(
            [*estimate(spec, resolution.cells), *estimate_gym(spec, spec.gym, gym(resolution.cells))]
        )
        assert [e.stage for e in both] == [
            stage
            for stage in Stage
            if stage not in {Stage.PERSONAS, Stage.CHECKING, Stage.REPAIRING, Stage.REFUSAL_CHECK}
        ]
        assert {e.stage: e.calls for e in both}[Stage.GENERATION] == 2 + 10


class TestCount:
    def test_calls_are_those_of_the_estimate_but_for_the_preparation(self) -> None:
        task = a_task("expected_action", questions=5, atomic=True)
        for job in (resolved(tasks=(task,)), resolved(models=(a_model("acme/a"), a_model("acme/b")))):
            asked = {stage: n for (stage, _), n in calls(job).items() if stage == "judging"}
            written = sum(n for (stage, _), n in calls(job).items() if stage == "generation")
            assert count_calls(job.spec) == asked["judging"] + written

    @pytest.mark.parametrize("control", [False, True])
    def test_calls_include_the_refusal_checks_of_every_text(self, control: bool) -> None:
        plain, checked = (
            resolved(control=control, judging={"refusals": refusals}) for refusals in ("rules", "judge_all")
        )
        written = sum(n for (stage, _), n in calls(plain).items() if stage == "generation")
        assert count_calls(checked.spec) == count_calls(plain.spec) + written


class TestPreparations:
    def test_count_one_step_for_environments_each_task_and_each_question(self) -> None:
        assert preparations(resolved(personas=(COWBOY, "E-low"))) == [
            PreparationPlan(0, 1, 1, 10, exact=True),
            PreparationPlan(1, 1, 1, 10, exact=True),
        ]

    def test_questions_per_environment_are_an_estimate_until_those_are_known(self) -> None:
        task = (a_task("expected_action", questions=2, questions_per_environment=True),)
        # Five environments are expected.
        assert preparations(resolved(tasks=task)) == [PreparationPlan(0, 1, 1, 10, exact=False)]
        known = resolved(tasks=task, environments=("Inn", "Ranch", "Saloon"))
        assert preparations(known) == [PreparationPlan(0, 1, 1, 6, exact=True)]
        assert [responses_per_run(cell) for cell in known.cells] == [6]


class TestShards:
    def test_hold_all_runs_of_a_cell_up_to_some_hundred_calls(self) -> None:
        task = (a_task("expected_action", runs=70),)
        resolution = resolved(tasks=task)
        shards = shards_of(resolution.spec, resolution.cells)
        # A run is 10 answers and 10 grades: 30 runs make 600 calls.
        assert [(s.run_start, s.run_stop, s.responses) for s in shards] == [
            (0, 30, 300),
            (30, 60, 300),
            (60, 70, 100),
        ]
