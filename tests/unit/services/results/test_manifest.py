from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.domain.jobs.resolve import resolve
from app.domain.jobs.specification import decode_spec, encode_spec
from app.domain.providers.model import Takes
from app.services.providers.model_parameters import sampled_models, table_of
from app.services.results.manifest import deviations
from tests.job_requests import a_model
from tests.unit.domain.job_samples import CATALOG, draft

FAMILIES: Mapping[str, Takes] = {
    "m": Takes(table="t/1"),
    "refusing": Takes("refusers", "t/1", refuses=("temperature", "top_p")),
    "either": Takes("choosers", "t/1", one_of=("temperature", "top_p")),
    "ignoring": Takes("thinkers", "t/1", ignores=("temperature",)),
}
KNOWING = replace(CATALOG, takes=lambda _connection, name, _family: FAMILIES.get(name, FAMILIES["m"]))


def deviations_of(model: str = "m", judge: str = "m", **changes: object) -> list[str]:
    drafts = {"models": (a_model(f"acme/{model}"),), "judges": (a_model(f"acme/{judge}"),)}
    resolution = resolve(draft(**(drafts | changes)), KNOWING)
    return deviations(resolution.spec, resolution.cells)


class TestJudges:
    def test_at_temperature_0_depart_from_nothing(self) -> None:
        assert not any("temperature" in one for one in deviations_of())

    @pytest.mark.parametrize(
        ("judge", "said"),
        [
            (
                "refusing",
                (
                    "Judge acme/refusing ran at the provider's default temperature"
                    " (models of the family refusers refuse it); the paper's at 0."
                ),
            ),
            (
                "ignoring",
                "Judge acme/ignoring ignores the temperature that it is sent; the paper's ran at 0.",
            ),
        ],
    )
    def test_that_do_not_take_it_depart(self, judge: str, said: str) -> None:
        assert said in deviations_of(judge=judge)

    def test_that_are_told_to_leave_it_out_depart(self) -> None:
        left = a_model("acme/m", temperature=None)
        assert "Judge acme/m ran at the provider's default temperature; the paper's at 0." in deviations_of(
            judges=(left,)
        )


class TestModels:
    def test_that_are_sent_another_temperature_depart(self) -> None:
        warm = a_model("acme/m", temperature=0.5)
        assert "acme/m ran with temperature 0.5; the paper's models with 1." in deviations_of(models=(warm,))

    def test_that_refuse_it_ran_as_the_papers(self) -> None:
        warm = a_model("acme/refusing", temperature=0.5)
        assert not any("ran with temperature" in one for one in deviations_of(models=(warm,)))


def test_persona_agents_that_take_one_of_two_depart() -> None:
    found = deviations_of(
        "either", tasks=("toxicity_control",), reasoner=a_model("acme/m"), instructions=None
    )
    said = (
        "PersonaGym: acme/either ran with the provider's default top_p (models of the family choosers take either"
        " temperature or top_p; temperature is sent); the paper's with 0.9."
    )
    assert [one for one in found if "acme/either ran" in one] == [said]


def test_what_models_take_is_kept_with_the_job() -> None:
    spec = resolve(draft(judges=(a_model("acme/refusing"),)), KNOWING).spec
    kept = decode_spec(encode_spec(spec))
    assert kept == spec
    assert table_of(kept) == "t/1"
    assert [(role, model.name) for role, model in sampled_models(kept)] == [
        ("model", "m"),
        ("judge", "refusing"),
    ]


def test_a_task_that_the_paper_lacks_or_words_otherwise_departs() -> None:
    essay = CATALOG.tasks["essay"]
    own = {"diary": replace(essay, id="diary"), "essay": replace(essay, prompt="Be brief. {context}")}
    resolution = resolve(
        draft(tasks=("diary", "essay", "questionnaire")), replace(CATALOG, tasks={**CATALOG.tasks, **own})
    )
    kept = decode_spec(encode_spec(resolution.spec))
    assert "The prompts of diary, essay are not the paper's." in deviations(kept, resolution.cells)


def test_so_does_a_task_that_personagym_s_lacks() -> None:
    task = replace(CATALOG.gym.tasks["toxicity_control"], id="humour")
    gym = replace(CATALOG.gym, tasks={**CATALOG.gym.tasks, "humour": task})
    wanted = draft(tasks=("humour", "toxicity_control"), reasoner=a_model("acme/m"), instructions=None)
    resolution = resolve(wanted, replace(CATALOG, gym=gym))
    kept = decode_spec(encode_spec(resolution.spec))
    assert "PersonaGym: The prompts of humour are not the paper's." in deviations(kept, resolution.cells)


def test_another_segmenter_is_named() -> None:
    resolution = resolve(draft(), CATALOG)
    other = replace(resolution.spec.instrument, segmenter="lines-v1")
    found = deviations(replace(resolution.spec, instrument=other), resolution.cells)
    assert "Sentences are split by lines-v1; the paper's are those of NLTK's English model." in found
    assert any("Punkt" in one for one in deviations(resolution.spec, resolution.cells))


def test_the_papers_own_tasks_do_not() -> None:
    tasks = ("questionnaire", "essay", "social_media_post", *CATALOG.gym.tasks)
    resolution = resolve(draft(tasks=tasks, reasoner=a_model("acme/m")), CATALOG)
    kept = decode_spec(encode_spec(resolution.spec))
    assert not any("The prompts of" in one for one in deviations(kept, resolution.cells))


def test_what_a_job_departs_from_is_the_protocol_of_its_own_tasks() -> None:
    def departs(*tasks: str, **changes: object) -> tuple[bool, bool]:
        resolution = resolve(draft(tasks=tasks, reasoner=a_model("acme/m"), **changes), CATALOG)
        found = deviations(resolution.spec, resolution.cells)
        return any("Punkt" in one for one in found), any("PersonaGym: " in one for one in found)

    assert departs("toxicity_control", instructions=None) == (False, True)
    assert departs("essay", "toxicity_control") == (True, True)


def test_base_models_depart() -> None:
    asked = replace(
        CATALOG, takes=lambda _connection, _name, _family: Takes(table="t/1", format="completions")
    )
    resolution = resolve(draft(), asked)
    assert any("as one text" in one for one in deviations(resolution.spec, resolution.cells))
