"""What of each tool's file becomes what, and what of it is refused."""

import io
import json
import zipfile
import zlib
from typing import Any

import pytest

from app.domain.errors import InvalidJobError
from app.domain.jobs.import_preview import ImportPreview
from app.importers import traces
from app.importers.papers_questions import paper_items, set_questions
from app.importers.records import Options
from app.instruments.loader import load_atomic
from tests.unit.importers import samples as of
from tests.unit.importers.reading import read_import
from tests.unit.importers.samples import ASKED, FILES, SAID, SERVICE, SYSTEM, json_lines

TOOLS = ("inspect", "openai_evals", "promptfoo", "lm_eval", "otlp", "langfuse")


def read(data: bytes, name: str = "", **options: Any) -> ImportPreview:
    return read_import(data, name, None, Options(**SERVICE, **options))


def refusals(preview: ImportPreview) -> list[tuple[str, str]]:
    return [(each.place, each.reason) for each in preview.refused_records]


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in TOOLS for name in FILES[kind] if name != "source.jsonl"]
)
def test_every_tools_first_text_has_its_persona_and_prompt(kind: str, name: str) -> None:
    sample = read(FILES[kind][name], name).samples[0]
    assert (sample.persona, sample.prompt, sample.text) == (SYSTEM, ASKED, SAID)


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (json_lines({"mes": "Hi.", "is_user": True}, {"mes": SAID, "is_user": False, "name": []}), 0),
        (json_lines({"custom_id": "1", "response": {"status_code": [], "body": of.COMPLETION}}), 1),
        (json_lines({"custom_id": "1", "response": {"body": {"type": [], "text": SAID}}}), 0),
        (json_lines({"trace_metadata": {}, "spans": [{"attributes": {"mlflow.spanType": []}}]}), 1),
    ],
    ids=["a name", "a status", "a type", "a kind of span"],
)
def test_lists_in_place_of_names_and_codes_break_nothing(data: bytes, refused: int) -> None:
    assert read(data, persona="E-high").refused == refused


@pytest.mark.parametrize(
    ("kind", "name", "model"),
    [
        ("batch", "output.jsonl", "bot-1"),
        ("batch", "bedrock.jsonl", "bot-1"),
        ("batch", "vertex.jsonl", "bot-1"),
        ("mlflow", "rows.jsonl", "bot-1"),
        ("preferences", "pairs.jsonl", "chosen"),
        ("preferences", "openai.jsonl", "chosen"),
        ("preferences", "sharegpt.json", "chosen"),
    ],
)
def test_each_shape_of_a_kind_has_persona_prompt_text_and_model(kind: str, name: str, model: str) -> None:
    preview = read(FILES[kind][name], name)
    sample = preview.samples[0]
    assert (preview.kind, preview.refused) == (kind, 0)
    assert (sample.persona, sample.prompt, sample.text, sample.model) == (SYSTEM, ASKED, SAID, model)


@pytest.mark.parametrize(
    ("kind", "name", "model", "scores"),
    [
        ("inspect", "packed.eval", "openai/gpt-5.6", {"includes": 1.0, "length": 7.0}),
        ("openai_evals", "items.jsonl", "gpt-5.6", {"grader": 0.5}),
        ("promptfoo", "out.json", "bot", {"score": 1.0, "tone": 0.25}),
        ("lm_eval", "samples_t.jsonl", "imported", {"exact_match": 0.0}),
        ("otlp", "traces.json", "gpt-5.6", {}),
        ("langfuse", "trace.json", "gpt-5.6", {"tone": 0.5}),
    ],
)
def test_every_tools_models_and_scores_are_shown(
    kind: str, name: str, model: str, scores: dict[str, float]
) -> None:
    preview = read(FILES[kind][name], name)
    assert preview.samples[0].model == model
    assert preview.samples[0].scores == scores
    assert {each.name for each in preview.scores} == scores.keys()


@pytest.mark.parametrize(
    "text",
    [
        "<|im_start|>system\nBe Ada.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.",
        "<s>[INST] <<SYS>>Be Ada.<</SYS>> Hi [/INST] Hello.",
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>",
    ],
)
def test_a_conversation_in_a_chat_templates_marks_is_no_text(text: str) -> None:
    data = of.json_lines({"persona": "a clown", "text": text}, {"persona": "a clown", "text": "I laugh."})
    preview = read(data)
    assert [sample.text for sample in preview.samples] == ["I laugh."]
    assert refusals(preview)[0][1].startswith("is a conversation in a chat template's marks")


