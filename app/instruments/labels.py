"""How built-in dimensions are called where people read them: data beside the instruments, which no prompt has."""

from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import Field

from app.domain.instruments.dimension import Dimension
from app.instruments.forms import Form, Id, Text


class LabelForm(Form):
    """One dimension's display name, and what its levels mean."""

    id: Id
    name: Text
    label: Text
    level_words: dict[str, Text]


class LabelsFile(Form):
    """``labels.yaml``."""

    dimensions: Annotated[tuple[LabelForm, ...], Field(min_length=1)]


def labelled(dimension: Dimension) -> Dimension:
    """The dimension with its display name and words, if it is a built-in one."""
    found = _labels().get((dimension.id, dimension.name))
    if found is None:
        return dimension
    words = tuple(found.level_words.get(level, "") for level in dimension.scale.levels)
    return replace(dimension, label=found.label, level_words=words)


@cache
def _labels() -> dict[tuple[str, str], LabelForm]:
    text = files("app.instruments").joinpath("labels.yaml").read_text(encoding="utf-8")
    forms = LabelsFile.model_validate(yaml.safe_load(text)).dimensions
    return {(form.id, form.name): form for form in forms}
