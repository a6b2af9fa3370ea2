"""The sentence farthest out of character. The persona is low: scores of 1 and 2 are in character, 5 is 3/4 of the scale away."""

import json
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResponseRow, ResultWriter, VerdictRow
from app.domain.results.contract import Results
from app.services.job_context import JobContexts
from app.services.results.compute import compute_results
from app.services.results.responses import ResponseFilter, read_page
from tests.integration.jobs import TENANT, claimed, execute, new_job, response_row, verdict_row
from tests.job_requests import a_model

Run = tuple[tuple[int | None, int | None], ...]
"""A run: for each of its two sentences the scores of the two judges; ``None``: n/a."""


async def worst_of(engine: AsyncEngine, *runs: Run, texts: tuple[str, ...] = ()) -> dict[str, Any] | None:
    job = await new_job(
        engine,
        personas=("N-low",),
        judges=(a_model("simulated/sim-judge", "j"), a_model("simulated/sim-judge", "k")),
        iterations=max(2, len(runs)),
    )
    claim = await claimed(engine, job.id)
    rows: list[ResponseRow | VerdictRow] = []
    for run, sentences in enumerate(runs):
        content = texts[run] if texts else "One. Two."
        rows.append(response_row(claim, run, content=content))
        for unit, scores in enumerate(sentences):
            for judge, score in enumerate(scores):
                verdict = verdict_row(claim, run, unit, score=score)._replace(judge=judge)
                rows.append(verdict._replace(status="not_applicable") if score is None else verdict)
    await ResultWriter(engine).write({(claim.shard_id, claim.token): rows})
    document = (await compute_results(engine, job, await JobContexts(engine).get(TENANT, job.id))).document
    found: dict[str, Any] | None = json.loads(document)["worst_sentence"]
    if found is not None:
        context = await JobContexts(engine).get(TENANT, job.id)
        page, _ = await read_page(engine, job, context, ResponseFilter(), after=None, limit=100)
        (response,) = (each for each in page if each.id == found["response"])
        assert response.run == found["run"]
        assert response.units[found["unit"]].text == found["text"]
        assert (response.model, response.persona, response.task) == (
            found["model"],
            found["persona"],
            found["task"],
        )
        assert response.levels == {found["dimension"]: found["level"]}
    return found


async def test_has_the_greatest_mean_distance_from_the_personas_level(engine: AsyncEngine) -> None:
    # (5 + 5) is 3/4 and 3/4 away; (5 + 3) is 3/4 and 1/4; (5 + 1) is 3/4 and 0.
    found = await worst_of(engine, ((5, 3), (1, 2)), ((1, 1), (5, 5)), ((5, 1), (4, 4)))
    assert found is not None
    assert (found["run"], found["text"]) == (1, "Two.")
    assert found["scores"] == {"j": 5, "k": 5}
    assert (found["persona"], found["dimension"], found["level"]) == ("N-low", "N", "low")


async def test_of_which_two_judges_agree_stands_before_that_of_one(engine: AsyncEngine) -> None:
    found = await worst_of(engine, ((5, None), (1, 1)), ((5, 5), (1, 1)), ((1, 1), (5, None)))
    assert found is not None
    assert (found["run"], found["unit"]) == (1, 0)


@pytest.mark.parametrize("scores", [((1, 2), (2, 1)), ((None, None), (None, None))])
async def test_is_none_where_all_are_in_character_or_say_nothing(
    engine: AsyncEngine, scores: tuple[tuple[int | None, int | None], ...]
) -> None:
    assert await worst_of(engine, scores) is None


async def test_is_found_among_more_responses_than_are_looked_at(engine: AsyncEngine) -> None:
    near: Run = ((3, 3), (3, 3))
    found = await worst_of(engine, *[near] * 30, ((3, 3), (4, 3)), *[near] * 30)
    assert found is not None
    assert (found["run"], found["scores"]) == (30, {"j": 4, "k": 3})


async def test_is_no_text_that_may_have_swayed_a_judge(engine: AsyncEngine) -> None:
    job = await new_job(engine, personas=("N-low",))
    claim = await claimed(engine, job.id)
    rows: list[ResponseRow | VerdictRow] = []
    rows += [response_row(claim, 0), verdict_row(claim, 0, 0, score=5), verdict_row(claim, 0, 1, score=1)]
    rows += [response_row(claim, 1), verdict_row(claim, 1, 0, score=3), verdict_row(claim, 1, 1, score=1)]
    await ResultWriter(engine).write({(claim.shard_id, claim.token): rows})
    await execute(engine, "UPDATE verdicts SET suspicion = 'text' WHERE run = 0 AND unit = 0")
    context = await JobContexts(engine).get(TENANT, job.id)
    worst = Results.read((await compute_results(engine, job, context)).document).worst_sentence
    assert worst is not None
    assert (worst.run, worst.scores) == (1, {"simulated/sim-judge": 3})


async def test_is_not_told_by_a_judge_whom_its_response_may_have_swayed(engine: AsyncEngine) -> None:
    judges = (a_model("simulated/sim-judge", "j"), a_model("simulated/sim-judge", "k"))
    job = await new_job(engine, personas=("N-low",), judges=judges)
    claim = await claimed(engine, job.id)
    rows: list[ResponseRow | VerdictRow] = [response_row(claim, run) for run in range(2)]
    for run, said in enumerate((((5, 5), (5, 3)), ((1, 1), (3, 3)))):
        rows += [
            verdict_row(claim, run, unit, score=score)._replace(judge=judge)
            for unit, scores in enumerate(said)
            for judge, score in enumerate(scores)
        ]
    await ResultWriter(engine).write({(claim.shard_id, claim.token): rows})
    await execute(engine, "UPDATE verdicts SET suspicion = 'reply' WHERE run = 0 AND judge = 0 AND unit = 0")
    context = await JobContexts(engine).get(TENANT, job.id)
    worst = Results.read((await compute_results(engine, job, context)).document).worst_sentence
    assert worst is not None
    assert (worst.run, worst.unit, worst.scores) == (0, 0, {"k": 5})
