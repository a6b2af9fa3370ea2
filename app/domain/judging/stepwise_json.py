"""Parses JSON in Python's own steps, between which other threads run.

To a parser in C, or in Rust, ten megabytes are one step: on whichever thread it is done, it holds up all others for up to 0.7 s.
"""

import json
from collections.abc import Callable
from functools import partial
from json.decoder import JSONArray, JSONObject, scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any


class StepwiseDecoder(json.JSONDecoder):
    """The standard library's decoder without its scanner in C, but for single texts. Twice to ten times as slow.

    Args:
        parse_string: Reads a text, as ``json.decoder.scanstring`` does.
        most: Lists and objects that there may be; a million of them are also freed in one step. ``None`` for any number.
        hooks: As those of the standard library's.
    """

    def __init__(
        self,
        parse_string: Callable[..., tuple[str, int]] = scanstring,
        most: int | None = None,
        **hooks: Any,
    ) -> None:
        super().__init__(**{"parse_int": _int, "parse_float": _float} | hooks)
        self._left = most
        self.parse_string = parse_string
        self.parse_object = self.nested(JSONObject)
        self.parse_array = self.nested(JSONArray)
        self.scan_once = py_make_scanner(self)

    def nested(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        """What parses an object or a list, given what does so here.

        Raises:
            ValueError: By what is returned, if there are too many.
        """
        if self._left is None:
            return parse
        most = self._left

        def counted(*given: Any) -> Any:
            assert self._left is not None  # noqa: S101 - it has been above
            self._left -= 1
            if self._left < 0:
                raise ValueError(f"more than {most:,} lists and objects")
            return parse(*given)

        return counted


def _int(literal: str) -> int:
    return int(ascii_digits(literal))


def _float(literal: str) -> float:
    return float(ascii_digits(literal))


def ascii_digits(literal: str) -> str:
    """A number as it stands; the library's expression for one takes the digits of all scripts, its scanner in C does not.

    Raises:
        JSONDecodeError: If it has others.
    """
    if not literal.isascii():
        raise json.JSONDecodeError("Expecting value", literal, 0)
    return literal


SHORT_CHARACTERS = 1_000_000
"""The longest text that the standard library's scanner parses in some 15 ms."""
ELEMENT_DEPTH = 2
"""How deep Python's steps go in a document of ours: its fields, and the elements of these, each a few kilobytes."""

_Scan = Callable[[str, int], tuple[Any, int]]


def parse_document(text: str) -> Any:
    """A document of ours, element by element of its lists; to be called on a thread."""
    if len(text) <= SHORT_CHARACTERS:
        return json.loads(text)
    decoder: Any = json.JSONDecoder()
    for _ in range(ELEMENT_DEPTH):
        scan = decoder.scan_once
        decoder.parse_object = partial(_parsed_object, scan)
        decoder.parse_array = partial(_parsed_array, scan)
        decoder.scan_once = py_make_scanner(decoder)
    return decoder.decode(text)


def _parsed_object(scan: _Scan, at: tuple[str, int], strict: bool, _: _Scan, *hooks: Any) -> Any:
    return JSONObject(at, strict, scan, *hooks)


def _parsed_array(scan: _Scan, at: tuple[str, int], _: _Scan) -> Any:
    return JSONArray(at, scan)
