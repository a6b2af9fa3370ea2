"""PersonaGym in the HTML report: who plays its personas best, and why the judges think so."""

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from app.domain.judging.judged_response import JudgedResponse
from app.reports.views.persona_scores import PERSONA_ROWS, persona_scores, score_step
from app.reports.views.response_sample import SAMPLE
from tests.unit.gym_sample import JUDGES, graded_response, gym_results_of
from tests.unit.reports.page import Page, html_report, shape
from tests.unit.reports.sample import response_of, results_of, stream
from tests.unit.results_sample import read

STEADY, DRIFTING = "simulated/steady", "simulated/drifting"


def document(responses: Sequence[JudgedResponse], atomic: Sequence[JudgedResponse] = ()) -> dict[str, Any]:
    return results_of(atomic) | gym_results_of(responses)


async def page_of(responses: Sequence[JudgedResponse], atomic: Sequence[JudgedResponse] = ()) -> Page:
    found = [*responses, *atomic]
    return Page(await html_report(document(responses, atomic), stream(found)))


def two_models() -> list[JudgedResponse]:
    """Two personas and tasks; steady has grades of 5 and 4 by the two judges, and drifting, as gym-02, of 2 and 1."""
    return [
        graded_response(
            *((2, 1) if (model, persona) == (DRIFTING, "gym-02") else (5, 4)),
            id=f"{model}/{persona}/{task}",
            model=model,
            persona=persona,
            task=task,
        )
        for model, persona, task in product(
            (STEADY, DRIFTING), ("gym-01", "gym-02"), ("expected_action", "toxicity_control")
        )
    ]


class TestVerdict:
    async def test_names_the_models_and_their_persona_scores(self) -> None:
        # Steady: 4.5 for both personas. Drifting: (4.5 + 1.5) / 2.
        text = (await page_of(two_models())).text
        assert (
            "simulated/steady has the highest PersonaScore: 4.50 out of 5; simulated/drifting has 3.00, "
            "but there are too few personas to compare the two."
        ) in text
        assert "The paper averages over 5 tasks, so its PersonaScores are not comparable." in text

    async def test_calls_nobody_equal_or_ahead_where_too_few_grades_count(self) -> None:
        # Drifting has no grade as the first five personas, where it would be the worse; of the others it has 4 throughout.
        responses = [
            graded_response(
                *((None, None) if silent else (4, 4) if model == DRIFTING else (3 if n < 5 else 5,) * 2),
                id=f"{model}/{n}",
                model=model,
                persona=f"gym-{n:02}",
            )
            for model, n in product((STEADY, DRIFTING), range(10))
            for silent in [model == DRIFTING and n < 5]
        ]
        text = (await page_of(responses)).text
        assert (
            "No model is ranked first: coverage is too low (simulated/drifting: 50.0 % of planned grades). "
            "On the personas that all models have, simulated/steady has a PersonaScore of 5.00 and simulated/drifting of 4.00."
        ) in text
        assert "not significant" not in text

    async def test_says_nothing_of_sentences_that_nobody_judged(self) -> None:
        page = await page_of(two_models())
        assert "ACC" not in page.text
        assert "out of character" not in page.text
        assert "Excluded data" not in page.text

    async def test_a_job_with_atomic_tasks_keeps_its_own(self) -> None:
        text = (await page_of(two_models(), [response_of("Yes. No.", ("Yes.", 5), ("No.", 1))])).text
        assert "simulated/steady stays in character in 50 % of sentences on average (ACCatom)." in text
        assert "PersonaScore from" not in text
        assert "Mean score from 1 to 5" in text

    async def test_without_a_grade_there_is_nothing_to_compare(self) -> None:
        assert "No model has a PersonaScore yet" in (await page_of([graded_response(None)])).text
        assert "No model has a PersonaScore yet" in (await page_of([])).text


