import ast
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest

from simulator.bank import load_bank
from simulator.conversation import Conversation, ReasonerTask, Reply
from simulator.grade import true_grade
from simulator.profiles import FAULTS, MODELS, Reasoner
from simulator.reasoner import read_options, reason
from simulator.roles import recognise
from tests.unit.simulator.gym_prompts import (
    PERSONA,
    POOL,
    QUESTION,
    TASK,
    environments_prompt,
    exemplars_prompt,
    personas_prompt,
    questions_prompt,
)

PROMPTS = {
    "environments": environments_prompt(),
    "questions": questions_prompt(),
    "exemplars": exemplars_prompt(),
    "personas": personas_prompt(),
}
EXAMPLE = re.compile(r"^Score ([1-5]): Response - (.+)$", re.MULTILINE)


def ask(
    *prompts: str,
    sloppy: float = 0.0,
    identity: str = "q/1",
    attempt: str = "a1",
    seed: int = 0,
    max_tokens: int | None = None,
) -> Reply:
    """A reply to user messages, between which the model has replied with an empty list."""
    turns = [turn for prompt in prompts for turn in (("assistant", "[]"), ("user", prompt))][1:]
    asked = Conversation("sim-reasoner", "", tuple(turns), max_tokens)
    return reason(
        cast("ReasonerTask", recognise(asked)),
        asked,
        reasoner=Reasoner(sloppy),
        bank=load_bank(),
        seed=seed,
        identity=(identity, attempt),
    )


def listed(reply: Reply) -> list[str]:
    """The Python list that a reply is."""
    items = ast.literal_eval(reply.text)
    assert isinstance(items, list)
    return items


def bad_replies(task: str, fault: str, number: int = 400) -> list[Reply]:
    replies = [ask(PROMPTS[task], sloppy=1.0, identity=f"q/{number}") for number in range(number)]
    return [reply for reply in replies if reply.record["fault"] == fault]


class TestEnvironments:
    def test_three_to_six_of_the_options_are_selected(self) -> None:
        selections = [listed(ask(environments_prompt(f"A {age}-year-old baker"))) for age in range(20, 80)]
        assert {len(selection) for selection in selections} == {3, 4, 5, 6}
        assert all(len(set(selection)) == len(selection) for selection in selections)
        assert {name for selection in selections for name in selection} == set(POOL)

    def test_they_depend_on_the_persona_and_not_on_the_request(self) -> None:
        first, again = (ask(environments_prompt(), identity=identity) for identity in ("e/1", "e/2"))
        assert first.text == again.text != ask(environments_prompt("A baker")).text
        assert first.record == {"persona": PERSONA, "fault": None, "items": listed(first)}

    @pytest.mark.parametrize(
        "text",
        [
            '["Beach", "Farmer\'s Market"]',
            "['Beach', \"Farmer's Market\"]",
            "- Beach\n- Farmer's Market",
            "1. Beach\n2. Farmer's Market\n",
            "Beach, Farmer's Market",
        ],
    )
    def test_the_options_may_be_listed_in_any_usual_form(self, text: str) -> None:
        assert read_options(text) == ("Beach", "Farmer's Market")

    def test_options_that_are_no_list_are_no_error(self) -> None:
        assert read_options("") == ()
        assert read_options("[" * 10_000) == ("[" * 10_000,)
        assert listed(ask(environments_prompt(pool=()))) == []


