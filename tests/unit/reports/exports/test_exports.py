"""The three flat formats say the same, and every text comes back as it went in."""

import csv as reader
import io
import itertools
import json
import re
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from pyarrow import parquet as arrow

from app.domain.judging.judged_response import JudgedResponse, JudgedUnit
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.registry import METRICS
from app.domain.providers.reuse import ReplyOrigin
from app.domain.results.contract import Results
from app.reports.exports.batches import BATCH_CHARACTERS, page_batches
from app.reports.exports.columns import (
    CELL_COLUMNS,
    JUDGING_CHECK_COLUMNS,
    ORDER_CHECK_COLUMNS,
    PERSONA_SCORE_COLUMNS,
    RESPONSE_COLUMNS,
    TOTAL_COLUMNS,
    VERDICT_COLUMNS,
    Column,
    ColumnType,
)
from app.reports.exports.csv import FORMULA_STARTS, csv_writer
from app.reports.exports.files import Format, write_pages, write_table
from app.reports.exports.jsonl import jsonl_writer
from app.reports.exports.parquet import ParquetWriter
from tests.unit.check_sample import check_of, order_check_of
from tests.unit.gym_sample import graded_response, gym_results_of
from tests.unit.judged import a_verdict
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.sample import pages, response_of, sample
from tests.unit.results_sample import read

Record = dict[str, Any]
FORMATS: tuple[Format, ...] = (csv_writer, jsonl_writer, ParquetWriter)


async def joined(parts: AsyncIterator[bytes]) -> bytes:
    return b"".join([part async for part in parts])


def from_csv(data: bytes, columns: tuple[Column, ...]) -> list[Record]:
    """CSV read back as the module's documentation says; empty fields are missing values."""
    convert: dict[ColumnType, Callable[[str], Any]] = {
        ColumnType.TEXT: lambda field: re.sub(r"(^|[;\t\r\n])'", r"\1", field),
        ColumnType.INTEGER: int,
        ColumnType.NUMBER: float,
        ColumnType.BOOLEAN: {"true": True, "false": False}.__getitem__,
    }
    types = {column.name: column.type for column in columns}
    lines = reader.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    return [
        {name: convert[types[name]](field) if field else None for name, field in line.items()}
        for line in lines
    ]


def from_jsonl(data: bytes) -> list[Record]:
    return [json.loads(line) for line in data.decode().splitlines()]


def from_parquet(data: bytes) -> list[Record]:
    return list(arrow.read_table(io.BytesIO(data)).to_pylist())


def empty_as_missing(records: list[Record]) -> list[Record]:
    return [{name: None if value == "" else value for name, value in record.items()} for record in records]


def hostile_responses() -> list[JudgedResponse]:
    return [
        response_of(text, (text, 4), id=f"r-{number}", persona=text, raw=text, item_text=text)
        for number, text in enumerate(HOSTILE)
    ]


