import re
import time
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize import punkt

from app.domain.instruments.punkt import PunktSegmenter, WidePunktSegmenter
from app.domain.instruments.roleplay import RoleplaySegmenter
from app.domain.instruments.segmentation import PunktRules, normalise, runaway
from app.instruments.loader import load_punkt

GOLDEN = yaml.safe_load((Path(__file__).parents[3] / "golden" / "sentences.yaml").read_text(encoding="utf-8"))
SEGMENTER = PunktSegmenter(load_punkt("punkt-en-v1"))

UNLIMITED = 1_000_000


def nltk_with(rules: PunktRules) -> punkt.PunktSentenceTokenizer:
    parameters = punkt.PunktParameters()
    parameters.abbrev_types = set(rules.never_final | rules.sometimes_final)
    parameters.sent_starters = set(rules.sentence_starters)
    parameters.ortho_context = defaultdict(int, dict.fromkeys(rules.sentence_starters, 1 << 5))
    parameters.collocations = set(product(rules.never_final, rules.sentence_starters))
    return punkt.PunktSentenceTokenizer(parameters)


NLTK = nltk_with(load_punkt("punkt-en-v1"))

PIECES = st.sampled_from(
    ["I", "like", "well-known", ". The ", "Dr", "U.S", "e.g", "p.m", "...", ".", "!", "?", " ", "\n", "—", "\u2019", "“", "”", '"', "'", ")", "(", ",",
     "1", "2.5", "#", "😊", "--", "\u00a0", "\u200b", "É"]
)  # fmt: skip
ROLEPLAY_PIECES = ["*", "*smiles.* ", "**", "\nAnna: ", "#fun ", "🎉", "\n1. ", "\n- ", ":)", "</b>", "She "]
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=40).map("".join))


def sentences(text: str) -> list[str]:
    return [unit.text for unit in SEGMENTER.segment(text, UNLIMITED)]


class TestSentences:
    @pytest.mark.parametrize("line", GOLDEN["spaced"])
    def test_are_cut_where_a_reader_would_cut(self, line: str) -> None:
        expected = [part.strip() for part in line.split(" | ")]
        assert sentences(" ".join(expected)) == [normalise(sentence) for sentence in expected]

    @pytest.mark.parametrize("case", GOLDEN["broken"], ids=lambda case: repr(case["text"]))
    def test_are_trimmed_and_normalised(self, case: dict[str, object]) -> None:
        assert sentences(str(case["text"])) == case["sentences"]

    @pytest.mark.parametrize("case", GOLDEN["punkt"], ids=lambda case: repr(case["text"]))
    def test_follow_the_algorithm_of_the_paper_where_a_reader_would_differ(
        self, case: dict[str, object]
    ) -> None:
        assert sentences(str(case["text"])) == case["sentences"]

    @given(st.lists(PIECES, max_size=40).map("".join))
    @settings(max_examples=300)
    def test_are_those_of_the_locked_nltk(self, text: str) -> None:
        assert sentences(text) == [cut for cut in map(str.strip, NLTK.tokenize(normalise(text))) if cut]

    @pytest.mark.parametrize("text", GOLDEN["quoted"])
    def test_do_not_change_with_the_patterns_of_another_nltk(
        self, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        expected = [part.strip() for part in text.split(" | ")]
        # The patterns of NLTK 3.9.1, which take no curly quotation marks for closing ones.
        monkeypatch.setattr(
            punkt.PunktLanguageVars,
            "re_boundary_realignment",
            re.compile(r"[\"')\]}]+?(?:\s+|(?=--)|$)", re.MULTILINE),
        )
        monkeypatch.setattr(punkt.PunktLanguageVars, "_re_non_word_chars", r"(?:[)\";}\]\*:@'\({\[?!])")
        assert punkt.PunktSentenceTokenizer(NLTK._params).tokenize(" ".join(expected)) != expected
        assert sentences(" ".join(expected)) == expected

    def test_there_are_sixty_cases_at_least(self) -> None:
        assert len(GOLDEN["spaced"]) >= 60


class TestSpans:
    def test_lie_in_the_raw_text_although_dashes_grow(self) -> None:
        raw = "  Late—again—me. \u201cIt\u2019s fine.\u201d  Bye—"
        assert [(u.index, raw[u.start : u.end], u.text) for u in SEGMENTER.segment(raw, UNLIMITED)] == [
            (0, "Late—again—me.", "Late--again--me."),
            (1, "\u201cIt\u2019s fine.\u201d", "\u201cIt's fine.\u201d"),
            (2, "Bye—", "Bye--"),
        ]

    @given(TEXTS)
    @settings(max_examples=300)
    def test_are_ordered_disjoint_and_cover_everything_visible(self, raw: str) -> None:
        covered = 0
        for index, unit in enumerate(SEGMENTER.segment(raw, UNLIMITED)):
            assert unit.index == index
            assert covered <= unit.start < unit.end
            assert not raw[covered : unit.start].strip()
            assert normalise(raw[unit.start : unit.end]) == unit.text == unit.text.strip() != ""
            covered = unit.end
        assert not raw[covered:].strip()


class TestParameters:
    def test_the_name_goes_with_the_data(self) -> None:
        assert SEGMENTER.name == "punkt-en-v1"


class TestHostileLengths:
    # Each of these takes a second at most; a quadratic algorithm would take minutes.
    @pytest.mark.parametrize(
        "unit",
        [
            "a",
            "a.",
            "!",
            ". ",
            "! ",
            '."',
            "a.)",
            "\n",
            ".\n",
            "—",
            "a—",
            '"',
            "Dr. ",
            "1.1.",
            "...x",
            "I am here. ",
        ],
    )
    def test_take_linear_time(self, unit: str) -> None:
        text = unit * (60_000 // len(unit))
        start = time.process_time()
        SEGMENTER.segment(text, UNLIMITED)
        assert time.process_time() - start < 10


class TestLimits:
    def test_splitting_stops_at_the_first_unit_beyond_the_limit(self) -> None:
        assert [unit.text for unit in SEGMENTER.segment("One. Two! Three? Four.", 2)] == [
            "One.",
            "Two!",
            "Three?",
        ]

    @given(TEXTS, st.integers(1, 5))
    def test_units_up_to_the_limit_are_those_without_one(self, text: str, most: int) -> None:
        assert SEGMENTER.segment(text, most) == SEGMENTER.segment(text, UNLIMITED)[: most + 1]

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("a" * 200_001, "200,001 characters; at most 200,000"),
            (". " * 24_000, "24,000 signs that may end a sentence; at most 5,000"),
            ("a?! " * 2_501, "5,002 signs that may end a sentence; at most 5,000"),
        ],
    )
    def test_a_text_that_would_take_long_is_not_split(self, text: str, why: str) -> None:
        assert runaway(text, 1_000) == why

    @pytest.mark.parametrize("text", ["", "a" * 200_000, "I am here... " * 1_000, "a?! " * 2_500])
    def test_others_are(self, text: str) -> None:
        assert runaway(text, 1_000) is None


