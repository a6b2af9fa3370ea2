"""The form that builds a job: what was typed, the body that it makes, and which field each part of the body comes from."""

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from app.api.http.problems import ProblemError
from app.api.http.strict_json import loads
from app.domain.errors import FieldError
from app.domain.instruments.persona import MAX_PERSONAS
from app.domain.jobs.imports import PersonaFormat, read_personas

SPARE_ROWS = 2
"""Empty rows behind those that are filled in; with the plan there come new ones."""
MOST_ROWS = 50
MOST_FIELDS = 2_000

Json = dict[str, Any]

ROWS = {
    "persona": ("id", "description", "traits"),
    "model": ("model", "temperature"),
    "judge": ("model", "profile"),
}
"""What can be filled in several times, and the parts of each."""
NUMBERS = {"iterations": int, "seed": int}
BUDGET = {"usd": float, "calls": int, "tokens": int}
DETECT = {"difference": float, "power": float, "metric": str, "population": str, "models": int}
WORDS = ("reasoner", "rubrics")
CHOICES = {"priority": "normal", "execution": "direct"}
"""Choices that stand in the body as they are, and what they are unless chosen otherwise."""
REUSE = ("judging", "generation")
DIMENSION = ("id", "name", "options", "essay_context")
"""The texts of a dimension of one's own; its questions are lines."""
TEXT_NUMBERS = ("run", "instruction", "iteration")
"""Columns of existing texts that are numbers."""
LONGEST_ID = 40
MOST_PASTED = 1001
"""Personas: one more than a job can name, which is refused."""

_TRAIT = re.compile(r"\s*([^\s:=]+)\s*[\s:=]\s*(.+?)\s*")


class Typed:
    """What was typed, kept as it was."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self._values = values

    @classmethod
    def parse(cls, body: bytes) -> "Typed":
        """The fields of a form as a browser sends them.

        Raises:
            ValueError: If these are no fields of a form in UTF-8.
        """
        text = body.decode("ascii")
        return cls(parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))

    def text(self, name: str) -> str:
        """A field's text with line feeds alone and no blanks around it; empty if there is none."""
        return self._values.get(name, [""])[-1].replace("\r\n", "\n").strip()

    def all(self, name: str) -> list[str]:
        """Everything that is ticked of a field."""
        return self._values.get(name, [])

    def sized(self, wordings: int, iterations: int) -> "Typed":
        """The same with so many instructions and iterations, also in JSON that was pasted."""
        numbers = list(range(wordings))
        values = {"instruction": list(map(str, numbers)), "iterations": [str(iterations)]}
        with suppress(ProblemError, ValueError, TypeError):  # there is none, or it is refused later
            body = loads(self.text("json").encode()) | {"instructions": numbers, "iterations": iterations}
            values["json"] = [json.dumps(body, ensure_ascii=False, indent=2)]
        return Typed({**self._values, **values})

    def rows(self, kind: str) -> int:
        """How many rows of a kind to show: those up to the last that is filled in, and some to spare."""
        filled = [n for n in range(MOST_ROWS) if any(self.row(kind, n).values())]
        return min(MOST_ROWS, (filled[-1] + 1 if filled else 0) + SPARE_ROWS)

    def row(self, kind: str, number: int) -> dict[str, str]:
        """The parts of a row; of a part with several fields, those that are filled in, with commas between."""
        names = {part: field(kind, part, number) for part in ROWS[kind]}
        return {part: ", ".join(filter(None, map(str.strip, self.all(name)))) for part, name in names.items()}


def field(kind: str, part: str, number: int) -> str:
    """The name of a row's part."""
    return f"{kind}_{part}_{number}"


