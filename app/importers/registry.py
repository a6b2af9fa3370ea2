"""The kinds of files that can be imported, how each is recognised, and what of it becomes what."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from app.domain.jobs.import_preview import ImportPreview
from app.importers import (
    atomic_responses,
    atomic_scores,
    batches,
    character_cards,
    chats,
    deepeval,
    inspect_log,
    lm_eval,
    openai_evals,
    openinference,
    own_files,
    own_verdicts,
    preferences,
    promptfoo,
    sillytavern,
    tables,
    traces,
    trackers,
)
from app.importers.bodies import TABLE, Collector, Keep
from app.importers.content import MOST_RECORDS, RECORDS, UNPACKED_BYTES, Document, Form, read_document
from app.importers.records import (
    Asked,
    Character,
    Options,
    Record,
    Refused,
    Said,
    WrongRecordError,
    wrong_file,
)

Recognise = Callable[[Document, Options], bool]
Read = Callable[[Document, Options], Iterator[Record]]
ReadRecord = Callable[[str, dict[str, Any]], Iterator[Record]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files.

    Attributes:
        name: Its name.
        recognises: Whether a file is of the kind.
        read: Its records, at least one for each thing in it.
        mapping: What of the file becomes what; a function where that depends on the file.
        notes: What of the file is not used.
    """

    name: str
    recognises: Recognise
    read: Read
    mapping: Mapping[str, str] | Callable[[Document, Options], Mapping[str, str]] = field(
        default_factory=dict
    )
    notes: Callable[[Document, Options], Iterator[str]] = lambda _document, _options: iter(())


def each_record(records: Iterator[tuple[str, Any]], read: ReadRecord) -> Iterator[Record]:
    """The records of a file's values, each of which gives at least one: what it holds, or why nothing."""
    for place, value in records:
        if isinstance(value, Refused):
            yield value
            continue
        if not isinstance(value, dict):
            yield Refused(place, "must be an object")
            continue
        try:
            yield from read(place, value)
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)


def _of_json(recognises: Callable[[dict[str, Any]], bool], read: ReadRecord) -> tuple[Recognise, Read]:
    """What recognises and reads JSON of one record or many, JSON Lines, CSV and Parquet."""
    return _of_records(recognises, partial(each_record, read=read))


def _of_records(
    recognises: Callable[[dict[str, Any]], bool],
    read: Callable[[Iterator[tuple[str, Any]]], Iterator[Record]],
) -> tuple[Recognise, Read]:
    """Return the same for a format whose records depend on each other: `read` takes all of a file's records."""

    def is_one(document: Document, _: Options) -> bool:
        return document.form in RECORDS and recognises(document.first())

    def read_all(document: Document, _: Options) -> Iterator[Record]:
        return read(document.records())

    return is_one, read_all


def _is_message(document: Document, options: Options) -> bool:
    """A file whose columns the user names is a table."""
    return document.form in RECORDS and not options.columns and chats.is_message(document.first())


def _is_table(document: Document, options: Options) -> bool:
    return tables.is_table(document.first(), options.columns)


def _columns(document: Document, options: Options) -> Mapping[str, str]:
    return tables.columns_of(document.first(), options.columns)


def _read_table(document: Document, options: Options) -> Iterator[Record]:
    return each_record(document.records(), partial(tables.read_row, options=options))


def _is_card(document: Document, _: Options) -> bool:
    return character_cards.is_picture(document) or character_cards.is_card(document.first())


def _read_cards(document: Document, _: Options) -> Iterator[Record]:
    if character_cards.is_picture(document):
        records = iter([("", character_cards.card_of_picture(document))])
    else:
        records = document.records()
    return each_record(records, character_cards.read_card)


def _is_inspect(document: Document, _: Options) -> bool:
    return inspect_log.is_archive(document) or inspect_log.is_log(document.first())


def _read_inspect(document: Document, _: Options) -> Iterator[Record]:
    if inspect_log.is_archive(document):
        return inspect_log.read_archive(document)
    return each_record(document.records(), inspect_log.read_log)


