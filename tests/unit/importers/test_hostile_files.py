"""Short files that ask a reader for very much: each is refused soon, with the reason."""

import contextlib
import io
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.domain.errors import InvalidJobError
from app.domain.jobs.import_preview import ImportPreview
from app.importers import registry
from app.importers.records import Options
from tests.unit.importers.reading import read_import
from tests.unit.importers.samples import FILES, SERVICE, json_lines


def imported(data: bytes, name: str = "", **options: str) -> ImportPreview:
    return read_import(data, name, None, Options(**SERVICE, **options))  # type: ignore[arg-type]


def refused(data: bytes, name: str = "") -> str:
    """The reason why a file, or its only kind of records, is refused."""
    try:
        return next(iter(imported(data, name).reasons)).reason
    except InvalidJobError as error:
        return error.errors[0].message


def yaml_levels(line: str) -> bytes:
    lines = ["a0: &a0 {x0: 1}"]
    lines += [f"a{n}: &a{n} {line.format(*[f'*a{n - 1}'] * 9, n=n)}" for n in range(1, 12)]
    return "\n".join([*lines, "prompts: [hello]", "tests: [{vars: {question: *a11}}]"]).encode()


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def with_shared_bytes(data: bytes, count: int) -> bytes:
    """An archive whose first member is listed so many times."""
    end = data.rindex(b"PK\5\6")
    start = struct.unpack_from("<I", data, end + 16)[0]
    entry = data[start:end]
    name = len("samples/0000_epoch_1.json")
    entries = b"".join(
        entry[:46] + f"samples/{n:04}_epoch_1.json".encode() + entry[46 + name :] for n in range(count)
    )
    tail = struct.pack("<HHII", count, count, len(entries), start)
    return data[:start] + entries + data[end : end + 8] + tail + b"\0\0"


class TestPlaceholders:
    @pytest.mark.parametrize("mark", ["{{char}}", "<BOT>", "{{user}}"])
    def test_a_card_is_refused_before_a_long_name_is_written_many_times(self, mark: str) -> None:
        card = {"name": "N" * 20_000, "description": mark * 50_000, "personality": "", "first_mes": ""}
        tracemalloc.start()
        reason = refused(json.dumps(card).encode())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert reason == "has more than 20,000 characters with its placeholders filled in"
        assert peak < 30_000_000

    def test_a_prompt_is_refused_before_a_long_value_is_written_many_times(self) -> None:
        found = {"prompts": ["{{v}}" * 100_000], "tests": [{"vars": {"v": "x" * 100_000}}]}
        assert refused(json.dumps(found).encode()) == (
            "has more than 200,000 characters with its placeholders filled in"
        )

    def test_a_card_with_a_usual_name_is_filled_in(self) -> None:
        card = {"name": "Ada", "description": "{{char}} likes {{user}}.", "personality": "", "first_mes": ""}
        assert imported(json.dumps(card).encode()).persona_set == {
            "personas": [{"id": "ada-9691621e", "description": "Ada likes the user."}]
        }


class TestAmounts:
    def test_prompts_times_tests_are_bounded(self) -> None:
        found = {"prompts": ["q {{v}}"] * 1_000, "tests": [{"vars": {"v": "x", "persona": "p"}}] * 501}
        assert refused(json.dumps(found).encode()) == (
            "1,000 prompts × 501 tests are more than 500,000 records; divide the file"
        )

    def test_records_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "MOST_RECORDS", 1_000)
        rows = [{"role": "assistant", "content": "a"}] * 1_001
        assert refused(json.dumps({"messages": rows}).encode()) == (
            "has more than 1,000 records; divide the file"
        )

    def test_a_text_that_is_repeated_many_times_is_refused(self) -> None:
        text = "word " * 20_000
        lines = f"results:\n  results:\n  - &row {{prompt: {{raw: p}}, vars: {{persona: p}}, response: {{output: '{text}'}}}}\n"
        lines += "  - *row\n" * 2_000
        assert "aliases repeat too much" in refused(lines.encode(), "a.yaml")

    def test_a_long_persona_of_many_texts_is_looked_at_once(self) -> None:
        messages = [{"role": "system", "content": "p " * 100_000}]
        messages += [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}] * 4_000
        found = imported(json.dumps({"messages": messages}).encode())
        assert found.reasons[0].reason == "persona: the text has more than 20,000 characters"
        assert found.refused == 4_000


