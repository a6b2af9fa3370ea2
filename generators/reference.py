"""Pages of docs/reference on the API, the commands and the client: ``python -m generators.reference`` writes them."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click

from generators.client_types import DOCUMENT, REFERENCE, Json
from persona_assay import AssayClient, types
from persona_assay.terminal.main import COMMANDS, SETTINGS

DIRECTORY = DOCUMENT.parent
NAMED_LITERALS = {of: name for name, of in vars(types).items() if get_origin(of) is Literal}
MADE = "<!-- Made from the code by `make reference`. -->"
COMMANDS_INTRODUCTION = """# Commands

The output of `assay COMMAND -h`. Exit statuses and use in scripts: [continuous
integration](../how-to/continuous-integration.md). `persona-assay-server` adds
[commands that run the service](server-cli.md).
"""
CLIENT_INTRODUCTION = """# The Python client

The methods of `persona_assay.AssayClient`; `AsyncAssayClient` has the same ones to await. Examples,
errors and repetition: [how to use it](../how-to/python.md). Types such as `JobIn` are in
`persona_assay.types` and have the fields of [the API's schemas](api.md#schemas).
"""
API_INTRODUCTION = """# The HTTP API

Every operation and schema of `/openapi.json`, as a file: [openapi.json](openapi.json). Limits and
repetition: [api.md](../api.md). A problem is `application/problem+json` ([Problem](#problem)).
"""


# -- the command line ---------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Return the page with the help of the client's commands."""
    return page(COMMANDS_INTRODUCTION, *helps(COMMANDS))


def helps(commands: Iterable[click.Command]) -> Iterator[str]:
    """Yield the help of commands of `assay`, a section each."""
    settings: dict[str, Any] = {**SETTINGS, "terminal_width": 100, "max_content_width": 100}
    assay = click.Context(click.Group("assay"), info_name="assay", **settings)
    for command in commands:
        yield from _help(click.Context(command, parent=assay, info_name=command.name))


def _help(context: click.Context) -> Iterator[str]:
    command = context.command
    if not isinstance(command, click.Group):
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
        return
    for name, member in command.commands.items():
        yield from _help(click.Context(member, parent=context, info_name=name))


# -- the client ---------------------------------------------------------------------------------------------------


def client_page() -> str:
    """Return the page with each public method, its signature and its docstring."""
    methods = inspect.getmembers(AssayClient, callable)
    public = [("AssayClient", AssayClient), *((name, each) for name, each in methods if name[0] != "_")]
    return page(CLIENT_INTRODUCTION, *(_described(name, each) for name, each in public))


def _described(name: str, described: Callable[..., object]) -> str:
    signature = inspect.signature(described)
    given = [
        each.replace(annotation=_Shown(_annotation(each.annotation)))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    answer = _Shown(_annotation(signature.return_annotation))
    shown = signature.replace(parameters=given, return_annotation=answer)
    text = re.sub(r"(?m)^(Args|Raises|Returns|Yields):$", r"\n\1:\n", inspect.getdoc(described) or "")
    text = re.sub(r"(?m)^ {4}(\w+): ", r"* `\1`: ", text)
    text = re.sub(r"\n {4,}", " ", text).replace(" * `", "\n* `")
    return f"## {name}\n\n```python\n{name}{shown}\n```\n\n{_marked(text)}"


class _Shown(str):
    """Text of an annotation that a signature shows without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _annotation(of: Any) -> str:
    """Print an annotation, the same on every version of Python."""
    if isinstance(of, str):
        return of
    if of is None or of is NoneType:
        return "None"
    members = of if isinstance(of, list) else get_args(of)  # a list: a Callable's arguments
    if not members:
        return "..." if of is ... else str(getattr(of, "__name__", of))
    if get_origin(of) is Literal:
        return NAMED_LITERALS.get(of) or f"Literal[{', '.join(map(repr, members))}]"
    if get_origin(of) in {Union, UnionType}:
        return " | ".join(map(_annotation, members))
    return f"{getattr(get_origin(of), '__name__', '')}[{', '.join(map(_annotation, members))}]"


# -- the API ------------------------------------------------------------------------------------------------------


def api_page() -> str:
    """Return the page with each operation, its parameters, body and answers, then every schema."""
    document: Json = json.loads(DOCUMENT.read_text("utf-8"))
    found = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    common = set.intersection(
        *({*operation["responses"]} for title, operation in found.items() if " /v1/" in title)
    )
    introduction = (
        f"{API_INTRODUCTION.strip()}\nAny operation below `/v1` may answer {', '.join(sorted(common))}."
    )
    operations = (_operation(title, operation, common) for title, operation in found.items())
    schemas = (_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))
    return page(introduction, *operations, "## Schemas", *schemas)


def _operation(title: str, operation: Json, common: set[str]) -> str:
    parts = [f"## {operation['summary']}", f"`{title}`", _marked(operation.get("description", ""))]
    if parameters := operation.get("parameters"):
        rows = [
            (f"`{each['name']}`", each["in"], _type(each["schema"]), each.get("description", ""))
            for each in parameters
        ]
        parts.append(table(("parameter", "in", "type", "meaning"), rows))
    if body := operation.get("requestBody"):
        parts.append(f"Takes {_contents(body)}.")
    answers = operation["responses"]
    own = [f"{status} {_contents(answers[status])}".strip() for status in sorted({*answers} - common)]
    parts.append(f"Answers {'; '.join(own)}.")
    return "\n\n".join(part for part in parts if part)


def _contents(of: Json) -> str:
    """Name the schema of a body or an answer, or its media type if it is not JSON."""
    found = []
    for media, content in of.get("content", {}).items():
        schema = _type(content.get("schema", {}))
        found.append(schema if media.endswith("json") and schema != "any" else f"`{media}`")
    return " or ".join(found)


def _schema(name: str, schema: Json) -> str:
    parts = [f"### {name}", _marked(schema.get("description", ""))]
    if fields := schema.get("properties"):
        required = schema.get("required", ())
        rows = [
            (f"`{field}`", _type(of), "yes" if field in required else "–", of.get("description", ""))
            for field, of in fields.items()
        ]
        parts.append(table(("field", "type", "required", "meaning"), rows))
    else:
        parts.append(_type(schema))
    return "\n\n".join(part for part in parts if part)


def _type(schema: Json) -> str:
    """Describe a schema, with a link to the schema that it refers to."""
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(REFERENCE)
        return f"[{name}](#{name.lower()})"
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum") or [schema["const"]])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(_type, choices)))
    kind = schema.get("type", "any")
    if kind == "array":
        members = schema.get("items") or {"anyOf": schema["prefixItems"]}
        one = _type(members)
        return f"list of ({one})" if " or " in one else f"list of {one}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    limits = [
        f"{sign} {round(schema[limit]) if kind == 'integer' else schema[limit]}"
        for limit, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if limit in schema
    ]
    if "maxLength" in schema:
        limits.append(f"at most {schema['maxLength']} characters")
    return ", ".join([str(kind), *limits])


# -- pages --------------------------------------------------------------------------------------------------------


def page(introduction: str, *parts: str) -> str:
    """Join the parts of a page."""
    return "\n\n".join([f"{MADE}\n\n{introduction.strip()}", *(part.strip() for part in parts)]) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format a table in Markdown."""
    cells = [tuple(_marked(" ".join(cell.split())).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ("---",) * len(head), *cells])


def _marked(text: str) -> str:
    """Turn the code markup of docstrings, reStructuredText, into Markdown's."""
    return re.sub(r":\w+:`~?\.?([^`]+)`", r"`\1`", text.replace("``", "`"))


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "cli.md": commands_page,
    "client.md": client_page,
}

if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(PAGES[path.name](), "utf-8")
