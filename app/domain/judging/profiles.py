"""Profiles of judge models that were trained on a prompt form of their own and reply in their own form.

They score from 1 to 5 and have no option for a text that does not show the trait.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.instruments.dimension import OPTION, Dimension, Scale
from app.domain.instruments.template import fill
from app.domain.judging.order_check import can_be_reordered
from app.domain.judging.reply_text import plain
from app.domain.judging.verdict import NOT_APPLICABLE, Unread, Verdict, VerdictStatus, parse_verdict, unparsed

SCORES = Scale(1, 5)
REPLY_TOKENS = 150
"""Typical reply, most of it feedback; used for estimates only."""

_CLOSING = " \n\t.)]*_\"'`"


@dataclass(frozen=True, slots=True)
class JudgeProfile:
    """How a judge model is asked and read.

    Attributes:
        id: Its name in jobs.
        version: Version of the instrument, for example ``"v1"``.
        content_hash: SHA-256 of its content, in hexadecimal.
        models: Names of the models, in lower case, without the publisher.
        prompt: The prompt, with ``{instruction}``, ``{response}``, ``{criterion}`` and ``{rubric}``.
        score: A line of the rubric, with ``{score}`` and ``{words}``.
        result: A regular expression of the statement of the score in a reply.
        criteria: The criteria ``trait``, ``persona`` and ``grade``.
    """

    id: str
    version: str
    content_hash: str
    models: tuple[str, ...]
    prompt: str
    score: str
    result: str
    criteria: Mapping[str, str]

    def about_trait(self, dimension: Dimension, instruction: str, response: str) -> str:
        """Return the prompt about a sentence of a response to an atomic task."""
        criterion = fill(self.criteria["trait"], {"dimension": dimension.name})
        return self._prompt(instruction, response, criterion, _scored(dimension))

    def about_consistency(self, dimension: Dimension, persona: str, question: str, response: str) -> str:
        """Return the prompt about a sentence of an answer to a PersonaGym question."""
        criterion = fill(self.criteria["persona"], {"persona": persona.strip()})
        return self._prompt(question, response, criterion, _scored(dimension))

    def about_answer(
        self,
        description: str,
        guidelines: Sequence[str],
        exemplars: Sequence[str],
        *,
        persona: str,
        question: str,
        response: str,
    ) -> str:
        """Return the prompt that asks for a PersonaGym grade; an exemplar follows the words of its score."""
        criterion = fill(self.criteria["grade"], {"description": description, "persona": persona.strip()})
        words = [f"{words} Example: {shown}" for words, shown in zip(guidelines, exemplars, strict=True)]
        return self._prompt(question, response, criterion, list(enumerate(words, SCORES.minimum)))

    def _prompt(
        self, instruction: str, response: str, criterion: str, options: Iterable[tuple[int, str]]
    ) -> str:
        lines = [fill(self.score, {"score": str(score), "words": words}) for score, words in options]
        values = {"instruction": instruction, "response": response, "criterion": criterion}
        return fill(self.prompt, values | {"rubric": "\n".join(lines)})

    def read(self, reply: str, *, cut_off: bool = False) -> Verdict:
        """Read a reply: the score that it states last in the model's own form, else as any judge's reply.

        Args:
            reply: The reply. Untrusted, of any length; read in linear time.
            cut_off: Whether the reply may lack its end.
        """
        text = plain(reply)
        stated = [] if cut_off else list(re.finditer(self.result, text))
        if stated and not text[stated[-1].end() :].strip(_CLOSING):
            scores = {int(found[1]) for found in stated}
            if len(scores) > 1:
                return unparsed(Unread.CONTRADICTION)
            return Verdict(VerdictStatus.SCORED, scores.pop())
        verdict = parse_verdict(reply, SCORES, cut_off=cut_off)
        return unparsed(Unread.NO_ANSWER) if verdict == NOT_APPLICABLE else verdict


def check_profiles(
    profiled: Mapping[int, JudgeProfile],
    dimensions: Iterable[Dimension],
    whole_rubrics: Iterable[str],
    fail: Callable[[str, str], None],
    *,
    grouped: bool,
    hardened: bool,
    constrained: bool,
) -> None:
    """Report what judges with a profile can't do.

    Args:
        profiled: Profiles by the judge's index.
        dimensions: The dimensions on which sentences are judged.
        whole_rubrics: The tasks whose rubrics are whole texts.
        fail: Notes what is wrong with a field.
        grouped: Whether a call is about several sentences.
        hardened: Whether a reply begins with a key word.
        constrained: Whether replies are constrained to numbers.
    """
    unsuited = [
        dimension.id
        for dimension in dimensions
        if (dimension.scale.minimum, dimension.scale.maximum) != (SCORES.minimum, SCORES.maximum)
        or not can_be_reordered(dimension)
    ]
    wholes = list(whole_rubrics)
    for number, profile in profiled.items():
        for wrong, problem in (
            (
                unsuited,
                f"scores from 1 to 5, each with an option '1) …': not dimension {', '.join(unsuited)}",
            ),
            (wholes, f"can't use a rubric that is a whole text: task {', '.join(wholes)}"),
            (grouped, "is asked about one sentence per call: leave out judging.sentences_per_call"),
            (hardened, "has a prompt of its own, without a key word: use protocol 'paper'"),
            (constrained, "replies in its own form: leave out judging.reply"),
        ):
            if wrong:
                fail(f"/judges/{number}/profile", f"{profile.id} {problem}")


def _scored(dimension: Dimension) -> list[tuple[int, str]]:
    """Return the scores and their words, in the order in which the options are given."""
    options = ((int(number), words.strip(" .")) for number, words in OPTION.findall(dimension.options))
    return [(number, words) for number, words in options if SCORES.minimum <= number <= SCORES.maximum]
