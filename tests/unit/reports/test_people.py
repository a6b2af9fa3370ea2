"""The report's section on what people say of the judges."""

import pytest

from app.domain.labels.agreement import Sampling, annotation_agreement
from app.domain.labels.annotation import Annotation, Answer, Place
from app.domain.metrics.metric import Metric
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import sample, stream

pytestmark = pytest.mark.usefixtures("_drawn_once")


def agreement(dimension: str, judge: str) -> list[dict[str, object]]:
    """Ten sentences and a pair, by two people who say what the judge says, and one whom the judge did not score."""
    places = [Place(0, n, 0, 0) for n in range(11)]
    scores = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    found = [
        Annotation(name, dimension, place, None, Answer.SCORED, (*scores, 3)[n])
        for name in ("anna", "ben")
        for n, place in enumerate(places)
    ]
    found.append(Annotation("anna", dimension, places[0], places[4], Answer.SECOND, None))
    given: dict[tuple[str | None, Place], float] = {
        (dimension, place): score for place, score in zip(places, scores, strict=False)
    }
    return [
        group.model_dump(exclude_unset=True)
        for group in annotation_agreement(found, {}, {judge: given}, 0, Sampling())
    ]


async def section(people: list[dict[str, object]] | None) -> str:
    made = sample()
    results = made.results | ({} if people is None else {"human_agreement": people})
    text = Page(await html_report(results, stream(made.responses))).text
    _, title, after = text.partition("Agreement between annotators and judges τ and ρ")
    return title + after[:1500]


def calibrated(model: str, dimension: str | None, value: float | None) -> dict[str, object]:
    figure = Metric.missing("no_label: nobody") if value is None else Metric.of(value, 1234)
    return {
        "dimension": dimension,
        "model": model,
        "half_width": 0.03,
        "metric": "acc_atom",
        "judged": None if value is None else 0.5,
        "calibrated": figure.model_dump(),
        "ci95_texts": None if value is None else [0.6, 0.8],
        "labels_needed": None if value is None else 4321,
        "labels_needed_at_best": None if value is None else 3210,
    }


class TestCalibrated:
    async def page(self, *rows: dict[str, object]) -> str:
        made = sample()
        page = await html_report(made.results, stream(made.responses), calibrated=rows)
        return Page(page).text

    async def test_it_stands_beside_what_the_judges_say_with_its_labels(self) -> None:
        text = await self.page(calibrated("bot", None, 0.7), calibrated("bot", "E", None))
        _, title, after = text.partition("Human scores estimated for all texts")
        assert title
        assert "allbotACCatom0.500.70[0.60, 0.80]1,2344,3213,210" in after
        assert "EbotACCatom––0–" in after

    async def test_it_does_not_where_nobody_has_labelled(self) -> None:
        assert "What people would say" not in await self.page()

    async def test_hostile_names_stay_text(self) -> None:
        text = await self.page(*(calibrated(name, name, 0.7) for name in HOSTILE))
        assert "<script>" in text, "said, and no element"


class TestPeople:
    async def test_it_stands_where_somebody_has_annotated(self) -> None:
        text = await section(agreement("E", "judge/one"))
        assert (
            "pairs, E1–1judge/one1.00 not for pairs– not for pairs10" in text
        )  # a table's cells, one behind the other
        assert "sentences, E21.00[" in text
        assert "]11judge/one1.00[" in text

    async def test_it_counts_what_people_call_not_applicable_and_a_judge_scores(self) -> None:
        places = [Place(0, n, 0, 0) for n in range(4)]
        found = [Annotation("anna", "E", places[0], None, Answer.SCORED, 4)]
        found += [Annotation("anna", "E", place, None, Answer.NOT_APPLICABLE, None) for place in places[1:]]
        scores: dict[tuple[str | None, Place], float] = {("E", places[0]): 4, ("E", places[1]): 3}
        declined = {"judge/one": {("E", places[2]), ("E", places[3])}}
        groups = annotation_agreement(found, {}, {"judge/one": scores}, 0, Sampling(), declined)
        text = await section([group.model_dump(exclude_unset=True) for group in groups])
        _, title, after = text.partition("Sentences without the trait")
        assert title
        # One of three that she calls not applicable has a score; three of all four are answered alike.
        assert "Ejudge/one33 % of 30.75" in after

    async def test_it_does_not_elsewhere(self) -> None:
        assert await section(None) == ""

    async def test_hostile_names_stay_text(self) -> None:
        assert await section([group for name in HOSTILE for group in agreement(name, name)])
