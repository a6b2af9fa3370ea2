"""Types of the client, made from the OpenAPI document: ``python -m generators.client_types`` writes them.

Typed dictionaries and not models that validate: a newer service may answer with fields that an older client does not know.
It runs before anything is installed (builds of the client and of the image), so it imports the standard library only.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
PATH = ROOT / "persona_assay" / "types.py"
HEADER = '''"""Types of the service's requests and answers; made from docs/reference/openapi.json, not kept in git.

A newer service may answer with more fields, never with fewer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
'''
REFERENCE = "#/components/schemas/"
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def source(document: Json) -> str:
    """Return the module's text."""
    schemas: Json = document["components"]["schemas"]
    return "\n\n".join([HEADER, *(_definition(name, schemas[name]) for name in _in_order(schemas))])


def _in_order(schemas: Json) -> list[str]:
    """Return the schemas' names, each after those that it refers to."""
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
    """Return a schema as an annotation; a list in a request may also be a tuple."""
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
    PATH.write_text(source(json.loads(DOCUMENT.read_text("utf-8"))), "utf-8")
