from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.domain.jobs.catalog import KeptSets
from app.domain.jobs.resolve import resolve
from app.domain.jobs.resolve_rubrics import read_rubrics
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.text_source import TextSource
from app.domain.providers.model import ModelParameters, Provenance
from app.instruments.hardened_loader import load_hardened
from app.services.results.comparison_notes import (
    Judged,
    differences,
    judged,
    notes_on_judging,
    notes_on_published,
    published,
)
from tests.job_requests import a_model, a_persona
from tests.rubrics import OFFICIAL
from tests.unit.domain.job_samples import CATALOG, draft

DAY = datetime(2026, 11, 24, 12, tzinfo=UTC)
TASKS = ("expected_action", "toxicity_control")


def graded(rubrics: Any = None, exemplars: str | None = "e", at: datetime = DAY) -> Judged:
    catalog = CATALOG
    if rubrics is not None:
        content = read_rubrics(RubricSetIn(tasks=rubrics), catalog).content
        catalog = replace(catalog, kept=KeptSets(rubrics={"rset_1": content}))
    wanted = draft(
        personas=(a_persona("nun", "a nun"),), tasks=TASKS, instructions=None, reasoner=a_model("sim/r"),
        rubrics=None if rubrics is None else "rset_1",
    )  # fmt: skip
    manifest = {"personagym": {"exemplars": {"sha256": exemplars}}}
    return judged(resolve(wanted, catalog).spec, manifest, at)


def notes(**sides: Judged) -> list[str]:
    return list(notes_on_judging(sides))


def test_the_same_judging_has_no_note() -> None:
    soon = DAY + timedelta(hours=23)
    assert notes(a=graded(), b=graded(at=soon)) == notes(a=graded(OFFICIAL), b=graded(OFFICIAL)) == []


def test_other_rubrics_are_named_by_task_and_other_exemplars_where_both_are_known() -> None:
    toxicity = {"Toxicity": OFFICIAL["Toxicity.txt"]}
    said = "The rubrics of Toxicity Control differ, which may explain a difference in their scores."
    assert notes(a=graded(), b=graded(toxicity)) == [said]
    exemplars = "The exemplars differ, which may explain a difference in PersonaGym's scores."
    assert notes(a=graded(), b=graded(exemplars="f")) == [exemplars]
    assert notes(a=graded(), b=graded(exemplars=None)) == []


def test_imported_verdicts_are_told_and_their_import_is_not_their_date() -> None:
    old = replace(
        resolve(draft(), CATALOG).spec.judges[0], imported=Provenance("scores.txt", "2024-06", None)
    )
    spec = resolve(draft(), CATALOG).spec
    brought = judged(replace(spec, judges=(old,)), {}, DAY - timedelta(days=30))
    assert notes(a=brought, b=graded()) == [
        f"a has imported verdicts, of {old.label} (scores.txt, 2024-06). Their dates and rubrics are not compared."
    ]


def test_each_difference_in_asking_and_judging_is_told_with_what_it_touches() -> None:
    """Of a job's atomic essay: what a gate on ACC_atom, and what one on PersonaScore holds for doubtful."""
    spec = resolve(draft(tasks=("essay",)), CATALOG).spec
    (judge,), (task,), (model,) = spec.judges, spec.tasks, spec.models
    warm = ModelParameters(temperature=1.5)
    others: dict[str, JobSpec] = {
        "the judges differ": replace(spec, judges=(replace(judge, label="another"),)),
        "the judges' parameters differ": replace(spec, judges=(replace(judge, parameters=warm),)),
        "the judging protocols differ": replace(spec, hardening=load_hardened()),
        "the number of sentences per judge call differs": resolve(
            draft(tasks=("essay",), judging={"sentences_per_call": 5}), CATALOG
        ).spec,
        "the instruments differ": replace(spec, instrument=replace(spec.instrument, content_hash="0")),
        "the prompts of Essay differ": replace(spec, tasks=(replace(task, scoring_prompt="Rate it."),)),
        "the versions of the segmenter, refusal rules or reply rules, or the sentences left out, differ": replace(
            spec, instrument=replace(spec.instrument, segmenter="punkt-en-wide-v1")
        ),
        "the checks for refusals by a judge differ": resolve(
            draft(tasks=("essay",), judging={"refusals": "judge_all"}), CATALOG
        ).spec,
        "the models' sampling parameters differ": replace(spec, models=(replace(model, parameters=warm),)),
    }
    for what, other in others.items():
        (found,) = differences({"a": judged(spec, {}, DAY), "b": judged(other, {}, DAY)})
        assert found.what == what
        assert found.note.lower().startswith(what.lower())
        assert found.touches(grades=False)
        assert found.decides == (what != "the models' sampling parameters differ")
    assert [
        each.touches(grades=True) for each in differences({"a": graded(), "b": graded(exemplars="f")})
    ] == [True]


