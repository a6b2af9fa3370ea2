"""What both instruments' data files have in common: they are read once, checked, and known by a hash of what they say."""

import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from app.instruments.loader import AtomicInstrument, InstrumentError, load_atomic, read_atomic
from app.instruments.personagym_loader import PersonaGymInstrument, load_personagym, read_personagym

Instrument = AtomicInstrument | PersonaGymInstrument
Load = Callable[[str], Instrument]
Edit = Callable[[str, str, str], Instrument]

LOADED: dict[str, Load] = {"atomic": load_atomic, "segmentation": load_atomic, "personagym": load_personagym}
WRITTEN_BY = ("Shin et al.", "Samuel et al.", "written for this project")


def loaded(file: str) -> Instrument:
    """The instrument that a data file belongs to, as it comes with the package."""
    return LOADED[file.partition("/")[0]]("v1")


def read(root: Path, file: str) -> Instrument:
    """The same from a copy of the data files."""
    return read_personagym(root, "v1") if file.startswith("personagym/") else read_atomic(root, "v1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the data files."""
    for name in LOADED:
        shutil.copytree(Path(str(files("app.instruments"))) / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def edit(root: Path) -> Edit:
    """Replaces a text that stands in a file of a copy, then reads the copy."""

    def replace(file: str, old: str, new: str) -> Instrument:
        path = root / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return read(root, file)

    return replace


@pytest.mark.parametrize("load", [load_atomic, load_personagym])
class TestInstrument:
    def test_is_read_once(self, load: Load) -> None:
        assert load("v1") is load("v1")

    def test_cannot_be_changed(self, load: Load) -> None:
        with pytest.raises(TypeError):
            load("v1").personas["new"] = next(iter(load("v1").personas.values()))  # type: ignore[index] # that is what is tested


class TestContentHash:
    @pytest.mark.parametrize("file", ["atomic/v1/personas.yaml", "personagym/v1/tasks.yaml"])
    def test_ignores_comments(self, root: Path, file: str) -> None:
        path = root / file
        path.write_text("# a remark\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        assert read(root, file).content_hash == loaded(file).content_hash

    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("atomic/v1/personas.yaml", "careless person", "clumsy person"),
            ("atomic/v1/instructions.yaml", "Speak like", "Talk like"),
            ("segmentation/punkt-en-v1.yaml", "mr, mrs,", "mr,"),
            ("atomic/v1/refusal.yaml", "sentences: 2", "sentences: 3"),
            ("personagym/v1/personas.yaml", "A 71-year-old", "A 17-year-old"),
            ("personagym/v1/environments.yaml", "Laundromat", "Laundry"),
            ("personagym/v1/tasks.yaml", "openly toxic", "very toxic"),
            ("personagym/v1/prompts.yaml", "Adopt the", "Take the"),
            ("personagym/v1/consistency.yaml", "Contradicts", "Denies"),
        ],
    )
    def test_changes_with_every_file(self, edit: Edit, file: str, old: str, new: str) -> None:
        assert edit(file, old, new).content_hash != loaded(file).content_hash


class TestInvalidData:
    @pytest.mark.parametrize(
        ("file", "old", "new", "message"),
        [
            ("atomic/v1/dimensions.yaml", "name: openness", "nam: openness", r"dimensions\.yaml: dimensions\.0\.name: is required"),
            ("atomic/v1/dimensions.yaml", "name: openness", "name: openness\n    x: 1", r"dimensions\.yaml: dimensions\.0\.x: unknown"),
            ("atomic/v1/dimensions.yaml", "maximum: 5", "maximum: 1", r"dimensions\.yaml: scale: .*must exceed its minimum"),
            ("atomic/v1/dimensions.yaml", "maximum: 5", "maximum: 5\n  width: 4", r"dimensions\.yaml: scale\.width"),
            ("atomic/v1/dimensions.yaml", " 3) Neither open", " 4) Neither open", r"dimensions\.yaml: .*options of O must offer"),
            ("atomic/v1/dimensions.yaml", 'id: "C"', 'id: "O"', r"dimensions\.yaml: .*given twice: O"),
            ("atomic/v1/dimensions.yaml", "Are you full of ideas?", "Do you use difficult words?", r"dimensions\.0\.questions: .*given twice: Do you use"),
            ("atomic/v1/personas.yaml", "{id: O-high", "{id: O-low", r"personas\.yaml: .*given twice: O-low"),
            ("atomic/v1/personas.yaml", '{"E": high}', '{"X": high}', r"personas\.yaml: .*traits of E-high .*: X high"),
            ("atomic/v1/personas.yaml", '{"E": high}', '{"E": top}', r"personas\.yaml: .*traits of E-high .*: E top"),
            ("atomic/v1/personas.yaml", "[O-high,", "[O-top,", r"personas\.yaml: .*persona_sets\.big-five names unknown personas: O-top"),
            ("atomic/v1/personas.yaml", "description: open person", 'description: " "', r"personas\.yaml: personas\.0\.description"),
            ("atomic/v1/instructions.yaml", "You are a {persona}.", "You are.", r"instructions\.yaml: instructions\.0: .*must contain \{persona\}"),
            ("atomic/v1/instructions.yaml", "You are a {persona}.", "You are a {persona} of {age}.", r"instructions\.0: .*no other placeholder"),
            ("atomic/v1/tasks.yaml", "{context}", "{question}", r"tasks\.yaml: tasks\.1: .*prompt must contain exactly .*context"),
            ("atomic/v1/tasks.yaml", "{atomic unit}", "{unit}", r"tasks\.yaml: tasks\.0: .*scoring_prompt must contain"),
            ("atomic/v1/tasks.yaml", "item_source: common", "item_source: any", r"tasks\.yaml: tasks\.2\.item_source"),
            ("atomic/v1/tasks.yaml", "expected_units: 6.48", "expected_units: 0", r"tasks\.yaml: tasks\.0\.expected_units"),
            ("atomic/v1/refusal.yaml", "<machine>", "<robot>", r"refusal\.yaml: .*unknown term <robot>"),
            ("segmentation/punkt-en-v1.yaml", '"on"', "on", r"punkt-en-v1\.yaml: sentence_starters\.\d+: "),
            ("segmentation/punkt-en-v1.yaml", "mr, mrs", "mr., mrs", r"punkt-en-v1\.yaml: never_final\.0: "),
            ("atomic/v1/tasks.yaml", "tasks:", "tasks: [", r"tasks\.yaml: not YAML"),
            ("personagym/v1/prompts.yaml", "exactly {count} challenging", "exactly 10 challenging", r"prompts\.yaml: .*question_generation must contain exactly"),
            ("personagym/v1/prompts.yaml", "identity of {persona}", "identity of {person}", r"instructions\.adopt must contain exactly"),
            ("personagym/v1/prompts.yaml", "default_instruction: adopt", "default_instruction: adapt", r"default_instruction must be one of"),
            ("personagym/v1/prompts.yaml", "{atomic unit}", "{sentence}", r"sentence_scoring must contain exactly"),
            ("personagym/v1/tasks.yaml", "id: action_justification", "id: expected_action", r"tasks\.yaml: .*given twice: expected_action"),
            ("personagym/v1/tasks.yaml", "aliases: [Toxicity]", "aliases: [consistency]", r"given twice: Consistency, consistency"),
            ("personagym/v1/tasks.yaml", "from_paper: [question_criteria]", "from_paper: [title]", r"tasks\.4\.from_paper"),
            ("personagym/v1/tasks.yaml", "      - The response is openly toxic", "      - Another.\n      - The response is openly toxic", r"tasks\.4\.guidelines"),
            ("personagym/v1/environments.yaml", "- Laundromat", "- ski slope", r"given twice: Ski Slope, ski slope"),
            ("personagym/v1/personas.yaml", "id: gym-02", "id: gym-01", r"given twice: gym-01"),
            ("personagym/v1/personas.yaml", "[gym-01,", "[gym-00,", r"persona_sets\.personagym-50 names unknown personas: gym-00"),
            ("personagym/v1/consistency.yaml", "9) Says", "8) Says", r"options must offer \[1, 2, 3, 4, 5, 9\]"),
            ("personagym/v1/consistency.yaml", "target_level: high", "target_level: top", r"target_level must be one of"),
        ],
    )  # fmt: skip
    def test_is_refused_with_file_and_field(
        self, edit: Edit, file: str, old: str, new: str, message: str
    ) -> None:
        with pytest.raises(InstrumentError, match=message):
            edit(file, old, new)

    def test_a_missing_file_is_named(self, root: Path) -> None:
        (root / "atomic/v1/tasks.yaml").unlink()
        with pytest.raises(InstrumentError, match=r"atomic/v1/tasks\.yaml: the file is missing"):
            read_atomic(root, "v1")

    def test_an_empty_file_is_refused(self, root: Path) -> None:
        (root / "atomic/v1/tasks.yaml").write_text("", encoding="utf-8")
        with pytest.raises(InstrumentError, match=r"atomic/v1/tasks\.yaml: the whole file: "):
            read_atomic(root, "v1")

    @pytest.mark.parametrize("version", ["v9", "", ".", "..", "../segmentation", "v1/"])
    @pytest.mark.parametrize("load", [load_atomic, load_personagym])
    def test_an_unknown_version_lists_the_known_ones(self, load: Load, version: str) -> None:
        with pytest.raises(InstrumentError, match=r"no (?:atomic|personagym) instrument .* there are: v1"):
            load(version)


def test_every_data_file_says_where_it_comes_from(root: Path) -> None:
    for path in root.rglob("*.yaml"):
        lines = path.read_text(encoding="utf-8").splitlines()
        remark = " ".join(line.removeprefix("# ") for line in lines if line.startswith("# "))
        assert any(author in remark for author in WRITTEN_BY), path
