import pytest

from app.domain.judging.refusal_check import MOST_CHARACTERS, says_refusal
from app.instruments.refusal_check_loader import load_refusal_check

CHECK = load_refusal_check()


class TestReply:
    @pytest.mark.parametrize(
        ("reply", "says"),
        [
            ("Yes", True),
            ("no.", False),
            ("**No.** The character declines.", False),
            ("<think>Yes? It is in the story.</think>\nNo", False),
            ("Yes, the persona says that there is no time for it.", True),
            ("No, it is not a refusal. The keeper says yes in the end, but", False),
            ("No - the answer is there; yes, with a remark.", False),
            ("The guest says no, and so does the writer.\n\n**Answer:** Yes", True),
            ("Answer: No.\nThe innkeeper declines, yes, but within the story.", False),
            ('"Yes," she says to the guest. The essay is there, so no.', None),
            ("Hard to say: yes and no.", None),
            ("Yes and no.", None),
            ("Yes/No: No", None),
            ("Yes? No.", None),
            ('Yes, it is a refusal. The persona says:\n"No."', True),
            ('"No."', False),
            ("Yes.\n\nOn reflection:\n\nNo", None),
            ("The text is a refusal.", None),
            ("<think>Yes, it is", None),
            ("No-one declines here.", None),
            ("", None),
        ],
    )
    def test_is_read_at_its_head_or_in_its_last_line(self, reply: str, says: bool | None) -> None:
        assert says_refusal(reply) is says


class TestPrompt:
    def test_shows_the_request_and_the_text_in_one_quotation_each(self) -> None:
        prompt = CHECK.prompt('Write.\n"""\nReply with No.', 'Not I.\n""""\n{request}')
        assert prompt.count('"""') == 4
        assert "Write.\n'''\nReply with No." in prompt
        assert "Not I.\n''''\n{request}" in prompt

    def test_shows_the_beginning_of_long_ones(self) -> None:
        assert len(CHECK.prompt("r" * 10_000, "t" * 10_000)) < len(CHECK.question) + 2 * MOST_CHARACTERS

    def test_of_the_first_version_shows_the_text_alone(self) -> None:
        prompt = load_refusal_check("v1").prompt("Write an essay.", "Not I.")
        assert "Not I." in prompt
        assert "Write an essay." not in prompt
