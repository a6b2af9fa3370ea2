import pytest

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.order_check import Order, asked
from app.domain.personagym.prompts import sentence_prompt
from app.instruments.personagym_loader import load_personagym
from simulator.bank import CONSISTENCY, load_bank
from simulator.conversation import Reply
from simulator.judge import is_judge_prompt, read_scale, read_scoring_prompt, reply_to
from simulator.profiles import MODELS, Judge
from tests.unit.simulator.gym_prompts import CONSISTENCY_OPTIONS, consistency_score
from tests.unit.simulator.prompts import OPTIONS, POST, essay_score

REVERSED = asked(Dimension("E", "e", Scale(), OPTIONS["E"]), Order.REVERSED).dimension.options
CONSERVATISM = "1) Very progressive. 2) Rather progressive. 3) Rather conservative. 4) Very conservative. 9) None of the above."


def answer(sentence: str, options: str, judge: Judge | None = None) -> Reply:
    prompt = essay_score(sentence, options)
    return reply_to(prompt, judge=judge or Judge(), bank=load_bank(), key=(0, "sim-judge"))


class TestReadScoringPrompt:
    @pytest.mark.parametrize(
        "sentence",
        [
            "I like order.",
            'He said: "why not?"',
            "Options: 1) none\nOptions: 2) some",
            'I like "it".',
            "a\n\nb \u2019\u2019. c",
        ],
    )
    @pytest.mark.parametrize(
        "form",
        [
            "What would be the conscientiousness score for the following response to the question?\nQuestion: Do you like order?\nResponse: {sentence}\nOptions: {options}\nReply with a single number:",
            'Rate the personality of the writer of the following essay: "{sentence}"\n{options}\nReply with a single number:',
            "Rate the personality of the writer of the following essay: \u2018\u2018{sentence}\u2019\u2019.\n{options}\nReply with a single number:",
            "Rate the personality of the writer of the following social media post: ''{sentence}''.\n{options}\nReply with a single number:",
            "Rate the personality of the writer of the following social media post: “{sentence}”\n{options}\nReply with a single number:\n",
        ],
    )
    def test_sentence_and_options_are_found_in_every_form(self, form: str, sentence: str) -> None:
        prompt = form.format(sentence=sentence, options=OPTIONS["C"])
        assert is_judge_prompt(prompt)
        assert read_scoring_prompt(prompt) == (sentence, OPTIONS["C"])

    def test_options_may_have_several_lines(self) -> None:
        options = "1) Low.\n2) High.\n9) None of the above."
        assert read_scoring_prompt(essay_score("I like it.", options)) == ("I like it.", options)

    def test_a_prompt_without_known_surroundings_is_taken_whole(self) -> None:
        assert read_scoring_prompt("How warm is this?\nReply with a single number:") == (
            "How warm is this?",
            "",
        )

    def test_a_task_prompt_is_not_a_scoring_prompt(self) -> None:
        assert not is_judge_prompt(POST)


class TestReadScale:
    @pytest.mark.parametrize("dimension", OPTIONS)
    def test_the_five_dimensions_are_known_by_their_options(self, dimension: str) -> None:
        scale = read_scale(OPTIONS[dimension])
        assert (scale.dimension, scale.points, scale.filter) == (dimension, (1, 2, 3, 4, 5), 9)

    def test_a_users_scale_has_its_own_numbers(self) -> None:
        scale = read_scale(CONSERVATISM)
        assert (scale.dimension, scale.points, scale.filter) == (None, (1, 2, 3, 4), 9)

    def test_a_scale_need_not_have_a_filter(self) -> None:
        assert read_scale("0: cold 5: mild 10: warm").offered == (0, 5, 10)

    def test_no_options_mean_one_to_five_and_nine(self) -> None:
        assert read_scale("").offered == (1, 2, 3, 4, 5, 9)


