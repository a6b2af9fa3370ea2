"""What a stage is expected to take on one model: calls, prompts and replies, added up before anything is spent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain.instruments.segmentation import Unit
from app.domain.jobs.specification import JobSpec
from app.domain.judging.grouping import calls_for
from app.domain.judging.hardening import AS_IN_THE_PAPERS, Showing, showing
from app.domain.judging.order_check import ORDERS
from app.domain.judging.profiles import REPLY_TOKENS
from app.domain.judging.refusal_check import MOST_CHARACTERS
from app.domain.providers.model import Model, Stage, Usage
from app.domain.providers.parameters import bounded_output

CHARACTERS_PER_TOKEN = 4.0
"""English prose on common tokenizers; used for estimates only."""

VERDICT_OUTPUT_TOKENS, LINE_OUTPUT_TOKENS, JSON_OUTPUT_TOKENS = 1, 5, 7
"""Of a verdict in a reply of its own, of one in a line of a reply about several sentences, and of a JSON object with one."""

EXPECTED_UNIT_CHARACTERS = 95
"""Typical sentence (the paper's 200–300 word essays have about 15 sentences); used for estimates only."""

EXPECTED_UNIT = Unit(0, 0, EXPECTED_UNIT_CHARACTERS, "x" * EXPECTED_UNIT_CHARACTERS)


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """A stage's expected calls and cost on one model.

    Attributes:
        stage: Which stage.
        model: The model.
        calls: Number of calls; exact for generation (but for questions per environment), estimated for judging.
        usage: Estimated tokens.
        verdicts: Verdicts and grades that come of the calls; more than calls where one is about several sentences.
    """

    stage: Stage
    model: Model
    calls: int
    usage: Usage
    verdicts: int = 0


class StageSum:
    """Calls, characters of prompts and tokens of replies of a stage on one model, added up.

    Args:
        stage: The stage.
        model: The model.
        shown: How each call's judged text is shown.
    """

    def __init__(self, stage: Stage, model: Model, shown: Showing = AS_IN_THE_PAPERS) -> None:
        self._of = stage, model
        self._shown = shown
        self._calls = self._characters = self._output = self._verdicts = 0.0

    def add(self, calls: float, characters: float, tokens: float, *, verdicts: float = 0.0) -> None:
        """Add equal calls: the characters of each prompt and the tokens of each reply, bounded by ``max_tokens``."""
        self._calls += calls
        self._characters += calls * (characters + self._shown.characters)
        self._output += calls * bounded_output(self._of[1], tokens + self._shown.reply_tokens)
        self._verdicts += verdicts

    def estimate(self) -> StageEstimate:
        """The sum."""
        usage = Usage(round(self._characters / CHARACTERS_PER_TOKEN), round(self._output))
        return StageEstimate(*self._of, round(self._calls), usage, round(self._verdicts))


class JudgingSum:
    """What one judge is asked, with the calls that check how grouping, or the order of the options, changes its verdicts."""

    def __init__(self, judge: Model, spec: JobSpec) -> None:
        shown, profile = showing(spec.hardening, [EXPECTED_UNIT.text]), spec.profile_of(judge)
        self.judging = StageSum(Stage.JUDGING, judge, shown)
        self._checking = StageSum(Stage.CHECKING, judge, shown)
        self._grouping = spec.grouping
        self._order_check = spec.order_check
        # The profile's prompt has about the content of the papers', in a frame of its own.
        self._frame = 0 if profile is None else len(profile.prompt)
        if profile is not None:
            self._reply_tokens = REPLY_TOKENS
        else:
            self._reply_tokens = JSON_OUTPUT_TOKENS if spec.reply == "json_schema" else VERDICT_OUTPUT_TOKENS

    def add(
        self,
        responses: float,
        sentences: float,
        alone: str,
        together: Callable[[Sequence[Unit]], str],
        checked: float | None = None,
    ) -> None:
        """Adds the judgement of responses on one dimension.

        Args:
            responses: How many.
            sentences: Sentences of each.
            alone: The prompt about one sentence.
            together: The prompt about several.
            checked: Share of their sentences that are judged alone as well, or again; the sample's if not given.
        """
        verdicts, grouping = responses * sentences, self._grouping
        calls = calls_for(sentences, grouping)
        if grouping is None or calls >= sentences:
            self.judging.add(verdicts, len(alone) + self._frame, self._reply_tokens, verdicts=verdicts)
            if self._order_check is not None:
                share = self._order_check.share if checked is None else checked
                again = len(ORDERS) * share * verdicts
                self._checking.add(again, len(alone) + self._frame, self._reply_tokens, verdicts=again)
            return
        size = sentences / calls
        prompt = len(together([EXPECTED_UNIT] * round(size)))
        self.judging.add(responses * calls, prompt, size * LINE_OUTPUT_TOKENS, verdicts=verdicts)
        share = grouping.checked / max(1, grouping.drawn_from) if checked is None else checked
        self._checking.add(
            share * verdicts, len(alone) + self._frame, self._reply_tokens, verdicts=share * verdicts
        )

    def estimates(self) -> list[StageEstimate]:
        """The sum of judging and, where anything is checked, that of checking."""
        checks = self._grouping is not None or self._order_check is not None
        checking = [self._checking.estimate()] if checks else []
        return [self.judging.estimate(), *checking]


def follow_ups(spec: JobSpec, estimates: Sequence[StageEstimate]) -> list[StageEstimate]:
    """Return the most calls that may come on top: a repair of each judge's reply, a refusal check of each text.

    Refusal checks of every text are among the expected calls instead.
    """
    found: list[StageEstimate] = []
    if spec.repair is not None:
        request = max(map(len, (spec.repair.score, spec.repair.grade, spec.repair.sentences)))
        for each in estimates:
            if each.stage in {Stage.JUDGING, Stage.CHECKING}:
                tokens = (
                    each.usage.input_tokens + each.usage.output_tokens
                )  # repeats the prompt and the reply
                sent = tokens + round(each.calls * request / CHARACTERS_PER_TOKEN)
                usage = Usage(sent, each.usage.output_tokens)
                found.append(StageEstimate(Stage.REPAIRING, each.model, each.calls, usage))
    return found if spec.checks_every_text else [*found, *_refusal_checks(spec, estimates)]


def expected_refusal_checks(spec: JobSpec, estimates: Sequence[StageEstimate]) -> list[StageEstimate]:
    """Return the refusal checks of a job that has every text checked; none for other jobs."""
    return _refusal_checks(spec, estimates) if spec.checks_every_text else []


def _shown(written: StageEstimate) -> int:
    """Return the tokens of requests and texts that refusal checks of a stage's texts show."""
    most = round(written.calls * MOST_CHARACTERS / CHARACTERS_PER_TOKEN)
    return min(written.usage.input_tokens, most) + min(written.usage.output_tokens, most)


def _refusal_checks(spec: JobSpec, estimates: Sequence[StageEstimate]) -> list[StageEstimate]:
    """Return a refusal check of each text."""
    if spec.refusal_check is None:
        return []
    judge = spec.judges[spec.asked_judges[0]]
    written = [each for each in estimates if each.stage is Stage.GENERATION]
    calls = sum(each.calls for each in written)
    frame = calls * len(spec.refusal_check.question) / CHARACTERS_PER_TOKEN
    sent = round(frame) + sum(_shown(each) for each in written)
    output = round(calls * bounded_output(judge, VERDICT_OUTPUT_TOKENS))
    return [StageEstimate(Stage.REFUSAL_CHECK, judge, calls, Usage(sent, output))]