class TestYaml:
    def test_merge_keys_are_refused(self) -> None:
        for keys in ("<<: *one", "<<: [*one, *one]", "!!merge k: *one"):
            data = f"- &one {{persona: x, name: a}}\n- {{{keys}, name: b}}\n".encode()
            assert "merge keys (<<) are not read" in refused(data, "a.yaml")

    def test_aliases_of_aliases_are_refused(self) -> None:
        data = yaml_levels("[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}]")
        assert "its aliases repeat too much" in refused(data, "a.yaml")

    def test_an_anchor_within_itself_is_refused(self) -> None:
        assert "contains itself" in refused(b"prompts: [q]\ntests: &a [*a]\n", "a.yaml")

    def test_an_alias_is_read(self) -> None:
        data = b"prompts: &p ['What now, {{v}}?']\nsame: *p\ntests: [{vars: {v: Ada, persona: P p}}]\n"
        found = imported(data, "a.yaml")
        assert found.question_set == {"questions": {"P p": {"persona_consistency": ["What now, Ada?"]}}}


class TestArchives:
    def test_members_that_share_bytes_are_refused(self) -> None:
        sample = json.dumps({"input": "q", "output": {"completion": "x" * 100_000}}).encode()
        data = with_shared_bytes(zipped({"samples/0000_epoch_1.json": sample}), 500)
        assert refused(data, "a.eval") == "overlaps another file of the archive"

    def test_an_archive_of_many_broken_members_is_given_up(self) -> None:
        members = {f"samples/{n:04}_epoch_1.json": b"{}" + bytes([n]) * 50 for n in range(40)}
        data = bytearray(zipped(members))
        for info in zipfile.ZipFile(io.BytesIO(data)).infolist():
            data[info.header_offset + 30 + len(info.filename) + 3] ^= 0xFF
        assert refused(bytes(data), "a.eval") == "more than 10 of its files can't be unpacked"


class TestColumns:
    def test_too_many_columns_of_parquet_are_refused(self) -> None:
        file = io.BytesIO()
        pq.write_table(pa.table({f"c{n}": [1] for n in range(2_001)}), file)
        assert refused(file.getvalue()) == "has 2,001 columns; at most 2,000: leave out the others"

    def test_many_names_with_one_twice_are_refused_soon(self) -> None:
        names = ", ".join(f'"k{n}": 1' for n in range(40_000))
        line = f'{{{names}, "k39999": 2}}\n{{"text": "x"}}\n'.encode()
        assert "has the name 'k39999' twice" in refused(line)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each member of a JSON value."""
    if path:
        yield path
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, each in members:
        yield from places(each, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    changed = value.copy()
    changed[path[0]] = other if len(path) == 1 else replaced(value[path[0]], path[1:], other)
    return changed


class TestTypes:
    @pytest.mark.parametrize("kind", FILES)
    def test_any_member_may_be_of_a_type_that_nobody_expects(self, kind: str) -> None:
        for name, data in FILES[kind].items():
            values = [json.loads(line) for line in data.splitlines()] if name.endswith(".jsonl") else None
            if name.endswith(".json"):
                values = [json.loads(data)]
            for path in places(values or ()):
                with contextlib.suppress(InvalidJobError):
                    imported(json_lines(*replaced(values, path, {"x": []})), name)


class TestSurrogates:
    @pytest.mark.parametrize("field", ["dimension", "level", "model", "task", "item", "item_text"])
    def test_a_record_of_our_own_export_is_refused(self, field: str) -> None:
        row = {
            "response_id": "r",
            "response_status": "answered",
            "persona": "p",
            "text": "t",
            "persona_description": "p p",
            "model": "m",
            "task": "essay",
            "run": 0,
        }
        row |= {"instruction": 0, "dimension": "E", "level": "high", "item": None, "item_text": None}
        found = imported(json_lines(row | {field: "\ud800"}))
        assert found.refused == 1, found
        assert "lone surrogates" in found.reasons[0].reason
        assert found.encoded()

    @pytest.mark.parametrize(
        "record",
        [
            {"text": "t", "persona": "p p", "\ud800": "x"},
            {"\ud800": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "t"}], "persona": "p p"},
        ],
    )
    def test_names_of_columns_are_shown(self, record: dict[str, object]) -> None:
        found = imported(json_lines(record))
        assert found.mapped == 1
        assert found.encoded()