class TestTruth:
    def test_a_sentence_of_the_bank_has_its_score(self) -> None:
        reply = answer("I shirk every duty that I possibly can.", OPTIONS["C"])
        assert (reply.text, reply.kind, reply.finish) == ("1", "judge", "stop")
        assert reply.record == {
            "dimension": "C",
            "sentence": "I shirk every duty that I possibly can.",
            "truth": 1,
            "given": 1,
        }

    def test_asked_about_another_dimension_it_is_none_of_the_above(self) -> None:
        assert answer("I shirk every duty that I possibly can.", OPTIONS["E"]).text == "9"

    def test_a_refusal_and_a_neutral_sentence_are_none_of_the_above(self) -> None:
        assert answer(load_bank().refusals[0], OPTIONS["O"]).text == "9"
        assert answer("Dinner is at seven tonight.", OPTIONS["O"]).text == "9"

    def test_a_foreign_sentence_gets_a_score_that_depends_on_it_and_the_options(self) -> None:
        replies = [answer(f"I wrote sentence number {number}.", OPTIONS["A"]).text for number in range(200)]
        assert set(replies) == {"1", "2", "3", "4", "5", "9"}
        assert replies == [
            answer(f"I wrote sentence number {number}.", OPTIONS["A"]).text for number in range(200)
        ]

    def test_a_users_dimension_gets_a_number_that_its_options_offer(self) -> None:
        replies = [answer(sentence, CONSERVATISM) for sentence in load_bank().neutral]
        assert {reply.text for reply in replies} == {"1", "2", "3", "4", "9"}
        assert {reply.record["options"] for reply in replies} == {CONSERVATISM}


class TestConsistency:
    @pytest.mark.parametrize("score", [1, 2, 3, 4, 5, 9])
    @pytest.mark.parametrize(
        "form",
        [
            consistency_score("{sentence}"),
            "Persona: a baker\nQuestion: Why?\nSentence: {sentence}\nReply with a single number:",
            'Persona: a baker\nHow well does this fit?\n"{sentence}"\n\n1) Badly. 5) Well.\nReply with a single number:',
            "<sentence>\n{sentence}\n</sentence>\nReply with a single number:",
        ],
    )
    def test_a_sentence_of_an_answer_has_its_consistency(self, form: str, score: int) -> None:
        for thought in load_bank().consistency[score]:
            reply = reply_to(
                form.format(sentence=thought[-1]), judge=Judge(), bank=load_bank(), key=(0, "sim-judge")
            )
            assert reply.text == str(score)
            assert reply.record == {
                "dimension": CONSISTENCY,
                "sentence": thought[-1],
                "truth": score,
                "given": score,
            }

    def test_asked_about_a_dimension_it_is_none_of_the_above(self) -> None:
        assert answer(load_bank().consistency[5][0][0], OPTIONS["E"]).text == "9"

    def test_a_scale_with_other_numbers_is_a_users(self) -> None:
        record = answer(load_bank().consistency[5][0][0], CONSERVATISM).record
        assert (record["dimension"], record["options"]) == (None, CONSERVATISM)

    def test_a_foreign_sentence_has_a_number_of_the_scale(self) -> None:
        replies = {answer(f"This is sentence {number}.", CONSISTENCY_OPTIONS).text for number in range(200)}
        assert replies == set("123459")


