"""YAML with JSON's values and without what makes short files costly; for files that others wrote."""

import math
import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import yaml
from yaml.constructor import ConstructorError

MOST_CHARACTERS = 500_000
"""Parsing YAML takes a hundred times longer than parsing JSON."""
NODE_WEIGHT, MOST_WEIGHT = 64, 32 * 1024 * 1024
"""A value weighs so much and its characters, each time that it is used."""
_TAG = "tag:yaml.org,2002:"
MOST_DEPTH = 64
"""Each level makes every token slower to scan."""
_SCALARS: Mapping[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    f"{_TAG}bool": (
        re.compile(r"(?i:yes|no|true|false|on|off)\Z"),
        lambda text: text.lower() in {"yes", "true", "on"},
    ),
    f"{_TAG}int": (re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"), int),
    f"{_TAG}float": (re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z"), float),
}
"""Numbers are decimal. The other forms of YAML 1.1 turn `12:30` into 750, and long ones take quadratic time."""


class JsonYamlLoader(yaml.SafeLoader):
    """Loads objects with texts as names, lists, texts, decimal numbers, truth values and null."""

    yaml_constructors = {  # noqa: RUF012 - PyYAML's own name and form
        tag: construct
        for tag, construct in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAG) in {"null", "str", "seq", "map"}
    }
    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and form
        first: [
            (tag, _SCALARS[tag][0] if tag in _SCALARS else pattern)
            for tag, pattern in resolvers
            if tag not in (f"{_TAG}timestamp", f"{_TAG}value")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._weight = self._depth = 0
        self._weights: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Weigh each node with all that its aliases repeat: a few lines can stand for gigabytes."""
        before, mark = self._weight, self.peek_event().start_mark  # type: ignore[no-untyped-call]  # of PyYAML
        is_alias = self.check_event(yaml.AliasEvent)
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ConstructorError(None, None, f"nested more than {MOST_DEPTH} deep", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if is_alias and node not in self._weights:
            raise ConstructorError(None, None, "an anchor contains itself", mark)
        if is_alias and node is not None:
            self._weight += self._weights[node]
        elif node is not None:
            self._weight += NODE_WEIGHT + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            self._weights[node] = self._weight - before
        if self._weight > MOST_WEIGHT:
            raise ConstructorError(None, None, "its aliases repeat too much; write JSON", mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return an object; merge keys and repeated names are errors."""
        if not isinstance(node, yaml.MappingNode):
            raise ConstructorError(None, None, "must be an object", node.start_mark)
        found: dict[Hashable, Any] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                words = "merge keys (<<) are not read; write the members out"
                raise ConstructorError(None, None, words, key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "the name of a member must be a text", key.start_mark)
            if key.value in found:
                words = f"an object has the name {key.value[:100]!r} twice"
                raise ConstructorError(None, None, words, key.start_mark)
            found[key.value] = self.construct_object(value, deep)
        return found

    def construct_plain(self, node: yaml.ScalarNode) -> Any:
        """Return a number or truth value."""
        text = self.construct_scalar(node)
        pattern, convert = _SCALARS[node.tag]
        if pattern.match(text) is None:
            kind = node.tag.removeprefix(_TAG)
            raise ConstructorError(None, None, f"{text[:100]!r} is not {kind}", node.start_mark)
        try:
            value = convert(text)
        except ValueError:  # Python's limit on digits
            value = math.inf
        if value in (math.inf, -math.inf):
            raise ConstructorError(None, None, "a number is too large", node.start_mark)
        return value


for _tag in _SCALARS:
    JsonYamlLoader.add_constructor(_tag, JsonYamlLoader.construct_plain)


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text.

    Raises:
        ValueError: If it is not YAML that can be read, with line and column where they are known.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has more than {MOST_CHARACTERS:,} characters; convert it to JSON")
    try:
        return yaml.load(text, JsonYamlLoader)  # noqa: S506 - derived from SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise ValueError(f"{where}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except OverflowError as error:  # PyYAML's scanner: "\\UFFFFFFFF"
        raise ValueError("an escape names no character") from error