class TestVerdictRows:
    async def test_all_formats_hold_the_same_rows(self) -> None:
        responses = sample().responses
        lines = from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages(responses))))
        assert from_parquet(await joined(write_pages(ParquetWriter, "verdicts", pages(responses)))) == lines
        assert from_csv(
            await joined(write_pages(csv_writer, "verdicts", pages(responses))), VERDICT_COLUMNS
        ) == empty_as_missing(lines)

    async def test_columns_stand_in_the_documented_order(self) -> None:
        responses = sample(1, 1).responses
        names = [column.name for column in VERDICT_COLUMNS]
        table = arrow.read_table(
            io.BytesIO(await joined(write_pages(ParquetWriter, "verdicts", pages(responses))))
        )
        header = (
            (await joined(write_pages(csv_writer, "verdicts", pages(responses))))
            .decode("utf-8-sig")
            .split("\r\n")[0]
        )
        assert table.column_names == names
        assert header == ",".join(names)
        assert (
            list(from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages(responses))))[0])
            == names
        )

    async def test_there_is_one_row_for_each_verdict(self) -> None:
        responses = sample().responses
        lines = from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages(responses))))
        verdicts = sum(len(unit.verdicts) for response in responses for unit in response.units)
        # A response without sentences has a row for each dimension on which it would have been judged.
        bare = sum(len(response.levels) for response in responses if not response.units)
        assert bare > 0
        assert len(lines) == verdicts + bare

    async def test_a_failed_response_keeps_a_row_that_says_why(self) -> None:
        failed = response_of("", id="lost", status="failed", text=None, error="timeout: 120 s")
        [row] = from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages([failed]))))
        assert (row["response_id"], row["response_status"], row["response_error"]) == (
            "lost",
            "failed",
            "timeout: 120 s",
        )
        assert (row["dimension"], row["level"]) == ("E", "high")
        empty = (
            "unit",
            "unit_start",
            "unit_end",
            "unit_text",
            "judge",
            "status",
            "score",
            "in_character",
            "raw",
        )
        assert [row[name] for name in empty] == [None] * len(empty)

    @pytest.mark.parametrize("thoughts", ["Who am I?", ""])
    async def test_thoughts_are_in_a_responses_first_row_only(self, thoughts: str) -> None:
        response = response_of("One. Two.", ("One.", 5), ("Two.", 5), thoughts=thoughts)
        for rows in (
            from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages([response, response])))),
            from_parquet(await joined(write_pages(ParquetWriter, "verdicts", pages([response, response])))),
        ):
            assert [row["response_thoughts"] for row in rows] == [thoughts, None, thoughts, None]

    async def test_a_sentence_that_is_not_judged_yet_keeps_a_row(self) -> None:
        judged = response_of("One. Two.", ("One.", 5), ("Two.", 5))
        second = replace(judged.units[1], verdicts=())
        lines = from_jsonl(
            await joined(
                write_pages(
                    jsonl_writer, "verdicts", pages([replace(judged, units=(judged.units[0], second))])
                )
            )
        )
        assert [(row["unit_text"], row["judge"], row["score"]) for row in lines] == [
            ("One.", "simulated/judge-a", 5),
            ("Two.", None, None),
        ]

    async def test_what_no_call_was_made_for_can_be_told_apart(self) -> None:
        judged = response_of("One.", ("One.", 5))
        (unit,) = judged.units
        again = replace(unit.verdicts[0], reused=ReplyOrigin.SAME_JOB)
        response = replace(judged, units=(replace(unit, verdicts=(*unit.verdicts, again)),))
        responses = [response, replace(response, id="r-2", reused=ReplyOrigin.OTHER_JOB)]
        for records in (
            from_csv(await joined(write_pages(csv_writer, "verdicts", pages(responses))), VERDICT_COLUMNS),
            from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages(responses)))),
            from_parquet(await joined(write_pages(ParquetWriter, "verdicts", pages(responses)))),
        ):
            assert [(record["response_reused"] or None, record["reused"] or None) for record in records] == [
                (None, None),
                (None, "same_job"),
                ("other_job", None),
                ("other_job", "same_job"),
            ]

    @pytest.mark.parametrize("texts", ["persona", "item_text", "unit_text", "raw"])
    async def test_hostile_texts_come_back_unchanged(self, texts: str) -> None:
        responses = hostile_responses()
        for records in (
            from_csv(await joined(write_pages(csv_writer, "verdicts", pages(responses))), VERDICT_COLUMNS),
            from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages(responses)))),
            from_parquet(await joined(write_pages(ParquetWriter, "verdicts", pages(responses)))),
        ):
            assert [record[texts] for record in records] == list(HOSTILE)

    async def test_no_csv_field_begins_like_a_formula(self) -> None:
        data = (await joined(write_pages(csv_writer, "verdicts", pages(hostile_responses())))).decode(
            "utf-8-sig"
        )
        for line in reader.reader(io.StringIO(data, newline="")):
            assert not [field for field in line if field.startswith(tuple(FORMULA_STARTS))]

    @pytest.mark.parametrize("separator", [";", "\t"])
    async def test_no_cell_begins_like_a_formula_where_the_separator_is_another(self, separator: str) -> None:
        """Fields that begin in the midst of a quoted text are not taken for quoted, as spreadsheets do it."""
        starts = ["", " ", '"', ' "', "\ufeff", "\u200b", "\xa0", "\u3000\u2060 ", "\u3164", "\U000e0020"]
        texts = [
            f"hello{between}{start}=cmd|' /C calc'!A0"
            for between in (";", "\t", "\n", "\r\n", ";;")
            for start in starts
        ]
        texts += [f"{start}=1+1" for start in starts]
        data = (
            await joined(
                write_pages(
                    csv_writer, "verdicts", pages([response_of("No.", persona=each) for each in texts])
                )
            )
        ).decode("utf-8-sig")
        found = [
            cell.lstrip(' "\ufeff\u200b\xa0\u3000\u2060\u3164\U000e0020')
            for line in data.splitlines()
            for cell in line.split(separator)
        ]
        assert not [cell for cell in found if cell.startswith(tuple(FORMULA_STARTS))]
        assert [record["persona"] for record in from_csv(data.encode(), VERDICT_COLUMNS)] == texts

    async def test_csv_is_what_pythons_own_writer_makes_of_it(self) -> None:
        texts = ["".join(letters) for n in range(4) for letters in itertools.product('a ,"\r\n;é', repeat=n)]
        data = (
            await joined(
                write_pages(
                    csv_writer, "verdicts", pages([response_of("No.", persona=each) for each in texts])
                )
            )
        ).decode()
        lines = list(reader.reader(io.StringIO(data, newline="")))
        again = io.StringIO(newline="")
        reader.writer(again).writerows(lines)
        assert again.getvalue() == data
        assert len(lines) == 1 + len(texts)

    async def test_a_negative_score_stays_a_number_in_csv(self) -> None:
        verdict = a_verdict("judge", "E", VerdictStatus.SCORED, -2, "-2", False)
        below_zero = response_of("No.", units=(JudgedUnit(0, (0, 3), "No.", (verdict,)),))
        data = (await joined(write_pages(csv_writer, "verdicts", pages([below_zero])))).decode("utf-8-sig")
        assert ",scored,-2,false,'-2,sentence," in data

    async def test_a_verdict_that_failed_has_the_providers_words(self) -> None:
        words = "=1+1: http_400: temperature is not supported"
        failed = a_verdict("judge", "E", VerdictStatus.FAILED, error=words)
        response = response_of("No.", units=(JudgedUnit(0, (0, 3), "No.", (failed,)),))
        for rows in (
            from_csv(await joined(write_pages(csv_writer, "verdicts", pages([response]))), VERDICT_COLUMNS),
            from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages([response])))),
            from_parquet(await joined(write_pages(ParquetWriter, "verdicts", pages([response])))),
        ):
            assert [(row["status"], row["raw"], row["error"]) for row in rows] == [("failed", None, words)]

    async def test_a_job_without_responses_gives_readable_files_without_rows(self) -> None:
        assert from_csv(await joined(write_pages(csv_writer, "verdicts", pages([]))), VERDICT_COLUMNS) == []
        assert await joined(write_pages(jsonl_writer, "verdicts", pages([]))) == b""
        assert from_parquet(await joined(write_pages(ParquetWriter, "verdicts", pages([])))) == []


