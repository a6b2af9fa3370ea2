"""Reading a job's stored replies again over HTTP: results, exports and bundles follow."""

import csv
import io

from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_bundles import exported, imported


def misread_job(stack: Service) -> Json:
    """A finished job whose stored verdicts of 4 lack their score."""
    job = stack.wait(stack.submit(job_body())["id"], "completed")
    stack.execute(
        "UPDATE verdicts SET status = 'unparsed', score = NULL WHERE score = 4"
        " AND cell_id IN (SELECT id FROM cells WHERE job_id = %s)",
        job["id"],
    )
    return job


def scores_in(stack: Service, job: Json) -> int:
    report = stack.get(f"/v1/jobs/{job['id']}/report", params={"format": "csv", "level": "verdicts"}).text
    return sum(row["status"] == "scored" for row in csv.DictReader(io.StringIO(report)))


def test_what_follows_from_verdicts_follows_from_those_read_again(stack: Service, api: Service) -> None:
    job = misread_job(stack)
    path = f"/v1/jobs/{job['id']}/reread"
    before, lost = stack.get(f"/v1/jobs/{job['id']}/results").json(), scores_in(stack, job)
    shown = stack.post(path, {"examples": 1}).json()
    (change,) = shown["changes"]
    assert (change["before"], change["after"], len(change["examples"])) == ("unparsed", "scored", 1)
    assert change["examples"][0]["score_after"] == 4
    assert not shown["applied"]
    assert scores_in(stack, job) == lost

    applied = stack.post(path, {"apply": True})
    assert (applied.status_code, applied.json()["changed"]) == (200, change["count"])
    again = stack.wait(job["id"], "completed")
    assert again["finished_at"] > job["finished_at"]
    assert scores_in(stack, job) == lost + change["count"]
    after = stack.get(f"/v1/jobs/{job['id']}/results").json()
    assert after["totals"] == before["totals"]
    assert after["computed_at"] > before["computed_at"]
    assert after["manifest"]["instrument"]["replies_first"] == shown["reader_before"]

    for replies, read in (("true", shown["replies"]), ("false", 0)):
        answer = imported(api, exported(stack, job["id"], raw_replies=replies))
        assert answer.status_code == 201, answer.text
        copy = api.post(f"/v1/jobs/{answer.json()['job']['id']}/reread", {}).json()
        assert (copy["changed"], copy["replies"]) == (0, read)


def test_it_is_refused_where_it_makes_no_sense(api: Service) -> None:
    job = api.submit(job_body())
    path = f"/v1/jobs/{job['id']}/reread"
    refused = api.post(path, {"apply": True})
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
    assert "queued" in refused.json()["detail"]
    for body, pointer in (({"apply": 1}, "/apply"), ({"examples": 51}, "/examples"), ({"all": True}, "/all")):
        wrong = api.post(path, body)
        assert (wrong.status_code, pointers(wrong)) == (422, [pointer])
