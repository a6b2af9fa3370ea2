import time
from pathlib import Path

import pytest
import yaml

from app.domain.instruments.refusal import RefusalRules
from app.instruments.loader import load_atomic

GOLDEN = yaml.safe_load((Path(__file__).parents[3] / "golden" / "refusals.yaml").read_text(encoding="utf-8"))
RULES = load_atomic().refusal


class TestLabelledTexts:
    @pytest.mark.parametrize("language", sorted({entry["language"] for entry in GOLDEN}))
    def test_of_each_language_95_percent_are_right(self, language: str) -> None:
        entries = [entry for entry in GOLDEN if entry["language"] == language]
        wrong = [entry["text"] for entry in entries if RULES.is_refusal(entry["text"]) != entry["refusal"]]
        assert len(wrong) <= len(entries) * 0.05, wrong

    def test_are_distinct_with_a_source_each(self) -> None:
        assert len({entry["text"] for entry in GOLDEN}) == len(GOLDEN) >= 200
        assert all(entry["source"] for entry in GOLDEN)


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
        "unit", ["sorry for a ", "no ", "i'm sorry ", "i understand a, but ", "as an ai ", "i "]
    )
    def test_hostile_repetition_costs_little(self, unit: str) -> None:
        start = time.process_time()
        RULES.is_refusal(unit * 1000)
        assert time.process_time() - start < 10


class TestRules:
    def test_terms_stand_for_their_alternatives_also_in_later_terms(self) -> None:
        rules = RefusalRules(
            window=50,
            sentences=1,
            terms={"animal": ("cat", "dog"), "pet": ("my <animal>", "it")},
            lead_ins=("well",),
            patterns=("no <pet>",),
        )
        assert [rules.is_refusal(text) for text in ["Well, no my dog", "no it", "no cat", "no. no it"]] == [
            True,
            True,
            False,
            False,
        ]

    def test_an_unknown_term_is_an_error(self) -> None:
        with pytest.raises(ValueError, match=r"unknown term <pet> in 'no <pet>'"):
            RefusalRules(window=9, sentences=1, terms={}, lead_ins=("so",), patterns=("no <pet>",))

    def test_a_broken_expression_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="not a regular expression"):
            RefusalRules(window=9, sentences=1, terms={}, lead_ins=("so",), patterns=("(",))
