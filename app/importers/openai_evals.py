"""What OpenAI's hosted Evals exported: the items of runs with their outputs, and data sources."""

from collections.abc import Iterator
from typing import Any

from app.importers.messages import last_question, persona_of, read_messages, text_of
from app.importers.records import (
    Asked,
    Record,
    Refused,
    Said,
    WrongRecordError,
    member,
    number_or_none,
    optional,
    text_or_none,
)
from app.importers.tables import columns_of

ITEM = "eval.run.output_item"


def is_evals(first: dict[str, Any]) -> bool:
    """Whether a record is an output item, a list of them, or a data source's item."""
    data = first.get("data")
    listed = isinstance(data, list) and any(optional(each, "object") == ITEM for each in data[:1])
    return first.get("object") == ITEM or listed or isinstance(first.get("item"), dict)


def read_evals(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The text of an item, or of all that are listed."""
    if record.get("object") != "list":
        yield _read_item(place, record)
        return
    for n, each in enumerate(member(record, "data", list)):
        at = f"{place}/data/{n}"
        try:
            yield _read_item(at, each)
        except WrongRecordError as error:
            yield Refused(f"{at}{error.field}", error.reason)


def _read_item(place: str, record: Any) -> Record:
    item = member(record, "datasource_item" if optional(record, "object") == ITEM else "item", dict)
    columns = columns_of(item, {})
    persona = text_or_none(item.get(columns.get("persona", "")))
    prompt = text_or_none(item.get(columns.get("prompt", "")))
    sample = record.get("sample")
    if sample is None:  # of a data source; its `answer` is what was expected, and nobody's text
        if prompt is None:
            raise WrongRecordError("/item", "has no column with a question")
        return Asked(place, prompt, persona)
    if not isinstance(sample, dict):
        raise WrongRecordError("/sample", "must be an object")
    try:
        said = read_messages(sample.get("output") or [], "")
        asked = read_messages(sample.get("input") or [], "")
    except WrongRecordError as error:
        raise WrongRecordError(f"/sample{error.field}", error.reason) from error
    text = next((each.text for each in reversed(said) if each.text), None) or text_of(
        sample.get("output_text")
    )
    if text is None:
        failed = text_or_none(optional(sample, "error", "message")) or text_or_none(
            optional(sample, "error", "code")
        )
        raise WrongRecordError("/sample", "the call failed" if failed else "the model's answer has no text")
    return Said(
        place,
        text,
        persona_of(asked) or persona,
        last_question(asked) or prompt,
        text_or_none(sample.get("model")),
        scores=_scores(record.get("results")),
    )


def _scores(results: Any) -> dict[str, float]:
    found = {}
    for each in results if isinstance(results, list) else ():
        name, score = text_or_none(optional(each, "name")), number_or_none(optional(each, "score"))
        if name is not None and score is not None:
            found[name] = score
    return found
