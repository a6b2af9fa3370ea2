"""Notes on texts: unknown tags, sentences without an end, repeated sentences."""

import json

import pytest

from app.domain.instruments.instrument import InstrumentRef
from app.domain.judging.text_notes import Split, TextNotes, split_text
from app.domain.judging.thoughts import split_thoughts, unknown_marks
from app.domain.providers.model import FinishReason
from app.instruments.rules import RULES

CUT, STOPPED, UNSTATED = FinishReason.LENGTH, FinishReason.STOP, FinishReason.UNSTATED


def split(
    text: str, finish: FinishReason | None = None, word: str | None = None, segmenter: str = "punkt-en-v1"
) -> Split:
    return split_text(
        text,
        RULES.load(InstrumentRef("v1", "", segmenter, "refusals-v1", "injections-v1")),
        100,
        (finish, word),
    )


def texts(text: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[start:end] for start, end in spans]


class TestUnknownTags:
    @pytest.mark.parametrize(
        ("text", "mark"),
        [
            ("<mull>Shy.</mull>\nI stay.", "<mull>"),
            ('<muse depth="2">Shy.</muse> I stay.', '<muse depth="2">'),
            ("<mull>\nShy, and so", "<mull>"),
            ("Shy.\n</mull>\nI stay.", "</mull>"),
            ("I stay.<|custom_mood|> More.", "<|custom_mood|>"),
            ("<|custom>Shy.<custom|>I stay.", "<|custom>"),
            ("[MULL]Shy.[/MULL]I stay.", "[MULL]"),
            ("◁muse▷Shy.◁/muse▷I stay.", "◁muse▷"),
            ("[mull]Shy.[/mull]I stay.", "[mull]"),
            ("{muse}Shy.{/muse}I stay.", "{muse}"),
            ("(mull)Shy.(/mull)I stay.", "(mull)"),
            ("I stay [INST] and then", "[INST]"),
            ("I stay <<SYS>> and then", "<<SYS>>"),
            ("I stay [SYSTEM_PROMPT] and then", "[SYSTEM_PROMPT]"),
        ],
    )
    def test_what_may_be_thoughts_is_named(self, text: str, mark: str) -> None:
        assert split_thoughts(text).answer == text
        assert mark in unknown_marks(text)

    @pytest.mark.parametrize(
        "text",
        [
            "I stay. I <3 it.",
            "<p>I stay.</p>",
            "I write <b>bold</b> words.",
            'The token "<|end_of_mood|>" means nothing to me.',
            "I put it into `<mull>`.",
            "[Insert name] is here.",
            "[laughs] I stay.",
            "{sighs} I stay.",
            "(laughs) I stay. (sighs/laughs)",
            "I put it into `[INST]`.",
            "<Your Name>, I stay.",
            "a < b and c > d",
        ],
    )
    def test_a_persona_s_own_words_are_not(self, text: str) -> None:
        assert unknown_marks(text) == ()

    def test_many_tags_are_read_in_linear_time(self) -> None:
        assert len(unknown_marks("".join(f"<|t{n}|></t{n}>\n" for n in range(10_000)))) == 3


class TestCutOff:
    @pytest.mark.parametrize(
        ("text", "last"),
        [
            ("I stay. I am going to", "I am going to"),
            ("I am going to", "I am going to"),
            ("I like:\n1. Tea.\n2.", "2."),
            ("I stay. *She walks aw", "*She walks aw"),
            ("Я дома. Я иду в", "Я иду в"),
        ],
    )
    def test_a_text_that_reached_the_maximum_length(self, text: str, last: str) -> None:
        found = split(text, CUT).notes
        assert found.cut_off is not None
        assert texts(text, (found.cut_off,)) == [last]

    @pytest.mark.parametrize(
        "text",
        ["I stay. I read.", '"I stay," he said. "Good."', "I stay. *She nods.*", "I stay! 🎉", "我在家。"],
    )
    def test_a_last_sentence_may_be_whole_all_the_same(self, text: str) -> None:
        assert split(text, CUT).notes.cut_off is None

    def test_a_model_that_stopped_by_itself_has_finished(self) -> None:
        assert split("I stay. I am going to the shop", STOPPED).notes.cut_off is None

    @pytest.mark.parametrize("finish", [None, UNSTATED])
    def test_of_other_texts_a_further_sentence_without_an_end_counts(
        self, finish: FinishReason | None
    ) -> None:
        assert split("I stay. I am going to the", finish).notes.cut_off == (8, 25)
        for text in (
            "i just stay at home",
            "I stay.\n\nBest wishes,\nAnna",
            "I stay. What a day for this #party",
            "I stay. See you all at http://example.org",
        ):
            assert split(text, finish).notes.cut_off is None


class TestRepeatedSentences:
    def test_case_spacing_and_punctuation_do_not_matter(self) -> None:
        text = "I stay at home. I read. I stay  at home! “I stay at home.” I read it."
        assert texts(text, split(text).notes.repeated_sentences) == ["I stay  at home!", "“I stay at home.”"]

    def test_a_sentence_with_the_same_beginning_is_another_one(self) -> None:
        assert split("I stay at home today. I stay at home tomorrow.").notes.repeated_sentences == ()


class TestFinishWord:
    def test_is_kept_if_it_is_not_known(self) -> None:
        assert split("I stay.", UNSTATED, "tired").notes.unknown_finish_word == "tired"
        assert split("I stay.", FinishReason.OTHER, "tool_calls").notes.unknown_finish_word is None


class TestStored:
    def test_notes_are_read_as_they_were_written(self) -> None:

        found = split("<mull>x</mull> I read. I stay. I stay. I am going to the", UNSTATED, "tired").notes
        assert found.cut_off
        assert found.repeated_sentences
        assert TextNotes.of(json.loads(found.stored() or "")) == found

    def test_an_ordinary_text_has_none(self) -> None:
        assert split("I stay. I read.").notes.stored() is None
        assert TextNotes.of(None) is None
