"""Reproduction bundles: a job goes to another installation, which computes the same results; whatever was changed on the way is refused."""

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import httpx2
import psycopg
import pytest

from app.domain.jobs.bundle import MOST_DOCUMENT_BYTES, MOST_LINE_BYTES
from app.domain.sets.kinds import QUESTION_SET, set_id
from app.services.results.bundle_file import MOST_NESTED
from app.services.results.bundle_reader import MOST_SETS
from tests.api.service import Json, Service, pointers
from tests.api.test_personagym import gym_body
from tests.databases import libpq_url

QUESTIONS = {"a nun": {"expected_action": ["What now?"]}}
SET = (
    json.dumps(
        {"id": set_id(QUESTION_SET, QUESTIONS), "name": None, "content": QUESTIONS, "made": False}
    ).encode()
    + b"\n"
)
ZIP = {"Content-Type": "application/zip"}
Files = dict[str, bytes]


def exported(service: Service, job_id: str, **options: str) -> bytes:
    answer = service.get(f"/v1/jobs/{job_id}/exports/bundle", params=options)
    assert answer.status_code == 200, answer.text
    return answer.content


def imported(service: Service, bundle: bytes) -> httpx2.Response:
    return service.post("/v1/bundles", content=bundle, headers=ZIP)


def files_of(bundle: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(bundle)) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A bundle of these files, with the hashes that they have now."""
    header = json.loads(files["bundle.json"])
    for name in header["files"]:
        if name in files:
            header["files"][name] = {
                "sha256": hashlib.sha256(files[name]).hexdigest(),
                "bytes": len(files[name]),
            }
    return zipped(files | {"bundle.json": json.dumps(header).encode()}, method)


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return written.getvalue()


def unharmed(changed: bytes, bundle: bytes) -> bool:
    try:
        return files_of(changed) == files_of(bundle)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):
        return False


def results_of(service: Service, job_id: str) -> str:
    return service.get(f"/v1/jobs/{job_id}/results").text


def renamed(content: Files | str, old: str, new: str) -> Any:
    """A bundle's files, or a text, with one job's id in the place of another, except in the provider's own ids."""
    new = new.removeprefix("job_")
    found = re.compile(f"(?<!req_job_){old.removeprefix('job_')}")
    if isinstance(content, str):
        return found.sub(new, content)
    return {name: found.sub(new, part.decode("latin-1")).encode("latin-1") for name, part in content.items()}


def same_files(one: bytes, other: bytes) -> bool:
    """Tell whether two bundles hold the same but for the hashes, which the job's id changes."""
    first, second = (files_of(each) for each in (one, other))
    ids = [json.loads(files["bundle.json"])["job"] for files in (first, second)]
    del first["bundle.json"], second["bundle.json"]
    return bool(renamed(first, *ids) == second)


@pytest.fixture(scope="module")
def bundle(stack: Service, finished: Json) -> bytes:
    return exported(stack, finished["id"])


@pytest.fixture
def elsewhere(api: Service) -> Service:
    """Another installation: another database, no workers."""
    return api