class TestResponseRows:
    async def test_all_formats_hold_the_same_rows(self) -> None:
        responses = [*sample().responses, *hostile_responses()]
        lines = from_jsonl(await joined(write_pages(jsonl_writer, "responses", pages(responses))))
        assert from_parquet(await joined(write_pages(ParquetWriter, "responses", pages(responses)))) == lines
        table = await joined(write_pages(csv_writer, "responses", pages(responses)))
        assert from_csv(table, RESPONSE_COLUMNS) == empty_as_missing(lines)
        assert len(lines) == sum(len(response.levels) for response in responses)

    async def test_a_row_has_the_figures_that_the_response_has(self) -> None:
        responses = {response.id: response for response in sample().responses}
        rows = from_jsonl(await joined(write_pages(jsonl_writer, "responses", pages(responses.values()))))
        compared = 0
        for row in rows:
            response = responses[row["response_id"]]
            assert (row["text"], row["sentences"]) == (response.text, len(response.units))
            known = {each.dimension: each for each in response.figures}
            if (own := known.get(row["dimension"])) is None:
                assert row["scored_sentences"] is row["mean"] is row["acc_atom"] is None
                continue
            found = (row["scored_sentences"], row["mean"], row["acc"], row["acc_atom"], row["ic_atom"])
            assert found == (own.n, own.mean, own.acc, own.acc_atom, own.ic_atom)
            compared += own.mean is not None
        assert compared > 250

    async def test_a_graded_response_without_judged_sentences_has_one_row_with_its_grade(self) -> None:
        response = graded_response(5, 4)
        [row] = from_jsonl(await joined(write_pages(jsonl_writer, "responses", pages([response]))))
        assert (row["grade"], row["dimension"], row["acc_atom"]) == (response.score, None, None)

    async def test_a_job_without_responses_gives_readable_files_without_rows(self) -> None:
        assert from_csv(await joined(write_pages(csv_writer, "responses", pages([]))), RESPONSE_COLUMNS) == []
        assert from_parquet(await joined(write_pages(ParquetWriter, "responses", pages([])))) == []