class JobForm:
    """The body that a form makes.

    Attributes:
        body: A job's body, as ``POST /v1/jobs`` takes it. A number that is none stays text, which is refused there.
        wrong: What is wrong with what was pasted.
        detect: A difference that its plan is asked for, as ``POST /v1/jobs/plan`` takes it; ``None`` if it is not.
        instructions: How many instructions there are to choose from.
    """

    def __init__(self, typed: Typed, instructions: int) -> None:
        self.typed = typed
        self.body: Json = {}
        self.wrong: list[FieldError] = []
        self._instructions = instructions
        self._places: dict[str, str] = {}
        if typed.text("json"):
            self._paste()
        else:
            self._fill()
        self.detect = self._detect()

    def errors(self, found: Iterable[FieldError]) -> dict[str, list[FieldError]]:
        """What is wrong, by field; under the empty name what belongs to none."""
        by_field: dict[str, list[FieldError]] = {}
        for error in found:
            by_field.setdefault(self._place(error.pointer), []).append(error)
        return by_field

    def _place(self, pointer: str) -> str:
        """The field that a part of the body comes from, or that the nearest part around it does."""
        while pointer and pointer not in self._places:
            pointer = pointer.rpartition("/")[0]
        return self._places.get(pointer, "")

    def _paste(self) -> None:
        """Takes the whole body from JSON that was pasted."""
        self._places[""] = "json"
        try:
            found = loads(self.typed.text("json").encode())
        except (ProblemError, ValueError) as error:
            self.wrong.append(FieldError("", f"is not JSON: {getattr(error, 'detail', error)}"))
            return
        if not isinstance(found, dict):
            self.wrong.append(FieldError("", "must be an object, as a job file is"))
            return
        self.body = found
        if self.typed.text("source"):
            self._put("name", self.typed.text("name"))
            self._models()

    def _fill(self) -> None:
        """Makes the body from the fields."""
        self._put("name", self.typed.text("name"))
        self._put("tags", tags_of(self.typed.text("tags")))
        self._personas()
        self._dimension()
        self._put("tasks", self.typed.all("task"), "task")
        self._texts()
        self._models()
        self._choices()

    def _put(self, name: str, value: object, place: str | None = None) -> None:
        self._places[f"/{name}"] = place or name
        if value not in ("", None, [], {}):
            self.body[name] = value

    def _personas(self) -> None:
        chosen: list[Any] = list(self.typed.all("persona"))
        for number in range(MOST_ROWS):
            row = self.typed.row("persona", number)
            if any(row.values()):
                id_ = row["id"] or _free(derived_id(row["description"]), _ids(chosen))
                own = {"id": id_, "description": row["description"], "traits": traits(row["traits"])}
                pointer = f"/personas/{len(chosen)}"
                self._places |= {
                    pointer if part == "id" else f"{pointer}/{part}": field("persona", part, number)
                    for part in ROWS["persona"]
                }
                chosen.append({part: value for part, value in own.items() if value})
        listed, wrong = pasted_personas(self.typed.text("persona_list"), chosen)
        self._places["/lines"] = "persona_list"
        self.wrong += wrong
        for pasted in listed[:MOST_PASTED]:
            self._places[f"/personas/{len(chosen)}"] = "persona_list"
            chosen.append(pasted)
        self._put("personas", chosen, "persona")

    def _dimension(self) -> None:
        """A dimension of one's own."""
        own: Json = {part: self.typed.text(f"dimension_{part}") for part in DIMENSION}
        own["questions"] = [
            line for line in self.typed.text("dimension_questions").splitlines() if line.strip()
        ]
        filled = {part: value for part, value in own.items() if value}
        self._put("dimensions", [filled] if filled else [], "dimension_id")
        self._places |= {f"/dimensions/0/{part}": f"dimension_{part}" for part in own}

    def _texts(self) -> None:
        """Existing texts, from CSV with a header."""
        rows = csv.DictReader(io.StringIO(self.typed.text("texts")), restkey="more columns than the header")
        try:
            texts = [
                {
                    name.strip(): number_of(value, int) if name.strip() in TEXT_NUMBERS else value
                    for name, value in row.items()
                    if value not in (None, "")  # a row longer than the header has a list
                }
                for row in rows
            ]
        except csv.Error as error:
            self._places["/texts"] = "texts"
            self.wrong.append(FieldError("/texts", f"line {rows.line_num} is not CSV: {error}"))
            return
        self._put("responses", texts, "texts")

    def _models(self) -> None:
        for name, kind in (("models", "model"), ("judges", "judge")):
            named: list[Any] = []
            for number in range(MOST_ROWS):
                row = self.typed.row(kind, number)
                if row["model"]:
                    pointer = f"/{name}/{len(named)}"
                    self._places[pointer] = field(kind, "model", number)
                    more = {part: value for part, value in row.items() if value and part != "model"}
                    self._places |= {f"{pointer}/{part}": field(kind, part, number) for part in more}
                    if "temperature" in more:
                        more["temperature"] = number_of(more["temperature"], float)
                    named.append({"model": row["model"], **more} if more else row["model"])
            self._put(name, named, field(kind, "model", 0))
        for name in WORDS:
            self._put(name, self.typed.text(name))

    def _choices(self) -> None:
        text = self.typed.text
        boxes = self.typed.all("instruction")
        chosen = [number for number in range(self._instructions) if str(number) in boxes]
        self._places["/instructions"] = "instruction"
        if len(chosen) < self._instructions:
            self.body["instructions"] = chosen  # also none, which is refused: it does not mean all
        for name, kind in NUMBERS.items():
            self._put(name, number_of(text(name), kind) if text(name) else None)
        budget = {name: number_of(text(f"budget_{name}"), kind) for name, kind in BUDGET.items()}
        self._put("budget", {name: limit for name, limit in budget.items() if limit != ""}, "budget_usd")
        self._places |= {f"/budget/{name}": f"budget_{name}" for name in BUDGET}
        for name, usual in CHOICES.items():
            self._put(name, text(name) if text(name) != usual else None)
        sentences = number_of(text("sentences_per_call"), int)
        judging: dict[str, Any] = {} if sentences in ("", 1) else {"sentences_per_call": sentences}
        if share := text("order_check"):
            judging["order_check"] = {"share": number_of(share, float)}
        if (form := text("reply_form")) not in ("", "text"):
            judging["reply"] = form
        if left := self.typed.all("leave_out"):
            judging["leave_out"] = left
        if text("repair") == "off":
            judging["repair"] = False
        if (refusals := text("refusals")) not in ("", "rules"):
            judging["refusals"] = refusals
        controls = dict.fromkeys(self.typed.all("control"), True)
        self._put("control", True if [*controls] == ["without_persona"] else controls)
        self._put("judging", judging, "sentences_per_call")
        self._places |= {
            "/judging/order_check": "order_check",
            "/judging/reply": "reply_form",
            "/judging/repair": "repair",
            "/judging/refusals": "refusals",
        }
        reuse = {name: text(f"reuse_{name}") for name in REUSE}
        self._put(
            "reuse",
            {name: scope for name, scope in reuse.items() if scope not in {"", "off"}},
            "reuse_judging",
        )
        self._places |= {f"/reuse/{name}": f"reuse_{name}" for name in REUSE}

    def _detect(self) -> Json | None:
        self._places |= {f"/detect/{name}": f"detect_{name}" for name in DETECT} | {
            "/detect": "detect_difference"
        }
        found = {
            name: number_of(text, kind)
            for name, kind in DETECT.items()
            if (text := self.typed.text(f"detect_{name}"))
        }
        return found if "difference" in found else None


