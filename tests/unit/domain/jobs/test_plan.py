import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import InvalidJobError
from app.domain.instruments.persona import Persona, traits_of
from app.domain.instruments.prompts import system_prompt, user_prompt
from app.domain.instruments.task import AtomicTask, item_count, items_for
from app.domain.jobs.plan import (
    CALLS_PER_SHARD,
    atomic,
    cells_of,
    count_calls,
    estimate,
    estimate_provided,
    shards_of,
    shards_of_provided,
)
from app.domain.jobs.request import ModelIn
from app.domain.jobs.resolve import resolve
from app.domain.jobs.specification import ProvidedResponse
from app.domain.providers.model import Stage, Usage
from tests.job_requests import a_model, a_response
from tests.unit.domain.job_samples import CATALOG, DUO, INSTRUMENT, draft, keeping, resolved, texts

TASKS = ("questionnaire", "essay", "social_media_post")
MODELS = (a_model("acme/a"), a_model("acme/b"))


class TestCells:
    def test_persona_then_task_then_model(self) -> None:
        cells = resolved(personas=("E-low", "E-high"), tasks=TASKS[:2], models=MODELS).cells
        assert [(c.ordinal, c.persona.id, c.task.id, c.model) for c in cells[:5]] == [
            (0, "E-low", "questionnaire", 0),
            (1, "E-low", "questionnaire", 1),
            (2, "E-low", "essay", 0),
            (3, "E-low", "essay", 1),
            (4, "E-high", "questionnaire", 0),
        ]
        assert len(cells) == 2 * 2 * 2

    def test_a_post_of_two_traits_is_written_once_and_judged_on_each(self) -> None:
        (cell,) = atomic(resolved(personas=(DUO,), tasks=("social_media_post",)).cells)
        (post,) = cell.items
        assert [(trait, dimension.id) for trait, dimension in cell.traits_of(post)] == [(0, "A"), (1, "N")]
        assert cell.verdicts_per_unit == 2

    def test_an_answer_is_judged_on_the_trait_that_its_question_asks_for(self) -> None:
        (cell,) = atomic(resolved(personas=(DUO,), tasks=("questionnaire",)).cells)
        judged = [(item.index, item.id, [n for n, _ in cell.traits_of(item)]) for item in cell.items]
        assert (judged[0], judged[10], len(judged)) == ((0, "A-1", [0]), (10, "N-1", [1]), 20)
        assert cell.verdicts_per_unit == 1

    @pytest.mark.parametrize("task", INSTRUMENT.tasks.values(), ids=INSTRUMENT.tasks)
    def test_items_can_be_counted_without_being_made(self, task: AtomicTask) -> None:
        dimensions = tuple(INSTRUMENT.dimensions.values())
        for count in range(1, 6):
            assert item_count(task, dimensions[:count]) == len(items_for(task, dimensions[:count]))


class TestControlArm:
    def test_has_a_cell_for_each_model_and_task_with_the_items_of_all_dimensions(self) -> None:
        job: dict[str, Any] = {"personas": ("E-low", DUO), "tasks": TASKS, "models": MODELS}
        plain, controlled = resolved(**job).cells, resolved(**job, control=True).cells
        assert controlled[: len(plain)] == plain
        arm = atomic(controlled[len(plain) :])
        assert [(cell.ordinal, cell.task.id, cell.model) for cell in arm] == [
            (len(plain) + 2 * n + model, task, model) for n, task in enumerate(TASKS) for model in (0, 1)
        ]
        for cell in arm:
            assert cell.control
            assert {d.id for d in cell.dimensions} == {"E", "A", "N"}
            asked = {item.id for own in atomic(plain) if own.task == cell.task for item in own.items}
            assert {item.id for item in cell.items} == asked

    def test_costs_no_words_of_an_instruction(self) -> None:
        resolution = resolved(control=True)
        arm = [cell for cell in resolution.cells if cell.control]
        [written] = [e for e in estimate(resolution.spec, arm) if e.stage is Stage.GENERATION]
        [cell] = atomic(arm)
        characters = sum(len(user_prompt(cell.task, item)) for item in cell.items) * resolution.spec.runs
        assert written.usage.input_tokens == round(characters / 4)


