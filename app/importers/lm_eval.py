"""lm-evaluation-harness: the samples that `--log_samples` writes, one a line."""

from collections.abc import Iterator
from typing import Any

from app.importers.content import parse_json
from app.importers.messages import last_question, persona_of, read_messages
from app.importers.records import (
    Record,
    Refused,
    Said,
    WrongRecordError,
    member,
    number_or_none,
    optional,
    text_or_none,
)


def is_samples(first: dict[str, Any]) -> bool:
    """Whether a record is a sample."""
    return {"doc_id", "doc", "resps"} <= first.keys()


def read_samples(records: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    """The texts of samples; each sample stands there once for each filter, and its texts are taken once."""
    seen: set[tuple[Any, Any]] = set()
    for place, sample in records:
        if isinstance(sample, Refused):
            yield sample
            continue
        id_ = (str(optional(sample, "doc_id")), str(optional(sample, "prompt_hash")))
        if id_ in seen:
            yield Refused(place, "is the same sample again, perhaps under another filter")
            continue
        try:
            yield from _read_sample(place, sample)
            seen.add(id_)
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)


def _read_sample(place: str, sample: Any) -> Iterator[Record]:
    requests = member(sample, "resps", list)
    texts = [each for request in requests for each in (request if isinstance(request, list) else [request])]
    if not texts:
        raise WrongRecordError("/resps", "has no answer")
    if not all(isinstance(each, str) for each in texts):
        raise WrongRecordError("/resps", "has likelihoods, no texts")
    persona, prompt = _asked(sample.get("arguments"))
    metrics = sample.get("metrics")
    names = [name for name in metrics if isinstance(name, str)] if isinstance(metrics, list) else []
    scores = {name: number_or_none(sample.get(name)) for name in names}
    found = {name: score for name, score in scores.items() if score is not None}
    for n, text in enumerate(texts):
        yield Said(f"{place}/resps/{n}", text, persona, prompt, scores=found)


def _asked(arguments: Any) -> tuple[str | None, str | None]:
    """The persona and the prompt; with a chat template for servers, the prompt is a JSON list of messages."""
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    first = arguments[0] if isinstance(arguments, list) and arguments else None
    prompt = optional(first, "arg_0") if isinstance(first, dict) else first
    if isinstance(prompt, list):
        prompt = prompt[0] if prompt else None
    text = text_or_none(prompt)
    if text is None or not text.startswith("["):
        return None, text
    try:
        messages = read_messages(parse_json(text), "")
    except (ValueError, WrongRecordError):
        return None, text
    return persona_of(messages), last_question(messages)
