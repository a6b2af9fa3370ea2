"""promptfoo: outputs of `promptfoo eval` (JSON, JSON Lines, YAML, CSV), and configurations, whose tests are questions."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from app.importers.content import MOST_RECORDS, Document, Form, csv_rows, parse_json
from app.importers.messages import last_question, persona_of, read_messages
from app.importers.records import (
    TEXT_CHARACTERS,
    Asked,
    Record,
    Refused,
    Said,
    WrongRecordError,
    number_or_none,
    optional,
    substituted,
    text_or_none,
    wrong_file,
)
from app.importers.tables import columns_of, number_of

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
ELSEWHERE = "file://"
FAILED = "the call failed"
AFTER_OUTPUT = ("Status", "Score", "Named Scores")
"""Columns that follow that of each prompt's outputs, which is called by model and prompt."""
ERROR = "ERROR"
_NAMED = re.compile(r"\[(.+?)\] (.*)", re.DOTALL)
_DEFUSED = re.compile(r"'(?=[\s\u200b-\u200d]*[=@+-])")
"""What promptfoo puts before texts that a spreadsheet would run."""


def is_output(document: Document) -> bool:
    """Whether a file is what an evaluation wrote."""
    first = document.first()
    return (
        bool(_outputs(document))
        or isinstance(optional(first, "results", "results"), list)
        or {"promptIdx", "testIdx", "provider"} <= first.keys()
    )


def is_configuration(document: Document) -> bool:
    """Whether a file is a configuration."""
    known = document.form in {Form.JSON, Form.YAML}
    return known and isinstance(document.value, dict) and {"prompts", "tests"} <= document.value.keys()