def test_refusal_checks_differ_by_the_judge_that_is_asked_and_are_those_of_the_job_that_made_the_texts() -> (
    None
):
    said = "The checks for refusals by a judge differ, which may explain a difference."
    judges = a_model("acme/j"), a_model("acme/k")
    every: dict[str, Any] = {"tasks": ("essay",), "judging": {"refusals": "judge_all"}}
    one, other = (resolve(draft(judges=order, **every), CATALOG).spec for order in (judges, judges[::-1]))
    assert notes(a=judged(one, {}, DAY), b=judged(other, {}, DAY)) == [said]
    rules = resolve(draft(tasks=("essay",), judges=judges), CATALOG).spec
    source = TextSource("job_1", {}, None, 1, 0, refusals=one.refusals_told_by)
    again = replace(rules, provided=True, source=source)
    assert notes(a=judged(again, {}, DAY), b=judged(one, {}, DAY)) == []
    assert notes(a=judged(again, {}, DAY), b=judged(rules, {}, DAY)) == [said]
    unknown = replace(again, source=replace(source, refusals=None))
    assert notes(a=judged(unknown, {}, DAY), b=judged(one, {}, DAY)) == []


def test_other_dates_are_told() -> None:
    later = DAY + timedelta(days=30)
    (note,) = notes(a=graded(), b=graded(at=later))
    assert "a 2026-11-24; b 2026-12-24" in note


def test_published_models_say_what_they_were_judged_by_and_which_rubrics_differ() -> None:
    gym = notes(a=graded({"Toxicity": OFFICIAL["Toxicity.txt"]}), b=published(scores_only=True))
    assert gym == [
        "b was judged for a paper of 2024 by GPT-4o, LLaMA-3-70b; a on 2026-11-24 by acme/j.",
        "a has other rubrics than PersonaGym's released ones for Expected Action in Given Setting.",
        "a has other exemplars than b: those of the paper are not released.",
    ]
    assert len(notes(a=graded(OFFICIAL), b=published(scores_only=True))) == 2
    atomic = notes(a=published(scores_only=False), b=graded())
    assert atomic == ["a was judged for a paper of 2025 by gpt-4o-2024-08-06; b on 2026-11-24 by acme/j."]
    assert notes(a=published(scores_only=False), b=published(scores_only=False)) == []


def test_a_report_says_of_its_own_job_what_differs_from_each_paper() -> None:
    said = notes_on_published(graded({"Toxicity": OFFICIAL["Toxicity.txt"]}))
    assert said == {
        "atomic": [
            "what is published was judged for a paper of 2025 by gpt-4o-2024-08-06; this job on 2026-11-24 by acme/j."
        ],
        "personagym": [
            "what is published was judged for a paper of 2024 by GPT-4o, LLaMA-3-70b; this job on 2026-11-24 by acme/j.",
            "this job has other rubrics than PersonaGym's released ones for Expected Action in Given Setting.",
            "this job has other exemplars than what is published: those of the paper are not released.",
        ],
    }
