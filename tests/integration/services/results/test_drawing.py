"""Figures and reports are drawn in child processes: the same bytes, and what goes wrong there."""

import gzip
import json
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.domain.errors import FieldError, InvalidJobError
from app.domain.results.contract import Results
from app.readers.pool import Kind, ReaderPool
from app.reports.material import Material, sample_of
from app.services.errors import BusyError
from app.services.results.drawing import FIGURE, PAGE, DrawingError, beside_published, draw, figure, page
from tests.unit.reports.sample import sample, stream


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ReaderPool]:
    made = ReaderPool("tests.integration.readers.works:prepare")
    yield made
    await made.close()


def crash() -> bytes:
    os.abort()


def take_memory() -> bytes:
    return b"".join(os.urandom(1) * 2**20 for _ in range(10_000))


def fail() -> bytes:
    raise ValueError


def refuse() -> bytes:
    raise InvalidJobError([FieldError("/query/model", "is unknown")])


async def test_a_report_and_a_figure_have_the_bytes_that_this_process_would_draw(pool: ReaderPool) -> None:
    job = sample()
    text = json.dumps(job.results)
    found = Results.read(text)
    published = beside_published(found, [])
    material = Material(text, await sample_of(found, stream(job.responses)), published)
    packed = await draw(pool, PAGE, "a", page, material)
    assert packed == page(material)
    assert gzip.decompress(packed).startswith(b"<!doctype html>")
    wanted = (text, "accuracy", None, False, (), None, published.among, published.accuracy, "png", None)
    assert await draw(pool, FIGURE, "a", figure, *wanted) == figure(*wanted)


async def test_a_child_that_ends_is_no_fault_of_the_request(pool: ReaderPool) -> None:
    with pytest.raises(BusyError, match="crash"):
        await draw(pool, FIGURE, "a", crash)
    with pytest.raises(BusyError, match="memory"):
        await draw(pool, FIGURE, "a", take_memory)


async def test_what_is_drawn_of_a_large_job_may_take_more_memory(pool: ReaderPool) -> None:
    results = sample().results
    cells = (results["cells"] * (2_500 // len(results["cells"]) + 1))[:2_500]
    large = json.dumps(results | {"cells": cells})
    wanted = (large, "models", None, False, (), None, (), (), "svg", None)
    assert b"<svg" in await draw(pool, FIGURE, "a", figure, *wanted)


async def test_a_preparation_that_fails_ends_no_other_task(pool: ReaderPool) -> None:
    broken = Kind(1, 120 * 1024 * 1024, drawing="tests.integration.readers.works:missing")
    assert await draw(pool, FIGURE, "a", small) == b"small"
    with pytest.raises(DrawingError, match="fail"):
        await draw(pool, broken, "a", fail)
    assert await draw(pool, FIGURE, "a", small) == b"small"


def small() -> bytes:
    return b"small"


async def test_our_own_error_is_one(pool: ReaderPool) -> None:
    with pytest.raises(DrawingError, match="fail"):
        await draw(pool, FIGURE, "a", fail)
    with pytest.raises(InvalidJobError, match="is unknown"):
        await draw(pool, FIGURE, "a", refuse)
