"""How many personas, wordings and iterations a plan names for a difference, and whether they find it."""

import numpy as np
import pytest

from app.domain.statistics.design import Population
from app.domain.statistics.power import Noise, Size
from benchmarks.inference.comparisons import Design, planned_power
from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_populations import EFFECTS, OTHER_EFFECTS, judged, responses

JOB = job_body(
    personas=["big-five"],
    tasks=["questionnaire", "essay"],
    models=["simulated/sim-faithful", "simulated/sim-drifting"],
    instructions="all",
)


def planned(api: Service, job: Json = JOB, **detect: object) -> Json:
    answer = api.post("/v1/jobs/plan", job | {"detect": {"difference": 0.08} | detect})
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()["detection"]
    return found


def noise_of(found: Json) -> Noise:
    sd = {each["of"]: each["sd"] for each in found["noise"]}
    return Noise(sd["personas"], sd["wordings"], sd["personas_and_wordings"], sd["runs"], sd["levels"])


class TestOptions:
    def test_the_cheapest_comes_first_and_each_takes_what_its_own_plan_says(self, api: Service) -> None:
        found = planned(api)
        assert found["population"] == "personas like these, wordings like these"
        assert found["planned"]["personas"] == 15
        assert found["planned"]["power"] < 0.8
        calls = [option["calls"] for option in found["options"]]
        assert calls == sorted(calls)
        assert len(calls) > 3
        assert found["reason"] is None
        for option in found["options"]:
            assert option["power"] >= 0.8
            of_fifteen = JOB | {
                "instructions": [f"You are {{persona}}, {n}." for n in range(option["wordings"])],
                "iterations": option["iterations"],
            }
            calls_of_fifteen = api.post("/v1/jobs/plan", of_fifteen).json()["calls"]
            assert option["calls"] == pytest.approx(calls_of_fifteen * option["personas"] / 15, rel=0.001)

    def test_a_control_arm_is_asked_once_for_all_personas(self, api: Service) -> None:
        job = JOB | {"control": True}
        options = planned(api, job)["options"]
        assert any(option["personas"] != 15 for option in options)
        for option in options:
            instructions = [f"You are {{persona}}, {n}." for n in range(option["wordings"])]
            body = job | {"instructions": instructions, "iterations": option["iterations"]}
            plan = api.post("/v1/jobs/plan", body).json()
            control = plan["control"]["calls"]
            expected = control + (plan["calls"] - control) * option["personas"] / 15
            assert option["calls"] == pytest.approx(expected, rel=0.001)

    def test_none_is_larger_than_another_in_everything(self, api: Service) -> None:
        sizes = [
            (option["personas"], option["wordings"], option["iterations"])
            for option in planned(api)["options"]
        ]
        for one in sizes:
            assert not any(other != one and all(map(int.__le__, other, one)) for other in sizes)

    @pytest.mark.parametrize("population", ["both", "personas"])
    def test_the_stated_power_is_true(self, api: Service, population: str) -> None:
        """It was 63 % where 80 % were stated."""
        found = planned(api, population=population, difference=0.1)
        option = min(found["options"], key=lambda each: each["personas"] * each["wordings"])
        size = Size(option["personas"], 3, option["wordings"], option["iterations"])
        over = Population.BOTH if population == "both" else Population.PERSONAS
        noise = noise_of(found)
        if (
            over is Population.PERSONAS
        ):  # which has these wordings, whose own effect is part of the difference
            noise = noise._replace(wordings=0.0)
        design = Design(noise, size, over, 0.1, 0.8)
        same_size, _, share = planned_power(np.random.default_rng(2), design, 400)
        assert same_size == size
        assert share == pytest.approx(option["power"], abs=0.03 + 2 * 0.02)

    def test_the_same_question_has_the_same_answer(self, api: Service) -> None:
        assert planned(api) == planned(api)

    def test_more_models_at_once_take_more(self, api: Service) -> None:
        names = [{"model": "simulated/sim-faithful", "label": f"m{n}"} for n in range(6)]
        alone, of_six = planned(api), planned(api, JOB | {"models": names})
        assert (alone["models"], of_six["models"]) == (2, 6)
        assert of_six["planned"]["power"] < alone["planned"]["power"] - 0.1
        for population in ("both", "personas"):
            pair = planned(api, JOB | {"models": names}, models=2, population=population)
            assert pair["planned"]["power"] == planned(api, population=population)["planned"]["power"]

    def test_five_personas_find_nothing_by_signs_and_it_says_why(self, api: Service) -> None:
        personas = ["O-low", "C-low", "E-low", "A-low", "N-low"]
        found = planned(api, JOB | {"personas": personas}, population="personas")
        assert found["planned"]["power"] is None
        assert found["planned"]["reason"] == "too_few_personas: 5 personas cannot give a p-value below 0.062"
        assert min(option["personas"] for option in found["options"]) > 5

    def test_one_persona_on_a_level_is_no_ground_for_others_like_it(self, api: Service) -> None:
        personas = ["O-low", "C-low", "E-low", "A-low", "N-low", "N-high"]
        found = planned(api, JOB | {"personas": personas})
        assert found["planned"]["reason"].startswith("one_persona_on_a_level: high;")

    def test_what_no_job_finds_says_how_seldom_the_largest_does(self, api: Service) -> None:
        found = planned(api, difference=0.001)
        assert found["options"] == []
        assert found["reason"].startswith(
            "not_reached: 999 personas, 24 wordings and 20 iterations find 0.001 in"
        )

    def test_what_takes_too_many_calls_says_how_many(self, api: Service) -> None:
        """The service of these tests allows 200,000."""
        found = planned(api, difference=0.02, power=0.99, population="personas")
        assert found["options"] == []
        assert found["reason"].startswith("too_many_calls: it takes ")

    def test_a_plan_that_is_not_asked_has_none(self, api: Service) -> None:
        assert api.post("/v1/jobs/plan", JOB).json()["detection"] is None


