"""Grades a whole response by a rubric as PersonaGym's evaluators do: the true grade, biased and spoiled as known."""

import re
from functools import cache
from typing import NamedTuple

from simulator.bank import CONSISTENCY, NOT_APPLICABLE, SCORES, Bank, read_sections
from simulator.conversation import Conversation, Finish, Reply, limited
from simulator.draw import Draws
from simulator.profiles import Judge

# A rubric may put a response between tags or marks of its own.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|</?[\w-]+>|\"\"\"|```")
_JUSTIFICATION = (1, 3)
"""Fewest and most sentences before the one with the grade."""
_FINAL = "Therefore, the final score is {grade}."
_LOOSE = {
    "bold": "Therefore, the final score is **{grade}**.",
    "all_bold": "**Therefore, the final score is {grade}.**",
    "fraction": "Therefore, the final score is {grade}/5.",
    "out_of": "Therefore, the final score is {grade} out of 5.",
}
_UNUSABLE = {
    "twice": "Therefore, the final score is {grade}. Therefore, the final score is {other}.",
    "range": "Therefore, the final score is {grade} or {other}.",
    "none": "Therefore, it is left to the reader which example comes closest.",
    "refusal": "",
    "cut": "Therefore, the final",
}


class Form(NamedTuple):
    """What an evaluation form is filled in with."""

    task: str
    persona: str
    question: str
    response: str


def grade(conversation: Conversation, *, judge: Judge, bank: Bank, key: tuple[int, str]) -> Reply:
    """An evaluator's reply to a rubric: a justification and a final sentence with the grade.

    Args:
        conversation: Its last message is the completed rubric.
        judge: The model's bias and error rates.
        bank: The sentences.
        key: Seed and model; with the prompt it decides every error and all words.

    Returns:
        A reply whose record has the form's `task`, `persona`, `question` and `response`, the `truth`, `given`: the grade
        that the reply stands for, null if there is no single one, and `form`: which mark-up or defect the end has.
    """
    form = read_form(conversation.prompt)
    draws = Draws("grade", *key, conversation.prompt)
    truth = true_grade(form.response, bank)
    given = min(max(truth + judge.bias, SCORES[0]), SCORES[-1])
    if draws.unit() < judge.error:
        given = _neighbour(given, draws)
    name, last = "plain", _FINAL
    if draws.unit() < judge.unparsable:
        name, last = draws.pick(tuple(_UNUSABLE.items()))
    elif draws.unit() < judge.prose:
        name, last = draws.pick(tuple(_LOOSE.items()))
    reasons = [draws.pick(_justifications()) for _ in range(draws.between(*_JUSTIFICATION))]
    # A reason is not given twice.
    text = " ".join([*dict.fromkeys(reasons), last.format(grade=given, other=_neighbour(given, draws))])
    finish: Finish = "length" if name == "cut" else "stop"
    if name == "refusal":
        text, finish = draws.pick(bank.refusals), draws.pick(("stop", "refusal"))
    kept = limited(text, conversation.max_tokens)
    if kept != text:
        name, finish = "cut", "length"
    given_or_none = None if name in _UNUSABLE else given
    return Reply(
        kept, finish, "grade", {**form._asdict(), "truth": truth, "given": given_or_none, "form": name}
    )


def read_form(prompt: str) -> Form:
    """What stands behind the labels of the rubric outline (PersonaGym paper, appendix A.4)."""
    outline, _, filled = prompt.rpartition("Evaluation Form:")[0].partition("Persona Description:")
    persona, _, filled = filled.partition("Question:")
    question, _, response = filled.partition("Response:")
    task = outline.partition("Evaluation Task:")[2].partition("Evaluation Task Description:")[0]
    return Form(task.strip(), persona.strip(), question.strip(), response.strip())


def true_grade(response: str, bank: Bank) -> int:
    """The grade that a response deserves, from its text alone.

    It is the mean of its sentences' consistency scores, rounded, halves upwards, and 1 if no sentence of it says
    anything about the persona, as in a refusal. The grade of a text without any sentence of the bank is a function of
    the text.

    Args:
        response: The whole text; sentences that the bank does not have are passed over.
        bank: The sentences.

    Returns:
        A whole number from 1 to 5.
    """
    truths = [truth for one in _SENTENCE_END.split(response) if (truth := bank.truth(one)) is not None]
    if response and not truths:
        return Draws("grade", response).pick(SCORES)
    scores = [score for dimension, score in truths if dimension == CONSISTENCY and score != NOT_APPLICABLE]
    return (2 * sum(scores) + len(scores)) // (2 * len(scores)) if scores else SCORES[0]


@cache
def _justifications() -> list[str]:
    return read_sections("reasoning.txt")["justification"]


def _neighbour(grade: int, draws: Draws) -> int:
    return draws.pick([score for score in SCORES if abs(score - grade) == 1])