class TestRoundTrip:
    def test_another_installation_has_the_same_results_texts_and_verdicts(
        self, stack: Service, finished: Json, bundle: bytes, elsewhere: Service
    ) -> None:
        answer = imported(elsewhere, bundle)
        assert answer.status_code == 201, answer.text
        job = answer.json()["job"]
        assert job["id"] != finished["id"]
        assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
        source = job.pop("imported_from")
        assert (source["job"], source["sha256"]) == (finished["id"], hashlib.sha256(bundle).hexdigest())
        same = ("status", "spec", "metadata", "started_at", "finished_at", "scores", "simulated")
        assert {name: job[name] for name in same} == {name: finished[name] for name in same}
        ids = job["id"], finished["id"]
        assert renamed(results_of(elsewhere, job["id"]), *ids) == results_of(stack, finished["id"])
        for path in ("responses?limit=200", "report?format=jsonl", "report?format=csv&level=cells"):
            here, there = elsewhere.get(f"/v1/jobs/{ids[0]}/{path}"), stack.get(f"/v1/jobs/{ids[1]}/{path}")
            assert renamed(here.text, *ids) == there.text
        shown = elsewhere.get(f"/v1/jobs/{job['id']}").json()
        for part in ("progress", "usage", "cost", "failures"):
            assert shown[part] == finished[part], part

    def test_its_bundle_is_the_one_that_it_came_in(
        self, bundle: bytes, finished: Json, stack: Service, elsewhere: Service
    ) -> None:
        assert exported(stack, finished["id"]) == bundle
        copy = imported(elsewhere, bundle).json()["job"]
        assert same_files(exported(elsewhere, copy["id"]), bundle)

    def test_imported_where_it_was_made_it_is_another_job_and_the_first_stays(
        self, stack: Service, finished: Json, bundle: bytes
    ) -> None:
        before = results_of(stack, finished["id"])
        other = imported(stack, bundle).json()["job"]
        assert other["id"] != finished["id"]
        assert other["imported_from"]["job"] == finished["id"]
        page = stack.http.get(f"/jobs/{other['id']}").text
        assert f"from a bundle of <code>{finished['id']}</code>" in page
        own, old = (each.removeprefix("job_") for each in (other["id"], finished["id"]))
        assert results_of(stack, other["id"]).replace(own, old) == before == results_of(stack, finished["id"])
        assert stack.http.delete(f"/v1/jobs/{other['id']}").status_code == 204

    def test_a_job_that_was_renamed_keeps_both_names(
        self, stack: Service, finished: Json, bundle: bytes, elsewhere: Service
    ) -> None:
        job = imported(stack, bundle).json()["job"]  # a copy, as others use the finished job
        path = f"/v1/jobs/{job['id']}"
        assert stack.http.patch(path, json={"name": "Table 2"}).status_code == 200
        renamed_job = exported(stack, job["id"])
        answer = imported(elsewhere, renamed_job)
        assert answer.status_code == 201, answer.text
        assert answer.json()["job"]["name"] == "Table 2"
        assert json.loads(results_of(elsewhere, answer.json()["job"]["id"]))["name"] == finished["name"]
        assert same_files(exported(elsewhere, answer.json()["job"]["id"]), renamed_job)
        assert stack.http.delete(path).status_code == 204

    def test_without_raw_replies_the_results_are_the_same(
        self, stack: Service, finished: Json, elsewhere: Service
    ) -> None:
        files = files_of(exported(stack, finished["id"], raw_replies="false"))
        assert b'"raw":"' not in files["tables/verdicts.jsonl"]
        answer = imported(elsewhere, zipped(files))
        assert answer.status_code == 201, answer.text
        copy = answer.json()["job"]["id"]
        assert renamed(results_of(elsewhere, copy), copy, finished["id"]) == results_of(stack, finished["id"])

    def test_a_personagym_job_brings_its_questions_along(self, stack: Service, elsewhere: Service) -> None:
        body = gym_body()
        job = stack.wait(stack.submit(body)["id"], "completed", "failed")
        answer = imported(elsewhere, exported(stack, job["id"]))
        assert answer.status_code == 201, answer.text
        path = answer.json()["job"]["links"]["question_set"]
        assert elsewhere.get(path).json() == stack.get(path).json()
        copy = answer.json()["job"]["id"]
        assert renamed(results_of(elsewhere, copy), copy, job["id"]) == results_of(stack, job["id"])

    def test_a_job_that_is_not_over_has_none(self, api: Service) -> None:
        job = api.submit(api_body())
        answer = api.get(f"/v1/jobs/{job['id']}/exports/bundle")
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")

    def test_the_secret_of_key_words_stays_at_home(self, stack: Service, elsewhere: Service) -> None:
        job = stack.wait(stack.submit(api_body() | {"protocol": "hardened"})["id"], "completed", "failed")
        bundle = exported(stack, job["id"])
        copy = imported(elsewhere, bundle).json()["job"]
        home, there = secret_of(stack, job), secret_of(elsewhere, copy)
        whole = b"".join(files_of(bundle).values()).decode()
        assert not [secret for secret in (home, there) if secret in whole]
        assert len(home) == len(there)
        assert same_files(exported(elsewhere, copy["id"]), bundle)

    def test_it_names_no_tenant_and_no_key_or_lease(self, bundle: bytes) -> None:
        whole = b"\n".join(files_of(bundle).values())
        for word in (b'"tenant"', b'"lease_owner"', b'"traceparent"', b"http://127.0.0.1", b"postgresql:"):
            assert word not in whole


