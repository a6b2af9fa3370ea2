"""Reasons to doubt a job's results, in the order in which a reader should see them."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from app.domain.contract import Answer
from app.domain.judging.text_notes import TextNote
from app.domain.metrics.interval import Ends
from app.domain.providers.failure import is_time_out, remedy
from app.domain.providers.model import Model, Stage
from app.domain.providers.usage import FailedCalls, ModelUsage
from app.domain.results.control import ControlArm
from app.domain.results.gains import Gain
from app.domain.results.results import ResponseStatuses
from app.domain.suggestion import some_of

NO_EFFECT = "no_effect"
TIME_OUTS = "time_outs"
TURNS = "conversations"


class ResultWarning(Answer):
    """A reason to doubt the results."""

    code: str = Field(
        description="`one_score`, `chance_agreement`, `contradicting_replies`, `never_not_applicable`, "
        "`unreadable_replies` (judges); `no_effect` (control arm); `time_outs`, `unknown_tags`, `unknown_finish_word`, `cut_off`, "
        "`repeated_sentences`, `role_breaks` (models under test); `conversations` "
        "(existing texts).",
        examples=["one_score"],
    )
    message: str = Field(description="In words. May contain names that the client chose.")
    summary: str | None = Field(
        None,
        description="One line for this warning and those like it on other dimensions; `null` if it stands alone.",
    )
    of: Literal["sentences", "grades", "all"] = Field(
        description="The verdicts concerned: on sentences, PersonaGym's grades, or both."
    )
    judges: list[str] = Field(default_factory=list, description="The judges concerned.")
    model: str | None = Field(None, description="The model under test concerned.")
    dimension: str | None = Field(None, description="The dimension concerned; `null` for all.")
    value: float | None = Field(description="The figure that was checked: a share, κ or a gain.")
    ci95: Ends | None = Field(None, description="Its 95 % interval, if the check uses one.")
    n: int = Field(description="Number of sentences, replies, answers or cells behind the figure.")
    limit: float = Field(description="The limit that the figure, or its interval, reached.")


def no_effect_warnings(control: ControlArm | None) -> Iterator[ResultWarning]:
    """One warning for each model and metric whose gain over the control arm may be 0."""
    if control is None:
        return
    for total in control.totals:
        if total.by == ["model"]:
            yield from _no_effect(total.model, total.acc_atom, "of sentences in character", share=True)
    for score in control.persona_score_totals:
        found = Gain(with_persona=score.with_persona, without=score.without, gain=score.gain)
        yield from _no_effect(score.model, found, "PersonaScore", share=False)


def _no_effect(model: str, gain: Gain, figure: str, *, share: bool) -> Iterator[ResultWarning]:
    value, ends = gain.gain.value, gain.gain.ci95 or gain.gain.ci95_runs
    if value is None or gain.with_persona is None or gain.without is None:
        return
    if not (ends[0] <= 0 <= ends[1] if ends else value == 0):
        return
    with_persona, without = (
        f"{100 * each:.0f} % {figure}" if share else f"{figure} {each:.2f}"
        for each in (gain.with_persona, gain.without)
    )
    interval = f", 95 % interval {ends[0]:.2f} to {ends[1]:.2f}" if ends else ""
    yield ResultWarning(
        code=NO_EFFECT,
        message=f"No effect of the persona is shown for {model}: {with_persona} with it, {without} without it "
        f"(gain {value:.2f}{interval}).",
        of="sentences" if share else "grades",
        model=model,
        value=value,
        ci95=ends,
        n=gain.gain.n,
        limit=0.0,
    )


def time_out_warnings(
    models: Sequence[Model], usage: Sequence[ModelUsage], failed: Sequence[FailedCalls]
) -> Iterator[ResultWarning]:
    """One warning for each model under test that timed out while it wrote: its long texts are censored.

    Args:
        models: The models under test.
        usage: The job's calls by stage and model.
        failed: The job's failed calls.
    """
    for model in dict.fromkeys(each.full_name for each in models):
        late = [
            each
            for each in failed
            if (each.stage, each.model) == (Stage.GENERATION, model)
            and is_time_out(each.code, each.http_status)
        ]
        timed_out = sum(each.calls for each in late)
        if not timed_out:
            continue
        calls = sum(each.calls for each in usage if (each.stage, each.model) == (Stage.GENERATION, model))
        yield ResultWarning(
            code=TIME_OUTS,
            message=f"{timed_out:,} of {calls:,} generation calls to {model} timed out. {remedy('timeout')}",
            of="all",
            value=timed_out / calls,
            n=calls,
            limit=0.0,
        )


class NotedTexts(NamedTuple):
    """One model's texts.

    Attributes:
        model: Its label.
        texts: Number of its texts.
        statuses: Its texts by status, with the number of notes on them.
        as_personas: The same without the control arm, whose texts have no role.
        tags: Different unknown tags in them.
        finish_words: Different unknown words for why it stopped.
    """

    model: str
    texts: int
    statuses: ResponseStatuses
    as_personas: ResponseStatuses
    tags: Sequence[str]
    finish_words: Sequence[str]


NOTED_SHARE = 0.05
"""Share of texts that are cut off, or of repeated sentences, above which there is a warning."""

BREAKS_SHARE = 0.01
"""Share of sentences that break the role above which there is a warning."""


def text_warnings(noted: NotedTexts) -> Iterator[ResultWarning]:
    """One warning for each kind of note that a model's texts have, or have too often."""
    model, texts, counts = noted.model, noted.texts, noted.statuses
    found: tuple[tuple[TextNote, int, float, str], ...] = (
        (
            "unknown_tags",
            texts,
            0.0,
            f"texts of {model} contain unknown tags ({_some(noted.tags)}), so thoughts may have been judged.",
        ),
        (
            "unknown_finish_word",
            texts,
            0.0,
            f"texts of {model} ended for an unknown reason ({_some(noted.finish_words)}) and count as complete.",
        ),
        (
            "cut_off",
            counts.answered,
            NOTED_SHARE,
            f"answers of {model} end within a sentence. Raise max_tokens, or leave these sentences out of judging.",
        ),
        (
            "repeated_sentences",
            counts.sentences + counts.left_out,
            NOTED_SHARE,
            f"sentences of {model} repeat an earlier one of the same text: the model may be looping.",
        ),
        (
            "role_breaks",
            noted.as_personas.sentences + noted.as_personas.left_out,
            BREAKS_SHARE,
            f"sentences in answers of {model} say that a model wrote them, or leave the role. They are judged like the others.",
        ),
    )
    for code, n, limit, words in found:
        count = getattr(noted.as_personas if code == "role_breaks" else counts, code)
        if count > limit * n:
            yield ResultWarning(
                code=code,
                message=f"{count:,} of {n:,} {words}",
                of="all",
                model=model,
                value=count / n,
                n=n,
                limit=limit,
            )