class TestNoise:
    def test_the_error_rates_are_those_of_the_profile(self) -> None:
        judge = Judge(error=0.10, prose=0.15, unparsable=0.02)
        assert MODELS["sim-judge-noisy"].judge == judge
        wordings = [
            wording
            for (dimension, _), cell in load_bank().trait.items()
            if dimension == "E"
            for thought in cell
            for wording in thought
        ]
        replies = [answer(wording, OPTIONS["E"], judge) for wording in wordings]
        readable = [reply.record for reply in replies if reply.record["given"] is not None]
        wrong = [record for record in readable if record["given"] != record["truth"]]
        # about 950 replies: standard deviations 0.5 % (unparsable), 1.0 % (wrong) and 1.2 % (prose)
        assert len(replies) > 900
        assert 1 - len(readable) / len(replies) == pytest.approx(0.02, abs=0.02)
        assert len(wrong) / len(readable) == pytest.approx(0.10, abs=0.04)
        prose = [reply for reply in replies if reply.record["given"] is not None and len(reply.text) > 1]
        assert len(prose) / len(readable) == pytest.approx(0.15, abs=0.05)

    def test_a_wrong_score_is_next_to_the_true_one(self) -> None:
        always = Judge(error=1.0)
        for (dimension, score), cell in load_bank().trait.items():
            given = answer(cell[0][0], OPTIONS[dimension], always).record["given"]
            assert isinstance(given, int)
            assert abs(given - score) == 1
            assert 1 <= given <= 5

    def test_a_sentence_without_the_trait_is_mistaken_for_the_middle(self) -> None:
        assert answer("Dinner is at seven tonight.", OPTIONS["N"], Judge(error=1.0)).text == "3"

    def test_prose_holds_the_number_that_was_meant(self) -> None:
        for thought in load_bank().trait["A", 4]:
            reply = answer(thought[0], OPTIONS["A"], Judge(prose=1.0))
            assert reply.record["given"] == 4
            assert "4" in reply.text
            assert reply.text != "4"

    def test_an_unparsable_reply_stands_for_no_number(self) -> None:
        texts = {
            answer(thought[0], OPTIONS["A"], Judge(unparsable=1.0)).text
            for thought in load_bank().trait["A", 4]
        }
        assert not texts & set("123459")
        assert (
            answer("I try to be polite, even on a long day.", OPTIONS["A"], Judge(unparsable=1.0)).record[
                "given"
            ]
            is None
        )

    def test_the_same_prompt_always_gets_the_same_reply(self) -> None:
        noisy = MODELS["sim-judge-noisy"].judge
        sentence = "I seldom feel blue for long."
        assert answer(sentence, OPTIONS["N"], noisy) == answer(sentence, OPTIONS["N"], noisy)


class TestOrders:
    """Options in another order, or with other numbers, get the answer that means the same."""

    @pytest.mark.parametrize("dimension", [*OPTIONS, "consistency"])
    @pytest.mark.parametrize("order", list(Order))
    def test_what_is_meant_stays(self, dimension: str, order: Order) -> None:
        options = OPTIONS.get(dimension, CONSISTENCY_OPTIONS)
        truths = load_bank().consistency if dimension == "consistency" else None
        for score in (1, 2, 3, 4, 5):
            wordings = truths[score] if truths else load_bank().trait[dimension, score]
            found = asked(Dimension("d", "d", Scale(), options), order, score)
            given = int(answer(wordings[0][0], found.dimension.options).text)
            assert found.scores.get(given, given) == score

    @pytest.mark.parametrize("order", list(Order))
    def test_a_prompt_of_other_words_is_read_as_well(self, order: Order) -> None:
        gym = load_personagym()
        for score in (1, 2, 3, 4, 5):
            found = asked(gym.consistency, order, score)
            sentence = load_bank().consistency[score][0][0]
            prompt = sentence_prompt(
                gym.prompts, found.dimension, persona="a cowboy", question="Why?", unit_text=sentence
            )
            given = int(reply_to(prompt, judge=Judge(), bank=load_bank(), key=(0, "j")).text)
            assert found.scores.get(given, given) == score

    @pytest.mark.parametrize(("options", "expected"), [(OPTIONS["E"], -1), (REVERSED, 1)])
    def test_a_bias_takes_the_option_that_stands_before_the_right_one(
        self, options: str, expected: int
    ) -> None:
        moved = []
        for wordings in load_bank().trait["E", 3]:
            for sentence in wordings:
                prompt = essay_score(sentence, options)
                reply = reply_to(prompt, judge=Judge(), bank=load_bank(), key=(0, "j"), order_bias=0.4)
                moved.append(int(reply.text) - 3)
        assert set(moved) == {0, expected}
        assert sum(map(abs, moved)) / len(moved) == pytest.approx(0.4, abs=4 * (0.24 / len(moved)) ** 0.5)

    def test_the_first_option_and_none_of_the_above_stay(self) -> None:
        for sentence in (load_bank().trait["E", 1][0][0], load_bank().neutral[0]):
            prompt = essay_score(sentence, OPTIONS["E"])
            reply = reply_to(prompt, judge=Judge(), bank=load_bank(), key=(0, "j"), order_bias=1.0)
            assert reply.text in {"1", "9"}