class TestCells:
    def test_all_formats_hold_the_same_rows(self) -> None:
        results = read(sample().results)
        lines = from_jsonl(write_table(jsonl_writer, "cells", results))
        assert from_parquet(write_table(ParquetWriter, "cells", results)) == lines
        assert from_csv(write_table(csv_writer, "cells", results), CELL_COLUMNS) == lines

    def test_figures_are_those_of_the_results(self) -> None:
        results = read(sample().results)
        for row, cell in zip(
            from_parquet(write_table(ParquetWriter, "cells", results)), results.cells, strict=True
        ):
            assert (row["model"], row["persona"], row["task"]) == (cell.model, cell.persona, cell.task)
            assert row["acc_atom"] == cell.metrics["acc_atom"].value
            assert row["rc_atom_n"] == cell.metrics["rc_atom"].n
            assert (
                row["rc_atom_within_instruction"]
                == cell.metrics.model_dump()["rc_atom"]["within_instruction"]
            )
            assert row["units_unparsed"] == cell.units.unparsed
            assert row["generation_refused"] == cell.generation.refused

    def test_what_results_from_before_do_not_say_is_missing(self) -> None:
        document = sample().results
        cell = document["cells"][0]
        del cell["metrics"]["rc_atom_corrected"], cell["units"]["filtered"]
        row = from_csv(write_table(csv_writer, "cells", read(document)), CELL_COLUMNS)[0]
        absent = (
            "rc_atom_corrected",
            "rc_atom_corrected_n",
            "rc_atom_corrected_reason",
            "units_filtered",
        )
        assert [row[name] for name in absent] == [None] * len(absent)

    def test_a_missing_metric_has_a_reason_and_no_number(self) -> None:
        # One run: no pair of runs, hence no RC_atom.
        row = from_csv(write_table(csv_writer, "cells", read(sample(1, 1).results)), CELL_COLUMNS)[0]
        assert (row["rc_atom"], row["rc_atom_n"]) == (None, 0)
        assert row["rc_atom_reason"].startswith("fewer_than_two_runs: ")

    def test_a_job_without_cells_gives_readable_files_without_rows(self) -> None:
        assert from_parquet(write_table(ParquetWriter, "cells", read({}))) == []
        assert from_csv(write_table(csv_writer, "cells", read({})), CELL_COLUMNS) == []
        assert write_table(jsonl_writer, "cells", read({})) == b""


