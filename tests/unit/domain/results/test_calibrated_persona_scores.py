"""PersonaScores as people would give them: what rounds of answers tell, over many rounds whose truth is known."""

from statistics import fmean

import numpy as np
import pytest

from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.labels.calibration import CalibratedFigure
from app.domain.personagym.scores import SCORES, Grade
from app.domain.results.calibrated_persona_scores import Answer, GradeCalibration
from benchmarks.inference.graded_answers import MODELS, TASKS, Answers, beyond, coverage


def scored(score: int | None, *answer: str | int) -> Grade:
    model, persona, task, question, run = answer
    verdict = Verdict(VerdictStatus.UNPARSED if score is None else VerdictStatus.SCORED, score)
    return Grade(str(model), str(persona), str(task), str(question), int(run), "judge", verdict)


def total(made: GradeCalibration, **keys: str) -> CalibratedFigure:
    (found,) = (each for each in made.totals() if each.keys == keys)
    return found


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers(7, personas=20)


class TestAnEstimate:
    def test_of_all_answers_is_what_people_gave(self, answers: Answers) -> None:
        made = GradeCalibration(answers.grades, TASKS, {each: (n,) for each, n in answers.people.items()})
        for model in MODELS:
            metric = total(made, model=model).texts()
            assert metric.value == pytest.approx(
                fmean(n for each, n in answers.people.items() if each.model == model)
            )
            assert metric.ci95 == (metric.value, metric.value)

    def test_is_the_evaluators_where_people_agree_with_it(self, answers: Answers) -> None:
        given = {
            Answer(each.model, each.persona, each.task, each.question, each.run): each.verdict.score or 0
            for each in answers.grades
        }
        drawn = answers.drawn(100, np.random.default_rng(1))
        made = GradeCalibration(answers.grades, TASKS, {each: (given[each],) for each in drawn})
        found = total(made, model=MODELS[0])
        assert found.found is not None
        assert found.found.value == pytest.approx(found.found.judged)
        ends = found.texts().ci95
        assert ends is not None
        assert ends[1] - ends[0] > 0.5, "ten personas do not tell that people agree on the other ten"

    def test_of_four_personas_has_no_interval(self, answers: Answers) -> None:
        made = GradeCalibration(answers.grades, TASKS, answers.drawn(40, np.random.default_rng(1)))
        metric = total(made, model=MODELS[0]).texts()
        assert (metric.n, metric.ci95) == (20, None)
        assert str(metric.ci95_reason).startswith("too_few_personas: answers of 4")

    def test_needs_more_answers_the_narrower_it_shall_be(self, answers: Answers) -> None:
        made = GradeCalibration(answers.grades, TASKS, answers.drawn(150, np.random.default_rng(1)))
        found = total(made, model=MODELS[0]).found
        assert found is not None
        needed = [found.labels_for(width, SCORES)[0] for width in (1.0, 0.3, 0.1, 0.03, 0.0)]
        assert needed == sorted(needed)
        assert needed[-1] == len(answers.people) / len(MODELS)
        again = found.labels_for(1.96 * found.variance**0.5, SCORES)[0]
        assert abs(again - found.labels) <= 1

    def test_needs_four_graded_answers_of_each_task_or_all_that_there_are(self) -> None:
        grades = [scored(4, "m", f"p{n}", task, "0", 0) for n in range(5) for task in ("t", "u")]
        grades += [scored(4, "m", "p0", "v", "0", 0)]
        people = {Answer("m", f"p{n}", "t", "0", 0): (4,) for n in range(3)}
        people |= {Answer("m", f"p{n}", "u", "0", 0): (3,) for n in range(4)}
        people |= {Answer("m", "p0", "v", "0", 0): (3,)}
        made = GradeCalibration(grades, ("t", "u", "v"), people)
        reason = total(made, model="m", task="t").texts().reason or ""
        assert reason.startswith("too_few_scored_labels: more answers graded by people are needed: 1 in t;")
        assert total(made, model="m", task="u").found is not None
        assert total(made, model="m", task="v").found is not None

    def test_counts_a_question_once_and_leaves_out_who_lacks_a_task(self) -> None:
        made = GradeCalibration(
            [
                *(scored(score, "m", "a", "t", "0", run) for run, score in enumerate((1, 5, 3))),
                scored(5, "m", "a", "t", "1", 0),
                scored(None, "m", "a", "t", "2", 0),
                scored(2, "m", "a", "u", "0", 0),
                scored(1, "m", "b", "t", "0", 0),
            ],
            ("t", "u"),
            {
                **{Answer("m", "a", "t", "0", run): (score,) for run, score in enumerate((1, 5, 3))},
                Answer("m", "a", "t", "1", 0): (4, 5),
                Answer("m", "a", "u", "0", 0): (3,),
            },
        )
        whole = total(made, model="m")
        assert whole.found is not None
        assert (whole.cells, whole.found.judged, whole.found.labels) == pytest.approx((1, (4 + 2) / 2, 5))
        of_task = total(made, model="m", task="t")
        assert of_task.found is not None
        assert (of_task.cells, of_task.found.judged) == pytest.approx((2, (4 + 1) / 2))


class TestADifference:
    def test_turns_its_sign(self, answers: Answers) -> None:
        made = GradeCalibration(answers.grades, TASKS, answers.drawn(150, np.random.default_rng(1)))
        one, turned = made.difference("one", made, "other")[0], made.difference("other", made, "one")[0]
        assert one.found is not None
        assert turned.found is not None
        assert one.found.value == pytest.approx(-turned.found.value)
        assert one.found.variance == pytest.approx(turned.found.variance)

    def test_is_none_of_other_tasks_or_other_personas(self, answers: Answers) -> None:
        made = GradeCalibration(answers.grades, TASKS, {})
        assert made.difference("one", GradeCalibration(answers.grades, TASKS[:2], {}), "other") == []
        assert made.difference("one", made, "other", without=answers.personas) == []


class TestOverManyRounds:
    @pytest.mark.parametrize(
        "repetitions", [40, pytest.param(600, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
    )
    def test_intervals_hold_the_truth_and_are_narrower_than_of_labels_alone(self, repetitions: int) -> None:
        rows = coverage(120, repetitions, personas=24)
        for keys in ((("model", "one"),), (("model", "other"),), (("a", "one"), ("b", "other"))):
            row = rows[keys]
            assert len(row.values) == repetitions
            width = fmean(row.widths)
            assert row.held / repetitions > 0.95 - 3 * (0.95 * 0.05 / repetitions) ** 0.5
            assert abs(fmean(row.values)) < 0.005 + 3 * width / 4 / repetitions**0.5
            assert width < 0.85 * fmean(row.alone)

    @pytest.mark.long
    def test_and_what_other_personas_would_get_where_the_evaluators_own_do_not(self) -> None:
        own, calibrated = beyond(250, 100, 100)
        assert own < 0.9
        assert calibrated > 0.9
