"""Untrusted texts at a terminal."""

import pytest

from persona_assay.terminal.consoles import printable, shortened

FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
ENGLAND = "\N{WAVING BLACK FLAG}\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
DARK_THUMB = "\N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-5}"


@pytest.mark.parametrize(
    "text", [FAMILY, ENGLAND, DARK_THUMB, "\u0645\u06cc\u200c\u062e", "日本語", "e\u0301"]
)
def test_what_readers_see_as_characters_stays_whole(text: str) -> None:
    assert printable(f"a{text}b") == f"a{text}b"


@pytest.mark.parametrize("hidden", ["\x1b[31m", "\u202e", "\U000e0041", "\u2066", "\x9b"])
def test_what_hides_or_moves_text_is_replaced(hidden: str) -> None:
    assert printable(f"a{hidden}b")[1] == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    "text",
    ["::error file=x::broken", "##[error]broken", "a ##vso[task.setvariable]b", "  ::stop-commands::x"],
)
@pytest.mark.parametrize("variable", ["GITHUB_ACTIONS", "TF_BUILD"])
def test_commands_of_ci_systems_are_broken_up(
    monkeypatch: pytest.MonkeyPatch, text: str, variable: str
) -> None:
    assert printable(text) == text
    monkeypatch.setenv(variable, "true")
    shown = printable(text)
    assert "::" not in shown
    assert "##" not in shown


@pytest.mark.parametrize(
    "space", ["\n", "\r", "\r\n", " \n\n\t", "\t", "\v", "\x85", "\u2029", "\xa0", "\u202f", "\u3000"]
)
def test_line_breaks_and_other_white_space_are_a_space(space: str) -> None:
    assert printable(f"a{space}b") == "a b"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        (FAMILY * 3, 6, FAMILY * 3),
        (FAMILY * 3, 5, FAMILY * 2 + "…"),  # two columns each
        (ENGLAND * 3, 4, ENGLAND + "…"),
        ("日本語テキスト", 6, "日本…"),
        ("e\u0301" * 5, 3, "e\u0301e\u0301…"),
    ],
)
def test_a_text_is_cut_between_characters_as_a_reader_sees_them(text: str, width: int, shown: str) -> None:
    assert shortened(text, width) == shown
