"""Responses by text, and in other orders than that of their cells, page by page."""

import math
from collections.abc import Callable

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResponseRow, ResultWriter, VerdictRow
from app.db.jobs.jobs import JobRow
from app.db.results.sorted_responses import Sort
from app.domain.errors import InvalidJobError
from app.domain.judging.judged_response import JudgedResponse
from app.services.job_context import JobContext, JobContexts
from app.services.results import responses as module
from app.services.results.responses import ResponseFilter, read_page, read_sorted_page
from tests.integration.jobs import TENANT, claimed, execute, new_job, response_row, verdict_row
from tests.job_requests import a_model

RUNS: dict[int, tuple[str, list[tuple[int | None, int | None]]]] = {
    0: ("Zürich. Two.", [(1, 1), (5, 5)]),
    1: ("100 % of it_x. Two. Three.", [(5, 1), (5, 1), (1, 1)]),
    2: ("One. \\ Two.", [(1, 1), (1, 1)]),
    3: ("No scores. Two.", [(None, None), (None, None)]),
    4: ("ZÜRICH again.", [(4, 5)]),
    5: ("", []),
}
"""Of E-low: a text, and what each judge gave each sentence; 1 and 2 are in character."""


@pytest.fixture
async def job(engine: AsyncEngine) -> JobRow:
    made = await new_job(
        engine,
        judges=(a_model("simulated/sim-judge", "j"), a_model("simulated/sim-judge", "k")),
        iterations=len(RUNS),
    )
    claim = await claimed(engine, made.id)
    rows: list[ResponseRow | VerdictRow] = []
    for run, (text, units) in RUNS.items():
        starts = list(range(len(units)))
        ends = [start + 1 for start in starts]
        rows.append(response_row(claim, run, content=text)._replace(unit_starts=starts, unit_ends=ends))
        for unit, scores in enumerate(units):
            for judge, score in enumerate(scores):
                verdict = verdict_row(claim, run, unit, score=score)._replace(judge=judge)
                rows.append(verdict._replace(status="not_applicable") if score is None else verdict)
    await ResultWriter(engine).write({(claim.shard_id, claim.token): rows})
    return made


@pytest.fixture
async def context(engine: AsyncEngine, job: JobRow) -> JobContext:
    return await JobContexts(engine).get(TENANT, job.id)


def share(response: JudgedResponse) -> float:
    found = [v.in_character for unit in response.units for v in unit.verdicts if v.score is not None]
    return sum(map(bool, found)) / len(found) if found else math.inf


def gap(response: JudgedResponse) -> float:
    scores = [[v.score for v in unit.verdicts if v.score is not None] for unit in response.units]
    gaps = [max(found) - min(found) for found in scores if found]
    return max(gaps) if gaps else math.inf


def length(response: JudgedResponse) -> float:
    return len(response.units)


@pytest.mark.parametrize("limit", [1, 2, 10])
@pytest.mark.parametrize("by", [share, gap, length])
@pytest.mark.parametrize("sign", ["", "-"])
async def test_pages_in_an_order_hold_every_response_once(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    by: Callable[[JudgedResponse], float],
    sign: str,
    limit: int,
) -> None:
    whole, _ = await read_page(engine, job, context, ResponseFilter(), after=None, limit=10)
    names: dict[object, Sort] = {share: "score", gap: "gap", length: "length"}
    sort: Sort = f"{sign}{names[by]}"  # type: ignore[assignment]
    factor = -1 if sign else 1

    def key(each: JudgedResponse) -> tuple[float, int]:
        value = by(each)
        return value if math.isinf(value) else factor * value, each.run

    found, after = [], None
    while True:
        page, after = await read_sorted_page(
            engine, job, context, ResponseFilter(), sort, after=after, limit=limit
        )
        found += [each.run for each in page]
        if after is None:
            break
    assert found == [each.run for each in sorted(whole, key=key)]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("zürich", [0, 4]),
        ("%", [1]),
        ("it_x", [1]),
        ("iztx", []),
        ("\\", [2]),
        (". two", [0, 1, 3]),
        ("'--", []),
    ],
)
async def test_a_text_is_found_as_it_is_but_for_capitals(
    engine: AsyncEngine, job: JobRow, context: JobContext, text: str, runs: list[int]
) -> None:
    wanted = ResponseFilter(text=text)
    page, after = await read_page(engine, job, context, wanted, after=None, limit=10)
    assert ([each.run for each in page], after) == (runs, None)
    page, last = await read_sorted_page(engine, job, context, wanted, "-length", after=None, limit=10)
    assert (sorted(each.run for each in page), last) == (runs, None)


async def test_a_search_goes_on_after_the_texts_that_a_page_looks_at(
    engine: AsyncEngine, job: JobRow, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TEXTS_LOOKED_AT", 3)
    wanted = ResponseFilter(text="again")
    page, after = await read_page(engine, job, context, wanted, after=None, limit=10)
    assert (page, after) == ([], (0, 2, 0))
    page, after = await read_page(engine, job, context, wanted, after=after, limit=10)
    assert ([each.run for each in page], after) == ([4], None)


async def test_what_judges_marked_is_chosen_in_the_order_from_so_many(
    engine: AsyncEngine, job: JobRow, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOKED_AT", 2)
    wanted = ResponseFilter(out_of_character=True)
    found, pages, after = [], 0, None
    while pages == 0 or after is not None:
        page, after = await read_sorted_page(engine, job, context, wanted, "score", after=after, limit=1)
        found += [each.run for each in page]
        pages += 1
    assert found == [4, 0, 1]
    assert pages > 3


async def test_more_than_can_be_sorted_at_once_is_refused(
    engine: AsyncEngine, job: JobRow, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SORTED", 0)
    with pytest.raises(InvalidJobError) as refused:
        await read_sorted_page(engine, job, context, ResponseFilter(), "score", after=None, limit=1)
    assert [error.pointer for error in refused.value.errors] == ["/query/sort"]
    page, _ = await read_sorted_page(engine, job, context, ResponseFilter(), "length", after=None, limit=1)
    assert len(page) == 1


async def test_a_page_of_long_texts_ends_early_and_goes_on_there(
    engine: AsyncEngine, job: JobRow, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    await execute(engine, "UPDATE responses SET text = rpad(text, 60, 'x')")
    monkeypatch.setattr(module, "MOST_BYTES", 130)
    found, after = await read_sorted_page(
        engine, job, context, ResponseFilter(), "length", after=None, limit=10
    )
    assert [each.run for each in found] == [5, 4]
    found, _ = await read_sorted_page(engine, job, context, ResponseFilter(), "length", after=after, limit=10)
    assert [each.run for each in found] == [0, 2]