class TestQuestions:
    @pytest.mark.parametrize("number", [1, 10, 50])
    def test_as_many_distinct_questions_as_asked_for(self, number: int) -> None:
        questions = listed(ask(questions_prompt(number)))
        assert len(questions) == len(set(questions)) == number

    def test_each_names_its_environment_and_the_task(self) -> None:
        questions = listed(ask(questions_prompt()))
        named = [[name for name in POOL[:3] if name in question] for question in questions]
        assert sorted(Counter(name for (name,) in named).values()) == [3, 3, 4]
        assert all(TASK.lower() in question and question.endswith("?") for question in questions)

    def test_questions_of_one_list_are_not_alike(self) -> None:
        questions = [
            set(question.lower().split()) for question in listed(ask(questions_prompt(10, ["Library"])))
        ]
        alike = [
            len(one & other) / len(one | other)
            for index, one in enumerate(questions)
            for other in questions[:index]
        ]
        assert max(alike) < 0.5

    def test_another_persona_task_or_identity_gets_other_questions(self) -> None:
        replies = [
            ask(questions_prompt()),
            ask(questions_prompt(persona="A baker")),
            ask(questions_prompt(task="Toxicity Control")),
            ask(questions_prompt(), identity="q/2"),
            ask(questions_prompt(), seed=1),
        ]
        assert len({reply.text for reply in replies}) == 5
        assert replies[0].record == {
            "persona": PERSONA,
            "evaluation_task": TASK,
            "fault": None,
            "items": listed(replies[0]),
        }

    def test_another_attempt_at_a_clean_reply_gets_the_same(self) -> None:
        assert ask(questions_prompt()) == ask(questions_prompt(), attempt="a2")

    def test_what_the_prompt_already_has_is_not_asked_again(self) -> None:
        # One place has 24 situations x 12 twists x 12 requests: among 500 new ones some 70 would be old.
        asked_for = questions_prompt(500, ["Library"])
        first = listed(ask(asked_for))
        more = listed(ask("\n".join((asked_for, "Already there:", *first))))
        assert len(set(first) | set(more)) == 1_000

    def test_a_later_message_may_ask_for_another_number(self) -> None:
        assert len(listed(ask(questions_prompt(), "Generate exactly 2 more questions."))) == 2
        assert len(listed(ask(questions_prompt(), "That is not a list."))) == 10

    def test_an_absurd_number_is_limited(self) -> None:
        assert len(listed(ask(questions_prompt(10**9)))) == 500
        assert len(listed(ask(questions_prompt(0)))) == 1


class TestExemplars:
    def test_there_is_an_example_of_every_score(self) -> None:
        reply = ask(exemplars_prompt())
        examples = EXAMPLE.findall(reply.text)
        assert [score for score, _ in examples] == ["1", "2", "3", "4", "5"]
        assert [true_grade(text, load_bank()) for _, text in examples] == [1, 2, 3, 4, 5]
        assert reply.text.count("\n") == 4
        assert (reply.record["persona"], reply.record["question"]) == (PERSONA, QUESTION)

    def test_examples_are_the_questions_own(self) -> None:
        assert ask(exemplars_prompt()).text != ask(exemplars_prompt(question="Why?")).text


class TestPersonas:
    def test_a_fifth_repeats_others_a_year_or_two_older(self) -> None:
        personas = listed(ask(personas_prompt(50)))
        assert len(set(personas)) == len(personas) == 50
        ages: dict[str, list[int]] = {}
        for persona in personas:
            age, rest = persona.split("-", 1)
            ages.setdefault(rest, []).append(int(age.split()[1]))
        pairs = [found for found in ages.values() if len(found) > 1]
        # 20 % of 50
        assert len(pairs) == 10
        assert {max(found) - min(found) for found in pairs} == {1, 2}
        assert ask(personas_prompt(50)).record["repeated"] == 10

    def test_another_attempt_gets_others(self) -> None:
        first, second = (set(listed(ask(personas_prompt(), attempt=attempt))) for attempt in ("a1", "a2"))
        assert not first & second


