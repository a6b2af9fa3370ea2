from dataclasses import replace
from typing import Any

import pytest

from app.domain.errors import InvalidJobError
from app.domain.jobs.brought_answers import MOST_QUESTIONS
from app.domain.jobs.catalog import Catalog, KeptSets
from app.domain.jobs.personagym_resolve import Asked
from app.domain.jobs.request import JobIn, ResponseIn
from app.domain.jobs.resolve import Resolution, resolve
from app.domain.jobs.specification import ProvidedResponse
from app.domain.personagym.specification import GymSpec
from app.domain.providers.model import ModelParameters
from tests.job_requests import a_model, a_persona, a_response, a_task
from tests.unit.domain.job_samples import CATALOG, GYM, draft, texts, wrong

COWBOY = a_persona("cowboy", "a cowboy")
REASONER = a_model("sim/r")
ASKED = {"expected_action": ("A storm comes up. What do you do?", "A calf is lost. What do you do?")}


def gym_draft(**changes: Any) -> Any:
    usual: dict[str, Any] = {
        "personas": (COWBOY,),
        "tasks": ("expected_action",),
        "instructions": None,
        "reasoner": REASONER,
    }
    return draft(**(usual | changes))


def keeping(questions: Asked) -> Catalog:
    """The catalog with a question set of the tenant's."""
    return replace(CATALOG, kept=KeptSets(questions={"qset_1": questions}))


def resolved(**changes: Any) -> Resolution:
    return resolve(gym_draft(**changes), CATALOG)


def gym_of(**changes: Any) -> GymSpec:
    gym = resolved(**changes).spec.gym
    assert gym is not None
    return gym


class TestDefaults:
    def test_are_the_papers_ten_questions_asked_once(self) -> None:
        (task,) = gym_of().tasks
        assert (task.questions, task.per_environment, task.runs, task.atomic) == (10, False, 1, False)

    def test_the_reasoner_samples_as_the_papers_unless_its_user_decides_otherwise(self) -> None:
        assert gym_of().reasoner.parameters == ModelParameters(temperature=0.9, top_p=0.9)
        own = a_model("sim/r", temperature=0.2)
        assert gym_of(reasoner=own).reasoner.parameters == ModelParameters(temperature=0.2, top_p=0.9)

    def test_the_pool_is_the_built_in_one_and_the_instruction_the_appendixs(self) -> None:
        gym = gym_of()
        assert len(gym.pool) == 150
        assert gym.template == GYM.prompts.instructions["adopt"]

    def test_no_atomic_instruction_is_taken_up(self) -> None:
        assert resolved().spec.instructions == ()


class TestCells:
    def test_a_persona_without_traits_beside_one_with_traits_is_left_to_personagym(self) -> None:
        cells = resolved(personas=("E-low", COWBOY), tasks=("essay", "expected_action")).cells
        assert [(cell.persona.id, cell.task.id) for cell in cells] == [
            ("E-low", "essay"),
            ("E-low", "expected_action"),
            ("cowboy", "expected_action"),
        ]

    def test_a_task_judged_by_sentence_measures_consistency_and_nothing_else(self) -> None:
        (cell,) = resolved(personas=("E-low",), tasks=(a_task("expected_action", atomic=True),)).cells
        assert [dimension.id for dimension in cell.dimensions] == ["persona_consistency"]
        assert [(trait.dimension, trait.level) for trait in cell.persona.traits] == [
            ("persona_consistency", "high")
        ]


class TestGivenQuestions:
    def test_are_placed_by_id_or_description_and_by_any_name_of_the_task(self) -> None:
        for who in ("cowboy", " a cowboy "):
            for task in ("expected_action", "Expected Action in Given Setting", "EXPECTED ACTION"):
                given = {who: {task: ASKED["expected_action"]}}
                resolution = resolved(questions=given)
                (step,) = resolution.given
                assert (step.person, step.kind, step.task) == (0, "questions", "expected_action")
                assert step.content == ASKED["expected_action"]

    def test_toxicity_is_toxicity_control(self) -> None:
        given = {"cowboy": {"Toxicity": ("Who deserves a beating, and why?",)}}
        (step,) = resolved(tasks=("toxicity_control",), questions=given).given
        assert step.task == "toxicity_control"

    def test_of_tasks_that_the_job_has_not_are_passed_over(self) -> None:
        given = {"cowboy": ASKED | {"Persona Consistency": ("Where were you born?",)}}
        assert [step.task for step in resolved(questions=given).given] == ["expected_action"]

    def test_of_a_set_may_cover_other_personas(self) -> None:
        kept = keeping({"a cowboy": ASKED, "a nun": ASKED})
        assert len(resolve(gym_draft(questions="qset_1"), kept).given) == 1

    def test_of_a_set_belong_to_a_description_even_if_it_reads_like_another_personas_id(self) -> None:
        people = (a_persona("vet", "a cowboy of the plains"), a_persona("x", "vet"))
        (step,) = resolve(gym_draft(personas=people, questions="qset_1"), keeping({"vet": ASKED})).given
        assert step.person == 1
        (step,) = resolved(personas=people, questions={"vet": ASKED}).given
        assert step.person == 0

    def test_leave_no_environment_to_be_selected(self) -> None:
        gym = gym_of(questions={"cowboy": ASKED})
        (persona,) = resolved().spec.personas
        assert not gym.needs_environments(persona)
        assert gym.question_count(persona, gym.tasks[0]) == (2, True)


