"""Two hundred hostile texts at once through everything that shows or exports what others wrote: none does anything, all come back."""

import csv as reader
import io
import re
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from rich.text import Text

from app.domain.results.gate import Gate, GateCheck, Verdict
from app.reports.exports.columns import VERDICT_COLUMNS
from app.reports.exports.csv import FORMULA_STARTS, csv_writer
from app.reports.exports.files import write_pages
from app.reports.exports.jsonl import jsonl_writer
from app.reports.exports.parquet import ParquetWriter
from app.reports.junit import junit
from app.web.visible import visible
from persona_assay.terminal.consoles import printable
from persona_assay.terminal.results_tables import results_view
from tests.unit.cli.documents import results
from tests.unit.reports.exports.test_exports import from_csv, from_jsonl, from_parquet, joined
from tests.unit.reports.hostile import payloads
from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import Sample, pages, response_of, results_of, stream
from tests.unit.reports.test_figures import SVG, drawn, parsed, texts

PAYLOADS = payloads()
TEXTS = ("persona", "item_text", "item", "unit_text", "raw", "response_error")
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What moves a terminal's cursor, colours it, or turns its line round."""


@pytest.fixture(scope="module")
def job() -> Sample:
    responses = [
        response_of(text, (text, 1 + n % 5), id=f"r-{n}", raw=text, item=text, item_text=text, persona=text, error=text)
        for n, text in enumerate(PAYLOADS)
    ]  # fmt: skip
    return Sample(results_of(responses) | {"name": "".join(PAYLOADS[:-1])}, responses)


def test_there_are_two_hundred() -> None:
    assert len(PAYLOADS) == len(set(PAYLOADS)) == 223


class TestFiles:
    async def test_every_text_comes_back_as_it_was(self, job: Sample) -> None:
        for records in (
            from_csv(
                await joined(write_pages(csv_writer, "verdicts", pages(job.responses))), VERDICT_COLUMNS
            ),
            from_jsonl(await joined(write_pages(jsonl_writer, "verdicts", pages(job.responses)))),
            from_parquet(await joined(write_pages(ParquetWriter, "verdicts", pages(job.responses)))),
        ):
            for name in TEXTS:
                assert [record[name] for record in records] == list(PAYLOADS)

    async def test_no_field_of_a_table_begins_like_a_formula(self, job: Sample) -> None:
        table = await joined(write_pages(csv_writer, "verdicts", pages(job.responses)))
        lines = list(reader.reader(io.StringIO(table.decode("utf-8-sig"), newline="")))
        assert len(lines) == 1 + len(PAYLOADS)
        assert {len(line) for line in lines} == {len(VERDICT_COLUMNS)}
        assert not [field for line in lines for field in line if field.startswith(tuple(FORMULA_STARTS))]

    def test_a_gate_is_well_formed_xml(self) -> None:
        verdicts: tuple[Verdict, ...] = ("pass", "fail", "inconclusive")
        checks = [
            GateCheck(
                threshold=text,
                of={"model": text},
                verdict=verdicts[n % 3],
                reason=text,
                value=None,
                ci95=None,
                coverage=None,
            )
            for n, text in enumerate(PAYLOADS)
        ]
        gate = Gate(job="job_x", verdict="fail", minimum_coverage=0.95, checks=checks)
        (suite,) = ET.fromstring(junit("".join(PAYLOADS[:-1]), gate))
        names = [case.attrib["name"] for case in suite]
        assert {element.tag for element in suite.iter()} == {
            *("testsuite", "testcase", "failure", "error", "system-out"),
        }
        assert names == [
            re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", t) for t in PAYLOADS
        ]


class TestPage:
    async def test_every_text_stays_text(self, job: Sample) -> None:
        source = await html_report(job.results, stream(job.responses))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", source)
        page = Page(source)
        tags = [tag for tag, _ in page.elements]
        assert tags.count("script") == 1
        assert not {
            "img",
            "iframe",
            "object",
            "embed",
            "base",
            "math",
            "video",
            "audio",
            "foreignobject",
        } & set(tags)
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on")]
            for name in ("href", "src", "xlink:href", "action", "formaction", "style"):
                assert re.match(r"#|data:,$|(/v1)?/jobs/job_sample(/|$)", attributes.get(name) or "#"), (
                    tag,
                    attributes,
                )
        seen = [text for _, text in page.texts]
        assert {visible(text) for text in PAYLOADS if len(text) < 100} <= set(seen)


class TestFigures:
    def test_names_stay_names(self, job: Sample) -> None:
        content = drawn(job.results, "heat_map")
        assert {element.tag.removeprefix(SVG) for element in parsed(content).iter()} <= {
            *("svg", "title", "desc", "style", "g", "defs", "path", "use", "text", "clipPath", "rect"),
        }
        assert any("<script>" in text for text in texts(content))


class TestTerminal:
    def test_nothing_steers_it(self) -> None:
        for text in PAYLOADS:
            assert not STEERING.search(printable(text))
            assert not re.search(r"[\t\n]", printable(text))

    def test_nothing_is_taken_for_markup(self) -> None:
        document = results(f"openai/{''.join(PAYLOADS[:-1])}") | {"name": "[red]x[/red]"}
        written = io.StringIO()
        Console(file=written, width=100, markup=False, color_system=None).print(results_view(document, 100))
        assert "[red]x[/red]" in written.getvalue()
        assert not STEERING.search(written.getvalue())
        assert Text(printable("[red]x")).plain == "[red]x"