def secret_of(service: Service, job: Json) -> str:
    """What the key words of a hardened job's texts are made with."""
    with psycopg.connect(libpq_url(service.database_url), autocommit=True) as connection:
        query = "SELECT spec->'hardening'->>'secret' FROM jobs WHERE id = %s"
        (found,) = connection.execute(query, [job["id"]]).fetchone() or ("",)
    return str(found)


def api_body() -> Json:
    return {
        "personas": ["E-low"],
        "tasks": ["essay"],
        "models": ["simulated/sim-faithful"],
        "judges": ["simulated/sim-judge"],
        "instructions": [1],
        "iterations": 1,
    }


def rows(change: Callable[[list[Json]], object]) -> Callable[[bytes], bytes]:
    """Changes the objects of a file of JSON Lines."""

    def changed(content: bytes) -> bytes:
        found = [json.loads(line) for line in content.splitlines()]
        change(found)
        return b"".join(json.dumps(row).encode() + b"\n" for row in found)

    return changed


def document(change: Callable[[Json], object]) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        found = json.loads(content)
        change(found)
        return json.dumps(found).encode()

    return changed


def first_scored(found: list[Json]) -> Json:
    return next(row for row in found if row["score"] is not None)


def first_answered(found: list[Json]) -> Json:
    return next(row for row in found if row["status"] == "answered")


def other_score(found: list[Json]) -> None:
    row = first_scored(found)
    row["score"] = 6 - row["score"] if row["score"] != 3 else 1


def other_score_alone(found: list[Json]) -> None:
    first_scored(found)["raw"] = None
    other_score(found)


def _set(**fields: Any) -> Callable[[list[Json]], object]:
    return lambda found: found[0].update(fields)


