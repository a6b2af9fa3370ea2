"""Files as the tools themselves write them are read: ``make test-formats``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.domain.jobs.import_preview import ImportPreview
from app.importers.records import Options
from tests.formats.conftest import Write
from tests.unit.importers.reading import read_import
from tests.unit.importers.samples import SERVICE
from tests.unit.importers.test_registry import check_whole

SYSTEM = "You are an extraverted person."
ASKED = "How was your weekend?"
SAID = "I love parties. I talk to everybody."


def read(path: Path, **options: Any) -> ImportPreview:
    chosen = Options(**SERVICE, **options)
    preview = read_import(path.read_bytes(), path.name, None, chosen)
    check_whole(preview)
    return preview


def only(files: Iterator[Path]) -> Path:
    (found,) = files
    return found


def counts(preview: ImportPreview) -> tuple[str, int, int]:
    return preview.kind, preview.mapped, preview.refused


@pytest.mark.parametrize("form", ["eval", "json"])
def test_inspect(written: Write, form: str) -> None:
    preview = read(only((written("inspect") / form).glob(f"*.{form}")))
    assert counts(preview) == ("inspect", 2, 1)
    assert preview.refused_records[0].reason == "the model's answer has no text"
    first, second = preview.samples
    assert (first.persona, first.model, first.prompt, first.text) == (
        SYSTEM,
        "mockllm/model",
        "How was weekend 1?",
        SAID,
    )
    assert (first.scores, second.scores) == ({"includes": 1.0}, {"includes": 0.0})


def test_openai_evals(written: Write) -> None:
    preview = read(written("openai_evals") / "items.jsonl")
    assert counts(preview) == ("openai_evals", 2, 1)
    assert (preview.refused_records[0].place, preview.refused_records[0].reason) == (
        "/lines/3/sample",
        "the call failed",
    )
    first = preview.samples[0]
    assert (first.persona, first.model, first.prompt, first.text) == (SYSTEM, "gpt-5.6-luna", ASKED, SAID)
    assert first.scores == {"tone": 0.75}


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.yaml", "out.csv"])
def test_promptfoo(evaluated: Path, name: str) -> None:
    preview = read(evaluated / name)
    assert counts(preview) == ("promptfoo", 1, 1)
    assert preview.refused_records[0].reason == "the text is empty"
    (sample,) = preview.samples
    persona = "an extraverted person" if name == "out.csv" else SYSTEM  # a table has variables, no prompts
    assert (sample.persona, sample.model, sample.prompt, sample.text) == (persona, "bot", ASKED, SAID)
    assert sample.scores == {"score": 1.0}


def test_a_configuration_of_promptfoo(evaluated: Path) -> None:
    preview = read(evaluated / "promptfooconfig.yaml")
    assert counts(preview) == ("promptfoo_configuration", 2, 0)
    assert preview.question_set is not None
    assert preview.question_set["questions"][SYSTEM] == {"persona_consistency": [ASKED]}


def test_lm_eval(written: Write) -> None:
    samples = only(written("lm_eval").rglob("samples_weekends_*.jsonl"))
    preview = read(samples, persona="an extraverted person", model="guest")
    assert counts(preview) == ("lm_eval", 3, 0)
    first = preview.samples[0]
    assert (first.prompt, first.text) == (f"{SYSTEM} How was weekend 1?", SAID)
    assert first.scores == {"exact_match": 0.0}


def test_likelihoods_of_lm_eval_are_no_texts(written: Write) -> None:
    preview = read(only(written("lm_eval").rglob("samples_choices_*.jsonl")))
    assert counts(preview) == ("lm_eval", 0, 3)
    assert {each.reason for each in preview.refused_records} == {"has likelihoods, no texts"}


def test_opentelemetry(written: Write) -> None:
    preview = read(written("traces") / "opentelemetry.json")
    assert counts(preview) == ("otlp", 1, 1)
    assert preview.refused_records[0].reason == "is no call of a model"
    (sample,) = preview.samples
    assert (sample.persona, sample.model, sample.prompt, sample.text) == (SYSTEM, "gpt-5.6-luna", ASKED, SAID)


def test_opentelemetrys_events(written: Write) -> None:
    preview = read(written("traces") / "events.json")
    assert counts(preview) == ("otlp", 1, 0)
    (sample,) = preview.samples
    assert (sample.persona, sample.model, sample.prompt, sample.text) == (SYSTEM, "gpt-5.6-luna", ASKED, SAID)


def test_langfuse(written: Write) -> None:
    preview = read(written("traces") / "langfuse.json")
    assert counts(preview) == ("otlp", 1, 0)
    (sample,) = preview.samples
    assert (sample.persona, sample.model, sample.prompt, sample.text) == (SYSTEM, "gpt-5.6-luna", ASKED, SAID)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_data_sets(written: Write, name: str) -> None:
    preview = read(written("datasets") / name)
    assert counts(preview) == ("table", 2, 1)
    assert preview.refused_records[0].reason.startswith("has no persona")
    assert [each.name for each in preview.models] == ["bot-1", "bot-2"]


def test_conversations_in_a_data_set(written: Write) -> None:
    preview = read(written("datasets") / "chats.parquet")
    assert counts(preview) == ("sharegpt", 2, 0)
    assert (preview.samples[0].persona, preview.samples[0].text) == (SYSTEM, SAID)
