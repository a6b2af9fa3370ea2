"""Notes on texts, over real HTTP from a provider's reply to results."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.request import JudgingIn
from app.domain.judging.text_notes import TEXT_NOTES, TextNote
from app.services.results.responses import ResponseFilter, read_page
from tests.integration.jobs import TENANT, new_job
from tests.integration.services.execution.test_thoughts import (
    OverHttp,
    ended,
    openai,
    page,
    provider,  # noqa: F401 - a fixture
)
from tests.integration.services.scheduling.test_run_shard import Worker
from tests.job_requests import a_response

pytestmark = pytest.mark.usefixtures("looks_often")

TEXT = "I stay at <|mood|> home. I read. I read!"
LOOP = "I stay. " * 5 + "I am going to"


@pytest.fixture
def writer(provider: OverHttp) -> OverHttp:  # noqa: F811
    provider.judges = lambda _: openai({"content": "2"})
    return provider


def warned(results: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {
        each["code"]: (each["message"], each["n"])
        for each in results["warnings"]
        if each["code"] in TEXT_NOTES
    }


class TestNotes:
    async def test_of_generated_texts_are_counted_and_named(
        self, worker: Worker, writer: OverHttp, engine: AsyncEngine
    ) -> None:
        writer.writes = lambda: openai({"content": TEXT}, "tired")
        job, results = await ended(worker, await new_job(engine))
        counts = {"sentences": 6, "unknown_tags": 2, "unknown_finish_word": 2, "repeated_sentences": 2}
        assert results["cells"][0]["generation"] == results["cells"][0]["generation"] | counts
        found = warned(results)
        assert found.keys() == {"unknown_tags", "unknown_finish_word", "repeated_sentences"}
        assert "<|mood|>" in found["unknown_tags"][0]
        assert "tired" in found["unknown_finish_word"][0]
        assert found["unknown_finish_word"][1] == 2
        assert found["repeated_sentences"][1] == 6
        (first, _) = await page(worker, job)
        assert first["notes"] == {
            "unknown_tags": ["<|mood|>"],
            "unknown_finish_word": "tired",
            "cut_off": None,
            "repeated_sentences": [[33, 40]],
            "role_breaks": [],
            "refusal_check": None,
        }

    async def test_breaks_of_the_role_are_counted_per_sentence_and_leave_the_scores_alone(
        self, worker: Worker, writer: OverHttp, engine: AsyncEngine
    ) -> None:
        writer.writes = lambda: openai({"content": "I love parties. As an AI, I adore people. It is fun."})
        job, results = await ended(worker, await new_job(engine))
        cell = results["cells"][0]
        counts = {"answered": 2, "refused": 0, "sentences": 6, "role_breaks": 2}
        assert cell["generation"] == cell["generation"] | counts
        assert cell["units"]["scored"] == 6
        assert warned(results)["role_breaks"][1] == 6
        (first, _) = await page(worker, job)
        assert first["notes"]["role_breaks"] == [[16, 41]]

    async def test_of_ordinary_texts_there_are_none(
        self, worker: Worker, writer: OverHttp, engine: AsyncEngine
    ) -> None:
        writer.writes = lambda: openai({"content": "I stay at home. I read."})
        job, results = await ended(worker, await new_job(engine))
        assert warned(results) == {}
        assert {response["notes"] for response in await page(worker, job)} == {None}

    async def test_a_text_at_the_maximum_length_lacks_its_end(
        self, worker: Worker, writer: OverHttp, engine: AsyncEngine
    ) -> None:
        writer.writes = lambda: openai({"content": LOOP}, "length")
        _, results = await ended(worker, await new_job(engine))
        assert results["cells"][0]["generation"]["cut_off"] == 2
        assert "max_tokens" in warned(results)["cut_off"][0]

    async def test_sentences_that_are_left_out_are_not_judged(
        self, worker: Worker, writer: OverHttp, engine: AsyncEngine
    ) -> None:
        writer.writes = lambda: openai({"content": LOOP}, "length")
        judging = JudgingIn(leave_out=["cut_off", "repeated_sentences"])
        job, results = await ended(worker, await new_job(engine, judging=judging))
        assert results["completeness"] == "full"
        cell = results["cells"][0]
        assert cell["units"] == cell["units"] | {"total": 2, "scored": 2}  # 2 runs of a sentence
        assert cell["generation"] == cell["generation"] | {"sentences": 2, "left_out": 10}
        assert sum("judging" in call for call in writer.calls) == 2
        assert [len(each["left_out"]) for each in await page(worker, job)] == [5, 5]

    @pytest.mark.parametrize(
        ("note", "found"), [("unknown_tags", 1), ("cut_off", 1), ("repeated_sentences", 2), (None, 3)]
    )
    async def test_existing_texts_have_them_too_and_can_be_searched(
        self, note: TextNote | None, found: int, worker: Worker, writer: OverHttp, engine: AsyncEngine
    ) -> None:
        responses = tuple(a_response("E-low", "essay", text) for text in (TEXT, LOOP, "I stay."))
        job, _ = await ended(worker, await new_job(engine, models=(), instructions=None, responses=responses))
        context = await worker.deps.contexts.get(TENANT, job.id)
        shown, _ = await read_page(engine, job, context, ResponseFilter(noted=note), after=None, limit=10)
        assert len(shown) == found
