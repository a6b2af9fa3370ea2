"""Loads the versioned instruments: data files that are checked once and become domain values."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.persona import Persona
from app.domain.instruments.refusal import RefusalRules
from app.domain.instruments.segmentation import PunktRules
from app.domain.instruments.task import AtomicTask
from app.instruments.forms import (
    DimensionsFile,
    InstructionsFile,
    PersonasFile,
    RefusalFile,
    SegmentationFile,
    TasksFile,
)

_FormT = TypeVar("_FormT", bound=BaseModel)


class InstrumentError(ValueError):
    """An instrument's data cannot be used; the message names the file, the field and the reason."""


@dataclass(frozen=True, slots=True)
class AtomicInstrument:
    """Everything that the atomic framework asks with and judges by.

    Attributes:
        version: The instrument's version, for example ``"v1"``.
        content_hash: SHA-256, in hexadecimal, of the parsed content of all its files; layout and comments do not count.
        dimensions: The dimensions by id, in the paper's order.
        personas: The built-in personas by id.
        persona_sets: Ids of personas by the name of their set.
        instructions: Templates of the system prompt.
        tasks: The generation tasks by id.
        refusal: How refusals begin.
    """

    version: str
    content_hash: str
    dimensions: Mapping[str, Dimension]
    personas: Mapping[str, Persona]
    persona_sets: Mapping[str, tuple[str, ...]]
    instructions: tuple[str, ...]
    tasks: Mapping[str, AtomicTask]
    refusal: RefusalRules


@cache
def load_atomic(version: str = "v1") -> AtomicInstrument:
    """The atomic instrument that comes with the package, read once per process.

    Raises:
        InstrumentError: If there is no such version or its data are not valid.
    """
    return read_atomic(files("app.instruments"), version)


def read_atomic(root: Traversable, version: str) -> AtomicInstrument:
    """Reads and checks an atomic instrument.

    Args:
        root: The directory that holds ``atomic/<version>/`` and ``segmentation/``.
        version: Name of one of the directories in ``atomic``.

    Raises:
        InstrumentError: If there is no such version, or a file is missing or not valid.
    """
    source = Source(root)
    directory = source.directory("atomic", version)
    dimensions = source.read(f"{directory}/dimensions.yaml", DimensionsFile).to_domain()
    personas = source.read(f"{directory}/personas.yaml", PersonasFile, context=dimensions)
    instructions = source.read(f"{directory}/instructions.yaml", InstructionsFile).instructions
    tasks = source.read(f"{directory}/tasks.yaml", TasksFile).to_domain()
    refusal = source.read(f"{directory}/refusal.yaml", RefusalFile).to_domain()
    # Jobs name their segmenter; that of the first jobs is part of v1 and of its hash.
    source.read("segmentation/punkt-en-v1.yaml", SegmentationFile)
    return AtomicInstrument(
        version=version,
        content_hash=source.content_hash(),
        dimensions=MappingProxyType(dimensions),
        personas=MappingProxyType(personas.to_domain()),
        persona_sets=MappingProxyType(personas.persona_sets),
        instructions=instructions,
        tasks=MappingProxyType(tasks),
        refusal=refusal,
    )


def load_punkt(name: str) -> PunktRules:
    """A language's data for Punkt that come with the package.

    Raises:
        InstrumentError: If the file is missing or not valid.
    """
    return Source(files("app.instruments")).read(f"segmentation/{name}.yaml", SegmentationFile).to_domain()


class Source:
    """Reads and checks files below a directory and remembers their content for the hash."""

    def __init__(self, root: Traversable) -> None:
        self._root = root
        self._content: dict[str, object] = {}

    def directory(self, instrument: str, version: str) -> str:
        """The path of an instrument's version.

        Raises:
            InstrumentError: If there is no such version.
        """
        versions = sorted(entry.name for entry in (self._root / instrument).iterdir() if entry.is_dir())
        if version not in versions:
            raise InstrumentError(
                f"there is no {instrument} instrument {version!r}; there are: {', '.join(versions)}"
            )
        return f"{instrument}/{version}"

    def read(self, path: str, form: type[_FormT], context: object = None) -> _FormT:
        """The content of one file.

        Raises:
            InstrumentError: If it is missing, no YAML, or not as the form wants it.
        """
        try:
            content = yaml.safe_load(self._root.joinpath(path).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise InstrumentError(f"{path}: the file is missing") from error
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # no UTF-8, no such date, too deep
            raise InstrumentError(f"{path}: not YAML: {error}") from error
        self._content[path] = content
        try:
            return form.model_validate(content, context=context)
        except ValidationError as error:
            faults = "; ".join(f"{_field(fault['loc'])}: {fault['msg']}" for fault in error.errors())
            raise InstrumentError(f"{path}: {faults}") from error

    def content_hash(self) -> str:
        """SHA-256 over the canonical JSON of what was read."""
        canonical = json.dumps(self._content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _field(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "the whole file"
