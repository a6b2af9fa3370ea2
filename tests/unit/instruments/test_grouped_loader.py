import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from app.instruments.grouped_loader import load_grouped, read_grouped_words
from app.instruments.loader import InstrumentError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(Path(str(files("app.instruments"))) / "grouped", tmp_path / "grouped")
    return tmp_path


class TestGroupedWords:
    def test_an_unknown_version_names_those_there_are(self) -> None:
        with pytest.raises(InstrumentError, match="no grouped instrument 'v9'; there are: v1"):
            load_grouped("v9")

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ("{sentences}", "", "prompt must contain exactly the placeholders"),
            ("{count}", "{number}", "prompt must contain exactly the placeholders"),
            ("  persona: |-", "  somebody: |-", "criteria must have persona"),
            ("the {dimension} score", "the {persona} score", "criteria.questionnaire may contain only"),
        ],
    )
    def test_words_that_can_t_be_filled_in_are_refused(
        self, root: Path, old: str, new: str, reason: str
    ) -> None:
        path = root / "grouped/v1/prompts.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(InstrumentError, match=reason):
            read_grouped_words(root, "v1")