def form_of(body: Mapping[str, Any], names: Collection[str], instructions: int) -> Typed:
    """The form as it is filled in for a job's body: by its fields where they make that very body, else as JSON.

    Args:
        body: The body; its confirmation of calls is left out.
        names: The personas and sets that can be ticked.
        instructions: How many instructions there are to choose from.
    """
    wanted = {name: value for name, value in body.items() if value is not None and name != "confirm_calls"}
    if wanted.get("instructions") == "all":
        del wanted["instructions"]
    with suppress(AttributeError, KeyError, TypeError):  # what is written in another way than the form does
        typed = _filled(wanted, instructions)
        if set(typed.all("persona")) <= set(names) and JobForm(typed, instructions).body == wanted:
            return typed
    return Typed({"json": [json.dumps(wanted, ensure_ascii=False, indent=2)]})


def form_of_source(job_id: str, body: Json) -> Typed:
    """The form of a job on another job's texts: fields for judges that are named and a rubric set, the rest as JSON.

    Args:
        job_id: Whose texts they are.
        body: The body.
    """
    judges = body["judges"]
    named = judges if all(isinstance(judge, str) for judge in judges) else []
    fields = {field("judge", "model", number): [judge] for number, judge in enumerate(named)}
    rubrics = body.get("rubrics")
    if isinstance(rubrics, str):
        fields["rubrics"] = [rubrics]
    typed = {"judges": bool(named), "rubrics": "rubrics" in fields}
    rest = {name: value for name, value in body.items() if not typed.get(name)}
    return Typed({"source": [job_id], "json": [json.dumps(rest, ensure_ascii=False, indent=2)], **fields})


