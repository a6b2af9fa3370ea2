import shutil
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from app.domain.instruments.persona import Persona, Trait
from app.instruments.loader import InstrumentError, load_atomic
from app.instruments.personagym_loader import PersonaGymInstrument, load_personagym, read_personagym

GOLDEN = yaml.safe_load(
    (Path(__file__).parents[2] / "golden" / "personagym_prompts.yaml").read_text(encoding="utf-8")
)
Edit = Callable[[str, str, str], PersonaGymInstrument]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(Path(str(files("app.instruments"))) / "personagym", tmp_path / "personagym")
    return tmp_path


@pytest.fixture
def edit(root: Path) -> Edit:
    """Replaces a text that stands in a file of a copy, then reads the copy."""

    def replace(file: str, old: str, new: str) -> PersonaGymInstrument:
        path = root / "personagym/v1" / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return read_personagym(root, "v1")

    return replace


class TestPersonaGymInstrument:
    def test_version_one_never_changes(self) -> None:
        # Results carry this hash. If this test fails, the data of a published version were changed: add a version.
        assert (
            load_personagym().content_hash
            == "ccc13a94e9e73798461e30eb14840176fc5b796fae23433935ed6f110d7c0fd8"
        )

    def test_has_the_five_tasks_and_marks_what_the_paper_prints(self) -> None:
        tasks = load_personagym().tasks
        assert {id_: (task.title, task.from_paper) for id_, task in tasks.items()} == {
            "expected_action": ("Expected Action in Given Setting", {"description", "guidelines"}),
            "action_justification": ("Action Justification", frozenset()),
            "linguistic_habits": ("Linguistic Habits", frozenset()),
            "persona_consistency": ("Persona Consistency", frozenset()),
            "toxicity_control": ("Toxicity Control", {"question_criteria"}),
        }
        assert {len(set(task.guidelines)) for task in tasks.values()} == {5}

    def test_what_is_marked_as_the_paper_s_is_what_it_prints(self) -> None:
        tasks = load_personagym().tasks
        action = tasks["expected_action"]
        assert f"Evaluation Task Description: {action.description} Evaluation" in GOLDEN["rubric_outline"]
        for score, guideline in enumerate(action.guidelines, 1):
            assert f"Score = {score}: {guideline} " in GOLDEN["rubric_outline"]
        assert tasks["toxicity_control"].question_criteria == GOLDEN["toxicity_criteria"]

    def test_has_150_environments_in_six_equal_categories(self) -> None:
        environments = load_personagym().environments
        assert len({environment.name.casefold() for environment in environments}) == 150
        categories = ("everyday", "work", "social", "recreational", "travel", "extreme")
        assert Counter(environment.category for environment in environments) == dict.fromkeys(categories, 25)

    def test_has_the_fifty_printed_personas(self) -> None:
        instrument = load_personagym()
        ids = tuple(f"gym-{n:02}" for n in range(1, 51))
        assert tuple(instrument.personas) == ids
        assert dict(instrument.persona_sets) == {"personagym-50": ids}
        assert instrument.personas["gym-13"] == Persona("gym-13", "A homosexual Black Atheist woman")
        assert instrument.personas["gym-50"].description.endswith("from New York who collects vintage cars")

    def test_shares_no_persona_id_and_no_dimension_with_the_atomic_instrument(self) -> None:
        gym, atomic = load_personagym(), load_atomic()
        assert not gym.personas.keys() & atomic.personas.keys()
        assert not gym.persona_sets.keys() & atomic.persona_sets.keys()
        assert not gym.tasks.keys() & atomic.tasks.keys()
        assert gym.consistency.id not in atomic.dimensions

    def test_sentences_are_judged_on_the_big_five_s_scale_with_the_top_level_as_target(self) -> None:
        instrument = load_personagym()
        assert instrument.consistency.scale == load_atomic().dimensions["E"].scale
        assert instrument.target == Trait("persona_consistency", instrument.consistency.scale.levels[-1])

    def test_is_read_once_and_cannot_be_changed(self) -> None:
        instrument = load_personagym()
        assert instrument is load_personagym()
        with pytest.raises(TypeError):
            instrument.prompts.instructions["adopt"] = "x"  # type: ignore[index] # that is what is tested


class TestContentHash:
    def test_ignores_comments(self, root: Path) -> None:
        path = root / "personagym/v1/tasks.yaml"
        path.write_text("# a remark\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        assert read_personagym(root, "v1").content_hash == load_personagym().content_hash

    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("personas.yaml", "A 71-year-old", "A 17-year-old"),
            ("environments.yaml", "Laundromat", "Laundry"),
            ("tasks.yaml", "openly toxic", "very toxic"),
            ("prompts.yaml", "Adopt the", "Take the"),
            ("consistency.yaml", "Contradicts", "Denies"),
        ],
    )
    def test_changes_with_every_file(self, edit: Edit, file: str, old: str, new: str) -> None:
        assert edit(file, old, new).content_hash != load_personagym().content_hash


class TestInvalidData:
    @pytest.mark.parametrize(
        ("file", "old", "new", "message"),
        [
            ("prompts.yaml", "exactly {count} challenging", "exactly 10 challenging", r"prompts\.yaml: .*question_generation must contain exactly"),
            ("prompts.yaml", "identity of {persona}", "identity of {person}", r"instructions\.adopt must contain exactly"),
            ("prompts.yaml", "default_instruction: adopt", "default_instruction: adapt", r"default_instruction must be one of"),
            ("prompts.yaml", "{atomic unit}", "{sentence}", r"sentence_scoring must contain exactly"),
            ("tasks.yaml", "id: action_justification", "id: expected_action", r"tasks\.yaml: .*given twice: expected_action"),
            ("tasks.yaml", "aliases: [Toxicity]", "aliases: [consistency]", r"given twice: Consistency, consistency"),
            ("tasks.yaml", "from_paper: [question_criteria]", "from_paper: [title]", r"tasks\.4\.from_paper"),
            ("tasks.yaml", "      - The response is openly toxic", "      - Another.\n      - The response is openly toxic", r"tasks\.4\.guidelines"),
            ("environments.yaml", "- Laundromat", "- ski slope", r"given twice: Ski Slope, ski slope"),
            ("personas.yaml", "id: gym-02", "id: gym-01", r"given twice: gym-01"),
            ("personas.yaml", "[gym-01,", "[gym-00,", r"persona_sets\.personagym-50 names unknown personas: gym-00"),
            ("consistency.yaml", "9) Says", "8) Says", r"options must offer \[1, 2, 3, 4, 5, 9\]"),
            ("consistency.yaml", "target_level: high", "target_level: top", r"target_level must be one of"),
        ],
    )  # fmt: skip
    def test_is_refused_with_file_and_field(
        self, edit: Edit, file: str, old: str, new: str, message: str
    ) -> None:
        with pytest.raises(InstrumentError, match=message):
            edit(file, old, new)

    @pytest.mark.parametrize("version", ["v9", "", "..", "v1/"])
    def test_an_unknown_version_lists_the_known_ones(self, version: str) -> None:
        with pytest.raises(InstrumentError, match=r"no personagym instrument .* there are: v1"):
            load_personagym(version)


def test_every_data_file_says_where_it_comes_from(root: Path) -> None:
    for path in root.rglob("*.yaml"):
        remarks = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")]
        assert "Samuel et al." in " ".join(remarks)
