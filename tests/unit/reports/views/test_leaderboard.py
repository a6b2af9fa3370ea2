"""Leaderboards: a job's models among published ones and baselines of one's own."""

from dataclasses import replace

import pytest

from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.contract import Results
from app.domain.results.gate import HeldAgainst
from app.reports.figures.plots import published_plot
from app.reports.views.leaderboard import Leaderboard, leaderboards
from app.services.results.baselines import BaselineFilter, baselines
from tests.unit.gym_sample import graded_response, gym_results_of
from tests.unit.reports.sample import response_of, results_of
from tests.unit.results_sample import read

TOLD = HeldAgainst("release-3", "bot", "job_2", ["acme/judge-1"], "2026-11-01", by_others=True)


def job(model: str, score: int, *personas: str) -> Results:
    """A job with a sentence for each persona, all with the same score."""
    texts = [
        response_of("Rain.", ("Rain.", score), persona=each, model=model, levels={"E": each[2:]})
        for each in personas
    ]
    return read(results_of(texts))


def named(found: Results) -> BaselineFigures:
    scores = found.persona_score_totals
    return BaselineFigures(TOLD, found.simulated, found.cells, scores[0] if scores else None)


def board(results: Results, *own: BaselineFigures) -> Leaderboard:
    (found,) = leaderboards(results, baselines(BaselineFilter()), own)
    return found


class TestAtomic:
    def test_a_baseline_stands_among_the_rows_and_is_not_counted_as_published(self) -> None:
        wanted = job("own", 5, "E-high")
        alone, beside = board(wanted), board(wanted, named(job("bot", 1, "E-high", "E-low")))
        (row,) = [each for each in beside.rows if each.baseline is not None]
        assert (row.model, row.baseline, row.published) == ("bot", TOLD, False)
        # Of E-high alone, which the job has: 1 of 5 is out of character; its E-low would be in character.
        assert (row.entries["acc_atom"].value, row.entries["acc_atom"].n) == (0.0, 1)
        assert beside.rows[-1] is row
        assert [each for each in beside.rows if each is not row] == list(alone.rows)
        assert (beside.published, beside.places, beside.published_ranges) == (
            alone.published,
            alone.places,
            alone.published_ranges,
        )
        assert (beside.baselines, beside.lacking) == ([TOLD], [])

    def test_one_that_lacks_a_shared_cell_is_named_and_left_out(self) -> None:
        wanted = job("own", 5, "E-high", "E-low")
        beside = board(wanted, named(job("bot", 1, "E-high")))
        assert (beside.baselines, beside.lacking) == ([], ["release-3"])
        assert beside.rows == board(wanted).rows

    def test_the_picture_tells_it_from_published_models(self) -> None:
        drawn = published_plot(board(job("own", 5, "E-high"), named(job("bot", 1, "E-high"))))
        assert drawn is not None
        assert "bot (baseline release-3) 0.00" in drawn.description
        assert "GPT-4o (published)" in drawn.description
        assert "and your baselines" in drawn.title


class TestPersonaGym:
    @pytest.fixture
    def wanted(self) -> Results:
        return read(gym_results_of([graded_response(score, persona=f"gym-{score}") for score in (2, 3, 4)]))

    def test_a_baseline_has_its_scores_of_the_same_tasks(self, wanted: Results) -> None:
        beside = board(wanted, named(wanted))
        (row,) = [each for each in beside.rows if each.baseline is not None]
        (task,) = beside.metrics
        assert (row.entries[task].value, row.entries[task].n) == (3.0, 3)
        assert beside.published == board(wanted).published

    def test_one_without_these_scores_is_named_and_left_out(self, wanted: Results) -> None:
        beside = board(wanted, replace(named(wanted), score=None))
        assert (beside.baselines, beside.lacking) == ([], ["release-3"])