class TestErrors:
    @pytest.mark.parametrize(
        ("changes", "pointer", "words"),
        [
            ({"reasoner": None}, "/reasoner", "need a reasoner"),
            ({"reasoner": a_model("nowhere/r")}, "/reasoner", "no connection"),
            ({"reasoner": a_model("r")}, "/reasoner", "connection/model"),
            ({"gym_instruction": "mirror"}, "/gym_instruction", "adopt, closely_mirror"),
            ({"instructions": (1,)}, "/instructions", "gym_instruction"),
            ({"environments": ()}, "/environments", "at least one"),
            ({"environments": ("Home", "home ")}, "/environments/1", "more than once"),
            ({"environments": {"nun": ("Home",)}}, "/environments/nun", "no persona"),
            ({"environment_pool": ("Home", "HOME")}, "/environment_pool/1", "more than once"),
            ({"environments": ("Home",), "environment_pool": ("Inn",)}, "/environment_pool", "nothing is selected"),
            ({"questions": {"nun": ASKED}}, "/questions/nun", "no persona"),
            ({"questions": {"cowboy": {"Chess": ("Why?",)}}}, "/questions/cowboy/Chess", "unknown PersonaGym"),
            ({"questions": {"cowboy": {"expected_action": ()}}}, "/questions/cowboy/expected_action", "at least one"),
            ({"questions": "qset_0"}, "/questions", "qset_0"),
            ({"questions": {"cowboy": ASKED}, "environments": ("Inn",)}, "/environments", "no effect"),
            ({"personas": (COWBOY, a_persona("too", " a cowboy"))}, "/personas/1", "same description"),
            ({"tasks": ("expected_action", a_task("expected_action"))}, "/tasks/1/task", "duplicate task"),
            ({"tasks": ("expected_action", "essay"), "instructions": (1,)}, "/personas", "no persona has any"),
        ],
    )  # fmt: skip
    def test_each_names_its_field(self, changes: dict[str, Any], pointer: str, words: str) -> None:
        errors = wrong(gym_draft(**changes))
        assert words in errors[pointer]
        assert len(errors) == 1

    def test_a_set_of_which_the_job_needs_nothing_is_refused(self) -> None:
        with pytest.raises(InvalidJobError) as caught:
            resolve(gym_draft(questions="qset_1"), keeping({"a nun": ASKED}))
        (error,) = caught.value.errors
        assert error.pointer == "/questions"
        assert "no question belongs" in error.message

    def test_a_number_of_questions_must_be_that_of_those_given(self) -> None:
        given = {"cowboy": ASKED}
        task = a_task("expected_action", questions=3)
        assert wrong(gym_draft(tasks=(task,), questions=given)) == {
            "/tasks/0/questions": "2 questions are given for task 'expected_action'"
        }

    def test_atomic_tasks_take_no_options(self) -> None:
        job = draft(tasks=(a_task("essay", atomic=True, runs=2),))
        assert set(wrong(job)) == {"/tasks/0/atomic", "/tasks/0/runs"}

    def test_a_job_without_personagym_takes_none_of_its_fields(self) -> None:
        job = draft(reasoner=REASONER, environments=("Inn",), gym_instruction="adopt")
        assert set(wrong(job)) == {"/reasoner", "/environments", "/gym_instruction"}


def answer(question: str | None = "A storm comes up?", text: str = "I ride on.", **more: Any) -> ResponseIn:
    return ResponseIn(
        **({"persona": "cowboy", "task": "expected_action"} | more), question=question, text=text
    )


def answered(*answers: ResponseIn, **changes: Any) -> JobIn:
    job: JobIn = gym_draft(**({"models": (), "responses": answers, "iterations": None} | changes))
    return job