class TestCount:
    @given(
        personas=st.lists(st.sampled_from(["E-low", "N-high", DUO]), min_size=1, unique_by=str),
        tasks=st.lists(st.sampled_from(TASKS), min_size=1, unique=True),
        models=st.sampled_from([MODELS, MODELS[:1]]),
        instructions=st.sampled_from([(0,), (0, 3, 5)]),
        iterations=st.integers(1, 7),
        control=st.booleans(),
        judging=st.sampled_from([{}, {"refusals": "judge"}, {"refusals": "judge_all"}]),
    )
    def test_calls_are_those_of_the_estimate_without_its_cells(self, **job: Any) -> None:
        resolution = resolved(**job)
        estimated = sum(e.calls for e in estimate(resolution.spec, resolution.cells))
        assert count_calls(resolution.spec) == pytest.approx(estimated, abs=2)

    def test_a_job_of_too_many_is_refused_before_its_cells_are_made(self) -> None:
        catalog = keeping(Persona(f"p{n}", "x", traits_of({"E": "low"})) for n in range(10_000))
        models = tuple(a_model("acme/a", f"m{n}") for n in range(50))
        job = draft(personas=("pset_1",), models=models, tasks=TASKS, iterations=1_000)
        started = time.process_time()
        with pytest.raises(InvalidJobError) as caught:
            resolve(job, catalog, 5_000_000)
        assert time.process_time() - started < 10, "a million and a half cells take minutes"
        assert "this service allows 5,000,000" in caught.value.errors[0].message


class TestShards:
    @pytest.mark.parametrize(("iterations", "number"), [(5, 1), (10, 2)])
    def test_of_essays_take_some_38_runs_each(self, iterations: int, number: int) -> None:
        # 16 calls a run (a text and about 15 sentences), six instructions: the paper's cell has 30 runs, and is one.
        resolution = resolved(instructions=None, iterations=iterations)
        shards = shards_of(resolution.spec, resolution.cells)
        assert len(shards) == number
        assert sum(shard.responses for shard in shards) == 6 * iterations

    @settings(max_examples=80)
    @given(
        iterations=st.integers(1, 700),
        judges=st.integers(1, 10),
        tasks=st.lists(st.sampled_from(TASKS), min_size=1, unique=True),
    )
    def test_they_cover_every_run_of_every_cell_exactly_once(
        self, iterations: int, judges: int, tasks: list[str]
    ) -> None:
        resolution = resolved(
            personas=("E-low", DUO),
            tasks=tuple(tasks),
            models=MODELS,
            judges=tuple(a_model(f"acme/j{n}") for n in range(judges)),
            iterations=iterations,
        )
        covered: dict[int, list[int]] = {cell.ordinal: [] for cell in resolution.cells}
        for shard in shards_of(resolution.spec, resolution.cells):
            assert shard.run_start < shard.run_stop
            runs = range(shard.run_start, shard.run_stop)
            covered[shard.cell] += runs
            cell = atomic(resolution.cells)[shard.cell]
            assert shard.responses == len(runs) * len(cell.items)
            per_run = len(cell.items) * (1 + cell.task.expected_units * cell.verdicts_per_unit * judges)
            assert len(runs) == 1 or len(runs) * per_run <= 1.5 * CALLS_PER_SHARD
        assert all(runs == list(range(iterations)) for runs in covered.values())

    @settings(max_examples=80)
    @given(runs=st.lists(st.integers(0, 32_766), min_size=1, max_size=120, unique=True), data=st.data())
    def test_existing_texts_lie_in_exactly_one_whatever_the_gaps(
        self, runs: list[int], data: st.DataObject
    ) -> None:
        resolution = resolve(
            texts(a_response("E-low", "questionnaire", "x", item="E-1"), tasks=TASKS[:1]), CATALOG
        )
        provided = [
            ProvidedResponse(0, run, item, None, "x")
            for run in runs
            for item in data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
        ]
        shards = shards_of_provided(resolution.spec, resolution.cells, provided)
        for response in provided:
            assert sum(shard.run_start <= response.run < shard.run_stop for shard in shards) == 1
        assert sum(shard.responses for shard in shards) == len(provided)
        assert all(shard.responses > 0 for shard in shards)

    def test_cells_without_texts_have_none(self) -> None:
        only_essay = a_response("E-low", "essay", "x")
        resolution = resolve(texts(only_essay, tasks=TASKS), CATALOG)
        shards = shards_of_provided(resolution.spec, resolution.cells, resolution.provided)
        assert [resolution.cells[shard.cell].task.id for shard in shards] == ["essay"]