INTERVALS = {
    "ci95": [0.1, 0.2],
    "ci95_reason": None,
    "ci95_runs_reason": "single_runs: one run",
    "ci95_wordings": [0.3, 0.4],
    "ci95_runs": None,
    "ci95_both": None,
    "ci95_both_reason": "too_few_wordings: 2 wordings",
}


def with_intervals(name: str) -> Record:
    """The sample's results; the first cell or total has intervals of three metrics, and one before it lacks what is newer."""
    document = deepcopy(sample().results)
    composite = {"value": 0.5, "n": 9} | INTERVALS
    document[name][0] |= {"corrected": {"acc_atom_composite": composite, "acc_atom_bounds": None}}
    document[name][0]["metrics"]["acc_atom"] |= INTERVALS
    document[name][0]["metrics"]["rc_atom"] |= {
        f"within_instruction_{key}": value for key, value in INTERVALS.items()
    }
    del document[name][1]["metrics"]["rc_corrected"]
    return document


class TestIntervals:
    def test_a_cell_has_each_of_its_intervals_or_the_reason(self) -> None:
        results = read(with_intervals("cells"))
        first, second, *_ = from_parquet(write_table(ParquetWriter, "cells", results))
        for name in ("acc_atom", "rc_atom_within_instruction", "acc_atom_composite"):
            ends = [
                first[f"{name}_{field}_{end}"]
                for field in ("ci95", "ci95_wordings")
                for end in ("low", "high")
            ]
            assert ends == [0.1, 0.2, 0.3, 0.4]
            assert first[f"{name}_ci95_reason"] is None
        assert first["rc_atom_ci95_reason"].startswith("too_few_runs: ")
        assert (second["acc_atom_composite_ci95_low"], second["rc_corrected_ci95_reason"]) == (None, None)

    def test_a_missing_one_says_why(self) -> None:
        document = with_intervals("cells")
        document["cells"][0]["metrics"]["rc"] |= {"ci95_wordings_reason": "too_few_wordings: 6 wordings"}
        row = from_csv(write_table(csv_writer, "cells", read(document)), CELL_COLUMNS)[0]
        assert row["rc_ci95_wordings_reason"] == "too_few_wordings: 6 wordings"


