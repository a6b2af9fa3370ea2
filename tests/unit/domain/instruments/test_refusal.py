import hashlib
import time
from pathlib import Path

import pytest
import yaml

from app.domain.instruments.refusal import LanguageRules, Refusal, RefusalRules
from app.domain.instruments.segmentation import units_at
from app.instruments.loader import load_atomic

GOLDEN = yaml.safe_load((Path(__file__).parents[3] / "golden" / "refusals.yaml").read_text(encoding="utf-8"))
RULES = load_atomic().refusal


def breaks(*sentences: str) -> list[str]:
    """The sentences of a text that break the role."""
    text = " ".join(sentences)
    starts = [text.index(sentence) for sentence in sentences]
    ends = [start + len(each) for start, each in zip(starts, sentences, strict=True)]
    return [unit.text for unit in RULES.breaks(text, units_at(text, starts, ends))]


def held_out(text: str) -> bool:
    """A quarter of the texts, by hash: rules are not to be changed for errors among these."""
    return hashlib.sha256(text.encode()).digest()[0] < 64


class TestLabelledTexts:
    @pytest.mark.parametrize(
        "part", ["all", "held out", "real", *sorted({language for language, *_ in GOLDEN})]
    )
    def test_95_percent_are_right(self, part: str) -> None:
        entries = [
            (label, text)
            for language, label, text, source in GOLDEN
            if part in {"all", language}
            or (part == "held out" and held_out(text))
            or (part == "real" and source != "constructed")
        ]
        missed = [text for label, text in entries if label == "refusal" and not RULES.is_refusal(text)]
        false = [text for label, text in entries if label != "refusal" and RULES.is_refusal(text)]
        counts = f"{part}: {len(entries)} texts, {len(missed)} refusals missed, {len(false)} answers refused"
        print(counts)  # noqa: T201 - shown by pytest -s
        assert len(missed) + len(false) <= len(entries) * 0.05, (missed, false)

    def test_breaks_of_the_role_are_told_from_answers(self) -> None:
        entries = [(label, text) for _, label, text, _ in GOLDEN if label != "refusal"]
        wrong = [text for label, text in entries if bool(breaks(text)) != (label == "break")]
        assert len(wrong) <= len(entries) * 0.05, wrong

    def test_are_distinct_with_a_source_each(self) -> None:
        assert len({text for _, _, text, _ in GOLDEN}) == len(GOLDEN)
        assert len([source for *_, source in GOLDEN if source != "constructed"]) >= 200


class TestOpening:
    def test_typographic_apostrophes_case_quotes_and_markup_do_not_matter(self) -> None:
        assert RULES.is_refusal("\n**\u201cI\u2019M SORRY, but I can\u2019t assist with that.\u201d**")

    def test_a_refusal_in_the_second_sentence_counts(self) -> None:
        assert RULES.is_refusal("Thank you. However, I cannot adopt this persona.")

    def test_one_in_the_third_does_not(self) -> None:
        assert not RULES.is_refusal("I love my work. It is fun. I cannot adopt this persona.")

    @pytest.mark.parametrize(
        "text",
        [
            "My boss said that personal data is prohibited in mails, so I checked twice.",
            "I told her: I'm sorry, but I can't assist with that request. Then I left.",
            "",
            "   \n",
        ],
    )
    def test_words_inside_an_answer_do_not_make_it_a_refusal(self, text: str) -> None:
        assert not RULES.is_refusal(text)

    @pytest.mark.parametrize(
        "unit", ["sorry for a ", "no ", "i'm sorry ", "i understand a, but ", "as an ai ", "i ", "[(", "*a "]
    )
    def test_hostile_repetition_costs_little(self, unit: str) -> None:
        start = time.process_time()
        RULES.read(unit * 1000)
        breaks(unit * 1000)
        assert time.process_time() - start < 10

    @pytest.mark.parametrize(
        "bracket", ["(%s)", "((%s))", "[%s]", "[[%s]]", "{%s}", "<%s>", "\uff08%s\uff09", "\u3010%s\u3011"]
    )
    def test_a_remark_out_of_character_refuses_in_any_bracket(self, bracket: str) -> None:
        assert RULES.is_refusal("*The rain falls.* " + bracket % "OOC: I won't write this scene.")
        assert not RULES.is_refusal("*The rain falls.* " + bracket % "OOC: great scene!")


class TestUnsure:
    @pytest.mark.parametrize(
        "text",
        [
            "*shakes his head* I can't help with that.",
            "I can't help with that, sir.",
            "What a day. I love the rain. I cannot adopt this persona.",
            "As an AI, I love parties, but not the noise of the city.",
            "Sorry, I\u2019d rather not.",
            "Danke, aber einen Betrüger werde ich nicht spielen.",
            "Merci, mais je ne jouerai pas un escroc.",
            "I'm sorry, but I can't provide an alibi. I was in bed by nine.",
            "I can't write a speech that praises torture. I could write one about a historian instead.",
            "Désolée, je ne peux pas soutenir cette équipe, ils ont battu Lens.",
        ],
    )
    def test_a_character_may_refuse_or_the_model_later_or_in_other_words(self, text: str) -> None:
        assert RULES.read(text) is Refusal.UNSURE

    @pytest.mark.parametrize("text", ["I can't wait for the party.", "I love my work.", ""])
    def test_other_answers_are_sure(self, text: str) -> None:
        assert RULES.read(text) is Refusal.NO


class TestBreaks:
    def test_are_found_by_sentence(self) -> None:
        sentences = ["I love hiking.", "As an AI, I only read about it.", "(OOC: shall I go on?)"]
        assert breaks(*sentences) == sentences[1:]

    @pytest.mark.parametrize(
        "sentence",
        [
            "\u201cI am an AI,\u201d the android explained.",
            "My sister says I'm a chatbot before my first coffee.",
            "I feel as if I am a computer program.",
            "I'm not an AI, you know.",
        ],
    )
    def test_speech_hearsay_and_denials_are_none(self, sentence: str) -> None:
        assert breaks(sentence) == []


class TestRules:
    def test_terms_stand_for_their_alternatives_also_in_later_terms(self) -> None:
        language = LanguageRules(
            terms={"animal": ("cat", "dog"), "pet": ("my <animal>", "it")},
            lead_ins=("well",),
            model=("no <pet>",),
        )
        rules = RefusalRules(window=50, sentences=1, languages={"en": language})
        assert [rules.is_refusal(text) for text in ["Well, no my dog", "no it", "no cat", "no. no it"]] == [
            True,
            True,
            False,
            False,
        ]

    @pytest.mark.parametrize(
        ("pattern", "message"), [("no <pet>", r"unknown term <pet> in 'no <pet>'"), ("(", "not a regular")]
    )
    def test_a_wrong_pattern_is_an_error(self, pattern: str, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            self.refuses_by(pattern)

    @staticmethod
    def refuses_by(pattern: str) -> bool:
        rules = RefusalRules(9, 1, {"en": LanguageRules(terms={}, lead_ins=("so",), model=(pattern,))})
        return rules.is_refusal("So no.")
