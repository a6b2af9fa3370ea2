import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from app.domain.instruments.dimension import Scale
from app.domain.instruments.persona import Persona, Trait
from app.domain.instruments.task import ItemSource
from app.instruments.loader import AtomicInstrument, InstrumentError, load_atomic, read_atomic

Edit = Callable[[str, str, str], AtomicInstrument]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    source = Path(str(files("app.instruments")))
    for name in ("atomic", "segmentation"):
        shutil.copytree(source / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def edit(root: Path) -> Edit:
    """Replaces a text that stands in a file of a copy, then reads the copy."""

    def replace(file: str, old: str, new: str) -> AtomicInstrument:
        path = root / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return read_atomic(root, "v1")

    return replace


class TestAtomicInstrument:
    def test_version_one_never_changes(self) -> None:
        # Results carry this hash. If this test fails, the data of a published version were changed: add a version.
        assert (
            load_atomic().content_hash == "e24a55d9826ee1f4670bd8aaa755b89686c8a470a19de286591fe9d121f1a8e8"
        )

    def test_has_five_dimensions_in_the_paper_s_order_on_its_scale(self) -> None:
        dimensions = load_atomic().dimensions
        assert [(d.id, d.name) for d in dimensions.values()] == [
            ("O", "openness"),
            ("C", "conscientiousness"),
            ("E", "extroversion"),
            ("A", "agreeableness"),
            ("N", "neuroticism"),
        ]
        assert {d.scale for d in dimensions.values()} == {Scale(1, 5, ("low", "neutral", "high"), 9)}
        assert [len(d.questions) for d in dimensions.values()] == [10] * 5

    def test_has_fifteen_personas_with_one_trait_each(self) -> None:
        instrument = load_atomic()
        expected = {
            f"{d}-{level}": (Trait(d, level),) for d in "OCEAN" for level in ("high", "neutral", "low")
        }
        assert {persona.id: persona.traits for persona in instrument.personas.values()} == expected
        assert dict(instrument.persona_sets) == {"big-five": tuple(expected)}

    def test_the_stable_person_is_the_high_level_of_neuroticism(self) -> None:
        assert load_atomic().personas["N-high"] == Persona(
            "N-high", "emotionally stable person", (Trait("N", "high"),)
        )

    def test_has_three_tasks_with_the_mean_units_of_table_15(self) -> None:
        tasks = load_atomic().tasks
        columns = {
            "questionnaire": [6.4, 4.6, 5.7, 5.5, 5.7, 8.2, 7.0, 7.8, 8.9, 5.8, 6.6, 5.6],
            "essay": [10.2, 12.3, 15.2, 14.8, 16.0, 14.3, 16.7, 18.1, 13.3, 12.4, 17.2, 15.4],
            "social_media_post": [10.5, 15.7, 17.5, 23.7, 28.5, 14.3, 24.3, 17.6, 15.4, 21.8, 19.9, 23.1],
        }
        assert list(tasks) == list(columns)
        for id_, column in columns.items():
            assert tasks[id_].expected_units == pytest.approx(sum(column) / 12, abs=0.005)
        assert [t.item_source for t in tasks.values()] == [
            ItemSource.QUESTIONS,
            ItemSource.ESSAY_CONTEXT,
            ItemSource.COMMON,
        ]

    def test_is_read_once(self) -> None:
        assert load_atomic() is load_atomic()

    def test_cannot_be_changed(self) -> None:
        with pytest.raises(TypeError):
            load_atomic().personas["E-high"] = Persona("x", "y")  # type: ignore[index] # that is what is tested


class TestContentHash:
    def test_ignores_comments(self, root: Path) -> None:
        path = root / "atomic/v1/personas.yaml"
        path.write_text("# a remark\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        assert read_atomic(root, "v1").content_hash == load_atomic().content_hash

    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("atomic/v1/personas.yaml", "careless person", "clumsy person"),
            ("atomic/v1/instructions.yaml", "Speak like", "Talk like"),
            ("segmentation/punkt-en-v1.yaml", "mr, mrs,", "mr,"),
            ("atomic/v1/refusal.yaml", "window: 240", "window: 241"),
        ],
    )
    def test_changes_with_every_file(self, edit: Edit, file: str, old: str, new: str) -> None:
        assert edit(file, old, new).content_hash != load_atomic().content_hash


class TestInvalidData:
    @pytest.mark.parametrize(
        ("file", "old", "new", "message"),
        [
            ("atomic/v1/dimensions.yaml", "name: openness", "nam: openness", r"dimensions\.yaml: dimensions\.0\.name: Field required"),
            ("atomic/v1/dimensions.yaml", "name: openness", "name: openness\n    x: 1", r"dimensions\.yaml: dimensions\.0\.x: Extra"),
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
    def test_an_unknown_version_lists_the_known_ones(self, version: str) -> None:
        with pytest.raises(InstrumentError, match="there are: v1"):
            load_atomic(version)


def test_every_data_file_says_where_it_comes_from(root: Path) -> None:
    for path in root.rglob("*.yaml"):
        remark = " ".join(
            line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")
        )
        assert "Shin et al." in remark or "written for this project" in remark.replace("# ", "")