def read_output(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The text of a row, or of each row of a whole output."""
    rows = optional(record, "results", "results")
    if not isinstance(rows, list):
        yield _read_row(place, record)
        return
    for n, row in enumerate(rows):
        at = f"{place}/results/results/{n}"
        try:
            yield _read_row(at, row)
        except WrongRecordError as error:
            yield Refused(f"{at}{error.field}", error.reason)
    if not rows:
        raise WrongRecordError("/results/results", "has no results")


def _read_row(place: str, row: Any) -> Record:
    output = optional(row, "response", "output")
    if output is None:
        raise WrongRecordError("/response", FAILED if optional(row, "error") else "has no output")
    if not isinstance(output, str):
        raise WrongRecordError("/response/output", "must be a text")
    persona, prompt = _persona_and_question(
        text_or_none(optional(row, "prompt", "raw")), optional(row, "vars")
    )
    named = optional(row, "namedScores")
    scores = {"score": number_or_none(row.get("score"))}
    scores |= (
        {str(name): number_or_none(each) for name, each in named.items()} if isinstance(named, dict) else {}
    )
    found = {name: score for name, score in scores.items() if score is not None}
    return Said(place, output, persona, prompt, _named(row.get("provider")), scores=found)


def _outputs(document: Document) -> Sequence[int]:
    """The columns of CSV that have outputs."""
    names = tuple(document.header)
    return [
        n - 1
        for n in range(1, len(names))
        if names[n : n + len(AFTER_OUTPUT)] == AFTER_OUTPUT and names[n - 1]
    ]


def read_csv(document: Document) -> Iterator[Record]:
    """The text of each row and prompt; variables are before the first prompt's columns."""
    outputs = _outputs(document)
    for place, row in islice(csv_rows(document.file), 1, None):
        if isinstance(row, Refused):
            yield row
            continue
        cells = [_DEFUSED.sub("", cell, count=1) if cell.startswith("'") else cell for cell in row]
        variables = dict(zip(document.header[: min(outputs, default=0)], cells, strict=False))
        # A prompt that was not asked in a test has nothing in its columns.
        asked = [n for n in outputs if any(cells[n : n + 1 + len(AFTER_OUTPUT)])]
        for n in asked:
            yield _read_cells(f"{place}/columns/{n + 1}", document.header[n], variables, cells[n:])
        if not asked:
            yield Refused(place, "has no output")


def _read_cells(place: str, name: str, variables: dict[str, str], cells: Sequence[str]) -> Record:
    output, status, score, named = cells[: 1 + len(AFTER_OUTPUT)]
    if status == ERROR:
        return Refused(place, FAILED)
    found = _NAMED.fullmatch(name)
    model, label = (None, name) if found is None else found.groups()
    try:
        prompt = _filled(label, variables) if _VARIABLE.search(label) else None
    except WrongRecordError:
        prompt = None
    persona, question = _persona_and_question(prompt, variables)
    scores = {"score": number_of(score)}
    try:
        members = parse_json(named) if named else {}
    except ValueError:
        members = {}
    scores |= (
        {name: number_or_none(each) for name, each in members.items()} if isinstance(members, dict) else {}
    )
    known = {name: value for name, value in scores.items() if value is not None}
    return Said(place, output, persona, question, text_or_none(model), scores=known)


def _named(provider: Any) -> str | None:
    """A provider's label, else its id; one with options may be an object whose only key is its id."""
    if isinstance(provider, dict) and len(provider) == 1 and "id" not in provider:
        ((id_, options),) = provider.items()
        return text_or_none(optional(options, "label")) or text_or_none(id_)
    names = (provider, optional(provider, "label"), optional(provider, "id"))
    return next((name for each in names if (name := text_or_none(each))), None)


def _persona_and_question(prompt: str | None, variables: Any) -> tuple[str | None, str | None]:
    """By the prompt's messages, if it is a chat; else by the variables' names, and the whole prompt."""
    named = variables if isinstance(variables, dict) else {}
    columns = columns_of({str(name): each for name, each in named.items()}, {})
    persona, question = (text_or_none(named.get(columns.get(what, ""))) for what in ("persona", "prompt"))
    if prompt is not None and prompt.lstrip().startswith("["):
        try:
            messages = read_messages(parse_json(prompt), "")
        except (ValueError, WrongRecordError):
            messages = []
        return persona_of(messages) or persona, last_question(messages) or question or prompt
    return persona, question or prompt


def read_configuration(place: str, found: dict[str, Any]) -> Iterator[Record]:
    """A question for each test and prompt."""
    prompts, tests = (_listed(found, name) for name in ("prompts", "tests"))
    if len(prompts) * len(tests) > MOST_RECORDS:
        message = f"{len(prompts):,} prompts × {len(tests):,} tests are more than {MOST_RECORDS:,} records; divide the file"
        raise wrong_file(message)
    providers = found.get("providers", found.get("targets"))
    listed = providers if isinstance(providers, list) else [providers]
    models = list(dict.fromkeys(name for each in listed if (name := _named(each)) is not None))
    defaults = optional(found, "defaultTest", "vars")
    for n, test in enumerate(tests):
        for prompt in prompts:
            at = f"{place}/tests/{n}"
            try:
                yield _read_test(at, test, prompt, defaults, models)
            except WrongRecordError as error:
                yield Refused(f"{at}{error.field}", error.reason)


def _listed(found: dict[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    if isinstance(value, list) and value:
        return value
    elsewhere = isinstance(value, str) and value.startswith(ELSEWHERE)
    raise WrongRecordError(f"/{name}", "is in another file" if elsewhere else "must be a list")


def _read_test(place: str, test: Any, prompt: Any, defaults: Any, models: Sequence[str]) -> Record:
    template = prompt if isinstance(prompt, str) else optional(prompt, "raw")
    if not isinstance(template, str) or template.startswith(ELSEWHERE):
        raise WrongRecordError("", "its prompt is in another file")
    own = optional(test, "vars")
    variables = {**(defaults if isinstance(defaults, dict) else {}), **(own if isinstance(own, dict) else {})}
    persona, question = _persona_and_question(_filled(template, variables), variables)
    if question is None:
        raise WrongRecordError("/vars", "has no question")
    return Asked(place, question, persona, models=models)


def _filled(template: str, variables: dict[Any, Any]) -> str:
    """A prompt with the test's variables; templates with more than names in braces are not read."""

    def value(found: re.Match[str]) -> str:
        each = variables.get(found[1])
        if not isinstance(each, str | int | float):
            raise WrongRecordError(f"/vars/{found[1]}", "is missing" if each is None else "must be a text")
        if str(each).startswith(ELSEWHERE):
            raise WrongRecordError(f"/vars/{found[1]}", "is in another file")
        return _in_json(str(each)) if template.lstrip().startswith("[") else str(each)

    filled = substituted(_VARIABLE, value, template, TEXT_CHARACTERS)
    if "{%" in template or "{{" in _VARIABLE.sub("", template):
        raise WrongRecordError("", "its prompt is a template with more than names in braces")
    return filled


def _in_json(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