class TestTotals:
    def test_all_formats_hold_the_same_rows(self) -> None:
        results = read(with_intervals("totals"))
        lines = from_jsonl(write_table(jsonl_writer, "totals", results))
        assert from_parquet(write_table(ParquetWriter, "totals", results)) == lines
        assert from_csv(write_table(csv_writer, "totals", results), TOTAL_COLUMNS) == lines

    def test_figures_are_those_of_the_results(self) -> None:
        document = sample().results
        rows = from_parquet(write_table(ParquetWriter, "totals", read(document)))
        keys = ("model", "persona", "task", "dimension", "level")
        found = {(row["by"], *(row[key] for key in keys), row["metric"]): row for row in rows}
        assert len(found) == len(rows) == len(document["totals"]) * 14
        for total in document["totals"]:
            place = (", ".join(total["by"]), *(total.get(key) for key in keys))
            acc_atom, of_rc = found[*place, "acc_atom"], total["metrics"]["rc_atom"]
            within = found[*place, "rc_atom_within_instruction"]
            whole = total["metrics"]["acc_atom"]
            assert (acc_atom["value"], acc_atom["n"]) == (whole["value"], whole["n"])
            assert (within["value"], within["n"]) == (
                of_rc["within_instruction"],
                of_rc["within_instruction_n"],
            )
            assert {row["cells"] - row["n"] - row["left_out"] for row in (acc_atom, within)} == {0}

    def test_personas_and_traits_stand_in_words(self) -> None:
        document = sample().results
        document["personas"] = [
            {
                "id": "E-high",
                "description": "an extroverted person",
                "traits": [{"dimension": "E", "level": "high", "words": "high in extraversion"}],
            }
        ]
        document["dimensions"] = [
            {"id": "E", "label": "extraversion", "in_words": {"high": "high in extraversion"}}
        ]
        rows = from_jsonl(write_table(jsonl_writer, "totals", read(document)))
        seen = set()
        for row in rows:
            on_extraversion = row["dimension"] == "E"
            seen.add((on_extraversion, row["level"]))
            traits = {None: "extraversion", "high": "high in extraversion"}
            assert row["trait"] == (traits.get(row["level"]) if on_extraversion else None)
            known = "an extroverted person" if row["persona"] == "E-high" else None
            assert row["persona_description"] == known
        assert seen >= {(True, None), (True, "high"), (False, None)}

    def test_each_interval_is_there_or_its_reason(self) -> None:
        document = with_intervals("totals")
        rows = from_jsonl(write_table(jsonl_writer, "totals", read(document)))
        assert [row["metric"] for row in rows[:14]][-1] == "acc_atom_composite"
        for name in ("acc_atom", "rc_atom_within_instruction", "acc_atom_composite"):
            (row,) = (row for row in rows[:14] if row["metric"] == name)
            ends = [row[f"{field}_{end}"] for field in ("ci95", "ci95_wordings") for end in ("low", "high")]
            assert ends == [0.1, 0.2, 0.3, 0.4]
            assert (row["ci95_runs_low"], row["ci95_runs_reason"]) == (None, "single_runs: one run")
            assert (row["ci95_both_low"], row["ci95_both_reason"]) == (None, "too_few_wordings: 2 wordings")

    def test_what_results_from_before_do_not_have_has_no_row(self) -> None:
        rows = from_jsonl(write_table(jsonl_writer, "totals", read(with_intervals("totals"))))
        assert "rc_corrected" in {row["metric"] for row in rows[:14]}
        assert "rc_corrected" not in {row["metric"] for row in rows[14:27]}
        assert {row["model"] for row in rows[14:27]} == {"simulated/steady"}

    def test_a_job_without_cells_gives_readable_files_without_rows(self) -> None:
        assert from_parquet(write_table(ParquetWriter, "totals", read({}))) == []
        assert from_csv(write_table(csv_writer, "totals", read({})), TOTAL_COLUMNS) == []


class TestDefinitions:
    def test_stand_with_each_metrics_column(self) -> None:
        schema = arrow.read_schema(io.BytesIO(write_table(ParquetWriter, "cells", read({}))))
        for metric in METRICS:
            said = schema.field(metric.name).metadata[b"description"].decode()
            assert said == f"The metric {metric.name}; missing where it does not exist. {metric.definition}"


