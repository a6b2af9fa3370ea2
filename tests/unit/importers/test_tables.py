"""Tables and messages whose columns are roles, conversations, lists or JSON: no words of the user are judged."""

import json
from typing import Any

import pytest

from app.domain.jobs.import_preview import ImportPreview
from app.importers.records import Options
from tests.unit.importers.reading import read_import
from tests.unit.importers.samples import SERVICE, json_lines


def read(data: bytes | str, name: str = "a.csv", **options: Any) -> ImportPreview:
    return read_import(
        data.encode() if isinstance(data, str) else data, name, None, Options(**SERVICE, **options)
    )


def texts(preview: ImportPreview) -> list[tuple[str | None, str | None]]:
    return [(each.persona, each.text) for each in preview.samples]


def conversations(preview: ImportPreview) -> list[str | None]:
    assert preview.job is not None
    return [each.get("conversation") for each in preview.job["responses"]]


@pytest.mark.parametrize(
    ("data", "options", "persona"),
    [
        ("role,text\nE-high,I love parties.\n", {"columns": {"persona": "role"}}, "E-high"),
        ("author,text\nAda,I read.\n", {"columns": {"persona": "author", "text": "text"}}, "Ada"),
        ("author,text\nAda,I read.\n", {"persona": "E-high"}, "E-high"),
        (
            "sender,response\nbot-1,I read.\n",
            {"columns": {"model": "sender"}, "persona": "a clown"},
            "a-clown",
        ),
    ],
)
def test_columns_that_are_named_make_messages_a_table(
    data: str, options: dict[str, Any], persona: str
) -> None:
    preview = read(data, **options)
    assert (preview.kind, preview.mapped, preview.refused) == ("table", 1, 0)
    assert preview.personas[0].name.startswith(persona[:3].lower()) or preview.personas[0].name == persona


@pytest.mark.parametrize(
    ("data", "options", "kept"),
    [
        ("persona,text\nsystem,Be kind.\nuser,Hi.\nassistant,Hello.\n", {}, []),
        ("character,text\nUser,Hi.\nassistant,Hello.\n", {"persona": "E-high"}, ["Hello."]),
        ("role,persona,prompt,text\nuser,a clown,,Hi.\nassistant,a clown,Hi.,Ha.\n", {}, ["Ha."]),
        ("speaker,persona,text,question\nhuman,a clown,Hi.,Hm?\nbot,a clown,Ha.,Hm?\n", {}, ["Ha."]),
        ("name,text\nuser,Hi.\nAda,Ha.\n", {"persona": "E-high"}, ["Ha."]),
        ("name,persona,text\nClient,a clown,Ha.\n", {}, ["Ha."]),
    ],
)
def test_only_the_personas_words_are_texts(data: str, options: dict[str, Any], kept: list[str]) -> None:
    preview = read(data, **options)
    assert [text for _, text in texts(preview)] == kept
    assert preview.refused == data.count("\n") - 1 - len(kept)
    assert all(
        "not the persona's words" in each.reason or "a role, not a persona" in each.reason
        for each in preview.refused_records
    )


class TestConversations:
    @pytest.mark.parametrize(
        "data",
        [
            "persona,conversation_id,turn,prompt,text\na clown,1,1,Hi?,Ha.\na clown,2,1,Hi?,Ho.\na clown,1,2,And?,He.\n",
            "conversation_id,user_message,response\n1,Hi?,Ha.\n2,Hi?,Ho.\n1,And?,He.\n",
        ],
    )
    def test_a_tables_turns_belong_together_by_their_id(self, data: str) -> None:
        preview = read(data, persona="a clown")
        first, second, third = conversations(preview)
        assert first == third != second
        assert any(each.startswith("Warning: 2 texts are turns of") for each in preview.notes)

    def test_single_turns_carry_no_warning(self) -> None:
        assert "turns of conversations" not in " ".join(
            read("persona,session_id,text\na,1,Ha.\na,2,Ho.\n").notes
        )

    def test_rows_of_messages_may_stand_between_those_of_other_conversations(self) -> None:
        rows = [(1, "user", "A?"), (2, "user", "B?"), (1, "assistant", "a"), (2, "assistant", "b")]
        rows += [(3, "user", "C?"), (1, "user", "D?"), (1, "assistant", "d")]
        preview = read(
            json_lines(*({"session_id": n, "role": who, "content": text} for n, who, text in rows)),
            "a.jsonl",
            persona="a clown",
        )
        assert [(each.prompt, each.text) for each in preview.samples] == [
            ("A?", "a"),
            ("B?", "b"),
            ("D?", "d"),
        ]
        first, second, third = conversations(preview)
        assert first == third != second
        assert [each.reason for each in preview.refused_records] == ["has no message of the assistant"]


