"""Job files in YAML or JSON, parsed strictly: nothing in them is silently dropped."""

import json
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import yaml

from persona_assay import ProblemError, ProblemField
from persona_assay.terminal.outcome import CommandError
from persona_assay.types import JobIn

STANDARD_INPUT = "-"
MOST_PLACED = 1_000_000
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
    try:
        text = stdin.read() if path == STANDARD_INPUT else Path(path).read_text(encoding="utf-8")
        job = json.loads(text, object_pairs_hook=_object) if _is_json(text) else yaml.load(text, _Loader)  # noqa: S506 - derived from SafeLoader
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8 text") from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:
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
            changes[name] = yaml.load(value, _Loader)  # noqa: S506 - derived from SafeLoader
        except (ValueError, yaml.YAMLError, RecursionError) as error:
            raise CommandError(f"--set {name}: the value is not valid YAML: {_reason(error)}") from error
    return changes


def line_of(pointer: str, text: str) -> int | None:
    """The line, from 1, of a JSON pointer's field in a YAML or JSON text; ``None`` if it is not there."""
    node = yaml.compose(text, _Loader)
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


def _reason(error: Exception) -> str:
    """What is wrong, and where."""
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error)


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


MOST_MERGED = 20_000


class _Loader(yaml.SafeLoader):
    """YAML limited to JSON's types: dates stay text, duplicate keys are errors, and merge keys are bounded."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and form
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge keys; nested ones multiply, so that a few lines could stand for millions of members."""
        super().flatten_mapping(node)
        if len(node.value) > MOST_MERGED:
            words = f"merge keys (<<) give more than {MOST_MERGED:,} members"
            raise yaml.constructor.ConstructorError(None, None, words, node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node in (key for key, _ in node.value if key.tag != _MERGE):
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} must be a string: put it in quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key {key!r}", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


_MERGE = "tag:yaml.org,2002:merge"