CHANGES: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "another score": ("verdicts", rows(other_score), "/tables/verdicts.jsonl/"),
    "another score and no reply": ("verdicts", rows(other_score_alone), "/results.json/"),
    "a reply in other words": (
        "verdicts",
        rows(lambda f: first_scored(f).update(raw="I would not know.")),
        "/tables/verdicts.jsonl/",
    ),
    "another text": (
        "responses",
        rows(lambda f: first_answered(f).update(text="One. " + first_answered(f)["text"])),
        "/tables/responses.jsonl/",
    ),
    "a model's name longer than an index holds": (
        "shard_usage",
        rows(_set(model="".join(map(str, range(3_000))))),
        "/tables/shard_usage.jsonl",
    ),
    "other tokens": ("calls", rows(_set(input_tokens=7)), "/tables/shard_usage.jsonl"),
    "a verdict less": ("verdicts", rows(lambda found: found.pop()), "/results.json/"),
    "a verdict twice": ("verdicts", rows(lambda found: found.append(found[0])), "/tables/verdicts.jsonl"),
    "a score beyond the scale": (
        "verdicts",
        rows(lambda found: first_scored(found).update(score=6)),
        "/tables/verdicts.jsonl/",
    ),
    "a score without its status": (
        "verdicts",
        rows(lambda found: first_scored(found).update(status="refused")),
        "/tables/verdicts.jsonl",
    ),
    "an unknown status": ("verdicts", rows(_set(status="grand", score=None)), "/tables/verdicts.jsonl"),
    "a judge too many": ("verdicts", rows(_set(judge=2)), "/tables/verdicts.jsonl/1"),
    "a sentence too many": ("verdicts", rows(_set(unit=30_000)), "/tables/verdicts.jsonl/1"),
    "a verdict on nothing": ("verdicts", rows(_set(run=9)), "/tables/verdicts.jsonl/1"),
    "an unknown field": (
        "verdicts",
        rows(lambda f: [r.update(mood=1) for r in f]),
        "/tables/verdicts.jsonl/1",
    ),
    "a field of one row": ("verdicts", rows(_set(mood=1)), "/tables/verdicts.jsonl/"),
    "a number that is too large": ("calls", rows(_set(attempt=10**9)), "/tables/calls.jsonl"),
    "a moment that is none": ("calls", rows(_set(started_at="tomorrow-ish")), "/tables/calls.jsonl"),
    "a zero byte": ("responses", rows(_set(thoughts="a\x00b")), "/tables/responses.jsonl"),
    "a list for a number": ("shards", rows(_set(failures=[1])), "/tables/shards.jsonl"),
    "a word for yes or no": ("shards", rows(_set(parked="x")), "/tables/shards.jsonl"),
    "a shard of too many runs": ("shards", rows(_set(run_stop=2**31 - 1)), "/tables/shards.jsonl/1"),
    "an object for a number": ("shards", rows(_set(failures={"a": 1})), "/tables/shards.jsonl"),
    "a call of no shard": ("calls", rows(_set(shard=9_999)), "/tables/calls.jsonl"),
    "an unknown stage": ("calls", rows(_set(stage="encore")), "/tables/calls.jsonl/1"),
    "a call less": ("calls", rows(lambda found: found.pop()), "/tables/shard_usage.jsonl"),
    "a sentence outside its text": (
        "responses",
        rows(lambda f: f[0]["unit_ends"].__setitem__(-1, 10**6)),
        "/tables/responses.jsonl/1",
    ),
    "a run too many": ("responses", rows(_set(run=2)), "/tables/responses.jsonl/1"),
    "a cell too many": ("cells", rows(lambda found: found.append(found[-1])), "/tables/cells.jsonl/"),
    "a cell less": ("cells", rows(lambda found: found.pop()), "/tables/cells.jsonl"),
    "another persona": ("cells", rows(_set(persona="N-high")), "/tables/cells.jsonl/1"),
    "no JSON": ("grades", lambda _: b"{'a': 1}\n", "/tables/grades.jsonl/1"),
    "not a number": (
        "calls",
        lambda content: content.replace(b'"attempt":0', b'"attempt":NaN', 1).replace(
            b'"attempt":1', b'"attempt":NaN', 1
        ),
        "/tables/calls.jsonl/1",
    ),
    "a list": ("grades", lambda _: b"[1]\n", "/tables/grades.jsonl/1"),
    "no line end to find": ("grades", lambda _: b'{"judge": ' + b" " * 70_000_000 + b"1}", ""),
    "another result": (
        "results.json",
        document(lambda found: found["cells"][0]["metrics"]["acc_atom"].update(value=0.123)),
        "/results.json/cells/0/metrics/acc_atom/value",
    ),
    "a result less": (
        "results.json",
        document(lambda found: found["totals"].pop()),
        "/results.json/totals",
    ),
    "results of another job": (
        "results.json",
        document(lambda found: found.update(job="job_01kxyz0abcdefghjkmnpqrstvw")),
        "/results.json/job",
    ),
    "results that are none": ("results.json", lambda _: b'{"cells": 1}', "/results.json/job"),
    "no specification": ("specification.json", lambda _: b"{}", "/specification.json/personas"),
    "too many runs": (
        "specification.json",
        document(lambda found: found.update(iterations=10**9)),
        "/specification.json",
    ),
    "an unknown dimension": (
        "specification.json",
        document(lambda found: found.update(dimensions=[])),
        "/specification.json",
    ),
    "a field that specifications lack": (
        "specification.json",
        document(lambda found: found["tasks"][0].update(x=[])),
        "/specification.json/tasks/0/x",
    ),
    "endlessly many sentences": (
        "specification.json",
        document(lambda found: found["tasks"][0].update(expected_units=1e308)),
        "/specification.json",
    ),
    "a judge of a profile that is missing": (
        "specification.json",
        document(lambda found: found["judges"][0].update(profile="x")),
        "/tables/verdicts.jsonl/1",
    ),
    "a level that its dimension's scale lacks": (
        "specification.json",
        document(lambda found: found["dimensions"][0]["scale"].update(levels=["little", "much"])),
        "/results.json",
    ),
    "a running job": (
        "job.json",
        document(lambda found: found.update(status="running")),
        "/job.json/status",
    ),
    "a wrong moment": (
        "job.json",
        document(lambda found: found.update(started_at="x")),
        "/job.json/started_at",
    ),
    "a wrong request": ("job.json", document(lambda f: f["request"].update(models=1)), "/job.json/request"),
    "a request of no task": (
        "job.json",
        document(lambda found: found["request"].update(tasks=[{}])),
        "/job.json/request",
    ),
    "a set of another content": (
        "sets.jsonl",
        lambda _: b'{"id": "qset_0", "name": null, "content": {"p": {"t": ["?"]}}, "made": true}\n',
        "/sets.jsonl/1",
    ),
    "a set that is none": ("sets.jsonl", lambda _: b'{"id": 1}\n', "/sets.jsonl/1/"),
    "too many sets": ("sets.jsonl", lambda _: SET * (MOST_SETS + 1), f"/sets.jsonl/{MOST_SETS + 1}"),
    "a later version": (
        "bundle.json",
        document(lambda found: found.update(version=2)),
        "/bundle.json/version",
    ),
    "another format": ("bundle.json", document(lambda f: f.update(format="x")), "/bundle.json/format"),
    "not simulated": (
        "bundle.json",
        document(lambda found: found.update(simulated=False)),
        "/bundle.json/simulated",
    ),
    "a strange id": ("bundle.json", document(lambda found: found.update(job="j\x00b")), "/bundle.json/job"),
}