class TestColumnsAreNotDropped:
    MESSAGES = ({"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Ha."})

    def test_persona_and_task_beside_messages_or_a_pair(self) -> None:
        named = {"persona": "E-high", "task": "Essay"}
        for record in (
            {"model": "bot", "messages": self.MESSAGES},
            {"prompt": "Hi?", "chosen": "Ha.", "rejected": "Ho."},
        ):
            preview = read(json_lines(named | record), "a.jsonl")
            assert preview.job is not None
            assert (preview.job["personas"], preview.job["tasks"]) == (["E-high"], ["essay"])

    @pytest.mark.parametrize(("second", "told"), [("social_media_post", False), ("", True)])
    def test_a_note_says_which_task_texts_without_one_have(self, second: str, told: bool) -> None:
        preview = read(f"persona,task,text\nE-high,essay,Hi.\nE-high,{second},Ho.\n")
        assert any("name no task are taken as social_media_post" in each for each in preview.notes) is told

    def test_a_character_beside_messages_does_not_replace_the_system_message(self) -> None:
        system = {"role": "system", "content": "Be Ada, who is shy."}
        for messages, persona in ((self.MESSAGES, "Ada"), ((system, *self.MESSAGES), system["content"])):
            preview = read(json_lines({"character": "Ada", "messages": messages}), "a.jsonl")
            assert texts(preview) == [(persona, "Ha.")]

    def test_a_list_of_texts_has_a_text_each(self) -> None:
        preview = read(json_lines({"persona": "a clown", "responses": ["Hi", "Ho"]}), "a.jsonl")
        assert texts(preview) == [("a clown", "Hi"), ("a clown", "Ho")]
        other = read(json_lines({"persona": "a clown", "lines": ["Hi", "Ho"]}), "a.jsonl")
        assert "Not taken with personas: lines." in other.notes

    def test_cells_with_messages_as_json_are_read(self) -> None:
        asked = [{"role": "system", "content": "a clown"}, self.MESSAGES[0]]
        for prompt in (asked, json.dumps(asked), json.dumps({"messages": asked})):
            for text in ("Ha.", json.dumps(self.MESSAGES[1]), [self.MESSAGES[1]]):
                (found,) = read(json_lines({"input": prompt, "output": text}), "a.jsonl").samples
                assert (found.persona, found.prompt, found.text) == ("a clown", "Hi?", "Ha.")

    @pytest.mark.parametrize("column", ["conversations", "messages"])
    def test_a_conversation_in_a_cell_of_csv_is_read(self, column: str) -> None:
        turns = [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": "Ha."}]
        cell = json.dumps(turns).replace('"', '""')
        preview = read(f'id,{column}\n1,"{cell}"\n', persona="E-high")
        assert (texts(preview), preview.refused) == ([("E-high", "Ha.")], 0)

    def test_a_rated_completion_is_chosen_or_rejected(self) -> None:
        rows = "prompt,completion,label\nHi.,Ha.,True\nHi.,No.,false\n"
        preview = read(rows, persona="E-high")
        assert preview.job is not None
        assert [each["model"] for each in preview.job["responses"]] == ["chosen", "rejected"]
        assert not any("label" in note for note in preview.notes)

    def test_an_instructions_input_belongs_to_the_prompt(self) -> None:
        preview = read(
            json_lines({"instruction": "Sum up.", "input": "I read.", "output": "Read."}),
            "a.jsonl",
            persona="E-high",
        )
        assert preview.samples[0].prompt == "Sum up.\n\nI read."
        assert not any("input" in note for note in preview.notes)

    def test_json_that_is_no_message_stays_a_text(self) -> None:
        (found,) = read(
            json_lines({"persona": "p", "input": '{"a": 1}', "output": "[Ha]"}), "a.jsonl"
        ).samples
        assert (found.prompt, found.text) == ('{"a": 1}', "[Ha]")


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("\n\nHuman: Hi?\n\nAssistant: Ha.", True),
        ("User: Hi?\nAssistant: Ha.", True),
        ("**User:** Hi?\n**Bot:** Ha.", True),
        ("Below is a task.\n\n### Instruction:\nHi?\n\n### Response:\nHa.", True),
        ("A chat. USER: Hi? ASSISTANT: Ha.</s>", True),
        ("Human: what a word! I love it.", False),
        ("My plan: dance. Then I said: User: no.", False),
    ],
)
def test_a_transcript_is_no_text(text: str, refused: bool) -> None:
    preview = read(json_lines({"persona": "a clown", "text": text}), "a.jsonl")
    assert [each.reason for each in preview.refused_records] == [
        "is a transcript of a conversation; save its messages with their roles"
    ] * refused


@pytest.mark.parametrize(("head", "kept"), [("Ada", ["Ha."]), ("The theatre", [])])
def test_a_group_chat_gives_the_texts_of_the_heads_character(head: str, kept: list[str]) -> None:
    lines = [
        {"user_name": "U", "character_name": head, "chat_metadata": {}},
        {"name": "U", "is_user": True, "mes": "Hi?"},
        {"name": "Ada", "is_user": False, "mes": "Ha."},
        {"name": "Bob", "is_user": False, "mes": "Ho."},
    ]
    preview = read(json_lines(*lines), "a.jsonl", persona="a clown")
    assert [text for _, text in texts(preview)] == kept
    assert preview.refused == 2 - len(kept)
