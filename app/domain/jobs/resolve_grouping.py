"""From a request to judge several sentences at a time to what a specification says of it."""

from collections.abc import Callable, Sequence

from app.domain.jobs.request import JudgingIn
from app.domain.judging.grouping import REPLY_TOKENS, GroupedWords, Grouping
from app.domain.providers.model import Model


def resolve_grouping(
    wanted: JudgingIn,
    seed: int,
    words: GroupedWords,
    judges: Sequence[Model],
    *,
    judged: bool,
    fail: Callable[[str, str], None],
) -> Grouping | None:
    """How sentences are grouped, the sample not drawn yet; ``None`` where they are judged one by one.

    Args:
        wanted: What the job asks for.
        seed: The job's.
        words: How judges are asked.
        judges: The job's judges.
        judged: Whether any of the job's tasks has its sentences judged.
        fail: Notes what is wrong with a field.
    """
    sentences = wanted.sentences_per_call
    if sentences == 1:
        return None
    if not judged:
        fail("/judging/sentences_per_call", "none of the job's tasks has its sentences judged")
    needed = REPLY_TOKENS * sentences
    for n, judge in enumerate(judges):
        allowed = judge.parameters.max_tokens
        if allowed is not None and allowed < needed:
            fail(
                f"/judges/{n}/max_tokens",
                f"a reply about {sentences} sentences may take {needed} tokens; allow as many, or leave it out",
            )
    return Grouping(sentences, wanted.sample.share, wanted.sample.minimum, words, seed)
