"""Writes ``persona_assay/types.py`` from the OpenAPI document: ``python -m tests.api.client_types``, or ``make types``.

The client's users get the contract's shapes as types without the service's code, and a newer service may answer with
more than they know of: so typed dictionaries, not models that check.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.main import create_app
from app.settings import Settings

Json = dict[str, Any]

PATH = Path(__file__).parents[2] / "persona_assay" / "types.py"
HEADER = '''"""What the service is sent and what it answers; made from its OpenAPI document by ``make types``.

A newer service may answer with more than stands here, never with less.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
'''
REFERENCE = "#/components/schemas/"
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def openapi() -> Json:
    """The service's OpenAPI document; nothing is connected to."""
    unused = Settings(database_url="postgresql://unused", redis_url="redis://unused")
    return create_app(unused).openapi()


def source(document: Json) -> str:
    """The module's text, in the project's format."""
    schemas: Json = document["components"]["schemas"]
    text = "\n\n".join([HEADER, *(_definition(name, schemas[name]) for name in _in_order(schemas))])
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PATH), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _in_order(schemas: Json) -> list[str]:
    """The schemas' names, each behind all that it refers to."""
    order: dict[str, None] = {}

    def place(name: str) -> None:
        for used in _references(schemas[name]):
            if used not in order:
                place(used)
        order[name] = None

    for name in sorted(schemas):
        place(name)
    return list(order)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for member in node:
            yield from _references(member)
    elif isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(REFERENCE)
        for member in node.values():
            yield from _references(member)


def _definition(name: str, schema: Json) -> str:
    is_sent = name.endswith("In")
    if "properties" not in schema:
        return f'{name}: TypeAlias = {_type(schema, is_sent=is_sent)}\n"""{schema["description"]}"""\n'
    lines = [f"class {name}(TypedDict):", f'    """{schema["description"]}"""', ""]
    for field, of in schema["properties"].items():
        found = _type(of, is_sent=is_sent)
        lines.append(
            f"    {field}: {found if field in schema.get('required', ()) else f'NotRequired[{found}]'}"
        )
        if "description" in of:
            lines.append(f'    """{of["description"]}"""')
    return "\n".join(lines) + "\n"


def _type(schema: Json, *, is_sent: bool) -> str:
    """A schema as an annotation; whoever sends a list may as well send a tuple."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REFERENCE)
    if "const" in schema or "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema.get('enum') or [schema['const']]))}]"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return " | ".join(dict.fromkeys(_type(choice, is_sent=is_sent) for choice in choices))
    if schema.get("type") == "array":
        members = schema.get("items") or {"anyOf": schema["prefixItems"]}
        return f"{'Sequence' if is_sent else 'list'}[{_type(members, is_sent=is_sent)}]"
    if schema.get("type") == "object":
        of = schema.get("additionalProperties", True)
        values = _type(of, is_sent=is_sent) if isinstance(of, dict) else "Any"
        return f"{'Mapping' if is_sent else 'dict'}[str, {values}]"
    return SIMPLE.get(schema.get("type", ""), "Any")


if __name__ == "__main__":
    PATH.write_text(source(openapi()), "utf-8")
