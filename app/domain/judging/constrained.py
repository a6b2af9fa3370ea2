"""Constrained replies: a judge's server lets it answer with the options' numbers only.

How a server is asked for that is data: the templates of :attr:`app.domain.providers.model.Takes.replies`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from app.domain.instruments.dimension import Scale
from app.domain.providers.model import Model, ReplyForm, Takes


def options_of(scale: Scale, *, filtering: bool = True) -> tuple[int, ...]:
    """Return the numbers that a judge may answer; without ``filtering`` only the scores."""
    scores = range(scale.minimum, scale.maximum + 1)
    return (*scores, scale.not_applicable) if filtering else tuple(scores)


def constrained(model: Model, form: ReplyForm, numbers: Sequence[int], sentences: int = 1) -> Model:
    """Return the model with a constraint on its reply.

    Args:
        model: The judge, which takes the form.
        form: The form.
        numbers: The numbers that it may answer.
        sentences: Number of sentences that it scores in one reply, labelled S1, S2 and so on.
    """
    if form == "text":
        return model
    template = (model.takes or Takes()).replies[form]
    texts = [str(number) for number in numbers]
    names = ["score"] if sentences == 1 else [f"S{n}" for n in range(1, sentences + 1)]
    one = {"type": "integer", "enum": list(numbers)}
    values: Mapping[str, object] = {
        "$numbers": texts,
        "$grammar": "root ::= " + " | ".join(f'"{text}"' for text in texts),
        "$regex": f"({'|'.join(map(re.escape, texts))})",
        "$enum": one,
        "$schema": {
            "type": "object",
            "properties": dict.fromkeys(names, one),
            "required": names,
            "additionalProperties": False,
        },
    }

    def filled(part: object) -> object:
        if isinstance(part, Mapping):
            return {name: filled(value) for name, value in part.items()}
        return values.get(part, part) if isinstance(part, str) else part

    return replace(model, constraint={name: filled(value) for name, value in template.items()})


def with_constraint(body: Mapping[str, object], model: Model) -> dict[str, object]:
    """Return the body of a request with the fields that constrain the reply."""
    found = dict(body)
    for name, value in model.constraint.items():
        given = found.get(name)  # Anthropic's `output_config` also holds the effort
        found[name] = (
            {**given, **value} if isinstance(given, Mapping) and isinstance(value, Mapping) else value
        )
    return found


def is_constrained(reply: str, form: ReplyForm, numbers: Sequence[int]) -> bool:
    """Tell whether a reply has nothing but the form; a free text does not."""
    text = reply.strip()
    if form == "choice":
        return text in map(str, numbers)
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and [*found] == ["score"] and found["score"] in numbers


def number_of(reply: str, numbers: Sequence[int], *, cut_off: bool) -> int | None:
    """Return the number of a reply that a server constrained to a JSON object; ``None`` for any other reply.

    Servers may put white space between the parts, with which the reply may end early: then a number counts if no other begins with it.
    """
    found = _OBJECT.fullmatch(reply)
    if found is None or int(found[1]) not in numbers or not (found[2] or cut_off):
        return None
    whole = (
        found[2] or found[3] or not any(str(n).startswith(found[1]) for n in numbers if str(n) != found[1])
    )
    return int(found[1]) if whole else None


_OBJECT = re.compile(r'\s*\{\s*"score"\s*:\s*(-?\d{1,4})(?:\s*(\})\s*|(\s+)|)')


def check_reply_form(
    form: ReplyForm,
    judges: Iterable[Model],
    fail: Callable[[str, str], None],
    *,
    grouped: bool,
    hardened: bool,
) -> None:
    """Report why a job's judges can't be constrained to a form.

    Args:
        form: The form.
        judges: The judges that are called.
        fail: Notes what is wrong with a field.
        grouped: Whether a reply is about several sentences.
        hardened: Whether a reply begins with a key word.
    """
    if form == "text":
        return
    if hardened:
        fail("/judging/reply", f"{form!r} leaves no room for the hardened protocol's key word: use 'text'")
    if form == "choice" and grouped:
        fail(
            "/judging/reply", "'choice' allows one number per reply: use 'json_schema' for several sentences"
        )
    called = list(judges)
    if not called:
        fail("/judging/reply", "the job calls no judge: leave it out")
    for judge in called:
        known = (judge.takes or Takes()).replies
        if form not in known:
            others = ", ".join(repr(name) for name in (*known, "text"))
            fail(
                "/judging/reply",
                f"the connection of judge {judge.label!r} has no field that constrains a reply to {form!r}:"
                f" use {others}, or set its `server` in the operator's file if it is one that can",
            )
