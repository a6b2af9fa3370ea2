"""Writes the files of docs/reference that need the service's code: ``python -m tests.reference``, or ``make reference``."""

import ast
import inspect
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import annotated_types

from app.cli import app as assay
from app.main import create_app
from app.settings import Settings, variables
from generators.client_types import Json
from generators.reference import DIRECTORY, helps, page, table
from persona_assay.terminal.main import SERVER_COMMANDS

SETTINGS_INTRODUCTION = """# Settings

Environment variables. How they are set, and which processes need them:
[operations.md](../operations.md#settings). `assay up` sets those that it needs.

Two more are read by libraries. `FORWARDED_ALLOW_IPS` (`127.0.0.1,::1`): addresses and networks,
separated by commas, of proxies that uvicorn believes when they say that a request came by `https`.
`OPENBLAS_NUM_THREADS`: `1`, as `assay up` and the image set it, keeps the intervals of a big job
from waiting for each other's threads in numpy.
"""


SERVER_COMMANDS_INTRODUCTION = """# Commands that run the service

The output of `assay COMMAND -h` for the commands of `persona-assay-server`. All others:
[commands](cli.md).
"""


# -- settings -----------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Return the page with each setting, its default, its values and its docstring."""
    words = _docstrings()
    rows = []
    for name, variable in variables().items():
        field = Settings.model_fields[name]
        default = "–" if field.default in {None, ""} else f"`{field.default}`"
        bounds = [text for each in field.metadata for text in _bounds(each)]
        allowed = ", ".join([*_values(field.annotation), *bounds])
        meaning = f"{words[name]} Values: {allowed}." if allowed else words[name]
        rows.append((f"`{variable}`", default, meaning))
    return page(SETTINGS_INTRODUCTION, table(("variable", "default", "meaning"), rows))


def _docstrings() -> dict[str, str]:
    """Return each field's docstring; read here, since pydantic would read it at every start of a process."""
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
    """Return the values of a choice, or the kind of a number."""
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
    """Describe a limit that pydantic made of ``ge``, ``gt``, ``le`` or ``min_length``."""
    match limit:
        case annotated_types.Ge(ge=least):
            yield f"≥ {least}"
        case annotated_types.Gt(gt=least):
            yield f"> {least}"
        case annotated_types.Le(le=most):
            yield f"≤ {most}"
        case annotated_types.MinLen(min_length=least):
            yield f"{least} characters or more"


# -- the server's commands, the API --------------------------------------------------------------------------------


def server_commands_page() -> str:
    """Return the page with the help of the commands that run the service."""
    return page(SERVER_COMMANDS_INTRODUCTION, *helps(assay.commands[name] for name in SERVER_COMMANDS))


def openapi() -> Json:
    """Return the service's OpenAPI document; nothing is connected to."""
    unused = Settings(database_url="postgresql://unused", redis_url="redis://unused")
    return create_app(unused).openapi()


def openapi_document() -> str:
    """Return the OpenAPI document with a line for each value: a change of the API shows as a diff."""
    return json.dumps(openapi(), indent=1, ensure_ascii=False) + "\n"


FILES: dict[str, Callable[[], str]] = {
    "openapi.json": openapi_document,
    "server-cli.md": server_commands_page,
    "settings.md": settings_page,
}

if __name__ == "__main__":
    for name, made in FILES.items():
        (DIRECTORY / name).write_text(made(), "utf-8")