class TestEstimates:
    def test_generations_are_counted_exactly(self) -> None:
        # 2 personas (1 and 2 traits): (10 + 1 + 1) + (20 + 2 + 1) items × 2 instructions × 3 iterations = 210 a model
        resolution = resolved(
            personas=("E-low", DUO), tasks=TASKS, models=MODELS, instructions=(1, 2), iterations=3
        )
        generation = [e for e in estimate(resolution.spec, resolution.cells) if e.stage is Stage.GENERATION]
        assert [(e.model.label, e.calls) for e in generation] == [("acme/a", 210), ("acme/b", 210)]

    def test_input_tokens_are_the_prompts_characters_by_four(self) -> None:
        resolution = resolved(instructions=(1, 5), iterations=3)
        (cell,) = atomic(resolution.cells)
        prompts = sum(
            len(system_prompt(instruction, cell.persona)) + len(user_prompt(cell.task, cell.items[0]))
            for instruction in resolution.spec.instructions
        )
        usage = estimate(resolution.spec, resolution.cells)[0].usage
        assert usage == Usage(round(prompts * 3 / 4), 6 * cell.task.expected_output_tokens)

    def test_max_tokens_bounds_replies_and_the_sentences_to_judge(self) -> None:
        def planned(*models: ModelIn, judge: ModelIn) -> list[tuple[str, int, int]]:
            resolution = resolved(tasks=("essay",), models=models, judges=(judge,), iterations=10)
            return [
                (e.model.label, e.calls, e.usage.output_tokens)
                for e in estimate(resolution.spec, resolution.cells)
            ]

        task = INSTRUMENT.tasks["essay"]
        tokens = task.expected_output_tokens
        (_, runs, written), (_, verdicts, _) = planned(a_model("acme/a"), judge=a_model("acme/j"))
        assert written == runs * tokens
        assert planned(a_model("acme/a", max_tokens=tokens), judge=a_model("acme/j")) == [
            ("acme/a", runs, written),
            ("acme/j", verdicts, verdicts),
        ]
        half = tokens // 2
        models = (a_model("acme/a", max_tokens=half), a_model("acme/b"))
        capped, free, judging = planned(*models, judge=a_model("acme/j", max_tokens=1))
        assert capped == ("acme/a", runs, runs * half)
        assert free == ("acme/b", runs, written)
        assert judging[1] == pytest.approx(verdicts * (1 + half / tokens), abs=1)
        assert judging[2] == judging[1]

    def test_each_judge_judges_every_expected_sentence_on_every_trait(self) -> None:
        resolution = resolved(
            personas=(DUO,),
            tasks=("social_media_post",),
            judges=(a_model("acme/j"), a_model("acme/k")),
            iterations=10,
        )
        judging = [e for e in estimate(resolution.spec, resolution.cells) if e.stage is Stage.JUDGING]
        sentences = resolution.cells[0].task.expected_units
        assert [e.calls for e in judging] == [round(10 * sentences * 2)] * 2

    def test_sentences_of_existing_texts_are_counted_exactly(self) -> None:
        resolution = resolve(texts(a_response("E-low", "essay", "x")), CATALOG)
        (judging,) = estimate_provided(resolution.spec, resolution.cells, [(0, 0, 0, 3), (0, 1, 0, 4)])
        assert (judging.stage, judging.calls, judging.usage.output_tokens) == (Stage.JUDGING, 7, 7)


class TestCellsOfASpecification:
    def test_they_follow_from_it_alone(self) -> None:
        resolution = resolved(personas=("E-low", DUO), tasks=TASKS, models=MODELS)
        assert cells_of(resolution.spec) == resolution.cells