def test_an_utterance_is_a_text_and_a_character_its_persona() -> None:
    (found,) = read(b"character,bot,utterance\na clown,b-1,I laugh.\n").samples
    assert (found.persona, found.text) == ("a clown", "I laugh.")


class TestInspect:
    def test_a_scorer_that_gives_several_values_has_a_score_for_each(self) -> None:
        scores = {"mood": {"value": {"warm": 3, "bold": "I", "why": "words"}}}
        log = of.LOG | {"samples": [of.SAMPLE | {"scores": scores}]}
        assert read(json.dumps(log).encode()).samples[0].scores == {"mood/warm": 3.0, "mood/bold": 0.0}

    def test_failed_and_empty_samples_are_refused(self) -> None:
        failed = of.SAMPLE | {"output": {"choices": []}, "error": {"message": "away"}}
        empty = of.SAMPLE | {"output": {"choices": [{"message": {"role": "assistant", "content": ""}}]}}
        log = of.LOG | {"samples": [of.SAMPLE, failed, empty, 5]}
        assert refusals(read(json.dumps(log).encode())) == [
            ("/samples/1/output", "the sample failed"),
            ("/samples/2/output", "the model's answer has no text"),
            ("/samples/3", "must be an object"),
        ]

    @pytest.mark.parametrize("pack", [lambda log: json.dumps(log).encode(), of.archive_of_log])
    def test_attachments_are_resolved_or_refused(self, pack: Any) -> None:
        sample = json.loads(json.dumps(of.SAMPLE).replace(json.dumps(of.SAID), '"attachment://0af1"'))
        sample["messages"][0]["content"] = [{"type": "text", "text": "attachment://0af2"}]
        sample["input"] = "attachment://0af3"
        texts = {"0af1": "attachment://0af2 is what I read.", "0af2": of.SYSTEM, "0af3": of.ASKED}
        log = of.LOG | {"samples": [sample | {"attachments": texts}, sample]}
        preview = read(pack(log))
        (found,) = preview.samples
        assert (found.persona, found.prompt, found.text) == (of.SYSTEM, of.ASKED, texts["0af1"])
        ((place, reason),) = refusals(preview)
        assert place.endswith("/input")
        assert reason == "refers to an attachment that the log lacks (attachment://0af3)"

    def test_a_sample_that_cannot_be_unpacked_is_refused_and_the_others_are_not(self) -> None:
        sample = json.dumps(of.SAMPLE).encode()
        files = {"samples/1.json": sample, "samples/2.json": b"{", "samples/3.json": b"\xff"}
        data = of.zstandard_archive(files)
        broken = data.replace(zlib.crc32(sample).to_bytes(4, "little"), b"\0\0\0\0")
        assert refusals(read(data))[0][0] == "/files/samples/2.json"
        assert [reason.partition(":")[0] for _, reason in refusals(read(data))] == [
            "not JSON",
            "is not UTF-8",
        ]
        assert refusals(read(broken))[0] == ("/files/samples/1.json", "can't be unpacked")

    def test_a_sample_that_is_too_long_and_not_packed_is_refused_and_the_others_are_not(self) -> None:
        file = io.BytesIO(of.FILES["inspect"]["log.eval"])
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("samples/long.json", b" " * (17 * 2**20))
        whole, preview = read(of.FILES["inspect"]["log.eval"]), read(file.getvalue())
        assert (preview.mapped, preview.refused) == (whole.mapped, whole.refused + 1)
        assert refusals(preview)[-1][1].startswith("unpacks to too much")

    def test_a_sample_at_no_place_of_a_file_is_refused_alone(self) -> None:
        file = io.BytesIO(of.FILES["inspect"]["packed.eval"])
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("summaries.json", "[]")
            archive.getinfo("samples/1_epoch_1.json").header_offset = 2**64 - 1
        assert refusals(read(file.getvalue())) == [("/files/samples/1_epoch_1.json", "can't be unpacked")]

    @pytest.mark.parametrize("pack", [of.archive, None], ids=["deflate", "zstandard"])
    def test_a_bomb_is_not_unpacked(self, pack: Any) -> None:
        text = "a" * 2**26
        files = {f"samples/{n}.json": text for n in range(3)}
        data = (
            of.archive(files)
            if pack
            else of.zstandard_archive({n: json.dumps(t).encode() for n, t in files.items()})
        )
        assert len(data) < 2**20
        preview = read(data)
        assert [reason.partition(":")[0] for _, reason in refusals(preview)] == ["unpacks to too much"] * 3

    def test_another_archive_is_none_of_inspects(self) -> None:
        with pytest.raises(InvalidJobError, match="no samples"):
            read(of.archive({"a.json": {}}))


