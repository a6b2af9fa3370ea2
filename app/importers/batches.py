"""Output of providers' batches (OpenAI and those like it, Anthropic, Gemini, Bedrock), alone or after the lines of its input.

Formats: https://platform.openai.com/docs/guides/batch, https://docs.claude.com/en/docs/build-with-claude/batch-processing,
https://ai.google.dev/gemini-api/docs/batch-api, https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference-data.html
"""

from collections.abc import Iterator
from typing import Any

from app.importers.calls import call_texts, reply_messages, request_messages
from app.importers.content import UNPACKED_BYTES
from app.importers.messages import Message
from app.importers.parquet import size_of
from app.importers.records import Record, Refused, WrongRecordError, optional, text_or_none, wrong_file

NOT_ANSWERED = (
    "is a request of a batch, and its answer is not in the file; append the lines of the batch's output"
)
FAILED = "the call failed"
OK = 200
IDS = ("custom_id", "key", "recordId")
REQUESTS = ("body", "request", "params", "modelInput")
ANSWERS = ("response", "result", "modelOutput")


def is_batch(first: dict[str, Any]) -> bool:
    """Whether a record is a line of a batch's input or output, or a request with its response."""
    parts = {name for name in (*REQUESTS, *ANSWERS, "error") if isinstance(first.get(name), dict)}
    return bool(parts) if any(name in first for name in IDS) else {"request", "response"} <= parts


def read_batch(records: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    """The texts of each answer, with persona and prompt where the file has its request before it."""
    requests: dict[str, tuple[str, list[Message], str | None]] = {}
    size = 0
    for place, record in records:
        if isinstance(record, Refused):
            yield record
            continue
        try:
            id_ = next((id_ for name in IDS if (id_ := text_or_none(optional(record, name)))), None)
            body = next((record[name] for name in REQUESTS if isinstance(optional(record, name), dict)), None)
            answered = any(optional(record, name) is not None for name in (*ANSWERS, "error"))
            if id_ is None and not (body is not None and answered):
                yield Refused(f"{place}/custom_id", "must be a text")
                continue
            if id_ is not None and body is not None and not answered:
                size += size_of(record)
                if size > UNPACKED_BYTES:
                    raise wrong_file(
                        f"a batch's input of more than {UNPACKED_BYTES:,} bytes; divide the file", place
                    )
                requests[id_] = place, request_messages(body), text_or_none(body.get("model"))
                continue
            if body is not None:
                asked, model = request_messages(body), text_or_none(body.get("model"))
            else:
                _, asked, model = requests.pop(id_ or "", (place, [], None))
            yield from _read_answer(place, record, asked, model)
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)
    for place, _, _ in requests.values():
        yield Refused(place, NOT_ANSWERED)


def _read_answer(
    place: str, record: dict[str, Any], asked: list[Message], model: str | None
) -> Iterator[Record]:
    result, response = record.get("result"), record.get("response", record.get("modelOutput"))
    if isinstance(result, dict):
        if result.get("type") != "succeeded":
            raise WrongRecordError("/result", FAILED)
        reply = result.get("message")
    else:
        status = optional(response, "status_code")
        if response is None or status not in (None, OK):
            raise WrongRecordError("/response" if record.get("error") is None else "/error", FAILED)
        reply = optional(response, "body") or response
    told = text_or_none(optional(reply, "model")) or text_or_none(optional(reply, "modelVersion"))
    yield from call_texts(place, asked, reply_messages(reply), told or model)
