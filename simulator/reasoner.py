"""Reasons for PersonaGym: selects environments and makes up questions, score examples and personas."""

import ast
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Generic, NamedTuple, TypeVar

from simulator.bank import SCORES, Bank, read_sections
from simulator.conversation import Conversation, Finish, ReasonerTask, Reply, limited
from simulator.draw import Draws
from simulator.profiles import ENVIRONMENTS, FAULTS, REPEATED_PERSONAS, Fault, Reasoner
from simulator.roles import NUMBER_OF_PERSONAS

T = TypeVar("T")

_MOST_ITEMS = 500
_USUAL_QUESTIONS = 10
_NUMBER_OF_QUESTIONS = re.compile(r"[Ee]xactly (\d+) (?:[\w-]+ ){0,4}questions?\b")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_AGES = (18, 88)

Work = tuple[list[str], dict[str, object]]
"""The items of a reply, and what the ledger says of the request."""


class _Person(NamedTuple):
    age: int
    occupation: str
    place: str
    pursuit: str

    def __str__(self) -> str:
        article = "An" if str(self.age).startswith(("8", "18")) else "A"
        return f"{article} {self.age}-year-old {self.occupation} from {self.place} who {self.pursuit}"


def reason(
    task: ReasonerTask,
    conversation: Conversation,
    *,
    reasoner: Reasoner,
    bank: Bank,
    seed: int,
    identity: tuple[str, str],
) -> Reply:
    """A reasoner's reply, well-formed or not.

    The environments depend on the persona and the options only. The rest, and every fault, depends on the seed, the
    model, the words and the identity. Only a sloppy reasoner, or one that makes up personas, takes another attempt for
    another request, so that asking again heals a bad reply while a repeated request gets the same good one.

    Args:
        task: What to do.
        conversation: Its first message has the task, its last may change the number of questions.
        reasoner: How often the model answers badly.
        bank: The sentences; examples of a score have it as their true consistency.
        seed: The simulator's.
        identity: What tells the request from others with the same words, and which attempt at it this is.

    Returns:
        A reply whose record has `persona` (and `question`, `evaluation_task`, if the prompt has them), `fault`: a
        fault's name or null, and `items`: what the reply lists; null if it is cut or a refusal.
    """
    again = reasoner.sloppy > 0 or task == "personas"
    words = ascii(conversation.turns)
    draws = Draws(seed, task, conversation.model, words, identity[0], identity[1] if again else None)
    fault = draws.pick(FAULTS[task]) if draws.unit() < reasoner.sloppy else None
    items, record = _work(task, conversation, bank, draws, seed)
    items = _spoil_items(items, fault, draws)
    listed = "\n".join(items) if task == "exemplars" else json.dumps(items, ensure_ascii=False)
    text, finish = _spoil_form(listed, items, fault, bank, draws)
    kept = limited(text, conversation.max_tokens)
    if kept != text:
        fault, finish = "cut", "length"
    record |= {"fault": fault, "items": None if fault in {"cut", "refusal"} else items}
    return Reply(kept, finish, task, record)


def _work(task: ReasonerTask, conversation: Conversation, bank: Bank, draws: Draws, seed: int) -> Work:
    prompt = conversation.turns[0][1]
    if task == "environments":
        return _select_environments(prompt, seed)
    if task == "questions":
        return _ask_questions(conversation, draws)
    if task == "exemplars":
        return _give_examples(prompt, bank, draws)
    return _invent_personas(prompt, draws)


def _select_environments(prompt: str, seed: int) -> Work:
    persona, options = _fields(prompt, "Persona:", "Environments:", "Selected Environments:")
    pool = read_options(options)
    draws = Draws(seed, "environments", persona, *pool)
    return _shuffled(pool, draws)[: draws.between(*ENVIRONMENTS)], {"persona": persona}


def _ask_questions(conversation: Conversation, draws: Draws) -> Work:
    persona, environments, task = _fields(
        conversation.turns[0][1], "Persona:", "Environments:", "Evaluation Task:", "Questions Description:"
    )
    said = "\n".join(text for _, text in conversation.turns)
    number = _read_number(_NUMBER_OF_QUESTIONS, (conversation.prompt, conversation.turns[0][1]))
    phrases = _phrases()
    decks = [_Deck(phrases[name], draws) for name in ("situation", "twist", "ask")]
    places = _Deck(read_options(environments) or ("the place where you spend your days",), draws)
    questions: list[str] = []
    while len(questions) < number:
        sentences = " ".join(deck.deal() for deck in decks)
        question = sentences.format(environment=places.deal(), task=task.lower() or "all this")
        if question not in questions and question not in said:
            questions.append(question)
    return questions, {"persona": persona, "evaluation_task": task}