@pytest.mark.parametrize(("turns", "warned"), [(1, False), (2, True)])
def test_turns_of_a_conversation_carry_a_warning(turns: int, warned: bool) -> None:
    asked = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}]
    preview = read(json_lines({"messages": [{"role": "system", "content": "a clown"}, *asked * turns]}))
    assert preview.notes[0].startswith(f"Warning: {turns} texts are turns of conversations") is warned


class TestOpenAiEvals:
    def test_a_data_source_gives_questions_and_what_was_expected_is_nobodys_text(self) -> None:
        source = json_lines({"item": {"question": ASKED, "answer": "Loud.", "persona": "a clown"}})
        preview = read(source + source, task="expected_action")
        assert preview.job is None
        assert preview.question_set == {"questions": {"a clown": {"expected_action": [ASKED, ASKED]}}}

    def test_a_failed_item_is_refused(self) -> None:
        failed = of.EVALS_ITEM | {
            "sample": {"error": {"code": "away", "message": "away"}, "input": [], "output": []}
        }
        assert refusals(read(json_lines(of.EVALS_ITEM, failed))) == [("/lines/2/sample", "the call failed")]


class TestPromptfoo:
    def test_a_configuration_gives_a_question_for_each_test_and_prompt(self) -> None:
        preview = read(FILES["promptfoo_configuration"]["promptfooconfig.yaml"], "promptfooconfig.yaml")
        assert preview.question_set == {
            "questions": {
                "a shy person": {"persona_consistency": ["How was it?"]},
                "a clown": {"persona_consistency": ["And then?"]},
            }
        }
        assert preview.persona_set is not None
        assert [each["description"] for each in preview.persona_set["personas"]] == [
            "a shy person",
            "a clown",
        ]

    def test_a_configurations_providers_are_the_models(self) -> None:
        providers = [
            "openai:gpt-5.6",
            {"id": "openai:chat:gpt-6-luna", "label": "luna"},
            {"anthropic:claude": {"config": {"temperature": 0}}},
            {"openai:gpt-4": {"label": "old"}},
            5,
        ]
        found = {"prompts": ["{{q}}"], "providers": providers, "tests": [{"vars": {"q": ASKED}}] * 2}
        preview = read(json.dumps(found).encode(), persona="p")
        assert [(each.name, each.count) for each in preview.models] == [
            *(("openai:gpt-5.6", 2), ("luna", 2), ("anthropic:claude", 2), ("old", 2)),
        ]

    def test_what_is_elsewhere_or_has_logic_is_refused(self) -> None:
        tests = [
            {"vars": {"question": "file://q.txt", "persona": "p"}},
            {"vars": {"persona": "p"}},
            {"vars": {"question": ["a", "b"]}},
        ]
        found = {"prompts": ["{{question}}", "{% if x %}"], "tests": tests}
        assert refusals(read(json.dumps(found).encode()))[::2] == [
            ("/tests/0/vars/question", "is in another file"),
            ("/tests/1/vars/question", "is missing"),
            ("/tests/2/vars/question", "must be a text"),
        ]
        assert (
            read(json.dumps(found).encode()).refused_records[1].reason.startswith("its prompt is a template")
        )

    def test_rows_without_a_text_are_refused(self) -> None:
        failed = {key: each for key, each in of.PROMPTFOO_ROW.items() if key != "response"} | {
            "error": "away"
        }
        structured = of.PROMPTFOO_ROW | {"response": {"output": {"a": 1}}}
        assert refusals(read(json_lines(of.PROMPTFOO_ROW, failed, structured))) == [
            ("/lines/2/response", "the call failed"),
            ("/lines/3/response/output", "must be a text"),
        ]

    def test_a_table_has_an_output_for_each_test_and_prompt(self) -> None:
        preview = read(FILES["promptfoo"]["out.csv"], "out.csv")
        assert preview.mapped == 2 * 4
        assert [(each.name, each.count) for each in preview.models] == [("bot", 4), ("other", 4)]
        assert [(each.name, each.count) for each in preview.scores] == [("score", 8), ("tone", 4)]
        assert preview.job is not None
        whole = read(FILES["promptfoo"]["out.csv"], "out.csv", task="expected_action").job
        assert whole is not None
        last = whole["responses"][-1]
        assert last["question"] == '=1+1, "really"?', "without what keeps spreadsheets from running it"
        assert last["text"] == "- No, two.\n\nI think."

    def test_a_tables_outputs_that_are_missing_are_refused(self) -> None:
        header = "persona,[bot] a,Status,Score,Named Scores,[bot] b,Status,Score,Named Scores\n"
        rows = "p,Hi.,PASS,1.00,{,,,,\np,away,ERROR,0.00,,,PASS,1.00,\np,,,,,,,,\np\n"
        preview = read((header + rows).encode(), "out.csv")
        assert [(each.text, each.scores) for each in preview.samples] == [("Hi.", {"score": 1.0})]
        assert refusals(preview) == [
            ("/lines/3/columns/2", "the call failed"),
            ("/lines/3/columns/6", "the text is empty"),
            ("/lines/4", "has no output"),
            ("/lines/5", "has not as many fields as the header"),
        ]

    def test_another_table_with_two_columns_of_a_name_is_none_of_its(self) -> None:
        with pytest.raises(InvalidJobError, match="a column appears twice"):
            read(b"text,a,a\nHi.,1,2\n", "out.csv")


