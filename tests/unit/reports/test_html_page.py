"""The HTML report as a page: what it holds, how large it gets, and what no text from outside may do to it."""

import base64
import gc
import re
import tracemalloc
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from hashlib import sha256

import pytest

from app.domain.judging.judged_response import JudgedResponse
from app.web.templates import source
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page import Page, html_report, page_of, shape
from tests.unit.reports.sample import Sample, response_of, results_of, sample, stream


@pytest.fixture(scope="module")
def job() -> Sample:
    return sample()


class TestSelfContained:
    async def test_it_loads_nothing(self, job: Sample) -> None:
        source = await html_report(job.results, stream(job.responses))
        page = Page(source)
        assert "http://" not in source
        assert "https://" not in source
        loads = [
            (tag, attrs.get("src") or attrs.get("href"))
            for tag, attrs in page.elements
            if tag not in {"a", "use"} and ("src" in attrs or "href" in attrs)
        ]
        assert loads == [("link", "data:,")]

    async def test_its_links_lead_into_the_page_or_to_the_service_in_full(self, job: Sample) -> None:
        service = "https://assay.example"
        page = await page_of(job.responses, job.results, service=service)
        names = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        linked = [attrs["href"] or "" for tag, attrs in page.elements if tag == "a"]
        assert f"{service}/jobs/job_sample" in linked
        assert f"{service}/v1/jobs/job_sample/figures/models.svg" in linked
        assert all(href[1:] in names if href.startswith("#") else href.startswith(service) for href in linked)

    async def test_the_contents_name_every_section_in_its_order(self, job: Sample) -> None:
        page = await page_of(job.responses, job.results)
        sections = [attrs["id"] for tag, attrs in page.elements if tag == "h2"]
        linked = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
        contents = linked[linked.index("#models-title") :][: len(sections)]
        assert contents == [*(f"#{name}" for name in sections[:-1]), "#responses"]
        assert sections[-2:] == ["manifest-title", "responses-title"]
        assert len(sections) >= 9

    async def test_the_policy_admits_its_own_style_and_script_only(self, job: Sample) -> None:
        page = await page_of(job.responses, job.results)
        [policy] = [a["content"] for tag, a in page.elements if a.get("http-equiv")]
        for directive, tag in (("style-src", "style"), ("script-src", "script")):
            digest = base64.b64encode(sha256(page.content(tag).encode()).digest()).decode()
            assert f"{directive} 'sha256-{digest}';" in (policy or "")
            assert [t for t, _ in page.elements].count(tag) == 1
        assert (policy or "").startswith("default-src 'none';")

    async def test_the_parts_of_figures_are_named_once(self, job: Sample) -> None:
        page = await page_of(job.responses, job.results)
        names = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(set(names)) == len(names)
        used = {
            value.strip("url(#)")
            for tag, attrs in page.elements
            for name, value in attrs.items()
            if value and (value.startswith("url(#") or (tag, name) == ("use", "href"))
        }
        assert used <= {f"{name}" for name in names}

    async def test_no_element_needs_what_the_policy_forbids(self, job: Sample) -> None:
        page = await page_of(job.responses, job.results)
        names = {name for _, attrs in page.elements for name in attrs}
        assert not [name for name in names if name == "style" or name.startswith("on")]

    async def test_the_same_job_gives_the_same_page(self, job: Sample) -> None:
        pages = [await html_report(job.results, stream(job.responses)) for _ in range(2)]
        assert pages[0] == pages[1]

    async def test_the_order_of_the_stream_does_not_matter(self, job: Sample) -> None:
        forward = await html_report(job.results, stream(job.responses))
        assert await html_report(job.results, stream(reversed(job.responses))) == forward


