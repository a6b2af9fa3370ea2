"""A finished job in other tools' formats, by HTTP."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.api.service import Json, Service, pointers


def lines(stack: Service, job: Json, format_: str, **options: str | float) -> list[Json]:
    answer = stack.get(f"/v1/jobs/{job['id']}/exports/{format_}", params=options)
    assert answer.status_code == 200, answer.text
    assert f'"{job["id"]}-{format_}.jsonl"' in answer.headers["content-disposition"]
    return [json.loads(line) for line in answer.text.splitlines()]


def responses(stack: Service, job: Json) -> Iterator[Json]:
    for model in ("simulated/sim-faithful", "shy"):
        after = None
        while True:
            query = {"model": model, "limit": 200} | ({} if after is None else {"after": after})
            page = stack.get(f"/v1/jobs/{job['id']}/responses", params=query).json()
            yield from page["data"]
            after = page["next_cursor"]
            if after is None:
                break


class TestPreferences:
    @pytest.mark.parametrize("unit", ["response", "sentence"])
    def test_pairs_answer_the_same_prompt_and_judges_prefer_the_chosen_one(
        self, stack: Service, finished: Json, unit: str
    ) -> None:
        by_id = {each["id"]: each for each in responses(stack, finished)}
        found = lines(stack, finished, "preferences", unit=unit, judge="simulated/sim-judge")
        assert found
        for pair in found:
            chosen, rejected = (by_id[pair[f"{which}_response"]] for which in ("chosen", "rejected"))
            for key in ("persona", "task", "item", "instruction"):
                assert chosen[key] == rejected[key]
            assert pair["simulated"]
            assert pair["prompt_known"]
            assert [each["role"] for each in pair["prompt"]] == ["system", "user"]
            if unit == "sentence":
                sides = [
                    next(
                        verdict
                        for verdict in response["units"][pair[f"{which}_sentence"]]["verdicts"]
                        if verdict["dimension"] == pair["dimension"]
                        and verdict["judge"] == "simulated/sim-judge"
                    )
                    for which, response in (("chosen", chosen), ("rejected", rejected))
                ]
                assert [side["in_character"] for side in sides] == [True, False]
                assert pair["margin"] == abs(sides[0]["score"] - sides[1]["score"]) / 4
            else:
                assert pair["chosen"][0]["content"] == chosen["text"]
                assert pair["rejected"][0]["content"] == rejected["text"]
        used = Counter(
            (pair[f"{which}_response"], pair[f"{which}_sentence"], pair["dimension"])
            for pair in found
            for which in ("chosen", "rejected")
        )
        assert set(used.values()) == {1}

    def test_a_minimum_margin_leaves_out_the_others_and_no_more(self, stack: Service, finished: Json) -> None:
        every = lines(stack, finished, "preferences", unit="sentence")
        some = lines(stack, finished, "preferences", unit="sentence", minimum_margin=0.5)
        assert some == [pair for pair in every if pair["margin"] >= 0.5]
        assert 0 < len(some) < len(every)

    def test_the_same_job_gives_the_same_bytes(self, stack: Service, finished: Json) -> None:
        address = f"/v1/jobs/{finished['id']}/exports/preferences"
        assert stack.get(address).content == stack.get(address).content


class TestRewards:
    def test_each_verdict_is_there_with_its_place_in_the_text(self, stack: Service, finished: Json) -> None:
        found = {
            (line["response"], line["dimension"], line["judge"], place): sentence
            for line in lines(stack, finished, "rewards")
            for place, sentence in enumerate(line["sentences"])
            if line["text"][slice(sentence["start"], sentence["end"])]
        }
        expected = {
            (response["id"], verdict["dimension"], verdict["judge"], unit["index"]): verdict
            for response in responses(stack, finished)
            for unit in response["units"]
            for verdict in unit["verdicts"]
        }
        assert found.keys() == expected.keys()
        for key, sentence in found.items():
            said = expected[key]
            assert (sentence["score"], sentence["status"]) == (said["score"], said["status"])
            assert sentence["in_character"] == said["in_character"]
            assert (sentence["reward"] is None) == (said["score"] is None)
            assert said["in_character"] is None or (sentence["reward"] == 1) == said["in_character"]


@pytest.mark.parametrize(
    ("format_", "options", "pointer"),
    [
        ("preferences", {"judge": "nobody"}, "/query/judge"),
        ("preferences", {"minimum_margin": 1.5}, "/query/minimum_margin"),
        ("preferences", {"minimum_margin": "nan"}, "/query/minimum_margin"),
        ("preferences", {"unit": "word"}, "/query/unit"),
        ("rewards", {"unit": "sentence"}, "/query/unit"),
        ("rewards", {"minimum_margin": 0.1}, "/query/minimum_margin"),
        ("opera", {}, "/path/format"),
    ],
)
def test_a_wrong_option_is_refused_by_name(
    stack: Service, finished: Json, format_: str, options: Json, pointer: str
) -> None:
    answer = stack.get(f"/v1/jobs/{finished['id']}/exports/{format_}", params=options)
    assert answer.status_code == 422
    assert pointers(answer) == [pointer]
