"""Files as rubric sets: JSON as the API takes it, or PersonaGym's released rubrics, one task a text file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from persona_assay.terminal.outcome import CommandError
from persona_assay.terminal.text_files import read_file
from persona_assay.types import RubricSetIn


def rubrics_of_files(paths: Sequence[str], name: str | None) -> RubricSetIn:
    """The body that stores files as one rubric set.

    Args:
        paths: One JSON file, or text files, each named as its task.
        name: The set's name; ``None`` for that of the JSON file, if it has one.

    Raises:
        CommandError: A file can't be read, or there are several of JSON.
    """
    if any(path.endswith(".json") for path in paths):
        if len(paths) > 1:
            raise CommandError("give one JSON file, or text files with one rubric each")
        body = _parsed(paths[0], read_file(paths[0]))
    else:
        tasks = {Path(path).name: read_file(path) for path in paths}
        if len(tasks) < len(paths):
            raise CommandError("two of the files have the same name, which must tell their tasks apart")
        body = {"tasks": tasks}
    return cast("RubricSetIn", body if name is None else body | {"name": name})


def _parsed(path: str, text: str) -> dict[str, object]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise CommandError(f"{path} must contain one rubric set (an object with tasks)")
    return body
