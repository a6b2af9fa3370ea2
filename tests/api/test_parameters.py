"""What a plan says of models' parameters, and what of them is refused."""

from typing import Any

from tests.api.service import Service, job_body, pointers

O3 = {"model": "acme/acme-judge", "family": "o3"}


def planned(api: Service, **changes: Any) -> Any:
    answer = api.post("/v1/jobs/plan", job_body(**changes))
    assert answer.status_code == 200, answer.text
    return answer.json()


class TestPlan:
    def test_says_what_is_sent_to_each_model_in_its_role(self, api: Service) -> None:
        plan = planned(api, models=[{"model": "acme/acme-1", "max_tokens": 5}], judges=["acme/acme-judge"])
        assert [(one["role"], one["sent"], one["not_sent"]) for one in plan["parameters"]] == [
            ("model", {"max_tokens": 5}, []),
            ("judge", {"temperature": 0.0}, []),
        ]
        assert plan["model_table"]

    def test_says_what_a_family_refuses_and_why(self, api: Service) -> None:
        plan = planned(api, judges=[O3 | {"max_tokens": 9}])
        (judge,) = [one for one in plan["parameters"] if one["role"] == "judge"]
        assert (judge["family"], judge["sent"]) == ("o-series", {"max_completion_tokens": 9})
        reason = "models of the family o-series refuse it"
        assert judge["not_sent"] == [{"parameter": "temperature", "value": 0.0, "reason": reason}]
        assert f"acme/acme-judge: temperature 0.0 is not sent: {reason}." in plan["warnings"]

    def test_a_parameter_that_is_null_is_not_sent_and_not_missed(self, api: Service) -> None:
        plan = planned(api, judges=[{"model": "acme/acme-judge", "temperature": None}])
        (judge,) = [one for one in plan["parameters"] if one["role"] == "judge"]
        assert (judge["sent"], judge["not_sent"]) == ({}, [])

    def test_persona_agents_of_claude_4_5_are_sent_one_of_the_two(self, api: Service) -> None:
        agent = {"model": "acme/acme-1", "family": "claude-haiku-4-5"}
        plan = planned(
            api, tasks=["toxicity_control"], models=[agent], reasoner="acme/acme-1", instructions=None
        )
        (found,) = [one for one in plan["parameters"] if one["role"] == "persona_agent"]
        assert found["sent"] == {"temperature": 0.9}
        assert [one["parameter"] for one in found["not_sent"]] == ["top_p"]


class TestRefusals:
    def test_a_temperature_that_anthropics_format_does_not_take(self, api: Service) -> None:
        body = job_body(models=[{"model": "simulated-anthropic/sim-faithful", "temperature": 1.5}])
        answer = api.post("/v1/jobs", body)
        assert answer.status_code == 422
        assert pointers(answer) == ["/models/0/temperature"]
        assert "accepts at most 1" in answer.json()["errors"][0]["message"]

    def test_reuse_by_judges_to_which_no_temperature_is_sent(self, api: Service) -> None:
        answer = api.post("/v1/jobs", job_body(judges=[O3], reuse={"judging": "in_job"}))
        assert pointers(answer) == ["/reuse/judging"]


class TestCheck:
    def test_of_a_server_that_is_not_there_is_an_answer(self, api: Service) -> None:
        answer = api.post("/v1/models/check", {"model": "acme/acme-judge"})
        assert answer.status_code == 200
        found = answer.json()
        assert (found["works"], found["error"]["code"]) == (False, "connection_failed")

    def test_without_a_call_says_what_a_job_would_send(self, api: Service) -> None:
        found = api.post("/v1/models/check", O3 | {"call": False}).json()
        assert (found["works"], found["calls"], found["parameters"]["sent"]) == (None, 0, {})
        assert [one["parameter"] for one in found["parameters"]["not_sent"]] == ["temperature"]

    def test_of_a_model_that_no_job_could_name_is_refused(self, api: Service) -> None:
        assert pointers(api.post("/v1/models/check", {"model": "acme/other"})) == ["/model"]
        assert pointers(api.post("/v1/models/check", {"model": "acme/acme-1", "role": "x"})) == ["/role"]

    def test_too_many_are_refused_for_a_while(self, api: Service) -> None:
        asked = {"model": "acme/acme-judge"}
        answers = [api.post("/v1/models/check", asked) for _ in range(8)]
        assert {answer.status_code for answer in answers} == {200, 429}
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
