from collections import Counter

import pytest

from simulator.bank import CONSISTENCY, load_bank
from simulator.conversation import Reply
from simulator.draw import Draws
from simulator.grade import true_grade
from simulator.persona_model import write
from simulator.profiles import MODELS
from tests.unit.simulator.gym_prompts import PERSONA, QUESTION, SYSTEM_PROMPTS
from tests.unit.simulator.prompts import ESSAY, POST, QUESTIONNAIRE, conversation

Unit = tuple[str, str | None, int]


def respond(
    prompt: str,
    *,
    run: int = 0,
    model: str = "sim-faithful",
    persona: str = "extroverted person",
    max_tokens: int | None = None,
    length_factor: float = 1.0,
) -> Reply:
    return write(
        conversation(f"You are a {persona}.", prompt, max_tokens=max_tokens),
        writer=MODELS[model].writer,
        bank=load_bank(),
        draws=Draws(model, persona, prompt, run),
        length_factor=length_factor,
    )


def units_of(reply: Reply) -> list[Unit]:
    units = reply.record["units"]
    assert isinstance(units, list)
    return units


def scores(model: str, persona: str, runs: int = 60) -> list[list[int]]:
    """The true scores of the trait sentences of some posts."""
    replies = [respond(POST, run=run, model=model, persona=persona) for run in range(runs)]
    return [[score for _, dimension, score in units_of(reply) if dimension] for reply in replies]


class TestResponse:
    def test_the_record_is_the_text_sentence_by_sentence_with_its_truth(self) -> None:
        reply = respond(ESSAY)
        assert reply.text == " ".join(sentence for sentence, _, _ in units_of(reply))
        for sentence, dimension, score in units_of(reply):
            assert load_bank().truth(sentence) == (dimension, score)

    def test_the_same_draws_give_the_same_response(self) -> None:
        assert respond(POST, run=3) == respond(POST, run=3)

    def test_other_draws_give_another_response(self) -> None:
        assert len({respond(POST, run=run).text for run in range(50)}) == 50

    @pytest.mark.parametrize(
        ("prompt", "fewest", "most"), [(QUESTIONNAIRE, 4, 8), (ESSAY, 12, 18), (POST, 15, 26)]
    )
    def test_its_length_fits_the_task(self, prompt: str, fewest: int, most: int) -> None:
        lengths = [len(units_of(respond(prompt, run=run))) for run in range(100)]
        assert (min(lengths), max(lengths)) == (fewest, most)

    def test_its_length_can_be_scaled(self) -> None:
        assert {len(units_of(respond(POST, run=run, length_factor=0.0))) for run in range(20)} == {1}

    def test_it_is_about_the_personas_dimensions_only(self) -> None:
        reply = respond(POST, persona="shy and curious person")
        assert {dimension for _, dimension, _ in units_of(reply)} == {"E", "O", None}

    def test_it_may_begin_with_the_scene(self) -> None:
        opening = dict(load_bank().openings)["vacation package"]
        firsts = [units_of(respond(ESSAY, run=run))[0][0] in opening for run in range(200)]
        # half of 200, standard deviation sqrt(200 * 0.5 * 0.5) = 7
        assert abs(sum(firsts) - 100) < 5 * 7

    def test_a_thought_is_not_repeated(self) -> None:
        thoughts = {
            wording: thought[0]
            for cell in load_bank().trait.values()
            for thought in cell
            for wording in thought
        }
        for run in range(20):
            said = [
                thoughts[sentence]
                for sentence, dimension, _ in units_of(respond(ESSAY, run=run))
                if dimension
            ]
            assert len(set(said)) == len(said)

    def test_it_ends_with_the_last_sentence_that_max_tokens_allows(self) -> None:
        whole, cut = respond(POST), respond(POST, max_tokens=60)
        assert whole.text.startswith(cut.text)
        assert 60 * 4 - 120 < len(cut.text) <= 60 * 4
        assert (whole.finish, cut.finish) == ("stop", "length")
        assert cut.text == " ".join(sentence for sentence, _, _ in units_of(cut))


