"""Reading all responses of a job: pages that fit in memory, and no end that only looks like one."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.jobs.jobs import JobRow
from app.services.job_context import JobContext, JobContexts
from app.services.results import responses as module
from app.services.results.responses import CutOffError, ResponseFilter, read_page, stream_all, stream_pages
from tests.integration.jobs import TENANT, claimed, execute, new_job, whole_run

RUNS = 4


@pytest.fixture
async def job(engine: AsyncEngine) -> JobRow:
    """Four responses of two sentences."""
    made = await new_job(engine, iterations=RUNS)
    claim = await claimed(engine, made.id)
    rows = [row for run in range(RUNS) for row in whole_run(claim, run)]
    await ResultWriter(engine).write({(claim.shard_id, claim.token): rows})
    return made


@pytest.fixture
async def context(engine: AsyncEngine, job: JobRow) -> JobContext:
    return await JobContexts(engine).get(TENANT, job.id)


class TestPages:
    @pytest.mark.parametrize(("most", "found"), [(100, 3), (5, 2), (1, 1)])
    async def test_end_where_they_would_have_too_many_verdicts(
        self, engine: AsyncEngine, job: JobRow, context: JobContext, most: int, found: int
    ) -> None:
        page, after = await read_page(
            engine, job, context, ResponseFilter(), after=None, limit=3, most_verdicts=most
        )
        assert [response.run for response in page] == list(range(found))
        assert after == (0, found - 1, 0)

    @pytest.mark.parametrize(("texts", "found"), [(3, 3), (2, 2), (1, 1), (0, 1)])
    async def test_end_where_texts_would_be_too_long(
        self, engine: AsyncEngine, job: JobRow, context: JobContext, texts: int, found: int
    ) -> None:
        await execute(engine, "UPDATE responses SET text = repeat('é', 30)")  # 60 bytes
        page, after = await read_page(
            engine, job, context, ResponseFilter(), after=None, limit=3, most_bytes=60 * texts
        )
        assert [response.text for response in page] == ["é" * 30] * found
        assert after == (0, found - 1, 0)

    @pytest.mark.parametrize(("most", "found"), [(121, 3), (120, 3), (80, 2), (41, 2), (40, 1), (1, 1)])
    async def test_end_with_the_response_whose_replies_reach_the_limit(
        self, engine: AsyncEngine, job: JobRow, context: JobContext, most: int, found: int
    ) -> None:
        # 40 bytes for the two sentences of a response
        await execute(engine, "UPDATE responses SET text = 'a. b.'")
        await execute(engine, "UPDATE verdicts SET raw = NULL, thoughts = repeat('é', 10)")
        page, after = await read_page(
            engine, job, context, ResponseFilter(), after=None, limit=3, most_bytes=most
        )
        assert [[len(unit.verdicts) for unit in response.units] for response in page] == [[1, 1]] * found
        assert after == (0, found - 1, 0)

    async def test_cut_by_long_replies_follow_without_a_gap(
        self, engine: AsyncEngine, job: JobRow, context: JobContext
    ) -> None:
        after = None
        runs: list[int] = []
        while len(runs) < RUNS:
            page, after = await read_page(
                engine, job, context, ResponseFilter(), after=after, limit=10, most_bytes=1
            )
            runs += [response.run for response in page]
        assert (runs, after) == (list(range(RUNS)), None)


class TestVerdicts:
    @pytest.mark.parametrize("lost", [0, 1])
    async def test_stand_at_their_sentences_where_others_have_none(
        self, engine: AsyncEngine, job: JobRow, context: JobContext, lost: int
    ) -> None:
        await execute(engine, f"DELETE FROM verdicts WHERE run = 1 AND unit = {lost}")
        page, _ = await read_page(engine, job, context, ResponseFilter(), after=None, limit=RUNS)
        judged = [[len(unit.verdicts) for unit in response.units] for response in page]
        assert judged == [[1, 1], [1 - (unit == lost) for unit in (0, 1)], [1, 1], [1, 1]]


class TestMarkedByJudges:
    async def test_a_page_is_chosen_from_so_many_and_tells_where_the_next_begins(
        self, engine: AsyncEngine, job: JobRow, context: JobContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "LOOKED_AT", 2)
        await execute(engine, "UPDATE verdicts SET score = CASE run WHEN 2 THEN 5 ELSE 1 END")  # E-low
        wanted = ResponseFilter(out_of_character=True)
        page, after = await read_page(engine, job, context, wanted, after=None, limit=10)
        assert (page, after) == ([], (0, 1, 0))
        page, after = await read_page(engine, job, context, wanted, after=after, limit=10)
        assert ([response.run for response in page], after) == (
            [2],
            None,
        )  # the last that there are to look at


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPORT_VERDICTS", 3)


@pytest.mark.usefixtures("small_pages")
class TestAllResponses:
    async def test_come_in_order_whatever_the_pages(
        self, engine: AsyncEngine, job: JobRow, context: JobContext
    ) -> None:
        assert [response.run async for response in stream_all(engine, job, context)] == list(range(RUNS))

    @pytest.mark.parametrize(
        "meanwhile",
        ["DELETE FROM jobs", "UPDATE shards SET retries = retries + 1"],
        ids=["deleted", "retried"],
    )
    async def test_do_not_seem_to_end_where_the_job_is_not_what_it_was(
        self, engine: AsyncEngine, job: JobRow, context: JobContext, meanwhile: str
    ) -> None:
        responses = stream_all(engine, job, context)
        await anext(responses)
        await execute(engine, meanwhile)
        with pytest.raises(CutOffError):
            [response async for response in responses]


async def test_exports_under_way_share_the_bytes_of_their_pages(
    engine: AsyncEngine, job: JobRow, context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    await execute(engine, "UPDATE responses SET text = repeat('é', 30)")  # 60 bytes
    monkeypatch.setattr(module, "EXPORTS_BYTES", 240)
    monkeypatch.setattr(module, "LEAST_EXPORT_BYTES", 60)

    async def lengths() -> list[int]:
        return [len(page) async for page in stream_pages(engine, job, context)]

    unread = [stream_pages(engine, job, context) for _ in range(4)]
    assert await lengths() == [4]
    for number, found in enumerate(([2, 2], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1])):
        await anext(unread[number])
        assert await lengths() == found
    for export in unread:
        await export.aclose()
    assert await lengths() == [4]