class TestSloppiness:
    def test_the_rate_is_that_of_the_profile_and_every_fault_occurs(self) -> None:
        sloppy = MODELS["sim-reasoner-sloppy"].reasoner.sloppy
        for task, prompt in PROMPTS.items():
            replies = [ask(prompt, sloppy=sloppy, identity=f"q/{number}") for number in range(600)]
            faults = Counter(reply.record["fault"] for reply in replies if reply.record["fault"])
            assert set(faults) == set(FAULTS[cast("ReasonerTask", task)])
            # 30 % of 600, standard deviation sqrt(600 * 0.3 * 0.7) = 11
            assert abs(faults.total() - 180) < 5 * 11

    def test_asking_again_heals(self) -> None:
        for prompt in PROMPTS.values():
            tries = [ask(prompt, sloppy=0.3, attempt=f"a{number}").record["fault"] for number in range(12)]
            assert None in tries
            assert tries == [
                ask(prompt, sloppy=0.3, attempt=f"a{number}").record["fault"] for number in range(12)
            ]

    @pytest.mark.parametrize("task", ["environments", "questions", "personas"])
    def test_prose_and_fences_surround_a_sound_list(self, task: str) -> None:
        for reply in bad_replies(task, "prose"):
            assert (
                json.loads(reply.text[reply.text.index("[") : reply.text.rindex("]") + 1])
                == reply.record["items"]
            )
            assert not reply.text.startswith("[")
            assert not reply.text.endswith("]")
        for reply in bad_replies(task, "fenced"):
            first, *lines, last = reply.text.split("\n")
            assert (first in {"```", "```python", "```json"}, last) == (True, "```")
            assert json.loads("\n".join(lines)) == reply.record["items"]

    def test_single_quotes_break_where_there_is_an_apostrophe(self) -> None:
        def in_single_quotes(pool: Sequence[str]) -> Reply:
            replies = (
                ask(environments_prompt(pool=pool), sloppy=1.0, identity=f"e/{run}") for run in range(100)
            )
            return next(reply for reply in replies if reply.record["fault"] == "single_quotes")

        sound, broken = (
            in_single_quotes(("Beach", "Library", "Night Train")),
            in_single_quotes(("Farmer's Market",)),
        )
        assert sound.text.startswith("['")
        assert listed(sound) == sound.record["items"]
        assert (broken.text, broken.record["items"]) == ("['Farmer's Market']", ["Farmer's Market"])

    @pytest.mark.parametrize(("fault", "number"), [("missing", 9), ("surplus", 11), ("duplicate", 10)])
    def test_questions_are_too_few_too_many_or_alike(self, fault: str, number: int) -> None:
        replies = bad_replies("questions", fault)
        assert replies
        assert {len(listed(reply)) for reply in replies} == {number}
        if fault == "duplicate":
            lasts = {(listed(reply)[-1] == listed(reply)[0]) for reply in replies}
            assert lasts == {True, False}
            assert all(listed(reply)[-1].startswith(listed(reply)[0][:-1]) for reply in replies)

    def test_an_environment_may_be_outside_the_pool(self) -> None:
        for reply in bad_replies("environments", "outside"):
            assert len(set(listed(reply)) - set(POOL)) == 1

    def test_any_example_may_be_missing(self) -> None:
        missing = [
            {"1", "2", "3", "4", "5"} - {score for score, _ in EXAMPLE.findall(reply.text)}
            for reply in bad_replies("exemplars", "missing")
        ]
        assert {one for (one,) in missing} == {"1", "2", "3", "4", "5"}

    @pytest.mark.parametrize("task", PROMPTS)
    def test_a_reply_may_be_cut_or_a_refusal(self, task: str) -> None:
        for reply in bad_replies(task, "cut"):
            assert (reply.finish, reply.record["items"]) == ("length", None)
            assert not reply.text.endswith("]")
        refusals = bad_replies(task, "refusal")
        assert {reply.finish for reply in refusals} == {"stop", "refusal"}
        assert {reply.text for reply in refusals} <= set(load_bank().refusals)

    def test_the_limit_of_tokens_cuts_every_reply(self) -> None:
        for prompt in PROMPTS.values():
            reply = ask(prompt, max_tokens=8)
            assert (len(reply.text), reply.finish, reply.record["fault"]) == (32, "length", "cut")