class TestPersonaScores:
    @staticmethod
    def results(*scores: int | None) -> Results:
        tasks = ("expected_action", "toxicity_control")
        graded = [graded_response(*scores, id=task, task=task) for task in tasks]
        return read(gym_results_of(graded))

    def test_all_formats_hold_the_same_rows(self) -> None:
        results = self.results(5, 4)
        lines = from_jsonl(write_table(jsonl_writer, "persona_scores", results))
        assert from_parquet(write_table(ParquetWriter, "persona_scores", results)) == lines
        assert from_csv(write_table(csv_writer, "persona_scores", results), PERSONA_SCORE_COLUMNS) == lines

    def test_there_is_one_row_for_each_task_and_one_for_the_persona_score(self) -> None:
        lines = from_jsonl(write_table(jsonl_writer, "persona_scores", self.results(5, 4)))
        assert [(row["scope"], row["task"], row["score"], row["n"]) for row in lines] == [
            ("task", "expected_action", 4.5, 1),
            ("task", "toxicity_control", 4.5, 1),
            ("persona", None, 4.5, 2),
        ]
        assert [(row["grades_total"], row["responses_planned"]) for row in lines] == [(2, 1), (2, 1), (4, 2)]

    def test_a_missing_score_has_a_reason_and_no_number(self) -> None:
        for row in from_parquet(write_table(ParquetWriter, "persona_scores", self.results(None, None))):
            assert (row["score"], row["n"]) == (None, 0)
            assert row["reason"]

    def test_a_job_without_personagym_gives_readable_files_without_rows(self) -> None:
        results = read(sample().results)
        assert from_parquet(write_table(ParquetWriter, "persona_scores", results)) == []
        assert from_csv(write_table(csv_writer, "persona_scores", results), PERSONA_SCORE_COLUMNS) == []


class TestJudgingCheck:
    def test_all_formats_hold_the_same_rows(self) -> None:
        results = read({"judging_check": check_of(*[(5, 4), (3, 3)] * 4, judge="=1+1")})
        lines = from_jsonl(write_table(jsonl_writer, "judging_check", results))
        assert from_parquet(write_table(ParquetWriter, "judging_check", results)) == lines
        assert from_csv(write_table(csv_writer, "judging_check", results), JUDGING_CHECK_COLUMNS) == lines
        assert [(row["judge"], row["task"], row["sentences"]) for row in lines] == [
            ("=1+1", None, 8),
            ("=1+1", "social_media_post", 8),
        ]

    def test_a_figure_has_its_n_and_interval_or_a_reason(self) -> None:
        (whole, _) = from_jsonl(
            write_table(
                jsonl_writer, "judging_check", read({"judging_check": check_of(*[(5, 4), (3, 3)] * 4)})
            )
        )
        assert (whole["mean_difference"], whole["mean_difference_n"]) == (0.5, 8)
        assert whole["mean_difference_low"] < 0.5 < whole["mean_difference_high"]
        (few, _) = from_jsonl(
            write_table(jsonl_writer, "judging_check", read({"judging_check": check_of((4, 4))}))
        )
        assert (few["quadratic_kappa"], few["quadratic_kappa_n"]) == (None, 0)
        assert few["quadratic_kappa_reason"]

    def test_a_job_judged_one_by_one_gives_readable_files_without_rows(self) -> None:
        results = read(sample().results)
        assert from_parquet(write_table(ParquetWriter, "judging_check", results)) == []
        assert from_csv(write_table(csv_writer, "judging_check", results), JUDGING_CHECK_COLUMNS) == []


class TestOrderCheck:
    def test_all_formats_hold_the_same_rows(self) -> None:
        results = read({"order_check": order_check_of(*[(5, 4), (3, 3)] * 20, judge="=1+1")})
        lines = from_jsonl(write_table(jsonl_writer, "order_check", results))
        assert from_parquet(write_table(ParquetWriter, "order_check", results)) == lines
        assert from_csv(write_table(csv_writer, "order_check", results), ORDER_CHECK_COLUMNS) == lines
        assert [(row["judge"], row["order"], row["dimension"], row["sentences"]) for row in lines] == [
            ("=1+1", "reversed", None, 40),
            ("=1+1", "reversed", "E", 40),
        ]
        assert (lines[0]["mean_difference"], lines[0]["mean_difference_n"]) == (0.5, 40)
        assert lines[0]["mean_difference_low"] < 0.5 < lines[0]["mean_difference_high"]

    def test_a_job_that_does_not_ask_gives_readable_files_without_rows(self) -> None:
        results = read(sample().results)
        assert from_parquet(write_table(ParquetWriter, "order_check", results)) == []
        assert from_csv(write_table(csv_writer, "order_check", results), ORDER_CHECK_COLUMNS) == []