def left_out_words(noted: Sequence[NotedTexts]) -> Iterator[str]:
    """Say how many sentences of each model were left out of judging."""
    for each in noted:
        left, judged = each.statuses.left_out, each.statuses.sentences
        if left:
            yield f"{left:,} of {left + judged:,} sentences of {each.model} were left out of judging."


def _some(words: Sequence[str]) -> str:
    return some_of(sorted(words), MOST_WORDS)


MOST_WORDS = 3
"""Words that a warning lists."""


def turn_warnings(cells: Sequence[tuple[int, int]]) -> Iterator[ResultWarning]:
    """A warning if several texts of a cell are turns of one conversation.

    Args:
        cells: Each cell's number of turns and of conversations.
    """
    dependent = [(turns, conversations) for turns, conversations in cells if turns > conversations]
    if dependent:
        turns, conversations = (sum(each) for each in zip(*dependent, strict=True))
        yield ResultWarning(
            code=TURNS,
            message=f"{turns:,} texts are turns of {conversations:,} conversations and depend on each other. "
            "Their cells have no intervals and no RC_atom; n counts conversations.",
            of="all",
            value=turns / conversations,
            n=conversations,
            limit=1.0,
        )


def headline(warnings: Sequence[ResultWarning], models: int) -> str | None:
    """The conclusion in one sentence if the figures must not be taken at face value; else ``None``.

    Args:
        warnings: All of the job's.
        models: Number of models under test.
    """
    codes = {code: [each for each in warnings if each.code == code] for code in {w.code for w in warnings}}
    untrusted = list(
        dict.fromkeys(
            judge
            for each in warnings
            if each.code in {"one_score", "contradicting_replies", "unreadable_replies"}
            for judge in each.judges
        )
    )
    if untrusted:
        one = len(untrusted) == 1
        return f"The judge{'' if one else 's'} {_names(untrusted)} cannot be trusted."
    if "chance_agreement" in codes:
        return f"The judges do not agree: {_names(codes['chance_agreement'][0].judges)} match no more often than by chance."
    if len({each.model for each in codes.get(NO_EFFECT, ())}) == models > 0:
        return "No effect of the persona is shown."
    if TURNS in codes:
        return "The texts are turns of conversations: figures have no intervals."
    if "never_not_applicable" in codes:
        return f"Check the judging: {_names(codes['never_not_applicable'][0].judges)} gave every sentence a score."
    return None


def _names(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 4 else f"{len(names)} judges"  # noqa: PLR2004