class TestNoise:
    def test_without_a_job_the_paper_tells_of_personas_and_the_rest_is_assumed(self, api: Service) -> None:
        sources = {each["of"]: each["source"] for each in planned(api)["noise"]}
        assert {of for of, source in sources.items() if source == "published"} == {"personas", "levels"}
        assert {of for of, source in sources.items() if source == "assumed"} == {
            *("wordings", "personas_and_wordings", "runs")
        }

    def test_a_job_tells_all_of_it(self, stack: Service) -> None:
        id_ = judged(stack, responses("one", EFFECTS) + responses("other", OTHER_EFFECTS))["id"]
        job = JOB | {"tasks": ["social_media_post"]}
        usual, found = planned(stack, job, difference=0.2), planned(stack, job, difference=0.2, from_job=id_)
        assert {each["source"] for each in found["noise"]} == {"from_job"}
        # The other model has half a text more in character under some wordings, and three quarters less under another.
        effects = np.subtract(OTHER_EFFECTS, EFFECTS) / 4
        assert noise_of(found).wordings == pytest.approx(np.std(effects, ddof=1), rel=0.3)
        assert found["planned"]["power"] < usual["planned"]["power"] - 0.2


class TestRefusals:
    @pytest.mark.parametrize(
        ("detect", "pointer"),
        [
            ({}, "/detect/difference"),
            ({"difference": 0}, "/detect/difference"),
            ({"difference": -0.1}, "/detect/difference"),
            ({"difference": 1.01}, "/detect/difference"),
            ({"difference": "0.1"}, "/detect/difference"),
            ({"difference": 0.1, "power": 1}, "/detect/power"),
            ({"difference": 0.1, "models": 1}, "/detect/models"),
            ({"difference": 0.1, "metric": "rc"}, "/detect/metric"),
            ({"difference": 0.1, "population": "runs"}, "/detect/population"),
            ({"difference": 0.1, "from_job": "job_01kxyz0abcdefghjkmnpqrstvw"}, "/detect/from_job"),
            ({"difference": 0.1, "from_job": "job_\u0000"}, "/detect/from_job"),
            ({"difference": 0.1, "from": "x"}, "/detect/from"),
        ],
    )
    def test_bad_input_names_the_field(self, api: Service, detect: Json, pointer: str) -> None:
        answer = api.post("/v1/jobs/plan", JOB | {"detect": detect})
        assert answer.status_code == 422
        assert pointers(answer) == [pointer]

    def test_a_job_of_other_kinds_is_refused(self, api: Service) -> None:
        gym = JOB | {"tasks": ["expected_action"], "reasoner": "simulated/sim-reasoner"}
        texts = {"persona": "O-low", "task": "essay", "text": "I like it."}
        provided = {name: value for name, value in JOB.items() if name not in {"models", "instructions"}}
        for job in (gym, provided | {"responses": [texts]}):
            answer = api.post("/v1/jobs/plan", job | {"detect": {"difference": 0.1}})
            assert answer.status_code == 422, answer.text
            assert pointers(answer) == ["/detect"]

    def test_a_job_itself_has_no_such_field(self, api: Service) -> None:
        answer = api.post("/v1/jobs", JOB | {"detect": {"difference": 0.1}})
        assert answer.status_code == 422
        assert pointers(answer) == ["/detect"]

    def test_a_job_that_runs_or_has_one_model_tells_nothing(self, api: Service, stack: Service) -> None:
        running = api.submit(job_body())["id"]
        alone = judged(stack, responses("one", EFFECTS))["id"]
        for service, id_, words in ((api, running, "only a finished job"), (stack, alone, "no two models")):
            answer = service.post("/v1/jobs/plan", JOB | {"detect": {"difference": 0.1, "from_job": id_}})
            assert answer.status_code == 422
            assert pointers(answer) == ["/detect/from_job"]
            assert words in answer.text
