"""YAML as files of others have it: JSON's values, and an error for whatever would take long."""

import re

import pytest

from persona_assay.json_yaml import MOST_CHARACTERS, parse_yaml


def levels(line: str) -> str:
    """Twelve lines, each of which repeats the one before nine times."""
    lines = ["a0: &a0 {x0: 1}"]
    lines += [f"a{n}: &a{n} {line.format(*[f'*a{n - 1}'] * 9)}" for n in range(1, 13)]
    return "\n".join(lines)


def test_values_are_those_of_json() -> None:
    assert parse_yaml("[1, +1, -2.5e+3, .5, 1., yes, ~]") == [1, 1, -2500.0, 0.5, 1.0, True, None]
    assert parse_yaml("{1: x, no: '5', a: !!str 5}") == {"1": "x", "no": "5", "a": "5"}


@pytest.mark.parametrize(
    "text", ["12:30", "1:30.5", "0x1f", "0b1", "010", "1_000", ".inf", ".nan", "2026-01-01", "=", "1e3", "N"]
)
def test_what_only_yaml_takes_for_another_value_stays_text(text: str) -> None:
    assert parse_yaml(f"a: {text}") == {"a": text}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: *b", "line 1, column 4: found undefined alias 'b'"),
        ("a: 1\na: 2", "line 2, column 1: an object has the name 'a' twice"),
        ("? [a]\n: b", "line 1, column 3: the name of a member must be a text"),
        ("<<: {a: 1}", "merge keys (<<) are not read"),
        (levels("{{<<: [{0}, {1}], y: 1}}"), "merge keys (<<) are not read"),
        (levels("[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}]"), "its aliases repeat too much"),
        ("a: &a [*a]", "an anchor contains itself"),
        ("[" * 10_000, "line 1, column 65: nested more than 64 deep"),
        ("- " * 10_000, "nested more than 64 deep"),
        ("a: " + "9" * 5_000, "line 1, column 4: a number is too large"),
        ("a: 9.0e999", "a number is too large"),
        (r'a: "\UFFFFFFFF"', "an escape names no character"),
        ("a: !!int " + "1:" * 100_000 + "1", "is not int"),
        ("a: !!float " + "1:" * 100_000 + "1", "is not float"),
        ("a: !!bool x", "'x' is not bool"),
        ("a: !!int ''", "'' is not int"),
        ("a: !!map [x]", "must be an object"),
        ("a: !!binary aGk=", "could not determine a constructor for the tag"),
        ("a: !!timestamp 2026-01-01", "could not determine a constructor for the tag"),
        ("!!python/object:os.system {}", "could not determine a constructor for the tag"),
        ("\0", "unacceptable character"),
        ("\ud800", "unacceptable character"),
        ("x" * (MOST_CHARACTERS + 1), "has more than 500,000 characters; convert it to JSON"),
    ],
)
def test_anything_else_is_an_error_of_one_line(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        parse_yaml(text)
    assert "\n" not in str(caught.value)
