"""The report's table of response lengths, beside the atomic paper's Tables 6 and 15."""

import pytest

from app.domain.results.lengths import lengths
from app.reports.views.lengths import length_table
from app.services.results.baselines import BaselineFilter, baselines
from tests.unit.reports.page import page_of
from tests.unit.reports.sample import response_of, results_of, sample
from tests.unit.results_sample import read

pytestmark = pytest.mark.usefixtures("_drawn_once")

PUBLISHED = baselines(BaselineFilter())


class TestLengths:
    def test_they_are_means_over_responses_whatever_the_judges_and_dimensions(self) -> None:
        done = sample()
        found = lengths(read(done.results).cells)
        assert {model for model, _ in found} == {"simulated/steady", "simulated/drifting"}
        for (model, task), length in found.items():
            if task != "social_media_post":
                continue
            texts = [
                len(response.units)
                for response in done.responses
                for _ in response.levels
                if (response.model, response.task) == (model, task) and response.units
            ]
            assert length.sentences == pytest.approx(sum(texts) / len(texts))
            assert 0 < length.scored < 1

    def test_what_has_no_score_counts_as_a_sentence(self) -> None:
        one = response_of("A. B. C. D.", ("A.", 5), ("B.", None), ("C.", None), ("D.", 1))
        (found,) = lengths(read(results_of([one])).cells).values()
        assert (found.sentences, found.scored, found.responses) == (4, 0.5, 1)

    def test_published_lengths_stand_beside_tasks_of_the_paper_only(self) -> None:
        table = length_table(read(sample().results), PUBLISHED)
        assert table is not None
        assert table.tasks == ["questionnaire", "essay", "social_media_post"]
        assert len(table.published) == 12
        gpt4o = dict(table.published)["GPT-4o"]  # Table 6
        assert [(each.sentences, each.scored) for each in gpt4o if each] == [
            (5.5, 0.954),
            (14.8, 0.842),
            (23.7, 0.878),
        ]
        other = length_table(read(results_of([response_of("A.", ("A.", 5), task="opera")])), PUBLISHED)
        assert other is not None
        assert (other.tasks, other.published) == (["opera"], [])


def test_of_many_tasks_the_first_are_shown_and_the_others_counted() -> None:
    many = [response_of("A.", ("A.", 5), task=f"t{n:03}") for n in range(30)]
    table = length_table(read(results_of(many)), PUBLISHED)
    assert table is not None
    assert (table.tasks, table.tasks_in_all) == ([f"t{n:03}" for n in range(8)], 30)
    assert [len(found) for _, found in table.own] == [8]


async def test_the_page_has_both() -> None:
    done = sample()
    page = await page_of(done.responses, done.results, published=PUBLISHED)
    assert "Length of responses" in page.text
    assert "Davinci-0026.4 (52.7" in page.text
    assert "Length of responses" not in (await page_of([], results_of([]))).text