class TestLmEval:
    def test_likelihoods_and_other_filters_are_refused(self) -> None:
        likelihood = of.LM_EVAL_SAMPLE | {"doc_id": 1, "resps": [[[-3.5, False]]]}
        preview = read(json_lines(of.LM_EVAL_SAMPLE, of.LM_EVAL_SAMPLE, likelihood))
        assert preview.mapped == 2
        assert refusals(preview) == [
            ("/lines/2", "is the same sample again, perhaps under another filter"),
            ("/lines/3/resps", "has likelihoods, no texts"),
        ]

    def test_a_plain_prompt_has_no_persona(self) -> None:
        plain = of.LM_EVAL_SAMPLE | {"arguments": [["How was it?", {"until": []}]]}
        preview = read(json_lines(plain, plain | {"doc_id": 1}), persona="a clown", task="expected_action")
        assert preview.job is not None
        assert preview.job["responses"][0]["question"] == "How was it?"


class TestTraces:
    def test_other_spans_and_calls_without_texts_are_refused(self) -> None:
        data = of.spans({"http.method": "GET"}, of.BY_CONVENTIONS, {"gen_ai.request.model": "gpt-5.6"})
        assert [reason for _, reason in refusals(read(json.dumps(data).encode()))] == [
            "is no call of a model",
            "the texts were not recorded",
        ]

    def test_texts_of_events_count(self) -> None:
        data = of.spans({"gen_ai.request.model": "gpt-5.6"})
        span = data["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        span["events"] = [
            {
                "name": "e",
                "attributes": of.spans(of.BY_CONVENTIONS)["resourceSpans"][0]["scopeSpans"][0]["spans"][0][
                    "attributes"
                ],
            }
        ]
        assert read(json.dumps(data).encode()).samples[0].text == SAID

    @pytest.mark.parametrize(
        "events",
        [
            of.BY_EVENTS,
            [(name, {"gen_ai.event.content": json.dumps(fields)}) for name, fields in of.BY_EVENTS],
            [
                ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps(of.CHAT[:2])}),
                ("gen_ai.content.completion", {"gen_ai.completion": json.dumps([of.CHAT[2]])}),
            ],
        ],
        ids=["1.36", "as one text", "1.27"],
    )
    def test_messages_of_older_conventions_are_events(self, events: list[tuple[str, dict[str, Any]]]) -> None:
        (sample,) = read(json.dumps(of.span_of_events(*events)).encode()).samples
        assert (sample.persona, sample.prompt, sample.text) == (SYSTEM, ASKED, SAID)

    def test_values_may_be_lists_and_objects(self) -> None:
        span = {"attributes": of.key_values(of.STRUCTURED)}
        data = {"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}
        (sample,) = read(json.dumps(data).encode()).samples
        assert (sample.persona, sample.prompt, sample.text) == (SYSTEM, ASKED, SAID)

    def test_log_records_of_one_span_are_one_call(self) -> None:
        records = [
            {"traceId": "t", "spanId": span, "eventName": name, "body": of.any_value(fields)}
            for span in ("a", "b")
            for name, fields in of.BY_EVENTS
        ]
        preview = read(json.dumps(of.log_records(*records, {"body": of.any_value("started")})).encode())
        assert [each.text for each in preview.samples] == [SAID, SAID]
        assert refusals(preview) == [("/resourceLogs/0/scopeLogs/0/logRecords/6", "is no call of a model")]

    @pytest.mark.parametrize(
        ("name", "prompts"),
        [("openllmetry-completion.json", [ASKED, ASKED]), ("openllmetry-prompts.json", [ASKED, "And then?"])],
    )
    def test_each_choice_is_a_text(self, name: str, prompts: list[str]) -> None:
        preview = read((of.WRITTEN / name).read_bytes(), persona="E-high")
        assert [each.prompt for each in preview.samples] == prompts
        assert [each.text for each in preview.samples] == [f"{SAID} 0", f"{SAID} 1"]

    def test_a_message_may_be_a_list_of_parts_as_a_text(self) -> None:
        (_, sample) = read(FILES["otlp"]["openllmetry.json"]).samples
        assert (sample.persona, sample.prompt) == (SYSTEM, "How was\nyour weekend?")
        said = "[1, 2] are lists. [So]"
        (sample,) = read(
            json.dumps(of.spans(of.INDEXED | {"gen_ai.completion.0.content": said})).encode()
        ).samples
        assert sample.text == said

    def test_log_records_of_a_call_may_be_divided_between_lines(self) -> None:
        lines = FILES["otlp"]["logs.jsonl"].splitlines(keepends=True)
        mixed = [lines[n] for n in (0, 3, 1, 4, 2, 5)]
        preview = read(b"".join(mixed))
        assert [(each.place.partition("/resource")[0], each.prompt) for each in preview.samples] == [
            ("/lines/1", ASKED),
            ("/lines/2", "How was\nyour weekend?"),
        ]
        assert refusals(read(b"".join(lines[:5]))) == [
            ("/lines/4/resourceLogs/0/scopeLogs/0/logRecords/0", "the texts were not recorded")
        ]

    def test_open_calls_take_no_more_than_a_file_that_is_read_whole(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(traces, "UNPACKED_BYTES", 10_000)
        record = {"traceId": "t", "eventName": "gen_ai.choice", "body": of.any_value(of.BY_EVENTS[2][1])}
        calls = traces.Calls()
        requests = [of.log_records(record | {"spanId": f"{n}"}) for n in range(100)]
        early = [each for n, one in enumerate(requests) for each in calls.read_request(f"/lines/{n}", one)]
        assert 85 < len(early) < 100
        assert len(early) + len([*calls.rest()]) == 100

    def test_a_resource_without_spans_does_not_hide_the_next_ones(self) -> None:
        data = of.spans(of.BY_CONVENTIONS)
        data["resourceSpans"] = [{}, {"scopeSpans": [{}, 5]}, 5, *data["resourceSpans"]]
        preview = read(json.dumps(data).encode())
        assert (preview.mapped, preview.refused) == (1, 4)

    def test_a_call_of_a_tool_is_an_answer_without_text(self) -> None:
        parts = [{"type": "tool_call", "name": "search", "arguments": {}}]
        said = json.dumps([{"role": "assistant", "parts": parts}])
        preview = read(json.dumps(of.spans(of.BY_CONVENTIONS | {"gen_ai.output.messages": said})).encode())
        assert [reason for _, reason in refusals(preview)] == ["the model's answer has no text"]

    def test_a_value_that_is_nested_too_deeply_is_refused(self) -> None:
        deep: Any = "x"
        for _ in range(150):
            deep = [deep]
        record = {"attributes": of.key_values({"gen_ai.output.messages": deep})}
        assert [reason for _, reason in refusals(read(json.dumps(of.log_records(record)).encode()))] == [
            "nested too deeply"
        ]

    def test_spans_of_langfuse_are_no_generations(self) -> None:
        preview = read(json_lines(of.OBSERVATION, of.OBSERVATION | {"type": "SPAN"}))
        assert refusals(preview) == [("/lines/2/type", "is no call of a model")]


class TestOwnFiles:
    def test_answers_of_personagym_name_their_questions(self) -> None:
        preview = read(FILES["personagym"]["a cowboy_qa.json"], "a cowboy_qa.json")
        assert preview.job is not None
        first, second = preview.job["responses"]
        assert (first["task"], first["question"], first["text"]) == ("expected_action", ASKED, SAID)
        assert second["task"] == "toxicity_control"
        assert preview.job["personas"][0]["description"] == "a cowboy"

    @pytest.mark.parametrize("name", ["verdicts.jsonl", "verdicts.parquet"])
    def test_an_export_of_verdicts_gives_sentences_with_what_the_judge_said_of_each(self, name: str) -> None:
        preview = read(FILES["assay"][name], name)
        assert (preview.found, preview.mapped) == (1, 1)
        assert preview.job is not None
        (response,) = preview.job["responses"]
        assert response["units"] == ["I love parties.", "I talk to everybody."]
        assert response["verdicts"] == [
            {"judge": "j-1", "dimension": dimension, "scores": [5, "not_applicable"]} for dimension in "AN"
        ]
        assert "text" not in response
        assert [each["imported"] for each in preview.job["judges"]] == ["j-1"]

    def test_a_verdict_on_what_is_no_dimension_is_refused_with_its_response(self) -> None:
        preview = read(json_lines(*(row | {"dimension": "-1"} for row in of.VERDICTS)))
        assert preview.job is None
        assert refusals(preview)[0] == ("/lines/1/dimension", "must be a dimension's id")

    @pytest.mark.parametrize("name", ["responses.jsonl", "responses.parquet", "responses.csv"])
    def test_an_export_gives_each_text_once_with_its_persona_and_place(self, name: str) -> None:
        preview = read(FILES["assay"][name], name)
        assert (preview.found, preview.mapped) == (1, 1)
        assert preview.job is not None
        (persona,) = preview.job["personas"]
        assert (persona["description"], persona["traits"]) == (
            "a warm but anxious neighbour",
            {"A": "high", "N": "low"},
        )
        (response,) = preview.job["responses"]
        assert response == {
            "persona": persona["id"],
            "task": "social_media_post",
            "model": "bot",
            "text": SAID,
            "item": "post",
            "run": 0,
            "instruction": 2,
        }


class TestKnownQuestions:
    INSTRUMENT = load_atomic()
    ITEMS = paper_items(INSTRUMENT.tasks.values(), INSTRUMENT.dimensions.values())
    QUESTION = INSTRUMENT.dimensions["E"].questions[2]

    def read(self, *prompts: str, **options: Any) -> ImportPreview:
        rows = ({"persona": "p", "prompt": prompt, "response": SAID} for prompt in prompts)
        return read(json_lines(*rows), items=self.ITEMS, **options)

    def test_the_papers_prompts_tell_task_and_item(self) -> None:
        tasks, context = self.INSTRUMENT.tasks, self.INSTRUMENT.dimensions["E"].essay_context
        assert context is not None
        preview = self.read(
            self.QUESTION,
            f"  {self.QUESTION.replace(' ', chr(10))}\t",
            tasks["questionnaire"].prompt.replace("{question}", self.QUESTION),
            context,
            tasks["essay"].prompt.replace("{context}", context),
            tasks["social_media_post"].prompt,
            "What else?",
            traits={"E": "high"},
        )
        assert preview.job is not None
        assert [(each["task"], each.get("item")) for each in preview.job["responses"]] == [
            *([("questionnaire", "E-3")] * 3),
            *([("essay", "E")] * 2),
            ("social_media_post", "post"),
            ("social_media_post", None),
        ]

    def test_a_question_on_another_trait_than_the_personas_is_refused(self) -> None:
        preview = self.read(self.QUESTION, traits={"A": "high"})
        assert refusals(preview) == [("", "answers a question on E, and the persona has no such trait")]

    def test_a_task_that_is_chosen_stays(self) -> None:
        preview = self.read(self.QUESTION, task="persona_consistency")
        assert preview.job is not None
        assert preview.job["responses"][0]["question"] == self.QUESTION

    def test_a_question_sets_questions_tell_task_persona_and_their_own_words(self) -> None:
        content = {"a cowboy": {"expected_action": ["A storm  comes. You?"], "toxicity_control": ["Why?"]}}
        content["a nurse"] = {"toxicity_control": ["Why?"]}
        rows = [
            {"prompt": "A storm comes.\nYou?", "response": SAID},
            {"prompt": "Why?", "response": SAID, "persona": "a nurse"},
            {"prompt": "Why?", "response": SAID},
        ]
        preview = read(json_lines(*rows), questions=set_questions(content))
        assert preview.job is not None
        who = {each["id"]: each["description"] for each in preview.job["personas"]}
        assert [
            (who[each["persona"]], each["task"], each["question"]) for each in preview.job["responses"]
        ] == [
            ("a cowboy", "expected_action", "A storm  comes. You?"),
            ("a nurse", "toxicity_control", "Why?"),
        ]
        assert refusals(preview)[0][0] == "/lines/3", "two personas are asked that"
