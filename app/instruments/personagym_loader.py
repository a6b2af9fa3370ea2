"""Loads PersonaGym's instrument: its data files, checked once, as domain values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.persona import Persona, Trait
from app.domain.personagym.task import Environment, GymPrompts, GymTask
from app.instruments.loader import Source, latest_version
from app.instruments.personagym_forms import (
    ConsistencyFile,
    EnvironmentsFile,
    PersonasFile,
    PromptsFile,
    TasksFile,
)


@dataclass(frozen=True, slots=True)
class PersonaGymInstrument:
    """Everything that PersonaGym asks with and grades by.

    Attributes:
        version: The instrument's version, for example ``"v1"``.
        content_hash: SHA-256, in hexadecimal, of the parsed content of all its files; layout and comments do not count.
        prompts: The templates.
        tasks: The five evaluation tasks by id, in the order of the paper's section 2.
        environments: The pool from which the reasoner selects.
        personas: The built-in personas by id.
        persona_sets: Ids of personas by the name of their set.
        consistency: The dimension on which single sentences of a response are judged.
        target: Every persona's stand on it.
    """

    version: str
    content_hash: str
    prompts: GymPrompts
    tasks: Mapping[str, GymTask]
    environments: tuple[Environment, ...]
    personas: Mapping[str, Persona]
    persona_sets: Mapping[str, tuple[str, ...]]
    consistency: Dimension
    target: Trait


def load_personagym(version: str | None = None) -> PersonaGymInstrument:
    """The PersonaGym instrument that comes with the package, each version read once per process.

    Raises:
        InstrumentError: If there is no such version or its data are not valid.
    """
    return _load_personagym(latest_version("personagym") if version is None else version)


@cache
def _load_personagym(version: str) -> PersonaGymInstrument:
    return read_personagym(files("app.instruments"), version)


def read_personagym(root: Traversable, version: str | None) -> PersonaGymInstrument:
    """Reads and checks a PersonaGym instrument.

    Args:
        root: The directory that holds ``personagym/<version>/``.
        version: Name of one of the directories in ``personagym``; ``None`` for the latest.

    Raises:
        InstrumentError: If there is no such version, or a file is missing or not valid.
    """
    source = Source(root, "personagym", version)
    prompts = source.read("prompts.yaml", PromptsFile).to_domain()
    tasks = source.read("tasks.yaml", TasksFile).to_domain()
    environments = source.read("environments.yaml", EnvironmentsFile).to_domain()
    personas = source.read("personas.yaml", PersonasFile)
    consistency = source.read("consistency.yaml", ConsistencyFile)
    return PersonaGymInstrument(
        version=source.version,
        content_hash=source.content_hash(),
        prompts=replace(prompts, instructions=MappingProxyType(prompts.instructions)),
        tasks=MappingProxyType(tasks),
        environments=environments,
        personas=MappingProxyType(personas.to_domain()),
        persona_sets=MappingProxyType(personas.persona_sets),
        consistency=consistency.to_domain(),
        target=Trait(consistency.id, consistency.target_level),
    )
