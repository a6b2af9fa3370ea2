"""Writes as a persona would: sentences from the bank, in proportions that the model's profile sets.

A prompt of the atomic paper's tasks gets sentences that express traits, any other prompt is taken for a question of
PersonaGym and gets sentences that fit the persona more or less.
"""

from collections.abc import Mapping, Sequence

from simulator.bank import CONSISTENCY, DIMENSIONS, NOT_APPLICABLE, SCORES, Bank, Truth
from simulator.conversation import Conversation, Finish, Reply, tokens
from simulator.draw import Draws
from simulator.grade import true_grade
from simulator.persona import describe_persona, read_persona
from simulator.profiles import ANSWER_LENGTH, ASSISTANT, FORGETFUL, LENGTHS, STRAY, Level, Writer

_OPENING = 0.5
"""Share of the responses that begin with a sentence about the scene, where the bank has one."""
_PLAIN = 0.65
"""Share of the trait sentences in their plain wording, without a lead or a tail."""

_STEPS, _STEP_WEIGHTS = tuple(STRAY), tuple(STRAY.values())

Unit = tuple[str, Truth]


def write(
    conversation: Conversation, *, writer: Writer, bank: Bank, draws: Draws, length_factor: float = 1.0
) -> Reply:
    """A response in character, with the true score of each of its sentences.

    Args:
        conversation: The persona is read from its system text, the task from its last message. Without a persona, or if the model
            is indifferent to it, it writes as itself.
        writer: The model's profile.
        bank: The sentences.
        draws: All chance in the response.
        length_factor: Multiplies the usual number of sentences.

    Returns:
        A reply of whole sentences, joined by blanks. It ends at the last sentence that fits into `max_tokens`.
        Its record has `persona` (level by dimension, empty if it writes as itself), `refusal` and `units`: [sentence, dimension or null, score].
        To a PersonaGym question, `persona` is its description, each dimension is `CONSISTENCY`, and there are
        `question` and `grade`, the true grade of the whole answer.
    """
    prompt = conversation.prompt
    span = next((span for words, span in LENGTHS.items() if words in prompt), None)
    itself = writer.indifferent or not conversation.system.strip()
    persona: Mapping[str, Level] = {} if itself else read_persona(conversation.system)
    record: dict[str, object] = {"persona": persona}
    if span is None:
        record = {"persona": describe_persona(conversation.system), "question": prompt}
    if draws.unit() < writer.refusal:
        text, finish = _refuse(bank, draws)
        record |= {"refusal": "text" if finish == "stop" else finish, "units": []}
    else:
        count = max(1, round(draws.between(*(span or ANSWER_LENGTH)) * length_factor))
        author = _Author(persona, writer, bank, draws)
        units = author.write(count, _opening(prompt, bank, draws)) if span else author.answer(count)
        units, finish = _cut(units, conversation.max_tokens)
        text = " ".join(sentence for sentence, _ in units)
        record |= {"refusal": None, "units": [(sentence, *truth) for sentence, truth in units]}
    if span is None:
        record["grade"] = true_grade(text, bank)
    return Reply(text, finish, "generation", record)


def _refuse(bank: Bank, draws: Draws) -> tuple[str, Finish]:
    forms: tuple[Finish, ...] = ("stop", "refusal", "content_filter")
    finish = forms[draws.weighted((0.6, 0.2, 0.2))]
    return draws.pick(bank.refusals), finish


def _opening(prompt: str, bank: Bank, draws: Draws) -> list[Unit]:
    for words, sentences in bank.openings:
        if words in prompt:
            return [(draws.pick(sentences), Truth(None, NOT_APPLICABLE))] if draws.unit() < _OPENING else []
    return []


def _cut(units: list[Unit], max_tokens: int | None) -> tuple[list[Unit], Finish]:
    characters = -1
    for index, (sentence, _) in enumerate(units):
        characters += len(sentence) + 1
        if max_tokens is not None and index and tokens(characters) > max_tokens:
            return units[:index], "length"
    return units, "stop"


class _Author:
    """One response in the making."""

    def __init__(self, persona: Mapping[str, Level], writer: Writer, bank: Bank, draws: Draws) -> None:
        self._persona = persona
        self._dimensions = [dimension for dimension in DIMENSIONS if not persona or dimension in persona]
        self._writer = writer
        self._bank = bank
        self._draws = draws
        self._used: set[str] = set()
        self._mood = draws.pick(SCORES)
        self._moodiness = draws.unit() * writer.wobble

    def write(self, count: int, opening: list[Unit]) -> list[Unit]:
        units = opening
        while len(units) < count:
            units.append(self._sentence(progress=len(units) / count))
        return units

    def answer(self, count: int) -> list[Unit]:
        aim = self._draws.weighted(self._writer.consistency if self._persona else FORGETFUL)
        return [self._consistent_sentence(aim, progress=index / count) for index in range(count)]

    def _consistent_sentence(self, aim: int, progress: float) -> Unit:
        if self._draws.unit() < self._writer.neutral:
            score = NOT_APPLICABLE
        elif self._draws.unit() < self._writer.drift * progress:
            score = SCORES[self._draws.weighted(FORGETFUL)]
        else:
            stray = _STEPS[self._draws.weighted(_STEP_WEIGHTS)]
            score = SCORES[min(max(aim + stray, 0), len(SCORES) - 1)]
        return self._word(self._bank.consistency[score]), Truth(CONSISTENCY, score)

    def _sentence(self, progress: float) -> Unit:
        if self._draws.unit() < self._writer.neutral:
            return self._word([(sentence,) for sentence in self._bank.neutral]), Truth(None, NOT_APPLICABLE)
        dimension = self._draws.pick(self._dimensions)
        score = self._score(self._persona.get(dimension), progress)
        return self._word(self._bank.trait[dimension, score]), Truth(dimension, score)

    def _score(self, level: Level | None, progress: float) -> int:
        chance = self._draws.unit()
        if chance < self._moodiness:
            return self._mood
        if level is None or self._draws.unit() < self._writer.drift * progress:
            return SCORES[self._draws.weighted(ASSISTANT)]
        return SCORES[self._draws.weighted(self._writer.scores[level])]

    def _word(self, thoughts: Sequence[Sequence[str]]) -> str:
        # A response repeats a thought only when it has had all of them.
        unused = [wordings for wordings in thoughts if wordings[0] not in self._used]
        wordings = self._draws.pick(unused or thoughts)
        self._used.add(wordings[0])
        if len(wordings) == 1 or self._draws.unit() < _PLAIN:
            return wordings[0]
        return self._draws.pick(wordings[1:])
