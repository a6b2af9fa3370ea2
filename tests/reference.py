"""Writes docs/reference from the code: ``python -m tests.reference``, or ``make reference``."""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
import click

from app.cli import app as command_line
from app.settings import Settings, variables
from persona_assay import AssayClient, types
from tests.api.client_types import REFERENCE, Json, openapi

NAMED_LITERALS = {of: name for name, of in vars(types).items() if get_origin(of) is Literal}
PAGES = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made from the code by `make reference`. -->"
SETTINGS_INTRODUCTION = """# Settings

Environment variables. How they are set, and which processes need them:
[operations.md](../operations.md#settings). `assay up` sets those that it needs.

Two more are read by libraries. `FORWARDED_ALLOW_IPS` (`127.0.0.1,::1`): addresses and networks,
separated by commas, of proxies that uvicorn believes when they say that a request came by `https`.
`OPENBLAS_NUM_THREADS`: `1`, as `assay up` and the image set it, keeps the intervals of a big job
from waiting for each other's threads in numpy.
"""
COMMANDS_INTRODUCTION = """# Commands

What `assay COMMAND -h` prints. Exit statuses and use in scripts: [continuous
integration](../how-to/continuous-integration.md).
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


# -- settings -----------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Each setting with its default, what it may be, and its docstring."""
    words = _docstrings()
    rows = []
    for name, variable in variables().items():
        field = Settings.model_fields[name]
        default = "–" if field.default in {None, ""} else f"`{field.default}`"
        bounds = [text for each in field.metadata for text in _bounds(each)]
        allowed = ", ".join([*_values(field.annotation), *bounds])
        meaning = f"{words[name]} Values: {allowed}." if allowed else words[name]
        rows.append((f"`{variable}`", default, meaning))
    return _page(SETTINGS_INTRODUCTION, _table(("variable", "default", "meaning"), rows))


def _docstrings() -> dict[str, str]:
    """What stands below each field; read here, since pydantic would read it at every start of a process."""
    [body] = [
        node.body
        for node in ast.parse(inspect.getsource(inspect.getmodule(Settings) or Settings)).body
        if isinstance(node, ast.ClassDef) and node.name == Settings.__name__
    ]
    return {
        field.target.id: inspect.cleandoc(text)
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        for text in [ast.literal_eval(below.value) if isinstance(below, ast.Expr) else ""]
    }


def _values(annotation: Any) -> list[str]:
    """The values of a choice; the kind of a number."""
    if get_origin(annotation) is Literal:
        return [" or ".join(f"`{each}`" for each in get_args(annotation))]
    members = [each for each in get_args(annotation) if each is not NoneType]
    if members:
        return [text for each in members for text in _values(each)]
    return (
        [{int: "integer", float: "number", bool: "`true` or `false`"}[annotation]]
        if annotation in {int, float, bool}
        else []
    )


def _bounds(limit: Any) -> Iterator[str]:
    """What pydantic keeps of ``ge``, ``gt``, ``le`` and ``min_length``."""
    match limit:
        case annotated_types.Ge(ge=least):
            yield f"≥ {least}"
        case annotated_types.Gt(gt=least):
            yield f"> {least}"
        case annotated_types.Le(le=most):
            yield f"≤ {most}"
        case annotated_types.MinLen(min_length=least):
            yield f"{least} characters or more"


# -- the command line ---------------------------------------------------------------------------------------------


def commands_page() -> str:
    """The help of every command."""
    settings: dict[str, Any] = {
        **command_line.context_settings,
        "terminal_width": 100,
        "max_content_width": 100,
    }
    context = click.Context(command_line, info_name="assay", **settings)
    return _page(COMMANDS_INTRODUCTION, *_helps(context))


def _helps(context: click.Context) -> Iterator[str]:
    command = context.command
    if not isinstance(command, click.Group):
        yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
        return
    for name in command.list_commands(context):
        if (member := command.get_command(context, name)) is not None:
            yield from _helps(click.Context(member, parent=context, info_name=name))


# -- the client ---------------------------------------------------------------------------------------------------


def client_page() -> str:
    """Each public method with its signature and its docstring."""
    methods = inspect.getmembers(AssayClient, callable)
    public = [("AssayClient", AssayClient), *((name, each) for name, each in methods if name[0] != "_")]
    return _page(CLIENT_INTRODUCTION, *(_described(name, each) for name, each in public))


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
    """An annotation whose text stands in a signature as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _annotation(of: Any) -> str:
    """An annotation, the same on every version of Python."""
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
    """Each operation with what it takes and answers, then every schema."""
    document = openapi()
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
    return _page(introduction, *operations, "## Schemas", *schemas)


def _operation(title: str, operation: Json, common: set[str]) -> str:
    parts = [f"## {operation['summary']}", f"`{title}`", _marked(operation.get("description", ""))]
    if parameters := operation.get("parameters"):
        rows = [
            (f"`{each['name']}`", each["in"], _type(each["schema"]), each.get("description", ""))
            for each in parameters
        ]
        parts.append(_table(("parameter", "in", "type", "meaning"), rows))
    if body := operation.get("requestBody"):
        parts.append(f"Takes {_contents(body)}.")
    answers = operation["responses"]
    own = [f"{status} {_contents(answers[status])}".strip() for status in sorted({*answers} - common)]
    parts.append(f"Answers {'; '.join(own)}.")
    return "\n\n".join(part for part in parts if part)


def _contents(of: Json) -> str:
    """What a body or an answer may be, by its media type where it is not JSON."""
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
        parts.append(_table(("field", "type", "required", "meaning"), rows))
    else:
        parts.append(_type(schema))
    return "\n\n".join(part for part in parts if part)


def _type(schema: Json) -> str:
    """A schema in words, with a link to what it refers to."""
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


def openapi_document() -> str:
    """The OpenAPI document, a line for each value, so that a change of the API shows as a diff."""
    return json.dumps(openapi(), indent=1, ensure_ascii=False) + "\n"


# -- pages --------------------------------------------------------------------------------------------------------


def _page(introduction: str, *parts: str) -> str:
    return "\n\n".join([f"{MADE}\n\n{introduction.strip()}", *(part.strip() for part in parts)]) + "\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    cells = [tuple(_marked(" ".join(cell.split())).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ("---",) * len(head), *cells])


def _marked(text: str) -> str:
    """Code in the form of Markdown, where docstrings have that of reStructuredText."""
    return re.sub(r":\w+:`~?\.?([^`]+)`", r"`\1`", text.replace("``", "`"))


REFERENCES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "cli.md": commands_page,
    "client.md": client_page,
    "openapi.json": openapi_document,
    "settings.md": settings_page,
}

if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name, made in REFERENCES.items():
        (PAGES / name).write_text(made(), "utf-8")
