"""Loads PersonaGym's instrument."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from app.domain.dimension import Dimension, Scale
from app.domain.persona import Persona
from app.domain.personagym.task import Environment, GymPrompts, GymTask


@dataclass(frozen=True, slots=True)
class PersonaGymInstrument:
    """Everything that PersonaGym asks with and grades by."""

    version: str
    content_hash: str
    tasks: Mapping[str, GymTask]
    prompts: GymPrompts
    environments: tuple[Environment, ...]
    personas: Mapping[str, Persona]
    persona_sets: Mapping[str, tuple[str, ...]]
    consistency: Dimension
    target_level: str


@cache
def load_personagym(version: str = "v1") -> PersonaGymInstrument:
    """The instrument that comes with the package."""
    root = files("app.instruments") / "personagym" / version
    read = {
        n: yaml.safe_load((root / f"{n}.yaml").read_text())
        for n in ("tasks", "prompts", "environments", "personas", "consistency")
    }
    c = read["consistency"]
    s = c["scale"]
    personas = {p["id"]: Persona(p["id"], p["description"]) for p in read["personas"]["personas"]}
    return PersonaGymInstrument(
        version,
        "0" * 64,
        {
            t["id"]: GymTask(
                t["id"],
                t["title"],
                tuple(t["aliases"]),
                t["description"],
                tuple(t["guidelines"]),
                t["question_criteria"],
                frozenset(t["from_paper"]),
            )
            for t in read["tasks"]["tasks"]
        },
        GymPrompts(**read["prompts"]),
        tuple(Environment(n, cat) for cat, ns in read["environments"]["environments"].items() for n in ns),
        personas,
        {"personagym-50": tuple(personas)},
        Dimension(
            c["id"],
            c["name"],
            Scale(s["minimum"], s["maximum"], tuple(s["levels"]), s["not_applicable"]),
            c["options"],
        ),
        c["target_level"],
    )
