"""Two models whose sentences come from one generator, a few and many a text, differ in length alone."""

import random

import pytest

from simulator.bank import load_bank
from tests.api.service import Json, Service

DIMENSIONS = ("O", "C", "E", "A")
RUNS = 8
SHORT, LONG = 3, 24
"""Sentences of a text."""


def responses(sentences: int) -> list[Json]:
    draws = random.Random(sentences)
    bank = load_bank().trait

    def text(dimension: str) -> str:
        scores = draws.choices((1, 2, 3, 4, 5), weights=(1, 2, 3, 6, 8), k=sentences)
        return " ".join(draws.choice(bank[dimension, score])[0] for score in scores)

    return [
        {
            "persona": f"{dimension}-{level}",
            "task": "social_media_post",
            "model": "writer",
            "run": run,
            "text": text(dimension),
        }
        for dimension in DIMENSIONS
        for level in ("low", "high")
        for run in range(RUNS)
    ]


def judged(stack: Service, sentences: int) -> str:
    given = responses(sentences)
    body = {
        "personas": sorted({response["persona"] for response in given}),
        "tasks": ["social_media_post"],
        "responses": given,
        "judges": ["simulated/sim-judge"],
    }
    job: Json = stack.wait(stack.submit(body)["id"], "completed")
    return str(job["id"])


@pytest.fixture(scope="module")
def jobs(stack: Service) -> tuple[str, str]:
    return judged(stack, SHORT), judged(stack, LONG)


class TestTextsOfDifferentLength:
    def test_are_not_called_different_in_what_depends_on_it(
        self, stack: Service, jobs: tuple[str, str]
    ) -> None:
        body = {"a": {"job": jobs[0]}, "b": {"job": jobs[1]}}
        found = stack.post("/v1/comparisons", body).json()
        rows = {row["metric"]: row for row in found["differences"] if row["task"] is None}
        for name in ("acc", "rc", "ic_atom", "rc_atom"):
            assert rows[name]["p_value"] is rows[name]["ci95"] is None
            assert rows[name]["ci95_reason"].startswith("other_length: a has 3.")
        assert abs(rows["rc_atom"]["difference"]) > 0.1
        for name in ("rc_atom_rarefied", "ic_atom_rarefied"):
            assert abs(rows[name]["difference"]) < 0.06
            assert rows[name]["p_value_holm"] > 0.01
        assert rows["acc_atom"]["p_value"] is not None

    def test_are_corrected_in_the_results(self, stack: Service, jobs: tuple[str, str]) -> None:
        short, long = (stack.get(f"/v1/jobs/{job}/results").json()["totals"][0]["metrics"] for job in jobs)
        differences = {name: long[name]["value"] - short[name]["value"] for name in long}
        assert differences["rc_atom"] > 0.1
        assert differences["ic_atom"] < -0.05
        # A distance is never below 0, so few short runs that are alike seem a little apart (docs/metrics.md).
        assert abs(differences["rc_atom_corrected"]) < differences["rc_atom"] / 2
        assert abs(differences["ic_atom_corrected"]) < -differences["ic_atom"] / 2
        assert short["rc_atom_corrected"]["ceiling"] < long["rc_atom_corrected"]["ceiling"]

    def test_may_be_held_to_another_job(self, stack: Service, jobs: tuple[str, str]) -> None:
        threshold = [f"{metric} not worse than {jobs[0]} by 0.5" for metric in ("acc_atom", "rc_atom")]
        found = stack.get(f"/v1/jobs/{jobs[1]}/gate", params={"threshold": threshold}).json()
        assert [check["verdict"] for check in found["checks"]] == ["pass", "inconclusive"]
        assert found["checks"][0]["of"] == {"model": "writer", "than": "writer"}
        missing = f"acc_atom not worse than job_{'0' * 26} by 0.5"
        assert stack.get(f"/v1/jobs/{jobs[1]}/gate", params={"threshold": missing}).status_code == 404
