import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from app.instruments.hardened_loader import read_hardened_words
from app.instruments.loader import InstrumentError


class TestHardenedWords:
    @pytest.mark.parametrize("name", ["system", "text"])
    def test_words_without_the_key_are_refused(self, tmp_path: Path, name: str) -> None:
        shutil.copytree(Path(str(files("app.instruments"))) / "hardened", tmp_path / "hardened")
        path = tmp_path / "hardened/v1/prompts.yaml"
        before, _, after = path.read_text(encoding="utf-8").partition(f"\n{name}:")
        path.write_text(f"{before}\n{name}:{after.replace('{key}', 'KEY')}", encoding="utf-8")
        with pytest.raises(InstrumentError, match=f"{name} must contain exactly the placeholders"):
            read_hardened_words(tmp_path, "v1")