class TestHostileTexts:
    async def test_every_text_stays_text(self) -> None:
        def responses(texts: Iterable[str]) -> list[JudgedResponse]:
            return [
                response_of(
                    text,
                    (text, 1),
                    id=f"r-{n}",
                    raw=text,
                    item_text=text,
                    persona=text,
                    model=text,
                    task=text,
                )
                for n, text in enumerate(texts)
            ]

        short = [text for text in HOSTILE if len(text) < 100]
        harmless = [f"harmless {number}" for number in range(len(short))]
        page, plain = await page_of(responses(short)), await page_of(responses(harmless))
        # Equally many elements of every kind, with the same attributes: nothing came from the texts.
        assert shape(page) == shape(plain)
        for text in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }} {% raw %}"):
            assert text in page.text
            assert any(text in (a["data-verdicts"] or "") for a in page.sentences())

    async def test_control_characters_become_visible(self) -> None:
        source = await html_report(
            results_of([]), stream([response_of("\x07\x1b[31mred\x9f", ("\x07\x1b[31mred\x9f", 1))])
        )
        assert "␇␛[31mred\ufffd" in source
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", source)

    async def test_every_text_from_outside_is_isolated_from_the_page_direction(self) -> None:
        text = "\u202etxet\u202c"
        page = await page_of([response_of(text, (text, 1), persona=text, model=text, item_text=text)])
        holders = {tag for tag, found in page.texts if text in found}
        # An SVG's text is a paragraph of its own, and so is one with a direction of its own.
        assert holders <= {"bdi", "span", "option", "text", "p"}
        texts = {"item", "text", "text whole", "error"}
        assert all("dir" in a for tag, a in page.elements if tag == "p" and a.get("class") in texts)

    async def test_a_huge_text_is_cut_and_the_cut_is_told(self) -> None:
        huge = "x" * 100_000
        page = await page_of([response_of(f"{huge} Short.", (huge, 1), ("Short.", 1))])
        assert "(98,800 more characters)" in page.text
        many = response_of(" ".join(["No."] * 500), *[("No.", 1)] * 500)
        assert "… and 420 more sentences (not shown)." in (await page_of([many])).text


@pytest.mark.slow
class TestSize:
    async def test_a_thousand_responses_stay_under_two_megabytes(self) -> None:
        # 2 models x 9 personas x (2 + 1 + 1) items x 15 runs.
        job = sample(5, 3)
        assert len(job.responses) == 1_080
        source = await html_report(job.results, stream(job.responses))
        assert 1_800_000 < len(source.encode()) < 2_000_000
        shown = len(Page(source).cards())
        assert f"{shown} of 1,080 responses" in Page(source).text
        assert f"The other {1_080 - shown}: all responses" in Page(source).text
        assert 'href="/jobs/job_sample/responses"' in source

    async def test_of_many_personas_the_heat_map_has_the_weakest_and_says_so(self) -> None:
        page = await page_of(
            response_of("Yes. No.", ("Yes.", 5), ("No.", 5 if n < 10 else 1), persona=f"p-{n:02}")
            for n in range(70)
        )
        rows = [text for tag, text in page.texts if tag == "bdi" and text.startswith("p-")]
        assert "The weakest 60 of 70 personas; totals cover all personas." in page.text
        assert {f"p-{n:02}" for n in range(10, 70)} <= set(rows)

    async def test_the_sample_reaches_every_cell(self) -> None:
        job = sample(5, 3)
        cards = (await page_of(job.responses, job.results)).cards()
        shown = {(card["data-model"], card["data-persona"], card["data-task"]) for card in cards}
        assert shown == {(r.model, r.persona, r.task) for r in job.responses}

    async def test_memory_does_not_grow_with_the_job(self) -> None:
        response = response_of("No. No.", ("No.", 4), ("No.", 1))
        results = results_of([response])

        held: list[int] = []

        async def many() -> AsyncIterator[JudgedResponse]:
            for number in range(5_001):
                if number % 1_000 == 0:
                    gc.collect()  # what is merely not collected yet is no growth
                    held.append(tracemalloc.get_traced_memory()[0])
                yield replace(response, id=f"r-{number}")

        tracemalloc.start()
        try:
            await html_report(results, many())
        finally:
            tracemalloc.stop()
        # 4,000 responses that were kept would be 1 MB and more.
        assert held[5] - held[1] < 200_000


class TestColours:
    @pytest.mark.parametrize("scheme", [0, 1])
    def test_numbers_on_the_heat_maps_colours_can_be_read(self, scheme: int) -> None:
        """WCAG 2.2, success criterion 1.4.3: a contrast of at least 4.5 : 1."""
        styles = source("shared", "tokens.css")
        named = [dict(re.findall(r"--([\w-]+): (#\w{6});", part)) for part in styles.split("@media")[:2]]
        colours = named[0] | named[scheme]
        inks: dict[str, str] = dict.fromkeys("98765", str(colours["on-pale"])) | {"4": "#191511"}
        inks |= dict.fromkeys("3210", str(colours["on-strong"]))
        for step, ink in inks.items():
            assert contrast(ink, colours[f"h{step}"]) >= 4.5, step
        for text, ground in (
            ("quiet", "page"),
            ("accent", "page"),
            ("ink", "below"),
            ("ink", "above"),
            ("ink", "in"),
            ("below-line", "page"),
            ("above-line", "page"),
        ):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
