"""From a request to judge several sentences at a time to what a specification says of it."""

from collections.abc import Callable, Sequence

from app.domain.jobs.draft import JobDraft
from app.domain.judging.grouping import REPLY_TOKENS, GroupedWords, Grouping
from app.domain.providers.model import Model


def resolve_grouping(
    draft: JobDraft,
    words: GroupedWords,
    judges: Sequence[Model],
    *,
    judged: bool,
    fail: Callable[[str, str], None],
) -> Grouping | None:
    """How sentences are grouped, the sample not drawn yet; ``None`` where they are judged one by one.

    Args:
        draft: The job as it was asked for.
        words: How judges are asked.
        judges: The job's judges.
        judged: Whether any of the job's tasks has its sentences judged.
        fail: Notes what is wrong with a field.
    """
    wanted = draft.grouping
    if wanted is None:
        return None
    if not judged:
        fail("/judging/sentences_per_call", "none of the job's tasks has its sentences judged")
    needed = REPLY_TOKENS * wanted.sentences
    for n, judge in enumerate(judges):
        allowed = judge.parameters.max_tokens
        if allowed is not None and allowed < needed:
            fail(
                f"/judges/{n}/max_tokens",
                f"a reply about {wanted.sentences} sentences may take {needed} tokens; allow as many, or leave it out",
            )
    return Grouping(wanted.sentences, wanted.check_share, wanted.check_minimum, words, draft.seed)
