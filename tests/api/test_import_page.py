"""`/import`: another tool's file is read and shown, and stored only on request."""

import base64
import random
import re
import zlib
from typing import Any

import httpx2
import pytest

from tests.api.service import Service
from tests.observe import PATIENCE
from tests.unit.importers.samples import FILES, json_lines

Files = dict[str, tuple[str, bytes]]
ROWS = json_lines(
    *({"persona": "a <b>clown</b>", "response": f"<i>Ha</i> {n}.", "rating": n} for n in (0, 9, 10))
)
FORM = re.compile(r'name="(kept|kept_name|planned|key)" value="([^"]*)"')


def post(api: Service, **sent: Any) -> httpx2.Response:
    """As a browser posts, which is answered in pages, also where something is wrong."""
    return httpx2.post(f"{str(api.http.base_url).rstrip('/')}/import", timeout=PATIENCE, **sent)


def send(api: Service, file: tuple[str, bytes] | None, **fields: str) -> httpx2.Response:
    """What a browser sends: all fields, and the file, without a name if none was chosen."""
    files: Files = {"file": file or ("", b"")}
    return post(api, data={"action": "read", **fields}, files=files, follow_redirects=False)


def held(answer: httpx2.Response) -> dict[str, str]:
    """What the page brings back by itself."""
    return dict(FORM.findall(answer.text))


@pytest.mark.usefixtures("nothing_created")
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FILES.items() for name in names])
def test_every_kind_is_shown_and_nothing_is_stored(api: Service, kind: str, name: str) -> None:
    answer = send(api, (name, FILES[kind][name]))
    assert answer.status_code == 200, answer.text
    assert f"<code>{kind}</code>" in answer.text
    assert zlib.decompress(base64.b64decode(held(answer)["kept"])) == FILES[kind][name]


@pytest.mark.usefixtures("nothing_created")
class TestReading:
    def test_what_is_refused_is_listed_with_its_reason(self, api: Service) -> None:
        page = send(api, ("chat.jsonl", FILES["openai_messages"]["chat.jsonl"] + b"5\n")).text
        assert "1 refused" in page
        assert "/lines/3" in page
        assert "must be an object" in page

    def test_a_files_texts_are_escaped(self, api: Service) -> None:
        page = send(api, ("<script>.jsonl", ROWS)).text
        assert "a &lt;b&gt;clown&lt;/b&gt;" in page
        assert "<script>.jsonl" not in page

    def test_a_scale_must_be_told_and_the_file_is_shown_meanwhile(self, api: Service) -> None:
        first = send(api, ("rows.jsonl", ROWS))
        again = send(api, None, **held(first), score="rating")
        assert again.status_code == 422
        assert "go from 0 to 10" in again.text
        assert "3</strong> of 3 records" in again.text
        told = send(api, None, **held(first), score="rating", scale="0-10", trait="E=high")
        assert told.status_code == 200
        assert "the nearest of 0 → 1" in told.text

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({}, "choose a file"),
            ({"kept": "%%%"}, "choose a file"),
            ({"kept": base64.b64encode(zlib.compress(b"{}")[:-2]).decode()}, "choose a file"),
            ({"kept": base64.b64encode(zlib.compress(bytes(2**26))).decode()}, "choose a file"),
        ],
    )
    def test_without_a_file_one_is_asked_for(self, api: Service, fields: dict[str, str], words: str) -> None:
        answer = send(api, None, **fields)
        assert answer.status_code == 422
        assert words in answer.text

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (b"", 400),
            (b"--x--\r\n", 422),
            (b"--x\r\n\r\na\r\n--x--", 400),
            (b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n\xff\r\n--x--', 400),
            (b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb', 400),
            (b"--x" * 100_000, 422),
        ],
    )
    def test_a_body_that_is_no_form_is_refused(self, api: Service, body: bytes, status: int) -> None:
        headers = {"content-type": "multipart/form-data; boundary=x"}
        answer = post(api, content=body, headers=headers)
        assert answer.status_code == status

    def test_a_file_that_is_too_large_is_told_where_it_can_be_imported(self, api: Service) -> None:
        answer = send(api, ("rows.jsonl", ROWS * 2**17))
        assert answer.status_code == 413
        assert "assay import FILE` takes 256 MiB" in answer.text
        assert 'type="file"' in answer.text, "another can be chosen"

    def test_a_file_that_fills_most_of_a_form_has_to_be_chosen_again(self, api: Service) -> None:
        """Of a form's 8 MiB, 6 MiB that can't be compressed take all in base64, 3 MiB a half."""
        noise = random.Random(0).randbytes(6 << 20)
        pages = [send(api, ("rows.jsonl", noise[:size])) for size in (3 << 20, 6 << 20)]
        assert ["choose it again" in page.text for page in pages] == [False, True]
        assert ["kept" in held(page) for page in pages] == [True, False]

    def test_of_two_files_none_is_silently_left_out(self, api: Service) -> None:
        files = [("file", (name, ROWS)) for name in ("a.jsonl", "b.jsonl")]
        answer = post(api, data={"action": "read"}, files=files)
        assert answer.status_code == 422
        assert "choose one" in answer.text

    def test_another_type_of_body_is_refused(self, api: Service) -> None:
        assert post(api, data={"action": "read"}).status_code == 415


class TestStoring:
    def test_a_job_is_submitted_once_its_plan_was_seen(self, stack: Service) -> None:
        told = {"score": "rating", "scale": "0-10", "trait": "E=high", "name": "from a file"}
        unseen = send(stack, ("rows.jsonl", ROWS), **told, action="submit")
        assert unseen.status_code == 200, "a plan is shown instead"
        answer = send(stack, None, **told | held(unseen) | {"action": "submit"})
        assert answer.status_code == 303, answer.text
        id_ = answer.headers["location"].removeprefix("/jobs/")
        job = stack.wait(id_, "completed")
        assert job["name"] == "from a file"
        assert (
            stack.get(f"/v1/jobs/{id_}/results").json()["totals"][0]["metrics"]["acc_atom"]["value"] == 2 / 3
        )
        twice = send(stack, None, **told | held(unseen) | {"action": "submit"})
        assert twice.headers["location"] == answer.headers["location"]

    def test_personas_and_questions_are_kept_as_sets(self, api: Service) -> None:
        card = send(api, ("card.png", FILES["character_card"]["card.png"]), action="personas", name="Ada")
        assert card.headers["location"].startswith("/persona-sets/pset_")
        file = ("a cowboy.json", FILES["personagym"]["a cowboy.json"])
        asked = send(api, file, action="questions")
        assert asked.headers["location"].startswith("/question-sets/qset_")
        kept = api.get(f"/v1{asked.headers['location']}").json()
        assert [*kept["questions"]] == ["a cowboy"]

    def test_a_persona_sets_personas_are_known_by_their_words(self, stack: Service) -> None:
        people = [{"id": "shy", "description": "a shy clown", "traits": {"E": "low"}}]
        set_ = stack.post("/v1/persona-sets", {"personas": people}).json()["id"]
        rows = json_lines({"system": "You are a shy  clown.", "response": "No."})
        planned = send(stack, ("rows.jsonl", rows), personas=set_, action="plan")
        assert planned.status_code == 200, planned.text
        assert ">shy</bdi> × 1" in planned.text
