"""The report's tables of agreement with people by model and task."""

import pytest

from app.domain.labels.human_agreement import AmongAnnotators, HumanStudy, ModelAgreement, PublishedAgreement
from app.domain.metrics.metric import Metric
from app.reports.views.human_study import study_tables
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import sample, stream

pytestmark = pytest.mark.usefixtures("_drawn_once")


def figure(value: float | None) -> Metric:
    if value is None:
        return Metric.missing("too_few_items: 2 items; a rank correlation needs 3")
    return Metric.of(value, 1234).model_copy(update={"ci95": (value - 0.1, value + 0.1)})


def row(
    model: str | None,
    task: str | None,
    judge: str | None,
    value: float | None,
    *,
    kind: str = "responses",
    dimension: str | None = None,
) -> ModelAgreement:
    pairs = kind == "pairs"
    return ModelAgreement.model_validate(
        {
            "kind": kind,
            "dimension": dimension,
            "model": model,
            "task": task,
            "judge": judge,
            "personas": 100,
            "left_out": 0,
            "kendall_tau": figure(value),
            "kendall_p": None if value is None else 0.0005,
            "spearman_rho": None if pairs else figure(None if value is None else value + 0.05),
            "spearman_p": None if pairs or value is None else 0.014,
        }
    )


def among(kind: str, dimension: str | None, task: str | None) -> AmongAnnotators:
    alpha = None if kind == "pairs" else Metric.of(0.71, 45)
    return AmongAnnotators.model_validate(
        {
            "kind": kind,
            "dimension": dimension,
            "task": task,
            "annotators": 2,
            "n": 45,
            "answers": 90,
            "fleiss_kappa": Metric.of(0.62, 45),
            "alpha_ordinal": alpha,
        }
    )


STUDY = HumanStudy(
    job="job_1",
    among_annotators=[
        among("pairs", "E", None),
        among("pairs", "O", None),
        among("responses", None, "expected_action"),
    ],
    data=[
        row(None, None, "judge/one", 0.69, kind="pairs", dimension="E"),
        row(None, None, "judge/one", 0.76, kind="pairs", dimension="O"),
        row("bot", "expected_action", "judge/one", 0.4),
        row("bot", "expected_action", None, 0.5),
        row("bot", None, "judge/one", 0.6),
        row("bot", None, None, 0.7),
        row("other", "expected_action", "judge/one", None),
        row("other", "toxicity_control", "judge/one", 0.2),
        row("other", None, "judge/one", 0.1),
    ],
    published=[
        PublishedAgreement(model="GPT 3.5", task=None, spearman_rho=0.807, kendall_tau=0.758),
        PublishedAgreement(model="GPT 3.5", task="expected_action", spearman_rho=0.801, kendall_tau=0.79),
    ],
)


async def text(study: HumanStudy | None) -> str:
    made = sample()
    page = await html_report(made.results, stream(made.responses), study=study)
    _, title, after = Page(page).text.partition("Agreement with people by model and task ρ is")
    return title + after[:3000]


def test_pairs_are_one_table_by_dimension_and_responses_one_by_task_with_personascore_last() -> None:
    pairs, responses = study_tables(STUDY)
    assert (pairs.kind, pairs.columns) == ("pairs", ["E", "O"])
    assert (responses.kind, responses.columns) == (
        "responses",
        ["expected action", "toxicity control", "PersonaScore"],
    )
    assert [(each.model, each.judge) for each in responses.rows] == [
        ("bot", "judge/one"),
        ("bot", None),
        ("other", "judge/one"),
    ]
    assert responses.rows[0].cells[1] is None
    assert [len(pairs.among), len(responses.among)] == [2, 1]
    assert not pairs.published
    printed = responses.published["GPT 3.5"]
    assert [each and each.spearman_rho for each in printed] == [0.801, None, 0.807]


async def test_the_report_has_rho_and_tau_with_intervals_p_and_n() -> None:
    found = await text(STUDY)
    assert "judge/one 0.69[0.59, 0.79]p < 0.001, n 1,234" in found
    assert "mean of the judges 0.55 / 0.50[0.45, 0.65][0.40, 0.60]p 0.014 / < 0.001, n 1,234" in found
    assert "otherjudge/one – 0.25 / 0.20[" in found
    assert "GPT 3.5PersonaGym, Table 20.80 / 0.79–0.81 / 0.76" in found
    assert "expected action Fleiss’ κ 0.62, Krippendorff’s α 0.71 (2 people, 45 responses)." in found


async def test_it_is_left_out_where_nobody_has_annotated() -> None:
    assert await text(None) == ""
    assert await text(HumanStudy(job="job_1", among_annotators=[], data=[], published=[])) == ""


async def test_hostile_names_stay_text() -> None:
    rows = [row(name, name, name, 0.5) for name in HOSTILE]
    assert await text(
        HumanStudy(
            job="job_1", among_annotators=[among("responses", None, HOSTILE[0])], data=rows, published=[]
        )
    )
