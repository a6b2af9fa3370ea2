"""Job files in YAML or JSON, parsed strictly: nothing in them is silently dropped."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO, cast

import yaml

from persona_assay import ProblemError, ProblemField
from persona_assay.json_yaml import JsonYamlLoader, parse_yaml
from persona_assay.terminal.outcome import CommandError
from persona_assay.terminal.text_files import read_file, read_text
from persona_assay.types import JobIn

STANDARD_INPUT = "-"
MOST_PLACED = 200_000
"""Largest file, in characters, in which errors get line numbers: finding them takes a hundred times longer than parsing."""


@dataclass(frozen=True, slots=True)
class JobFile:
    """A job file.

    Attributes:
        name: The file's name, for messages.
        text: Its content.
        job: The job; the service validates it.
    """

    name: str
    text: str
    job: JobIn

    @contextmanager
    def places(self) -> Iterator[None]:
        """Add line numbers to the fields of the service's validation errors."""
        try:
            yield
        except ProblemError as error:
            fields = [ProblemField(self._placed(field.pointer), field.message) for field in error.fields]
            raise ProblemError(error.status, error.detail, error.code, fields, error.request_id) from error

    def _placed(self, pointer: str) -> str:
        line = line_of(pointer, self.text) if len(self.text) <= MOST_PLACED else None
        return pointer if line is None else f"{pointer} ({self.name}, line {line})"


def read_job_file(path: str, stdin: TextIO) -> JobFile:
    """Read a job file.

    Args:
        path: A YAML or JSON file, or ``-`` for standard input.
        stdin: Standard input.

    Raises:
        CommandError: The file can't be read, is neither YAML nor JSON, or is not an object.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    text = read_text(stdin, name) if path == STANDARD_INPUT else read_file(path)
    try:
        job = json.loads(text, object_pairs_hook=_object) if _is_json(text) else parse_yaml(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{name} is not valid YAML or JSON: {_reason(error)}") from error
    if not isinstance(job, dict):
        raise CommandError(f"{name} must contain one job (an object with personas, tasks, models, judges)")
    return JobFile(name, text, cast("JobIn", job))


def changed_fields(fields: Iterable[str]) -> dict[str, Any]:
    """Fields of a job from ``field=value``, the values as YAML.

    Raises:
        CommandError: One has no field, or a value that is not YAML.
    """
    changes = {}
    for each in fields:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise CommandError(f"--set {each}: write FIELD=VALUE")
        try:
            changes[name] = parse_yaml(value)
        except ValueError as error:
            raise CommandError(f"--set {name}: the value is not valid YAML: {error}") from error
    return changes


def line_of(pointer: str, text: str) -> int | None:
    """Return the line, from 1, of a JSON pointer's field; ``None`` if the text has none or is JSON that is not YAML."""
    try:
        node = yaml.compose(text, JsonYamlLoader)
    except yaml.YAMLError:
        return None
    line = None
    for token in pointer.split("/")[1:]:
        found = _member(node, token.replace("~1", "/").replace("~0", "~"))
        if found is None:
            return line
        line, node = found
    return line


def _member(node: yaml.Node | None, token: str) -> tuple[int, yaml.Node] | None:
    """A member's line and value."""
    if isinstance(node, yaml.MappingNode):
        found = [(key, value) for key, value in node.value if key.value == token]
        return (found[0][0].start_mark.line + 1, found[0][1]) if found else None
    if isinstance(node, yaml.SequenceNode) and token.isdecimal() and int(token) < len(node.value):
        member = node.value[int(token)]
        return member.start_mark.line + 1, member
    return None


def _reason(error: ValueError | RecursionError) -> str:
    """Return what is wrong, and where."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _is_json(text: str) -> bool:
    """Whether a text is JSON; YAML could parse it too, but a hundred times slower."""
    return text.lstrip().startswith("{")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"duplicate key {name!r}")
        found[name] = value
    return found
