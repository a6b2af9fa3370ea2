"""A released version of an instrument never changes; a later one says only what is different."""

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from app.domain.instruments.task import AtomicTask, ItemSource
from app.instruments.grouped_loader import load_grouped
from app.instruments.loader import InstrumentError, load_atomic, read_atomic, versions_of
from app.instruments.personagym_loader import load_personagym, read_personagym
from tests.unit.instruments.released import current, released

DIARY = """
tasks:
  - id: diary
    title: Diary
    item_source: essay_context
    expected_units: 9
    expected_output_tokens: 200
    prompt: "Write in your diary how this went. {context}"
    scoring_prompt: "Rate the writer: {atomic unit} {options}"
    grouped_criterion: "Rate the writer of each of these: {dimension}"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the data files."""
    shutil.copytree(Path(str(files("app.instruments"))), tmp_path / "data")
    return tmp_path / "data"


def add(root: Path, path: str, content: str) -> None:
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text(content, encoding="utf-8")


def next_version(root: Path, instrument: str) -> str:
    return f"{instrument}/v{len(versions_of(root, instrument)) + 1}"


def test_a_released_version_never_changes() -> None:
    # Results carry these hashes. If one differs, a released version was changed: add a version.
    # If one is missing, a version is new: `make reference` adds it.
    assert current() == released()


def test_every_task_can_be_judged_several_sentences_a_call() -> None:
    instrument = load_atomic()
    assert instrument.tasks.keys() <= load_grouped().criteria.keys() | instrument.criteria.keys()


class TestLaterVersion:
    def test_adds_a_task_by_that_task_alone(self, root: Path) -> None:
        before = read_atomic(root, None)
        add(root, f"{next_version(root, 'atomic')}/tasks.yaml", DIARY)
        after = read_atomic(root, None)
        assert [*after.tasks] == [*before.tasks, "diary"]
        assert after.tasks["diary"] == AtomicTask(
            id="diary",
            title="Diary",
            prompt="Write in your diary how this went. {context}",
            scoring_prompt="Rate the writer: {atomic unit} {options}",
            item_source=ItemSource.ESSAY_CONTEXT,
            expected_units=9,
            expected_output_tokens=200,
        )
        assert after.criteria == {**before.criteria, "diary": "Rate the writer of each of these: {dimension}"}
        assert after.personas == before.personas
        assert after.content_hash != before.content_hash

    def test_leaves_the_one_before_it_as_it_was(self, root: Path) -> None:
        before = read_atomic(root, None)
        add(root, f"{next_version(root, 'atomic')}/tasks.yaml", DIARY)
        assert read_atomic(root, before.version) == before

    def test_changes_one_prompt_by_that_prompt_alone(self, root: Path) -> None:
        words = {"tasks": [{"id": "essay", "prompt": "Be brief. {context}"}]}
        before = read_atomic(root, None).tasks
        add(root, f"{next_version(root, 'atomic')}/tasks.yaml", yaml.safe_dump(words))
        after = read_atomic(root, None).tasks
        assert after["essay"].prompt == "Be brief. {context}"
        assert after["essay"].scoring_prompt == before["essay"].scoring_prompt
        assert {**after, "essay": before["essay"]} == before

    def test_adds_a_task_of_personagym_likewise(self, root: Path) -> None:
        before = read_personagym(root, None)
        task = yaml.safe_load((root / "personagym/v1/tasks.yaml").read_text("utf-8"))["tasks"][0]
        added = {"tasks": [{**task, "id": "humour", "title": "Humour", "aliases": ["Wit"]}]}
        add(root, f"{next_version(root, 'personagym')}/tasks.yaml", yaml.safe_dump(added))
        assert [*read_personagym(root, None).tasks] == [*before.tasks, "humour"]

    def test_replaces_lists_of_words(self, root: Path) -> None:
        add(root, f"{next_version(root, 'atomic')}/instructions.yaml", "instructions: ['Be {persona}.']")
        assert read_atomic(root, None).instructions == ("Be {persona}.",)

    def test_comes_after_the_ninth_where_it_is_the_tenth(self, root: Path) -> None:
        for n in (2, 9, 10):
            add(root, f"atomic/v{n}/instructions.yaml", f"instructions: ['{n} {{persona}}']")
        assert read_atomic(root, None).instructions == ("10 {persona}",)
        assert read_atomic(root, "v9").instructions == ("9 {persona}",)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (DIARY + DIARY.partition("tasks:")[2], "given twice: diary"),
            (DIARY.replace("{context}", "{question}"), "prompt must contain exactly"),
            (DIARY.replace("these: {dimension}", "these: {persona}"), "grouped_criterion may contain only"),
            ("tasks: [{id: essai, prompt: '{context}'}]", r"tasks\.\d\.title: is required"),
        ],
    )
    def test_is_checked_as_a_whole(self, root: Path, words: str, message: str) -> None:
        path = next_version(root, "atomic")
        add(root, f"{path}/tasks.yaml", words)
        with pytest.raises(InstrumentError, match=rf"{path}/tasks\.yaml: .*{message}"):
            read_atomic(root, None)


def test_the_latest_is_what_new_jobs_get() -> None:
    root = files("app.instruments")
    assert load_atomic().version == versions_of(root, "atomic")[-1]
    assert load_personagym().version == versions_of(root, "personagym")[-1]


def test_the_latest_is_read_once_by_whatever_name() -> None:
    assert load_atomic() is load_atomic(load_atomic().version)
    assert load_personagym() is load_personagym(load_personagym().version)
