"""The released versions of the instruments' data, each with its hash: ``make reference`` adds those that are new, and changes none."""

import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.domain import judging
from app.domain.instruments.instrument import READER_VERSION
from app.domain.judging import thoughts
from app.instruments.grouped_loader import load_grouped
from app.instruments.hardened_loader import load_hardened
from app.instruments.loader import load_atomic, versions_of
from app.instruments.personagym_loader import load_personagym
from app.instruments.profiles_loader import load_profiles
from app.instruments.refusal_check_loader import load_refusal_check
from app.instruments.repair_loader import load_repair

LOADERS: Mapping[str, Callable[[str], Any]] = {
    "atomic": load_atomic,
    "grouped": load_grouped,
    "hardened": load_hardened,
    "personagym": load_personagym,
    "profiles": lambda version: next(iter(load_profiles(version).values())),
    "refusal_check": load_refusal_check,
    "repair": load_repair,
}
RULES = {
    version: Path(judging.__path__[0]) / f"{name}.yaml"
    for version, name in ((READER_VERSION, "reply_words"), (thoughts.VERSION, "thoughts"))
}
"""Data of the rules that read replies, by the version that the manifest names."""
FILE = Path(__file__).parents[2] / "golden" / "instruments.sha256"


def released() -> dict[str, str]:
    """The hash of each released version, by its path."""
    lines = FILE.read_text("utf-8").splitlines()
    return {path: sha256 for sha256, path in map(str.split, lines)}


def current() -> dict[str, str]:
    """The same of the data as they are."""
    rules = {
        f"{path.stem}/{version}": hashlib.sha256(path.read_bytes()).hexdigest()
        for version, path in RULES.items()
    }
    return rules | {
        f"{name}/{version}": load(version).content_hash
        for name, load in LOADERS.items()
        for version in versions_of(files("app.instruments"), name)
    }


if __name__ == "__main__":
    FILE.write_text(
        "".join(f"{sha256}  {path}\n" for path, sha256 in (current() | released()).items()), "utf-8"
    )
