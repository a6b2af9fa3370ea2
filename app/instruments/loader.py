"""Loads the versioned instruments: data files that are checked once and become domain values."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.persona import Persona
from app.domain.instruments.refusal import RefusalRules
from app.domain.instruments.segmentation import PunktRules
from app.domain.instruments.task import AtomicTask
from app.domain.validation import message
from app.instruments.forms import (
    DimensionsFile,
    InstructionsFile,
    PersonasFile,
    RefusalFile,
    SegmentationFile,
    TasksFile,
)
from app.instruments.labels import labelled

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
        criteria: What is asked of several sentences in one judge call, by task id; of v1's tasks, see ``grouped/v1``.
        refusal: How refusals begin.
    """

    version: str
    content_hash: str
    dimensions: Mapping[str, Dimension]
    personas: Mapping[str, Persona]
    persona_sets: Mapping[str, tuple[str, ...]]
    instructions: tuple[str, ...]
    tasks: Mapping[str, AtomicTask]
    criteria: Mapping[str, str]
    refusal: RefusalRules


def load_atomic(version: str | None = None) -> AtomicInstrument:
    """The atomic instrument that comes with the package, each version read once per process.

    Args:
        version: Unless named, the latest.

    Raises:
        InstrumentError: If there is no such version or its data are not valid.
    """
    return _load_atomic(latest_version("atomic") if version is None else version)


@cache
def _load_atomic(version: str) -> AtomicInstrument:
    return read_atomic(files("app.instruments"), version)


def read_atomic(root: Traversable, version: str | None) -> AtomicInstrument:
    """Reads and checks an atomic instrument.

    Args:
        root: The directory that holds ``atomic/<version>/`` and ``segmentation/``.
        version: Name of one of the directories in ``atomic``; ``None`` for the latest.

    Raises:
        InstrumentError: If there is no such version, or a file is missing or not valid.
    """
    source = Source(root, "atomic", version)
    dimensions = {
        id_: labelled(dimension)
        for id_, dimension in source.read("dimensions.yaml", DimensionsFile).to_domain().items()
    }
    personas = source.read("personas.yaml", PersonasFile, context=dimensions)
    instructions = source.read("instructions.yaml", InstructionsFile).instructions
    tasks = source.read("tasks.yaml", TasksFile)
    refusal = source.read("refusal.yaml", RefusalFile).to_domain()
    # Jobs name their segmenter; that of the first jobs is part of v1 and of its hash.
    source.read_shared("segmentation/punkt-en-v1.yaml", SegmentationFile)
    return AtomicInstrument(
        version=source.version,
        content_hash=source.content_hash(),
        dimensions=MappingProxyType(dimensions),
        personas=MappingProxyType(personas.to_domain()),
        persona_sets=MappingProxyType(personas.persona_sets),
        instructions=instructions,
        tasks=MappingProxyType(tasks.to_domain()),
        criteria=MappingProxyType(tasks.criteria()),
        refusal=refusal,
    )


def load_punkt(name: str) -> PunktRules:
    """A language's data for Punkt that come with the package.

    Raises:
        InstrumentError: If the file is missing or not valid.
    """
    path = f"segmentation/{name}.yaml"
    return _checked(path, _content(files("app.instruments"), [path]), SegmentationFile).to_domain()


class Source:
    """Reads and checks the files of one version of an instrument, and remembers their content for the hash.

    A version's folder holds only what differs from the version before it: whole files, or fields and entries of them (see :func:`_merged`).

    Args:
        root: The directory that holds ``<instrument>/<version>/``.
        instrument: For example ``"atomic"``.
        version: For example ``"v1"``; ``None`` for the latest.

    Raises:
        InstrumentError: If there is no such version.
    """

    def __init__(self, root: Traversable, instrument: str, version: str | None) -> None:
        self._root = root
        self._content: dict[str, object] = {}
        versions = versions_of(root, instrument)
        self.version = versions[-1] if version is None else version
        if self.version not in versions:
            raise InstrumentError(
                f"there is no {instrument} instrument {version!r}; there are: {', '.join(versions)}"
            )
        until = versions.index(self.version) + 1
        self._folders = [f"{instrument}/{name}" for name in reversed(versions[:until])]

    def read(self, file: str, form: type[_FormT], context: object = None) -> _FormT:
        """The content of one of the version's files.

        Raises:
            InstrumentError: If it is missing, no YAML, or not as the form wants it.
        """
        return self._read([f"{folder}/{file}" for folder in self._folders], form, context)

    def read_shared(self, path: str, form: type[_FormT]) -> _FormT:
        """The content of a file that is not in the version's folder, but part of it.

        Raises:
            InstrumentError: As by :meth:`read`.
        """
        return self._read([path], form)

    def _read(self, paths: Sequence[str], form: type[_FormT], context: object = None) -> _FormT:
        path = paths[0]
        self._content[path] = content = _content(self._root, paths)
        return _checked(path, content, form, context)

    def content_hash(self) -> str:
        """SHA-256 over the canonical JSON of what was read."""
        canonical = json.dumps(self._content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def versions_of(root: Traversable, instrument: str) -> list[str]:
    """The names of an instrument's versions, ``v1`` first."""
    names = (entry.name for entry in (root / instrument).iterdir() if entry.is_dir())
    return sorted(filter(re.compile(r"v[1-9]\d*").fullmatch, names), key=lambda name: int(name[1:]))


@cache
def latest_version(instrument: str) -> str:
    """The name of the latest version that comes with the package."""
    return versions_of(files("app.instruments"), instrument)[-1]


def _content(root: Traversable, paths: Sequence[str]) -> object:
    """What the first of the files says, and where it is silent or missing, those after it."""
    found = [content for path in reversed(paths) if (content := _parsed(root, path)) is not _MISSING]
    if not found:
        raise InstrumentError(f"{paths[0]}: the file is missing")
    return reduce(_merged, found)


_MISSING = object()


def _parsed(root: Traversable, path: str) -> object:
    try:
        return yaml.safe_load(root.joinpath(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _MISSING
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # no UTF-8, no such date, too deep
        raise InstrumentError(f"{path}: not YAML: {error}") from error


def _merged(before: object, after: object) -> object:
    """What a later version says, and where it is silent, the earlier one: field by field, and a list of entries with ids entry by entry."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before | {
            name: _merged(before[name], value) if name in before else value for name, value in after.items()
        }
    if (old := _by_id(before)) is not None and (new := _by_id(after)) is not None:
        return [*cast("dict[str, object]", _merged(old, new)).values()]
    return after


def _by_id(entries: object) -> dict[str, object] | None:
    """The entries of a list by their ids; ``None`` unless all have different ones."""
    if not isinstance(entries, list):
        return None
    found: dict[str, object] = {
        e["id"]: e for e in entries if isinstance(e, dict) and isinstance(e.get("id"), str)
    }
    return found if len(found) == len(entries) else None


def _checked(path: str, content: object, form: type[_FormT], context: object = None) -> _FormT:
    try:
        return form.model_validate(content, context=context)
    except ValidationError as error:
        faults = "; ".join(f"{_field(fault['loc'])}: {message(fault)}" for fault in error.errors())
        raise InstrumentError(f"{path}: {faults}") from error


def _field(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "the whole file"