def _read_otlp(records: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    calls = traces.Calls()
    yield from each_record(records, calls.read_request)
    yield from calls.rest()


def _read_outputs(document: Document, _: Options) -> Iterator[Record]:
    if document.form is Form.CSV:
        return promptfoo.read_csv(document)
    return each_record(document.records(), promptfoo.read_output)


def _of_output(document: Document, _: Options) -> Mapping[str, str]:
    if document.form is Form.CSV:
        return _VARIABLES | {"text": "the prompts' columns", "model": "the prompts' columns"}
    return _VARIABLES | {"text": "response.output", "model": "provider"}


def _is_export(document: Document, _: Options) -> bool:
    return own_files.is_export(document.first()) or own_verdicts.is_verdicts(document.first())


def _read_export(document: Document, options: Options) -> Iterator[Record]:
    rows = own_files.rows_of(document)
    if own_verdicts.is_verdicts(document.first()):
        return own_verdicts.read_verdicts(rows, options.gym_tasks)
    return own_files.read_export(rows)


_CHAT = {
    "persona": "system messages",
    "prompt": "the user's message before",
    "text": "the assistant's messages",
}
_CALL = {"persona": "system messages", "prompt": "the user's last message", "text": "the model's output"}
_CASE = {"persona": "chatbotRole", "prompt": "input", "text": "actualOutput, or the assistant's turns"}
_VARIABLES = {
    "persona": "system messages, or a variable such as persona",
    "prompt": "the user's last message, or a variable such as question",
}
KINDS = (
    Kind("inspect", _is_inspect, _read_inspect, _CALL),
    Kind("openai_evals", *_of_json(openai_evals.is_evals, openai_evals.read_evals), mapping=_CALL),
    Kind(
        "promptfoo",
        lambda document, _: promptfoo.is_output(document),
        _read_outputs,
        _of_output,
    ),
    Kind(
        "promptfoo_configuration",
        lambda document, _: promptfoo.is_configuration(document),
        lambda document, _: each_record(document.records(), promptfoo.read_configuration),
        _VARIABLES | {"model": "providers"},
    ),
    Kind(
        "lm_eval",
        *_of_records(lm_eval.is_samples, lm_eval.read_samples),
        mapping={"prompt": "arguments", "text": "resps"},
    ),
    Kind("otlp", *_of_records(traces.is_otlp, _read_otlp), mapping=_CALL),
    Kind("mlflow", *_of_json(trackers.is_mlflow, trackers.read_mlflow), mapping=_CALL),
    Kind("phoenix", *_of_json(openinference.is_span, openinference.read_spans), mapping=_CALL),
    *(Kind(each.name, *_of_json(each.recognises, each.read), mapping=_CALL) for each in trackers.TRACKERS),
    Kind("langfuse", *_of_json(traces.is_langfuse, traces.read_langfuse), mapping=_CALL),
    Kind("deepeval", *_of_json(deepeval.is_run, deepeval.read_run), mapping=_CASE),
    Kind(
        "batch",
        *_of_records(batches.is_batch, batches.read_batch),
        mapping=_CALL,
    ),
    Kind(
        "sillytavern",
        *_of_records(sillytavern.is_chat, sillytavern.read_chat),
        mapping={"prompt": "the user's message before", "text": "the character's messages, and their swipes"},
    ),
    Kind(
        "preferences",
        *_of_json(preferences.is_pair, preferences.read_pair),
        mapping={"prompt": "prompt", "text": "chosen and rejected", "model": "chosen and rejected"},
    ),
    Kind("langsmith_dataset", *_of_json(trackers.is_example, trackers.read_example)),
    Kind("character_card", _is_card, _read_cards, {"persona": "description and personality"}),
    Kind("openai_messages", *_of_json(chats.is_openai_chat, chats.read_openai_chat), mapping=_CHAT),
    Kind("sharegpt", *_of_json(chats.is_sharegpt, chats.read_sharegpt), mapping=_CHAT),
    Kind(
        "message_rows",
        _is_message,
        lambda document, _: chats.read_message_rows(document.records()),
        _CHAT,
    ),
    Kind(
        "personagym",
        lambda document, options: own_files.is_personagym(document, options.gym_tasks),
        lambda document, options: own_files.read_personagym(document, options.gym_tasks),
        {"persona": "the file's name", "task": "its keys"},
    ),
    Kind(
        "atomic_scores",
        lambda document, _: atomic_scores.is_scores(document),
        lambda document, _: atomic_scores.read_scores(document),
        {"run": "first list", "item": "second list", "scores": "third list"},
    ),
    Kind(
        "atomic_responses",
        lambda document, _: atomic_responses.is_responses(document),
        atomic_responses.read_responses,
        {
            "persona": "the file's name",
            "instruction": "the number in the file's name",
            "prompt": "question",
            "text": "raw_response",
            "units": "atomic_response",
        },
    ),
    Kind("assay", _is_export, _read_export, {"persona": "persona_description", "text": "text"}),
    Kind(
        TABLE,
        _is_table,
        _read_table,
        _columns,
        lambda document, options: tables.notes_on(document.first(), options),
    ),
)
"""In the order in which a file is tried: the first that recognises it reads it."""
NAMES = tuple(kind.name for kind in KINDS)
AT_ONCE = 100
"""Records that are read at a time."""
UNKNOWN = (
    f"not a kind of file that is known ({', '.join(NAMES)}); name columns, such as text=answer, or the kind"
)
SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_CELL = 3, 30, 60
GYM_SCORES = (
    "PersonaGym's scores are means by task, without the grades that they are of: nothing can be computed from them;"
    " GET /v1/baselines has the published ones"
)
FIDELITY_SCORES = (
    "fidelity_scores.json has figures, without the scores that they are of: nothing can be computed from them;"
    " import the atomic_scores.txt that they are of"
)


@dataclass(slots=True)
class _Allowance:
    """Limits on a file's records, of which a small file can stand for many, long or repeated ones.

    Attributes:
        most: Most characters of its texts.
    """

    most: int
    _records: int = 0
    _characters: int = 0

    def use(self, record: Record) -> None:
        self._records += 1
        self._characters += _length(record)
        if self._records > MOST_RECORDS:
            raise wrong_file(f"has more than {MOST_RECORDS:,} records; divide the file")
        if self._characters > self.most:
            raise wrong_file(f"its texts have more than {self.most:,} characters; divide the file")


def _length(record: Record) -> int:
    if isinstance(record, Said):
        return len(record.text) + len(record.prompt or "") + sum(map(len, record.units))
    if isinstance(record, Asked):
        return len(record.question)
    return len(record.description) if isinstance(record, Character) else 0


class FileImport:
    """A file that is being read.

    Args:
        file: It. Untrusted.
        name: Its name; may be empty.
        kind: Its kind, if the user names it.
        options: What the user says beside the file.
        keep: Takes its responses.
        most: So many bytes of it may be unpacked.

    Raises:
        InvalidJobError: If it can't be read, with the place.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        kind: str | None,
        options: Options,
        keep: Keep,
        most: int = UNPACKED_BYTES,
    ) -> None:
        self._allowance = _Allowance(most)
        document = read_document(file, name, most)
        found = next(
            (each for each in KINDS if (each.name == kind if kind else each.recognises(document, options))),
            None,
        )
        if found is None:
            raise wrong_file(_why_unknown(document))
        self._kind = found.name
        self._mapping = found.mapping(document, options) if callable(found.mapping) else found.mapping
        self._notes = list(found.notes(document, options))
        self._records = found.read(document, options)
        self._collector = Collector(options, keep, name)

    def read(self, most: int) -> bool:
        """Read up to `most` more records; return whether there may be others.

        Raises:
            InvalidJobError: If the file has too many records or is too long in all.
        """
        for _ in range(most):
            record = next(self._records, None)
            if record is None:
                return False
            self._allowance.use(record)
            self._collector.add(record)
        return True

    def preview(self, responses: object) -> ImportPreview:
        """What was found, and what can be sent.

        Args:
            responses: Its responses, as a job's body has or names them.

        Raises:
            InvalidJobError: If the chosen score has another scale than judges, and nobody said which.
        """
        return self._collector.preview(self._kind, self._mapping, self._notes, responses)


def _why_unknown(document: Document) -> str:
    first = next((each for _, each in document.records()), None)
    if document.form is Form.CSV and isinstance(first, Refused):
        return first.reason
    if own_files.is_scores(document):
        return GYM_SCORES
    if atomic_scores.is_fidelity(document):
        return FIDELITY_SCORES
    return UNKNOWN + (_beginning(document) if document.form in RECORDS and document.first() else "")


def _beginning(document: Document) -> str:
    """The columns and first rows of a table that is not recognised."""
    rows = [each for _, each in islice(document.records(), SHOWN_ROWS) if isinstance(each, dict)]
    columns = ", ".join(_cell(name) for name in islice(document.first(), SHOWN_COLUMNS))
    shown = (" | ".join(_cell(each) for each in islice(row.values(), SHOWN_COLUMNS)) for row in rows)
    return f". Its columns: {columns}. Its first rows: {'; '.join(shown)}"


def _cell(value: Any) -> str:
    text = (
        " ".join(value.split())
        if isinstance(value, str)
        else "…"
        if isinstance(value, list | dict)
        else str(value)
    )
    return (text if len(text) <= SHOWN_CELL else f"{text[:SHOWN_CELL]}…").encode(errors="replace").decode()