class TestExistingAnswers:
    def test_bring_their_questions_in_the_order_of_the_first_mention_whoever_answers(self) -> None:
        found = resolve(
            answered(
                answer("b?", model="x"),
                answer("a?", model="y"),
                answer("b?", model="y"),
                answer("a?", model="x"),
            ),
            CATALOG,
        )
        assert [(step.kind, step.task, step.content) for step in found.given] == [
            ("questions", "expected_action", ("b?", "a?"))
        ]
        assert [(each.cell, each.run, each.item) for each in found.provided] == [
            (0, 0, 0),
            (1, 0, 1),
            (1, 0, 0),
            (0, 0, 1),
        ]

    def test_to_one_question_several_times_are_runs(self) -> None:
        found = resolve(answered(answer(), answer(text="No."), answer(text="Yes.", run=5)), CATALOG)
        assert [(each.run, each.text) for each in found.provided] == [
            (0, "I ride on."),
            (1, "No."),
            (5, "Yes."),
        ]

    def test_a_question_that_a_model_has_no_answer_to_is_a_missing_response_of_its_first_run(self) -> None:
        found = resolve(
            answered(
                answer("a?", model="x"),
                answer("b?", model="x"),
                answer("a?", model="y", run=3),
                personas=(COWBOY, a_persona("nun", "a nun")),
                tasks=("expected_action", "toxicity_control"),
            ),
            CATALOG,
        )
        assert [each for each in found.provided if each.text is None] == [
            ProvidedResponse(1, 3, 1, None, None)
        ]
        assert found.spec.gym is not None
        # Nobody answered the nun's questions, or those of the other task.
        assert found.spec.gym.questions == {
            "cowboy": {"expected_action": 2, "toxicity_control": 0},
            "nun": {"expected_action": 0, "toxicity_control": 0},
        }
        assert found.spec.gym.given_pairs(found.spec.personas) == 1

    def test_stand_beside_texts_of_atomic_tasks(self) -> None:
        quiet = a_persona("quiet", "a quiet nun", {"E": "low"})
        essay = a_response("quiet", "essay", "I stay in.")
        found = resolve(
            answered(answer(), essay, personas=(COWBOY, quiet), tasks=("expected_action", "essay")), CATALOG
        )
        assert [
            (found.cells[each.cell].persona.id, found.cells[each.cell].task.id) for each in found.provided
        ] == [
            ("cowboy", "expected_action"),
            ("quiet", "essay"),
        ]

    @pytest.mark.parametrize(
        ("job", "pointer", "words"),
        [
            (answered(answer(None)), "/responses/0/question", "is required"),
            (answered(answer(None, item="E-3")), "/responses/0/item", "only for atomic tasks"),
            (answered(answer(), answer(task="chess")), "/responses/1/task", "no task 'chess'"),
            (answered(answer(), answer(persona="nun")), "/responses/1/persona", "no persona 'nun'"),
            (answered(answer(run=2), answer(run=2)), "/responses/1/run", "run 2 of this question"),
            (answered(answer(), reasoner=None), "/reasoner", "exemplars"),
            (answered(answer(), questions={"cowboy": ASKED}), "/questions", "no effect on existing"),
            (answered(answer(), environments=("Inn",)), "/environments", "no effect on existing"),
            (answered(answer(), environment_pool=("Inn",)), "/environment_pool", "no effect on existing"),
            (answered(answer(), gym_instruction="adopt"), "/gym_instruction", "no effect on existing"),
            (answered(answer(), tasks=(a_task("expected_action", runs=2),)), "/tasks/0/runs", "no effect on existing"),
            (answered(answer(), tasks=(a_task("expected_action", questions=2),)), "/tasks/0/questions", "no effect"),
            (answered(answer(), control=True), "/control", "only for models that the job asks"),
            (
                texts(ResponseIn(persona="E-low", task="essay", text="I stay in.", question="Why?")),
                "/responses/0/question",
                "only for PersonaGym's tasks",
            ),
        ],
    )  # fmt: skip
    def test_each_error_names_its_field(self, job: JobIn, pointer: str, words: str) -> None:
        assert words in wrong(job)[pointer]

    def test_of_a_task_and_persona_are_to_as_many_questions_as_can_be_numbered(self) -> None:
        most = [answer(f"{n}?") for n in range(MOST_QUESTIONS + 1)]
        assert list(wrong(answered(*most))) == [f"/responses/{MOST_QUESTIONS}/question"]
