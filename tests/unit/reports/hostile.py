"""Texts that a model, a judge or a user could send to break a report."""

from functools import cache
from pathlib import Path

import yaml

HOSTILE = (
    "=cmd|' /C calc'!A1",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'quoted",
    "''=1",
    "＝1+1",  # noqa: RUF001 - spreadsheets take the full-width sign for an equals sign
    'comma, "quote" and ;',
    "line\nbreak\r\nand\rreturn",
    "\x01\x07\x1b[31mred\x7f\x85\x9f",
    "\u2028\u2029",
    "\u202eright to left\u202c\u2066\u2069",
    "👩‍👩‍👧‍👦 é 漢字",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><style>*{display:none}",
    "{{ 7*7 }} {% raw %}",
    "<!-- --> ]]> &amp; &#0;",
    "x" * 100_000,
)


@cache
def payloads() -> tuple[str, ...]:
    """Ten times as many, for what takes all of them at once; the few above stand for them elsewhere."""
    path = Path(__file__).parents[2] / "golden/hostile.yaml"
    listed: list[str] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(dict.fromkeys((*listed, *HOSTILE)))
