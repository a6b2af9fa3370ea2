"""What annotators are told of a dimension: a data file that is read once."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from app.domain.instruments.dimension import Dimension


def guideline_for(dimension: Dimension) -> str | None:
    """What people at the upper end of a dimension are like; ``None`` for one that is not the atomic paper's."""
    upper_end = dimension.option_labels.get(dimension.scale.maximum, "")
    return _guidelines().get((dimension.name, upper_end))


@cache
def _guidelines() -> Mapping[tuple[str, str], str]:
    """By the dimension's word in the prompt and its highest option."""
    text = files("app.instruments").joinpath("labelling/v1/guidelines.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["guidelines"]
    return {(each["name"], each["upper_end"]): each["text"] for each in found}
