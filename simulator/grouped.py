"""Judges several sentences of one prompt, as a scoring model does that loses its care towards the end of a list."""

import re

from simulator.bank import Bank
from simulator.conversation import Reply
from simulator.draw import Draws
from simulator.judge import Scale, read_scale, spoil, true_score
from simulator.profiles import Judge

_END = re.compile(r"Reply with (\d+) lines?, from S1 to S\1:\s*$")
_SENTENCE = re.compile(r"^<S(\d+)>(.*?)</S\1>$", re.MULTILINE | re.DOTALL)
_OPTIONS = re.compile(r"^Options: (.*?)\n\n", re.MULTILINE | re.DOTALL)
_LINE = "S{number}: {answer}"


def is_grouped_prompt(prompt: str) -> bool:
    """Whether a prompt asks for the scores of several sentences."""
    return _END.search(prompt) is not None


def reply_to_several(
    prompt: str, *, judge: Judge, bank: Bank, key: tuple[int, str], position_bias: float
) -> Reply:
    """A judge's reply: a line for each sentence, with the score that it has alone, but for the bias and its errors.

    Args:
        prompt: The whole prompt.
        judge: The model's error rates; an unparsable line may also be missing or stand twice.
        bank: The sentences.
        key: Seed and model; with the prompt it decides every error.
        position_bias: Probability that the last sentence's score is one too high; it grows evenly from the first, which
            is free of it.

    Returns:
        A reply whose record has `dimension`, and `sentences`: for each its text, its `truth` and what was `given`, null if
        the line is unparsable.
    """
    found = _OPTIONS.search(prompt)
    options = found[1] if found else ""
    scale = read_scale(options)
    sentences = [match[2] for match in _SENTENCE.finditer(prompt)]
    lines: list[str] = []
    record: list[dict[str, object]] = []
    for number, sentence in enumerate(sentences, 1):
        draws = Draws("grouped judge", *key, prompt, number)
        truth, _ = true_score(sentence, options, scale, bank)
        share = (number - 1) / max(1, len(sentences) - 1)
        score = _one_higher(truth, scale) if draws.unit() < position_bias * share else truth
        answer, given = spoil(score, scale, judge, draws)
        line = _LINE.format(number=number, answer=answer)
        lines += [line] if given is not None else draws.pick(([line], [], [line, line]))
        record.append({"sentence": sentence, "truth": truth, "given": given})
    dimension = true_score(sentences[0], options, scale, bank)[1] if sentences else None
    return Reply("\n".join(lines), "stop", "judge", {"dimension": dimension, "sentences": record})


def _one_higher(score: int, scale: Scale) -> int:
    """The next score, up to the highest; the option for "none of the above" stays."""
    return score if score == scale.filter else min(score + 1, scale.points[-1])