class TestTables:
    async def test_a_model_has_mean_deviation_personas_and_refusals(self) -> None:
        refused = graded_response(1, 1, id="no", task="toxicity_control", item="Q-2", status="refused")
        text = (await page_of([*two_models(), refused])).text
        # Drifting: 4.5 and 1.5 have the mean 3 and the sample deviation √(2 · 1.5²) = 2.12.
        assert "3.00 (2.12)n = 2" in text
        assert "20.0 %of 5" in text  # one of steady's five responses

    async def test_a_persona_without_a_score_is_left_out_and_its_dash_says_why(self) -> None:
        responses = [graded_response(4, id="1"), graded_response(None, id="2", persona="gym-02")]
        page = await page_of(responses)
        assert "n = 1, 1 left out" in page.text
        titles = [attrs["title"] for tag, attrs in page.elements if tag == "abbr"]
        assert "no evaluator gave any of the task's responses a grade" in titles

    async def test_the_worst_personas_come_first_and_the_cut_is_told(self) -> None:
        responses = [
            graded_response(1 + n % 5, id=str(n), persona=f"gym-{n:02}") for n in range(PERSONA_ROWS + 5)
        ]
        found = persona_scores(read(document(responses)))
        assert found is not None
        scores = [row.persona_score.value or 0.0 for row in found.personas]
        assert scores == sorted(scores)
        assert scores[0] == 1
        assert "40 of 45 shown" in (await page_of(responses)).text

    async def test_judges_agreement_is_shown_by_task(self) -> None:
        # 5 and 4, 5 and 4, 5 and 4, 2 and 1: always one point, in the same order. Each judge's variance is 27/16, so the
        # expected squared difference is 27/8 + 1 and κ = 1 - 1 / (35/8) = 27/35 = 0.77.
        figures = re.findall(r"judge-a – simulated/judge-b([\d.]+)", (await page_of(two_models())).text)
        assert figures == ["0.77" + "1.00" + "1.00" + "4"] * 2  # one row for each of the two tasks

    async def test_there_is_none_without_personagym_tasks(self) -> None:
        atomic = [response_of("Yes.", ("Yes.", 5))]
        page = Page(await html_report(results_of(atomic), stream(atomic)))
        assert "PersonaScore" not in page.text

    @pytest.mark.parametrize(("score", "step"), [(1.0, 0), (3.0, 5), (4.99, 9), (5.0, 9)])
    def test_scores_have_the_colours_of_the_whole_scale(self, score: float, step: int) -> None:
        assert score_step(score) == step


class TestCards:
    async def test_a_response_has_its_question_its_text_and_every_grade_with_its_reasons(self) -> None:
        page = await page_of([graded_response(4, 1, justification="She grows her own.")])
        for words in ("What would you buy at this market?", "Tomatoes, as ever.", "2.50 of 5"):
            assert words in page.text
        grades = [attrs for tag, attrs in page.elements if (tag, attrs.get("class")) == ("details", "grade")]
        assert len(grades) == len(JUDGES)
        assert page.text.count("She grows her own.") == len(JUDGES)

    async def test_a_grade_that_could_not_be_read_shows_the_reply(self) -> None:
        text = (await page_of([graded_response(None, justification="Marvellous!")])).text
        assert "unparsed simulated/judge-a" in text
        assert "Marvellous!" in text

    async def test_judged_sentences_stand_beside_the_grades(self) -> None:
        atomic = response_of("Yes. No.", ("Yes.", 5), ("No.", 1))
        graded = graded_response(4, text=atomic.text, units=atomic.units, levels=atomic.levels)
        results = document([graded]) | {"cells": results_of([atomic])["cells"]}
        page = Page(await html_report(results, stream([graded])))
        assert [a["class"] for a in page.sentences()][-2:] == ["s in", "s below d3"]
        assert "4.00 of 5" in page.text

    async def test_the_lowest_grades_come_first(self) -> None:
        responses = [graded_response(score, id=str(score), persona=f"gym-{score}") for score in (3, 5, 1)]
        assert [card["data-persona"] for card in (await page_of(responses)).cards()] == [
            "gym-1",
            "gym-3",
            "gym-5",
        ]

    async def test_a_large_job_is_sampled_and_not_kept(self) -> None:
        # 50 personas: an even sample of 400 is 8 of each one's 12 perfect answers.
        responses = [
            graded_response(5, id=f"{persona}/{n}", persona=f"gym-{persona:02}", item=f"Q-{n}")
            for persona in range(50)
            for n in range(12)
        ]
        assert len((await page_of(responses)).cards()) == SAMPLE

    async def test_hostile_texts_stay_text(self) -> None:
        hostile = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}", "\u202etxet")

        async def page(text: str) -> Page:
            outside = {"question": text, "item_text": text, "text": text, "persona": text, "model": text}
            return await page_of([graded_response(3, None, justification=text, **outside)])

        plain = await page("harmless")
        for text in hostile:
            found = await page(text)
            assert shape(found) == shape(plain)
            assert {tag for tag, said in found.texts if text in said} <= {"bdi", "option", "p", "text"}
