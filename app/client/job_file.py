"""Job files: YAML or JSON, read strictly enough that nothing in them is lost on the way to the service."""

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any, TextIO

import yaml

from app.client.errors import ClientError

STANDARD_INPUT = "-"


def load_job(path: str, stdin: TextIO) -> dict[str, Any]:
    """The job that a file describes.

    Args:
        path: A YAML or JSON file, or ``-`` for standard input.
        stdin: Standard input.

    Raises:
        ClientError: The file can't be read, is neither YAML nor JSON, or holds something else than one object.
    """
    try:
        text = stdin.read() if path == STANDARD_INPUT else Path(path).read_text(encoding="utf-8")
        job = json.loads(text, object_pairs_hook=_object) if _is_json(text) else yaml.load(text, _Loader)  # noqa: S506 - derived from SafeLoader
    except OSError as error:
        raise ClientError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ClientError(f"{path} is not UTF-8 text") from error
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise ClientError(f"{path} is neither YAML nor JSON that can be read: {error}") from error
    if not isinstance(job, dict):
        raise ClientError(f"{path} must hold one job (an object with personas, tasks, models, judges)")
    return job


def _is_json(text: str) -> bool:
    """Whether a text is meant as JSON; YAML could read it too, but a hundred times slower."""
    return text.lstrip().startswith("{")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is given twice")
        found[name] = value
    return found


class _Loader(yaml.SafeLoader):
    """YAML of JSON's types: a date stays the text that it was written as, and no key may come twice."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and form
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != _MERGE]
        for key in keys:
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} must be text: put it in quotes", node.start_mark
                )
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key!r} is given twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


_MERGE = "tag:yaml.org,2002:merge"
