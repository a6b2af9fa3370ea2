"""Stand-in until the domain's own readers arrive."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.dimension import Scale
from app.domain.verdict import Verdict, VerdictStatus


@dataclass(frozen=True, slots=True)
class Selection:
    chosen: tuple[str, ...]
    unknown_count: int
    ok: bool


@dataclass(frozen=True, slots=True)
class QuestionsRead:
    accepted: tuple[str, ...]
    duplicates: int


def read_list(reply: str) -> tuple[str, ...] | None:
    found = re.search(r"\[.*\]", reply, re.DOTALL)
    if not found:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return tuple(map(str, read(found[0])))
        except (ValueError, SyntaxError):
            continue
    return None


def select_environments(reply: str, pool: Sequence[str]) -> Selection:
    listed = read_list(reply) or ()
    known = {p.casefold(): p for p in pool}
    chosen = tuple(dict.fromkeys(known[n.casefold()] for n in listed if n.casefold() in known))
    return Selection(chosen, len(listed) - len(chosen), bool(chosen))


def read_questions(reply: str, wanted: int, already: Sequence[str]) -> QuestionsRead:
    listed = read_list(reply) or ()
    accepted = tuple(q for q in dict.fromkeys(listed) if q not in already)
    return QuestionsRead(accepted[:wanted], len(listed) - len(accepted))


def read_exemplars(reply: str) -> Mapping[int, str] | None:
    parts = re.findall(r"Score (\d): Response - (.*)", reply)
    found = {int(n): t for n, t in parts}
    return found if sorted(found) == [1, 2, 3, 4, 5] and len(parts) == 5 else None


def read_final_score(reply: str, scale: Scale) -> tuple[Verdict, str]:
    found = set(re.findall(r"final score is \**(\d)", reply))
    if len(found) != 1 or re.search(r"\d or \d", reply):
        return Verdict(VerdictStatus.UNPARSED), reply
    return Verdict(VerdictStatus.SCORED, int(found.pop())), reply
