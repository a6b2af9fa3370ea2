"""Judges one sentence as a scoring model does: the true score, spoiled at a known rate."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from simulator.bank import CONSISTENCY, NOT_APPLICABLE, SCORES, Bank
from simulator.conversation import Reply
from simulator.draw import Draws
from simulator.profiles import Judge

PROMPT_END = "Reply with a single number:"

# The surroundings of the sentence in the scoring prompts (atomic paper, Table 13).
_SCORE_OF = "What would be the "
_BEFORE_RESPONSE = "\nResponse: "
_BEFORE_OPTIONS = "\nOptions: "
_RATE = "Rate the personality of the writer of the following "
_BEFORE_QUOTE = ": "
_QUOTES: Mapping[str, Sequence[str]] = {
    '"': ('".\n', '"\n'),
    "\u2018\u2018": ("\u2019\u2019.\n", "\u2019\u2019\n"),
    "“": ("”.\n", "”\n"),
    "''": ("''.\n", "''\n"),
    "``": ("''.\n", "''\n"),
}

_POLES: Mapping[str, tuple[str, str]] = {
    "O": ("very close-minded", "very open-minded"),
    "C": ("very careless", "very conscientious"),
    "E": ("very introverted", "very extroverted"),
    "A": ("very disagreeable", "very agreeable"),
    "N": ("very neurotic", "very emotionally stable"),
}

_MIDDLE: Mapping[str, str] = {
    "O": "neither open-minded nor close-minded",
    "C": "neither conscientious nor careless",
    "E": "neither extroverted or introverted",
    "A": "neither agreeable nor disagreeable",
    "N": "neither neurotic nor emotionally stable",
}
_CONSISTENCY_WORDS = (
    "contradicts the persona",
    "rather unlike the persona",
    "neither like nor unlike the persona",
    "rather like the persona",
    "exactly like the persona",
)
_OPTION = re.compile(r"(?<!\d)(\d{1,3})\)\s*(.*?)\s*(?=(?<!\d)\d{1,3}\)|$)", re.DOTALL)
_CONSISTENCY_SCALE = (*SCORES, NOT_APPLICABLE)
_LABEL = re.compile(r"^[A-Z][\w ]{0,40}: ")
_FILTER_WORDS = ("none of the above", "not applicable", "n/a")
_NUMBERED = re.compile(r"(?<!\d)(\d{1,3})[).:]\s")
_PROSE = (
    "{number}.",
    "{number})",
    "**{number}**",
    "Score: {number}",
    "I would give this a {number}.",
    "Therefore, the final score is {number}",
)
_UNPARSABLE = (
    "It is hard to tell from a single sentence.",
    "{number} or {other}",
    "N/A",
    "Between {number} and {other}.",
)


@dataclass(frozen=True, slots=True)
class Scale:
    """The options of a scoring prompt.

    Attributes:
        dimension: Which of the five dimensions the options are about; None for a scale that a user defined.
        points: The numbers on the scale, ascending.
        filter: The number for "none of the above", if the options offer it.
    """

    dimension: str | None
    points: tuple[int, ...]
    filter: int | None

    @property
    def offered(self) -> tuple[int, ...]:
        """All numbers that can be answered."""
        return self.points if self.filter is None else (*self.points, self.filter)


def is_judge_prompt(prompt: str) -> bool:
    """Whether a prompt asks for a score."""
    return prompt.endswith(PROMPT_END) or prompt.rstrip().endswith(PROMPT_END)


def reply_to(
    prompt: str, *, judge: Judge, bank: Bank, key: tuple[int, str], order_bias: float = 0.0
) -> Reply:
    """A judge's reply.

    A sentence of the bank that is asked about one of the five dimensions has its true score, and a sentence of an
    answer to a PersonaGym question that is asked about anything else from 1 to 5, or 9, is asked for its consistency. For
    any other sentence, and for a scale that a user defined, the truth is a function of the sentence and the options, so that it
    is another one where they stand in another order.

    Args:
        prompt: The whole scoring prompt.
        judge: The model's error rates.
        bank: The sentences.
        key: Seed and model; with the prompt it decides every error.
        order_bias: Probability that it answers the option that stands before the right one.

    Returns:
        A reply whose record has `dimension` (null for a user's), `options` (only for a user's), `sentence`, `truth`
        and `given`: the number that the reply stands for, null if it is unparsable.
    """
    sentence, options = read_scoring_prompt(prompt)
    scale = read_scale(options)
    if not options:
        sentence = _find_sentence(sentence, bank)
    truth, dimension = true_score(sentence, options, scale, bank)
    record: dict[str, object] = {"dimension": dimension, "sentence": sentence, "truth": truth}
    if dimension is None:
        record["options"] = options
    listed = options or prompt.rpartition(_BEFORE_OPTIONS)[2]
    number = _offered_as(truth, listed, scale)
    if order_bias and Draws("order", *key, prompt).unit() < order_bias:
        number = _standing_before(number, listed, scale)
    text = str(number)
    record["given"] = number
    if judge != Judge():
        text, record["given"] = spoil(number, scale, judge, Draws("judge", *key, prompt))
    return Reply(text, "stop", "judge", record)


def true_score(sentence: str, options: str, scale: Scale, bank: Bank) -> tuple[int, str | None]:
    """The number that a judge without error answers, and the dimension that it is asked about, if it is one of ours."""
    known, dimension = bank.truth(sentence), scale.dimension
    if dimension is None and known and known.dimension == CONSISTENCY and scale.offered == _CONSISTENCY_SCALE:
        dimension = CONSISTENCY
    if known and dimension:
        return known.asked_for(dimension), dimension
    return Draws("truth", sentence, options).pick(scale.offered), dimension


def read_scoring_prompt(prompt: str) -> tuple[str, str]:
    """The sentence to score and the options text; ("the whole prompt", "") if it has neither in a known place."""
    body = prompt.rstrip().removesuffix(PROMPT_END).rstrip("\n")
    if body.startswith(_SCORE_OF):
        sentence, found, options = body.partition(_BEFORE_RESPONSE)[2].rpartition(_BEFORE_OPTIONS)
        if found:
            return sentence, options
    if body.startswith(_RATE):
        quoted = body[len(_RATE) :].partition(_BEFORE_QUOTE)[2]
        for opening, closings in _QUOTES.items():
            if not quoted.startswith(opening):
                continue
            for closing in closings:
                sentence, found, options = quoted[len(opening) :].rpartition(closing)
                if found:
                    return sentence, options.removeprefix("Options: ")
    return body, ""


def _offered_as(score: int, options: str, scale: Scale) -> int:
    """The number before the words of a score: its own, unless the options of one of our dimensions are shuffled."""
    return _numbers(options, scale.dimension).get(score, score)


@lru_cache(maxsize=2048)
def _numbers(options: str, dimension: str | None) -> dict[int, int]:
    """The numbers before the words of the scores 1 to 5; empty where those are not all there."""
    listed = {said.strip(" .").lower(): int(number) for number, said in _OPTION.findall(options)}
    words = _CONSISTENCY_WORDS if dimension is None else _words_of(dimension)
    if not all(said in listed for said in words):
        return {}
    return {score: listed[said] for score, said in enumerate(words, 1)}


@cache
def _words_of(dimension: str) -> tuple[str, ...]:
    """The words of the scores 1 to 5; those of the middle differ too much to be told by a rule."""
    low, high = _POLES[dimension]
    near = [pole.replace("very", "moderately") for pole in (low, high)]
    return low, near[0], _MIDDLE[dimension], near[1], high


def _standing_before(number: int, options: str, scale: Scale) -> int:
    """The option that stands before another in the list; the first, and "none of the above", stay."""
    listed = [int(found) for found, _ in _OPTION.findall(options) if int(found) in SCORES]
    if number not in listed or number == scale.filter:
        return number
    return listed[max(0, listed.index(number) - 1)]


def _find_sentence(text: str, bank: Bank) -> str:
    """The last line of a text that is, without its label and quotation marks, of the bank; otherwise the text."""
    for line in reversed(text.splitlines()):
        for candidate in (line, _LABEL.sub("", line).strip(" \"'`\u2018\u2019“”")):
            if bank.truth(candidate) is not None:
                return candidate
    return text


@lru_cache(maxsize=2048)
def read_scale(options: str) -> Scale:
    """Reads the numbers that an options text offers, and which dimension it is about.

    Numbers stand before ")", "." or ":"; the last is the filter if the text offers "none of the above". An empty
    text is taken for a scale from 1 to 5 and 9.
    """
    numbers = tuple(sorted({int(number) for number in _NUMBERED.findall(options)})) or (
        *SCORES,
        NOT_APPLICABLE,
    )
    wording = options.lower()
    has_filter = len(numbers) > 1 and (not options or any(words in wording for words in _FILTER_WORDS))
    points = numbers[:-1] if has_filter else numbers
    about = [name for name, poles in _POLES.items() if all(pole in wording for pole in poles)]
    dimension = about[0] if len(about) == 1 and points == SCORES and has_filter else None
    return Scale(dimension, points, numbers[-1] if has_filter else None)


def spoil(truth: int, scale: Scale, judge: Judge, draws: Draws) -> tuple[str, int | None]:
    """An answer with the judge's errors, and the number that it stands for; null if it is unparsable."""
    given = truth
    if draws.unit() < judge.error:
        given = _neighbour(truth, scale, draws)
    if draws.unit() < judge.unparsable:
        other = _neighbour(given, scale, draws)
        return draws.pick(_UNPARSABLE).format(number=given, other=other), None
    if draws.unit() < judge.prose:
        return draws.pick(_PROSE).format(number=given), given
    return str(given), given


def _neighbour(number: int, scale: Scale, draws: Draws) -> int:
    if number == scale.filter:
        return scale.points[len(scale.points) // 2]
    position = scale.points.index(number)
    neighbours = scale.points[max(0, position - 1) : position] + scale.points[position + 1 : position + 2]
    return draws.pick(neighbours or (number,))
