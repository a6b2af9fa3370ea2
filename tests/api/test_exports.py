"""A finished job in other tools' formats, by HTTP."""

import html
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import app
from app.services.results.exports import EXPORT_FORMS
from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_imported_verdicts import GPT_4O, OLD, imported_job, scored
from tests.api.test_personagym import gym_body
from tests.canaries import texts_of

FORMATS = ("preferences", "rewards", "dataset", "inspect", "every_eval_ever")


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

    def test_without_a_pair_the_command_says_so(self, stack: Service, finished: Json, tmp_path: Path) -> None:
        words = ["export", finished["id"], "--format", "preferences", "--minimum-margin", "1"]
        done = CliRunner().invoke(
            app,
            [*words, "--output", str(tmp_path / "pairs.jsonl"), "--url", stack.url],
            catch_exceptions=False,
        )
        assert done.exit_code == 0, done.output
        assert "No pairs: " in done.output

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


JUDGES = [GPT_4O, "simulated/sim-judge"]
ANSWER = "I love parties. I talk to all."


@pytest.fixture(scope="module")
def imported(stack: Service) -> Json:
    """A job of one imported judge and one simulated one, on texts that were brought in."""
    texts = [
        scored(scores, text=f"I rest {run} days. {ANSWER[:15]}", run=run, model="bot <b>")
        for run, scores in enumerate(([5, 4], [1, 2], [4, None]))
    ]
    return stack.wait(stack.submit(imported_job(*texts, judges=JUDGES))["id"], "completed", "failed")


@pytest.fixture(scope="module")
def unsimulated(stack: Service) -> Json:
    """The same without the simulated judge."""
    body = imported_job(scored([5, 1], text=ANSWER, model="bot"), scored([1, 5], text=ANSWER, run=1))
    return stack.wait(stack.submit(body)["id"], "completed", "failed")


class TestInspectLogs:
    def test_samples_are_counted_by_their_texts_and_scores_whatever_the_number_of_cells(
        self, stack: Service, finished: Json
    ) -> None:
        content = stack.get(f"/v1/jobs/{finished['id']}/exports/inspect").content
        for label, header in headers(content).items():
            asked = [each for each in responses(stack, finished) if each["model"] == label]
            scored = [
                each
                for each in asked
                if any(verdict["score"] is not None for unit in each["units"] for verdict in unit["verdicts"])
            ]
            (score,) = header["results"]["scores"]
            assert header["status"] == "success"
            assert header["results"]["total_samples"] == len(asked)
            assert header["results"]["completed_samples"] == sum(each["text"] is not None for each in asked)
            assert (score["name"], score["scored_samples"]) == ("acc_atom", len(scored))

    def test_the_log_of_a_cancelled_job_is_no_success(self, stack: Service) -> None:
        job = stack.submit(job_body(), headers={"Idempotency-Key": "inspected-when-cancelled"})
        stack.post(f"/v1/jobs/{job['id']}/cancel")
        stack.wait(job["id"], "cancelled", "completed")
        status = stack.get(f"/v1/jobs/{job['id']}").json()["status"]
        content = stack.get(f"/v1/jobs/{job['id']}/exports/inspect").content
        expected = {"completed": "success", "cancelled": "cancelled"}[status]
        assert {header["status"] for header in headers(content).values()} == {expected}