def path_of(name: str) -> str:
    return name if "." in name else f"tables/{name}.jsonl"


class TestRefused:
    @pytest.mark.parametrize("what", CHANGES)
    def test_what_was_changed_is_told_and_nothing_is_written(
        self, bundle: bytes, elsewhere: Service, nothing_created: None, what: str
    ) -> None:
        name, change, pointer = CHANGES[what]
        files = files_of(bundle)
        files[path_of(name)] = change(files[path_of(name)])
        answer = imported(elsewhere, packed(files))
        assert answer.status_code == 422, (what, answer.text)
        assert pointers(answer)[0].startswith(pointer), answer.text

    def test_a_wrong_hash_is_told(self, bundle: bytes, elsewhere: Service, nothing_created: None) -> None:
        files = files_of(bundle)
        files["results.json"] += b" "
        answer = imported(elsewhere, zipped(files))
        assert answer.status_code == 422
        assert "SHA-256" in answer.json()["errors"][0]["message"]

    @pytest.mark.parametrize("name", ["../../etc/passwd", "/tmp/x", "tables/../x", "tables/secrets.jsonl"])
    def test_a_file_of_another_name_is_refused(
        self, bundle: bytes, elsewhere: Service, nothing_created: None, name: str
    ) -> None:
        answer = imported(elsewhere, zipped(files_of(bundle) | {name: b"x"}))
        assert answer.status_code == 422
        assert name in answer.json()["errors"][0]["message"]

    @pytest.mark.parametrize("name", ["bundle.json", "tables/verdicts.jsonl", "job.json", "results.json"])
    def test_a_missing_file_is_named(
        self, bundle: bytes, elsewhere: Service, nothing_created: None, name: str
    ) -> None:
        files = files_of(bundle)
        del files[name]
        assert pointers(imported(elsewhere, zipped(files))) == [f"/{name}"]

    @pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
    def test_a_file_that_is_in_it_twice_is_refused(
        self, bundle: bytes, elsewhere: Service, nothing_created: None
    ) -> None:
        written = io.BytesIO(bundle)
        with zipfile.ZipFile(written, "a") as file:
            file.writestr("job.json", b"{}")
        assert imported(elsewhere, written.getvalue()).status_code == 422

    def test_a_bomb_is_refused_before_it_is_unpacked(
        self, bundle: bytes, elsewhere: Service, nothing_created: None
    ) -> None:
        files = files_of(bundle) | {"tables/calls.jsonl": b" " * 300_000_000}
        answer = imported(elsewhere, packed(files))
        assert answer.status_code == 422
        assert "times those of the bundle" in answer.json()["errors"][0]["message"]

    def test_a_document_that_memory_should_not_hold_is_refused_unread(
        self, bundle: bytes, elsewhere: Service, nothing_created: None
    ) -> None:
        files = files_of(bundle) | {"job.json": b" " * (MOST_DOCUMENT_BYTES + 1)}
        answer = imported(elsewhere, packed(files))
        assert (answer.status_code, pointers(answer)) == (422, ["/job.json"])
        assert "at most" in answer.json()["errors"][0]["message"]

    @pytest.mark.parametrize(
        ("path", "line"),
        [
            *(("job.json", None), ("specification.json", None), ("results.json", None)),
            *(("sets.jsonl", 1), ("tables/responses.jsonl", 1), ("tables/calls.jsonl", 1)),
        ],
    )
    def test_too_many_lists_in_any_file_of_a_complete_bundle_are_refused(
        self, bundle: bytes, elsewhere: Service, nothing_created: None, path: str, line: int | None
    ) -> None:
        files = files_of(bundle)
        rest = b"" if line is None else b"\n" + files[path]
        lists = b'{"a": [' + b"[]," * MOST_NESTED + b"[]]}"
        answer = imported(elsewhere, packed(files | {path: lists + rest}, zipfile.ZIP_STORED))
        assert (answer.status_code, pointers(answer)) == (422, [f"/{path}" + ("" if line is None else "/1")])
        assert answer.json()["errors"][0]["message"] == "has 1,000,003 lists and objects; at most 1,000,000"

    def test_a_long_line_of_a_complete_bundle_is_refused(
        self, bundle: bytes, elsewhere: Service, nothing_created: None
    ) -> None:
        files = files_of(bundle)
        first, _, rest = files["tables/responses.jsonl"].partition(b"\n")
        line = first[:-1] + b', "x": "' + b"x" * MOST_LINE_BYTES + b'"}\n'
        files["tables/responses.jsonl"] = line + rest
        answer = imported(elsewhere, packed(files, zipfile.ZIP_STORED))
        assert (answer.status_code, pointers(answer)) == (422, ["/tables/responses.jsonl/1"])
        assert "a line has at most 33,554,432 bytes" in answer.json()["errors"][0]["message"]

    @pytest.mark.parametrize("cut", [0.0, 0.00001, 0.01, 0.5, 0.999])
    def test_a_part_of_one_is_none(
        self, bundle: bytes, elsewhere: Service, nothing_created: None, cut: float
    ) -> None:
        length = int(cut * len(bundle))
        assert imported(elsewhere, bundle[:length]).status_code == 422

    def test_a_flipped_byte_is_found_wherever_it_matters(
        self, bundle: bytes, elsewhere: Service, nothing_created: None
    ) -> None:
        for place in range(50, len(bundle) - 50, len(bundle) // 12):
            changed = bytearray(bundle)
            changed[place] ^= 0x55
            if unharmed(bytes(changed), bundle):  # a byte of the zip form that nobody reads
                continue
            answer = imported(elsewhere, bytes(changed))
            assert answer.status_code == 422, (place, answer.text)

    def test_another_type_of_body_is_refused(self, bundle: bytes, elsewhere: Service) -> None:
        answer = elsewhere.post("/v1/bundles", content=bundle, headers={"Content-Type": "text/plain"})
        assert answer.status_code == 415


class TestTenants:
    def test_the_answer_does_not_tell_whether_another_tenant_has_the_job(
        self, api: Service, bundle: bytes, finished: Json
    ) -> None:
        other = "INSERT INTO jobs (id, tenant, status, request, spec, simulated, metadata, planned_responses,"
        other += (
            " expected_verdicts) VALUES (%s, 'somebody-else', 'completed', '{}', '{}', false, '{}', 0, 0)"
        )
        answers = [imported(api, bundle)]
        api.execute(other, finished["id"])
        answers.append(imported(api, bundle))
        jobs = [answer.json()["job"] for answer in answers]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert finished["id"] not in {job["id"] for job in jobs}
        for job in jobs:
            changing = {
                job.pop(name)["job"] if name == "imported_from" else str(job.pop(name))
                for name in ("id", "links", "imported_from")
            }
            assert finished["id"] in changing
        assert jobs[0] == jobs[1]