WIDE = WidePunktSegmenter(load_punkt("punkt-en-v1"), "punkt-en-wide-v1")


class TestWideSigns:
    @pytest.mark.parametrize("line", GOLDEN["wide"])
    def test_end_sentences_but_not_within_what_is_quoted(self, line: str) -> None:
        text, expected = line.replace("|", ""), [part.strip() for part in line.split("|")]
        found = WIDE.segment(text, UNLIMITED)
        assert [unit.text for unit in found] == expected
        assert [text[unit.start : unit.end] for unit in found] == expected

    @pytest.mark.parametrize("language", GOLDEN["scripts"])
    def test_end_sentences_of_other_scripts(self, language: str) -> None:
        found = expected = right = 0
        for line in GOLDEN["scripts"][language]:
            parts = [part.strip() for part in line.split("|")]
            units = WIDE.segment(" ".join(parts), UNLIMITED)
            ends = {sum(map(len, parts[: n + 1])) + n for n in range(len(parts))}
            found, expected = found + len(units), expected + len(ends)
            right += len(ends & {unit.end for unit in units})
        assert 2 * right / (found + expected) >= 0.9

    def test_a_quotation_ends_with_its_paragraph(self) -> None:
        assert [u.text for u in WIDE.segment("「开。\n一。」二。", UNLIMITED)] == ["「开。", "一。」", "二。"]

    @given(st.lists(PIECES, max_size=40).map("".join))
    def test_of_texts_without_them_the_sentences_are_the_same(self, text: str) -> None:
        assert WIDE.segment(text, UNLIMITED) == SEGMENTER.segment(text, UNLIMITED)

    @given(st.text("".join(GOLDEN["wide"]) + "\n—", max_size=60))
    def test_are_ordered_disjoint_and_cover_everything_visible(self, raw: str) -> None:
        units = WIDE.segment(raw, UNLIMITED)
        kept = "".join(raw[unit.start : unit.end] for unit in units)
        assert "".join(kept.split()) == "".join(raw.split())
        assert all(first.end <= second.start for first, second in pairwise(units))

    @pytest.mark.parametrize("unit", ["。", "「", "「我。」", "!", "!。", "」", "我「。", "।", "፡", "។ល"])
    def test_take_linear_time(self, unit: str) -> None:
        began = time.process_time()
        assert len(WIDE.segment(unit * (100_000 // len(unit)), 1_000)) <= 1_001
        assert time.process_time() - began < 5


ROLEPLAY = RoleplaySegmenter(load_punkt("punkt-en-v1"), "roleplay-en-v1")


class TestRoleplay:
    @pytest.mark.parametrize("line", GOLDEN["roleplay"])
    def test_units_are_actions_and_sentences_with_their_marks(self, line: str) -> None:
        text = line.replace("|", "")
        assert [unit.text for unit in ROLEPLAY.segment(text, UNLIMITED)] == [
            part.strip() for part in line.split("|")
        ]

    @given(st.lists(st.one_of(PIECES, st.sampled_from(ROLEPLAY_PIECES)), max_size=40).map("".join))
    def test_are_ordered_and_have_a_letter_or_are_alone(self, raw: str) -> None:
        units = ROLEPLAY.segment(raw, UNLIMITED)
        kept = "".join(raw[unit.start : unit.end] for unit in units)
        assert "".join(kept.split()) == "".join(raw.split())
        assert all(first.end <= second.start for first, second in pairwise(units))
        assert len(units) < 2 or all(re.search(r"[^\W\d_]", unit.text) for unit in units)

    @given(TEXTS, st.integers(1, 5))
    def test_units_up_to_the_limit_are_those_without_one(self, text: str, most: int) -> None:
        assert ROLEPLAY.segment(text, most) == ROLEPLAY.segment(text, UNLIMITED)[: most + 1]

    @pytest.mark.parametrize(
        "unit",
        [
            "*",
            "*a* ",
            "*a",
            "_a",
            "_a_ ",
            "#a ",
            "😊",
            "😊 I",
            "A: \n",
            "<a",
            "1. ",
            " ",
            "! 😊",
            ":)",
            "Ab ",
        ],
    )
    def test_take_linear_time(self, unit: str) -> None:
        began = time.process_time()
        assert len(ROLEPLAY.segment(unit * (100_000 // len(unit)), 1_000)) <= 1_001
        assert time.process_time() - began < 5