def _filled(body: Mapping[str, Any], instructions: int) -> Typed:
    """The fields for as much of a body as they can say."""
    judging, named = body.get("judging", {}), [one for one in body["personas"] if isinstance(one, str)]
    found: dict[str, Any] = {
        name: body[name] for name in ("name", *WORDS, *NUMBERS, *CHOICES) if name in body
    }
    found["tags"] = ", ".join(body.get("tags", ()))
    found |= {f"budget_{name}": limit for name, limit in body.get("budget", {}).items()}
    found |= {f"reuse_{name}": scope for name, scope in body.get("reuse", {}).items()}
    found["sentences_per_call"] = judging.get("sentences_per_call", "")
    found["reply_form"] = judging.get("reply", "")
    found["leave_out"] = judging.get("leave_out", [])
    found["repair"] = "" if judging.get("repair", True) else "off"
    found["refusals"] = judging.get("refusals", "")
    found["order_check"] = judging.get("order_check", {}).get("share", "")
    for n, one in enumerate(one for one in body["personas"] if not isinstance(one, str)):
        found |= {field("persona", part, n): one[part] for part in ("id", "description")}
        found[field("persona", "traits", n)] = [
            f"{key} {level}" for key, level in one.get("traits", {}).items()
        ]
    for name, kind in (("models", "model"), ("judges", "judge")):
        for n, one in enumerate(body.get(name, ())):
            parts = {"model": one} if isinstance(one, str) else one
            found |= {field(kind, part, n): parts[part] for part in parts}
    for own in body.get("dimensions", ()):
        found |= {f"dimension_{part}": own[part] for part in DIMENSION if part in own}
        found["dimension_questions"] = "\n".join(own.get("questions", ()))
    lists = {
        "persona": named,
        "task": body["tasks"],
        "instruction": body.get("instructions", range(instructions)),
    }
    control = body.get("control", {})
    lists["control"] = ["without_persona"] if control is True else [name for name in control if control[name]]
    return Typed(
        {
            name: [str(each) for each in value] if isinstance(value, list | range) else [str(value)]
            for name, value in (found | lists).items()
        }
    )


def pasted_personas(text: str, chosen: Iterable[Any] = ()) -> tuple[list[Json], list[FieldError]]:
    """The personas that were pasted, and what is wrong with them.

    Args:
        text: A description a line, perhaps with traits behind a semicolon, or CSV.
        chosen: Personas whose ids are taken.
    """
    header = text.partition("\n")[0].lower().replace('"', "").split(",")
    if "description" in map(str.strip, header):
        read = read_personas(text, PersonaFormat.CSV)
        found: list[Json] = [
            {
                "id": persona.id,
                "description": persona.description,
                "traits": {trait.dimension: trait.level for trait in persona.traits},
            }
            for persona in read.personas
        ]
        return [{part: value for part, value in each.items() if value} for each in found], list(read.errors)
    taken, seen = _ids(chosen), Counter[str]()
    found = []
    filled = (line.partition(";") for line in text.splitlines() if line.strip())
    for who, _, levels in itertools.islice(filled, MAX_PERSONAS + 1):
        id_ = derived_id(who)
        seen[id_] += 1  # the same line a thousand times: each number is tried once
        free = _free(id_, taken, seen[id_])
        taken.add(free)
        own = {"id": free, "description": who.strip(), "traits": traits(levels)}
        found.append({part: value for part, value in own.items() if value})
    return found, []


def derived_id(description: str) -> str:
    """An id for a persona: the words of its description, as far as they are Latin letters and digits."""
    words = "-".join(re.findall(r"[a-z0-9]+", description.lower()))
    return words[:LONGEST_ID].strip("-") or "persona"


def _ids(chosen: Iterable[Any]) -> set[str]:
    """The ids of personas, some of which are named by them."""
    return {each["id"] if isinstance(each, dict) else each for each in chosen}


def _free(id_: str, taken: Collection[str], first: int = 1) -> str:
    """An id that is not taken, with a number behind it if need be, from the first one to be tried."""
    return next(one for n in itertools.count(first) if (one := id_ if n == 1 else f"{id_}-{n}") not in taken)


def traits(text: str) -> dict[str, str]:
    """``"E high, A low"`` as level by dimension; a part that is none is passed on, to be refused by name."""
    found = {}
    for part in filter(str.strip, text.split(",")):
        match = _TRAIT.fullmatch(part)
        found[match[1] if match else part.strip()] = match[2] if match else ""
    return found


def tags_of(text: str) -> list[str]:
    """Tags that are separated by commas."""
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def number_of(text: str, kind: type[int] | type[float] | type[str]) -> Any:
    """A number, or the text that is none."""
    try:
        return kind(text)
    except ValueError:
        return text
