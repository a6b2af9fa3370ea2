"""The report's section on what people say of the judges."""

import pytest

from app.domain.labels.agreement import Sampling, annotation_agreement
from app.domain.labels.annotation import Annotation, Answer, Place
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
    _, title, after = text.partition("Agreement between annotators and judges")
    return title + after[:1500]


class TestPeople:
    async def test_it_stands_where_somebody_has_annotated(self) -> None:
        text = await section(agreement("E", "judge/one"))
        assert (
            "pairs, E1–1judge/one1.00 not for pairs– not for pairs10" in text
        )  # a table's cells, one behind the other
        assert "sentences, E21.00[" in text
        assert "]11judge/one1.00[" in text

    async def test_it_does_not_elsewhere(self) -> None:
        assert await section(None) == ""

    async def test_hostile_names_stay_text(self) -> None:
        assert await section([group for name in HOSTILE for group in agreement(name, name)])