def _give_examples(prompt: str, bank: Bank, draws: Draws) -> Work:
    persona, question = _fields(prompt, "Persona:", "Question:", "Rubric:")
    examples = []
    for score in SCORES:
        first, second = _shuffled(bank.consistency[score], draws)[:2]
        examples.append(f"Score {score}: Response - {draws.pick(first)} {draws.pick(second)}")
    return examples, {"persona": persona, "question": question}


def _invent_personas(prompt: str, draws: Draws) -> Work:
    number = _read_number(NUMBER_OF_PERSONAS, (prompt,))
    phrases = _phrases()
    decks = [_Deck(phrases[name], draws) for name in ("occupation", "place", "pursuit")]
    people = [
        _Person(draws.between(*_AGES), *(deck.deal() for deck in decks))
        for _ in range(number - int(number * REPEATED_PERSONAS))
    ]
    older = [one._replace(age=one.age + draws.between(1, 2)) for one in people[: number - len(people)]]
    personas = [str(person) for person in _shuffled([*people, *older], draws)]
    return personas, {"persona": None, "repeated": len(older)}


def _spoil_items(items: list[str], fault: Fault | None, draws: Draws) -> list[str]:
    if fault == "missing":
        left_out = draws.between(0, len(items) - 1)
        return items[:left_out] + items[left_out + 1 :]
    if fault == "surplus":
        return [*items, f"{items[-1].rstrip('?')}, and what would your oldest friend say to that?"]
    if fault == "duplicate":
        return [*items[:-1], draws.pick((items[0], items[0].replace("?", ", really?")))]
    if fault == "outside":
        return [*items[:-1], draws.pick(_phrases()["outside"])]
    return items


def _spoil_form(
    listed: str, items: Iterable[str], fault: Fault | None, bank: Bank, draws: Draws
) -> tuple[str, Finish]:
    if fault == "prose":
        phrases = _phrases()
        return f"{draws.pick(phrases['before'])}\n\n{listed}\n\n{draws.pick(phrases['after'])}", "stop"
    if fault == "fenced":
        return f"```{draws.pick(('python', 'json', ''))}\n{listed}\n```", "stop"
    if fault == "single_quotes":
        quoted = "', '".join(items)
        return f"['{quoted}']", "stop"
    if fault == "cut":
        return listed[: int(len(listed) * (0.3 + 0.5 * draws.unit()))], "length"
    if fault == "refusal":
        return draws.pick(bank.refusals), draws.pick(("stop", "refusal"))
    return listed, "stop"


@lru_cache(maxsize=64)
def read_options(text: str) -> tuple[str, ...]:
    """The entries of a list as a prompt shows it: in Python's or JSON's form, one a line, or between commas."""
    try:
        entries = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        entries = None
    if not isinstance(entries, list | tuple):
        entries = [_BULLET.sub("", one).strip(" \t\"'") for one in text.split("\n" if "\n" in text else ",")]
    return tuple(dict.fromkeys(str(one) for one in entries if one))


def _fields(prompt: str, *labels: str) -> list[str]:
    """The texts between labels that follow each other."""
    rest = prompt.partition(labels[0])[2]
    fields = []
    for label in labels[1:]:
        field, _, rest = rest.partition(label)
        fields.append(field.strip())
    return fields


def _read_number(pattern: re.Pattern[str], texts: Iterable[str]) -> int:
    found = next((match for text in texts if (match := pattern.search(text))), None)
    return min(max(int(found[1]), 1), _MOST_ITEMS) if found else _USUAL_QUESTIONS


@cache
def _phrases() -> dict[str, list[str]]:
    return read_sections("reasoning.txt")


def _shuffled(choices: Sequence[T], draws: Draws) -> list[T]:
    return sorted(choices, key=lambda _: draws.unit())


class _Deck(Generic[T]):
    """Deals cards without repetition until all have been dealt, then anew."""

    def __init__(self, cards: Sequence[T], draws: Draws) -> None:
        self._cards = cards
        self._draws = draws
        self._rest: list[T] = []

    def deal(self) -> T:
        if not self._rest:
            self._rest = _shuffled(self._cards, self._draws)
        return self._rest.pop()
