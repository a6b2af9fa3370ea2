from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect
from app.db.execution.copy import MOST_AT_ONCE, copy_text
from app.db.execution.result_rows import ResultWriter
from tests.databases import Databases, libpq_url
from tests.integration.jobs import call_row, claimed, new_job, response_row, scalar, verdict_row

COLUMNS = "a text, b text, c int, d bigint, e float8, f bool, g uuid, h timestamptz, i int[]"
INTEGERS = st.integers(-(2**31), 2**31 - 1)
TEXTS = (
    st.text(st.sampled_from("\\\t\n\r\b\f\v\"'{}N.n0x7, ünï𝄞\x7f\x85\u2028"), max_size=12)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"))
    | st.sampled_from(["", "\\N", "\\.", "\\", "\n", "\r\n", "NULL", "\\x41", "\\101"])
)
ROWS = st.tuples(
    TEXTS,
    st.none() | TEXTS,
    INTEGERS,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(),
    st.booleans(),
    st.uuids(),
    st.datetimes(timezones=st.just(UTC)),
    st.lists(INTEGERS, max_size=3),
)
PLAIN: tuple[object, ...] = ("", None, 0, 0, 0.0, False, UUID(int=0), datetime(2026, 1, 1, tzinfo=UTC), [])


@pytest.fixture(scope="module")
def two_tables(databases: Databases) -> Iterator[psycopg.Connection]:
    with databases.new("copying") as url, psycopg.connect(libpq_url(url)) as connection:
        for table in ("ours", "theirs"):
            connection.execute(f"CREATE TEMPORARY TABLE {table} ({COLUMNS})")
        yield connection


class TestCopyText:
    @settings(max_examples=80)
    @given(rows=st.lists(ROWS, max_size=4))
    @example(rows=[PLAIN, PLAIN])  # columns in which all rows have the same
    @example(rows=[(*PLAIN[:4], 0.0, *PLAIN[5:]), (*PLAIN[:4], -0.0, *PLAIN[5:])])
    @example(rows=[("x" * 3 * MOST_AT_ONCE, *PLAIN[1:])])
    def test_what_comes_into_a_table_is_what_psycopg_would_bring_there(
        self, two_tables: psycopg.Connection, rows: list[tuple[object, ...]]
    ) -> None:
        two_tables.execute("TRUNCATE ours, theirs")
        with two_tables.cursor() as cursor:
            with cursor.copy("COPY ours FROM STDIN") as copy:
                copy.write(copy_text(rows))
            with cursor.copy("COPY theirs FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            ours, theirs = [
                cursor.execute(f"SELECT {table}::text FROM {table}").fetchall()
                for table in ("ours", "theirs")
            ]
            texts = cursor.execute("SELECT a, b FROM ours").fetchall()
        assert ours == theirs
        assert texts == [row[:2] for row in rows]

    def test_a_lone_surrogate_is_refused(self) -> None:
        with pytest.raises(UnicodeEncodeError):
            copy_text([("\ud800",)])


class TestConverse:
    """By what is written with it."""

    async def test_more_than_goes_at_once(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        row = response_row(claim, content="ü" * 2 * MOST_AT_ONCE)
        await ResultWriter(engine).write({(claim.shard_id, claim.token): [row, verdict_row(claim)]})
        assert await scalar(engine, "SELECT length(text) FROM responses") == 2 * MOST_AT_ONCE
        assert await scalar(engine, "SELECT count(*) FROM verdicts") == 1

    async def test_texts_stay_as_they_are_whatever_encoding_the_environment_names(
        self, engine: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        claim = await claimed(engine, (await new_job(engine)).id)
        other = connect(database_url)
        await ResultWriter(other).write({(claim.shard_id, claim.token): [response_row(claim, content="ünï")]})
        await other.dispose()
        assert await scalar(engine, "SELECT text FROM responses") == "ünï"

    @pytest.mark.parametrize("length", [10, 8 * MOST_AT_ONCE])
    async def test_what_is_refused_undoes_everything_and_spoils_no_connection(
        self, engine: AsyncEngine, length: int
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        held = (claim.shard_id, claim.token)
        refused = call_row(claim)._replace(code="\0" * length)
        writer = ResultWriter(engine)
        for _ in range(3):
            with pytest.raises(psycopg.DataError):
                await writer.write({held: [response_row(claim), refused]})
        assert await scalar(engine, "SELECT count(*) FROM responses") == 0
        assert await writer.write({held: [response_row(claim)]}) == set()
        assert await scalar(engine, "SELECT count(*) FROM responses") == 1