class TestAnswer:
    """To a question of PersonaGym."""

    def test_its_sentences_have_a_consistency_and_the_whole_a_grade(self) -> None:
        reply = respond(QUESTION, persona="nurse from Bari")
        units = units_of(reply)
        assert reply.text == " ".join(sentence for sentence, _, _ in units)
        assert {dimension for _, dimension, _ in units} == {CONSISTENCY}
        assert all(load_bank().truth(sentence) == (dimension, score) for sentence, dimension, score in units)
        scores = [score for _, _, score in units if score != 9]
        grade = reply.record["grade"]
        assert isinstance(grade, int)
        assert abs(grade - sum(scores) / len(scores)) <= 0.5
        assert (reply.record["question"], reply.record["refusal"]) == (QUESTION, None)

    @pytest.mark.parametrize("system", SYSTEM_PROMPTS)
    def test_the_record_has_the_persona_in_its_own_words(self, system: str) -> None:
        reply = write(
            conversation(system.format(persona=PERSONA), QUESTION),
            writer=MODELS["sim-faithful"].writer,
            bank=load_bank(),
            draws=Draws("persona"),
        )
        assert reply.record["persona"] == PERSONA

    def test_it_has_four_to_ten_sentences(self) -> None:
        lengths = {len(units_of(respond(QUESTION, run=run))) for run in range(200)}
        assert lengths == set(range(4, 11))

    def test_a_persona_of_the_atomic_paper_is_asked_like_any_other(self) -> None:
        assert "grade" in respond(QUESTION, persona="neurotic person").record
        assert "grade" not in respond(POST, persona="nurse from Bari").record

    def test_the_grade_of_a_cut_answer_is_that_of_what_is_left(self) -> None:
        cut = respond(QUESTION, model="sim-erratic", max_tokens=40)
        assert cut.finish == "length"
        assert cut.record["grade"] == true_grade(cut.text, load_bank())

    def test_a_refusal_has_the_lowest_grade(self) -> None:
        replies = [respond(QUESTION, run=run, model="sim-refusing") for run in range(100)]
        refusals = [reply for reply in replies if reply.record["refusal"]]
        assert {(reply.record["grade"], len(units_of(reply))) for reply in refusals} == {(1, 0)}

    def test_a_faithful_model_has_better_grades_than_a_drifting_and_an_erratic_one(self) -> None:
        def mean_grade(model: str) -> float:
            grades = [respond(QUESTION, run=run, model=model).record["grade"] for run in range(300)]
            return sum(int(str(grade)) for grade in grades) / len(grades)

        faithful, drifting, erratic = map(mean_grade, ("sim-faithful", "sim-drifting", "sim-erratic"))
        # standard errors about 0.05
        assert faithful > 4.0
        assert faithful - drifting > 0.7
        assert 2.6 < erratic < drifting + 0.3

    def test_a_drifting_model_forgets_its_persona_towards_the_end(self) -> None:
        answers = [units_of(respond(QUESTION, run=run, model="sim-drifting")) for run in range(200)]

        def mean_of(sentences: list[Unit]) -> float:
            scores = [score for _, _, score in sentences if score != 9]
            return sum(scores) / len(scores)

        firsts, lasts = [units[0] for units in answers], [units[-1] for units in answers]
        assert mean_of(firsts) - mean_of(lasts) > 0.7


class TestProfiles:
    def test_a_faithful_model_has_its_profiles_scores(self) -> None:
        counts = Counter(
            score for post in scores("sim-faithful", "introverted person", 200) for score in post
        )
        shares = [counts[score] / counts.total() for score in (1, 2, 3, 4, 5)]
        # wobble: 0 to 10 %, on average 5 %, of the sentences are spread evenly over the scores
        expected = [0.95 * share + 0.05 / 5 for share in (0.70, 0.22, 0.05, 0.03, 0.00)]
        assert shares == pytest.approx(expected, abs=0.03)

    def test_high_personas_are_easy_low_ones_harder_and_neutral_ones_hardest(self) -> None:
        for model in ("sim-faithful", "sim-drifting", "sim-erratic"):
            hits = {
                level: [score in wanted for post in scores(model, persona) for score in post]
                for level, persona, wanted in (
                    ("high", "extroverted person", {4, 5}),
                    ("neutral", "neither extroverted nor introverted person", {3}),
                    ("low", "introverted person", {1, 2}),
                )
            }
            accuracy = {level: sum(hit) / len(hit) for level, hit in hits.items()}
            assert accuracy["high"] > accuracy["low"] > accuracy["neutral"]

    def test_a_drifting_model_leaves_its_persona_towards_the_end(self) -> None:
        posts = scores("sim-drifting", "introverted person")
        first = [score for post in posts for score in post[: len(post) // 2]]
        second = [score for post in posts for score in post[len(post) // 2 :]]
        assert sum(second) / len(second) - sum(first) / len(first) > 0.5

    def test_an_erratic_models_runs_differ_more(self) -> None:
        def spread(model: str) -> float:
            means = [sum(post) / len(post) for post in scores(model, "agreeable person")]
            return max(means) - min(means)

        assert spread("sim-erratic") > 2 * spread("sim-faithful")

    def test_a_refusing_model_declines_in_three_ways(self) -> None:
        replies = [respond(QUESTIONNAIRE, run=run, model="sim-refusing") for run in range(600)]
        refusals = Counter(str(reply.record["refusal"]) for reply in replies if reply.record["refusal"])
        # 35 % of 600 = 210, standard deviation sqrt(600 * 0.35 * 0.65) = 12
        assert abs(refusals.total() - 210) < 5 * 12
        assert set(refusals) == {"text", "refusal", "content_filter"}
        assert {reply.text for reply in replies if reply.record["refusal"]} == set(load_bank().refusals)
        assert all(units_of(reply) == [] for reply in replies if reply.record["refusal"])