def headers(export: bytes) -> dict[str, Json]:
    """What sums up the log of each model, by its label."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(export)) as logs:
        for name in logs.namelist():
            with zipfile.ZipFile(io.BytesIO(logs.read(name))) as log:
                header = json.loads(log.read("header.json"))
                found[header["eval"]["metadata"]["model_label"]] = header
    return found


class TestEveryEvalEver:
    def test_models_of_one_name_have_evaluations_of_their_own(self, stack: Service) -> None:
        """As where a model runs at two temperatures."""
        model = "simulated/sim-faithful"
        models = [model, {"model": model, "temperature": 0.3, "label": "cool"}]
        job = stack.wait(stack.submit(job_body(models=models))["id"], "completed", "failed")
        content = stack.get(f"/v1/jobs/{job['id']}/exports/every_eval_ever").content
        with zipfile.ZipFile(io.BytesIO(content)) as files:
            records = [json.loads(files.read(name)) for name in files.namelist() if name.endswith(".json")]
        assert len({record["evaluation_id"] for record in records}) == len(models) == len(records)

    def test_figures_name_the_template_of_what_judges_were_sent(
        self, stack: Service, unsimulated: Json
    ) -> None:
        job = stack.wait(stack.submit(gym_body())["id"], "completed", "failed")
        prompts = self.input_prompts(stack, job)
        assert {name: placeholders(words) for name, words in prompts.items()} == {
            "persona_score": {"score_example", "persona", "question", "response"},
            "acc_atom": {"persona", "question", "atomic unit", "options"},
        }
        assert "Expected Action" in prompts["persona_score"]
        assert "imported" in self.input_prompts(stack, unsimulated)["acc_atom"]

    @staticmethod
    def input_prompts(stack: Service, job: Json) -> dict[str, str]:
        content = stack.get(f"/v1/jobs/{job['id']}/exports/every_eval_ever").content
        with zipfile.ZipFile(io.BytesIO(content)) as files:
            record = json.loads(next(files.read(name) for name in files.namelist() if name.endswith(".json")))
        configs = [result["metric_config"] for result in record["evaluation_results"]]
        return {
            config["metric_name"]: config["llm_scoring"]["input_prompt"]
            for config in configs
            if config["metric_name"] in {"persona_score", "acc_atom"}
        }


def placeholders(template: str) -> set[str]:
    return set(re.findall(r"{([a-z_ ]+)}", template))


class TestMarks:
    """What every export says of the job, so that nobody takes a figure for what it is not."""

    @pytest.mark.parametrize("format_", ["dataset", "inspect", "every_eval_ever"])
    def test_files_name_imported_judges_and_their_source(
        self, stack: Service, imported: Json, format_: str
    ) -> None:
        whole = self.whole(stack, imported, format_)
        assert f"{OLD}" in whole
        assert "Table 17 of the atomic paper (2024-06); as printed" in whole
        assert "brought in" in whole
        assert "simulated" in whole.lower().replace("simulated/", "")
        (reason,) = stack.get(f"/v1/jobs/{imported['id']}/results").json()["completeness_reasons"]
        assert reason.replace("_", " ") in whole.replace("_", " ")

    @pytest.mark.parametrize("format_", ["preferences", "rewards"])
    def test_lines_name_the_imported_judges_among_those_that_count(
        self, stack: Service, imported: Json, format_: str
    ) -> None:
        for judge, named in ((OLD, [OLD]), ("simulated/sim-judge", [])):
            found = lines(stack, imported, format_, judge=judge)
            assert found or judge != OLD
            for line in found:
                assert (line["imported_judges"], line["simulated"]) == (named, True)

    @pytest.mark.parametrize("format_", FORMATS)
    def test_what_is_not_simulated_is_not_called_so(
        self, stack: Service, unsimulated: Json, format_: str
    ) -> None:
        whole = self.whole(stack, unsimulated, format_)
        assert "Simulated" not in whole
        for yes in ('"simulated":true', '"simulated":"true"', '["simulated"', '"simulated": "true"'):
            assert yes not in whole

    @staticmethod
    def whole(stack: Service, job: Json, format_: str) -> str:
        answer = stack.get(f"/v1/jobs/{job['id']}/exports/{format_}")
        assert answer.status_code == 200, answer.text
        return "\n".join(texts_of(answer.content))


class TestLabels:
    """What people said goes into the exports that are about sentences, and nobody's name."""

    @pytest.fixture
    def labelled(self, stack: Service, finished: Json) -> Iterator[Json]:
        """A response of which two people gave the first sentence 1 and 4, and one the second nothing."""
        response = next(each for each in responses(stack, finished) if len(each["units"]) > 1)
        about = {"response": response["id"], "dimension": next(iter(response["levels"]))}
        said = [("anna", 0, 1), ("ben", 0, 4), ("ben", 1, "not_applicable")]
        labels = [about | {"annotator": who, "unit": unit, "score": score} for who, unit, score in said]
        assert stack.post("/v1/annotations", {"annotations": labels}).status_code == 200
        yield about
        stack.empty("annotations")

    def test_rewards_have_the_mean_of_peoples_scores(
        self, stack: Service, finished: Json, labelled: Json
    ) -> None:
        told = [
            (sentence["people_score"], sentence["people_answers"])
            for line in lines(stack, finished, "rewards", judge="simulated/sim-judge")
            if (line["response"], line["dimension"]) == (labelled["response"], labelled["dimension"])
            for sentence in line["sentences"]
        ]
        assert told[:2] == [(2.5, 2), (None, 0)]  # (1 + 4) / 2; "not applicable" is no number

    def test_a_data_set_has_each_answer_without_a_name(
        self, stack: Service, finished: Json, labelled: Json
    ) -> None:
        import pyarrow.parquet as pq

        content = stack.get(f"/v1/jobs/{finished['id']}/exports/dataset").content
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            rows = pq.read_table(io.BytesIO(packed.read("data/labels.parquet"))).to_pylist()
            card = packed.read("README.md").decode()
        assert [(row["annotator"], row["unit"], row["answer"], row["score"]) for row in rows] == [
            (0, 0, "scored", 1),
            (1, 0, "scored", 4),
            (1, 1, "not_applicable", None),
        ]
        assert {row["response_id"] for row in rows} == {labelled["response"]}
        assert "## labels" in card
        assert not any(name in "\n".join(texts_of(content)) for name in ("anna", "'ben'"))

    def test_a_bundle_has_none_and_is_the_same_as_before(
        self, stack: Service, finished: Json, request: pytest.FixtureRequest
    ) -> None:
        address = f"/v1/jobs/{finished['id']}/exports/bundle"
        before = stack.get(address).content
        request.getfixturevalue("labelled")
        assert stack.get(address).content == before


def test_a_job_s_page_has_a_link_to_each_with_what_it_is(stack: Service, finished: Json) -> None:
    page = html.unescape(stack.get(f"/jobs/{finished['id']}").text)
    for format_, form in EXPORT_FORMS.items():
        address = f"/v1/jobs/{finished['id']}/exports/{format_}"
        assert f'href="{address}" download>{form.title}</a></dt><dd>{form.meaning}' in page
        answer = stack.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (200, form.media_type)


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