class TestInOtherHands:
    """What a user's own tools read in the files is what the results say."""

    async def test_pandas_finds_the_results_counts_and_means_in_every_format(self) -> None:
        import pandas as pd

        job = sample(5, 3)
        files = [
            io.BytesIO(await joined(write_pages(format_, "verdicts", pages(job.responses))))
            for format_ in FORMATS
        ]
        tables = [
            pd.read_csv(files[0], keep_default_na=False, na_values=[""], low_memory=False),
            pd.read_json(files[1], lines=True),
            pd.read_parquet(files[2]),
        ]
        cells = {
            (cell["model"], cell["persona"], cell["task"], cell["dimension"]): {
                int(score): count for score, count in cell["scores"].items() if count
            }
            for cell in job.results["cells"]
        }
        for table in tables:
            scored = table[table["status"] == "scored"]
            keys = ["model", "persona", "task", "dimension"]
            found = {key: dict(group["score"].value_counts()) for key, group in scored.groupby(keys)}
            assert found == cells

    async def test_a_line_has_the_form_of_the_standard_librarys_json(self) -> None:
        data = (
            await joined(
                write_pages(jsonl_writer, "verdicts", pages(hostile_responses() + sample().responses))
            )
        ).decode()
        for line in data.removesuffix("\n").split("\n"):
            written = json.dumps(json.loads(line), ensure_ascii=False)
            for character in "\x85\u2028\u2029":  # at which many readers end a line
                written = written.replace(character, f"\\u{ord(character):04x}")
            assert line == written

    async def test_a_spreadsheet_reads_numbers_as_numbers_and_texts_as_texts(self) -> None:
        """By the rules of spreadsheets' import: what begins like a formula is one unless an apostrophe stands before it."""
        data = (await joined(write_pages(csv_writer, "verdicts", pages(hostile_responses())))).decode(
            "utf-8-sig"
        )
        for line in reader.DictReader(io.StringIO(data, newline="")):
            assert float(line["score"]) == 4
            assert not any(field.startswith(("=", "+", "@", "\t", "\r")) for field in line.values())


class TestStreaming:
    def test_a_page_is_one_batch_if_its_texts_are_not_huge(self) -> None:
        short = response_of(" ".join(["Yes."] * 10), *[("Yes.", 5)] * 10)
        assert [batch.num_rows for batch in page_batches([short] * 800)] == [8_000]
        assert list(page_batches([])) == []
        long = "x" * (BATCH_CHARACTERS // 4)
        for huge in (response_of(long, (long, 5)), response_of("No.", ("No.", 5), raw=long)):
            sizes = [batch.num_rows for batch in page_batches([huge] * 9)]
            assert sizes[0] == BATCH_CHARACTERS // len(long)
            assert sum(sizes) == 9

    def test_what_rows_have_in_common_is_in_a_batch_once(self) -> None:
        short = response_of(" ".join(["Yes."] * 10), *[("Yes.", 5)] * 10)
        (batch,) = page_batches([short] * 20)
        values = {
            name: len(batch.column(name).dictionary) for name in ("item_text", "run", "unit_text", "raw")
        }
        assert values == {"item_text": 1, "run": 20, "unit_text": 200, "raw": 10}

    @pytest.mark.parametrize("format_", FORMATS)
    async def test_memory_is_flat(self, format_: Format) -> None:
        response = response_of(" ".join(["I like it."] * 10), *[("I like it.", 5)] * 10)

        async def paged(count: int) -> AsyncGenerator[Sequence[JudgedResponse]]:
            for start in range(0, count, 800):
                yield [response] * min(800, count - start)

        async def written(count: int) -> int:
            return sum([len(part) async for part in write_pages(format_, "verdicts", paged(count))])

        await written(10)  # what is imported and remembered at the first use is not the rows'
        tracemalloc.start()
        assert await written(5_000) > 50_000
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 16_000_000
