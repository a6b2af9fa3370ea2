"""A judge who errs to one side: his own intervals miss what people would say of all sentences, the calibrated ones hold it."""

import random
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

import psycopg
import pytest

from simulator.bank import load_bank
from tests.api.service import Json, Service
from tests.databases import libpq_url

PERSONAS: list[Json] = [
    {"id": name, "description": f"a {name} neighbour", "traits": {"E": "low"}}
    for name in ("quiet", "shy", "solitary")
]
IN_LEVEL = {1, 2}
RUNS, SENTENCES, LABELS = 15, 40, 400
SHARES = (8, 5, 3, 2, 1)
ONE_UP, ONE_DOWN = 0.25, 0.08


class Text(NamedTuple):
    """An answer, and what people say of each sentence."""

    model: str
    persona: str
    run: int
    text: str
    people: tuple[int, ...]


def answer(draws: random.Random, model: str, persona: str, run: int) -> Text:
    """Sentences that people give the one score and the judge another; of the model ``exact`` he errs nowhere."""
    people = draws.choices((1, 2, 3, 4, 5), weights=SHARES, k=SENTENCES)
    shifts = draws.choices((1, -1, 0), weights=(ONE_UP, ONE_DOWN, 1 - ONE_UP - ONE_DOWN), k=SENTENCES)
    bank = load_bank().trait
    said = [
        draws.choice(bank["E", score if model == "exact" else min(5, max(1, score + shift))])[0]
        for score, shift in zip(people, shifts, strict=True)
    ]
    if run == 0:
        said.append(load_bank().neutral[0])  # a judge that calls nothing not applicable decides no gate
    return Text(model, persona, run, " ".join(said), tuple(people))


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    draws = random.Random(19)
    return [
        answer(draws, model, persona, run)
        for model in ("exact", "flattered")
        for persona in (each["id"] for each in PERSONAS)
        for run in range(RUNS)
    ]


@pytest.fixture(scope="module")
def job(stack: Service, texts: list[Text]) -> Iterator[Json]:
    """The judged texts, of which people have labelled a round."""
    body = {
        "personas": PERSONAS,
        "tasks": ["social_media_post"],
        "responses": [
            {"persona": each.persona, "task": "social_media_post", "model": each.model, "run": each.run}
            | {"text": each.text}
            for each in texts
        ],
        "judges": ["simulated/sim-judge"],
        "judging": {"sentences_per_call": 20},
    }
    made = stack.wait(stack.submit(body)["id"], "completed")
    people = {each.text: each.people for each in texts}
    said = {
        response["id"]: people[response["text"]]
        for response in stack.walk(f"/v1/jobs/{made['id']}/responses", limit=100)
    }
    label(stack, made, said)
    yield made
    stack.empty("annotations", "labelling_rounds")


def label(stack: Service, job: Json, said: dict[str, tuple[int, ...]]) -> None:
    """Draws a round, and gives the answers of people who know."""
    body = {"job": job["id"], "kind": "sentences", "dimension": "E", "size": LABELS}
    drawn = stack.post("/v1/labelling-rounds", body).json()
    with psycopg.connect(libpq_url(stack.database_url)) as connection:
        ((things,),) = connection.execute(
            "SELECT things FROM labelling_rounds WHERE id = %s", [drawn["id"]]
        ).fetchall()
    rows = []
    for ((cell, run, item, unit),) in things:
        response = f"{job['id'].replace('job_', 'resp_')}-{cell}-{run}-{item}"
        rows.append({"annotator": "anna", "response": response, "unit": unit, "score": said[response][unit]})
    assert stack.post("/v1/annotations", {"annotations": rows}).json()["created"] == LABELS


def truth(texts: list[Text], metric: str, model: str) -> float:
    """What people would say: the mean over sentences, as all texts have as many."""
    return fmean(
        score if metric == "mean" else float(score in IN_LEVEL)
        for each in texts
        for score in each.people
        if each.model == model
    )


def holds(interval: list[float], value: float) -> bool:
    low, high = interval
    return low <= value <= high


@pytest.mark.parametrize("metric", ["mean", "acc_atom"])
class TestABiasedJudge:
    def test_misses_what_people_say_and_the_calibrated_figure_does_not(
        self, stack: Service, job: Json, texts: list[Text], metric: str
    ) -> None:
        real = truth(texts, metric, "flattered")
        (judged,) = (
            total["metrics"][metric]
            for total in stack.get(f"/v1/jobs/{job['id']}/results").json()["totals"]
            if (total["by"], total["model"]) == (["model"], "flattered")
        )
        assert not holds(judged["ci95_runs"], real)
        figure = self.figure(stack, job, "totals", metric, model="flattered")
        assert figure["judged"] == pytest.approx(judged["value"])
        assert holds(figure["ci95_texts"], real)
        assert holds(figure["calibrated"]["ci95_runs"], real)
        assert abs(figure["calibrated"]["value"] - real) < abs(judged["value"] - real)
        for name in ("ci95", "ci95_wordings", "ci95_both"):
            assert figure["calibrated"][name] is None
            assert figure["calibrated"][f"{name}_reason"] == judged[f"{name}_reason"]

    def test_differs_between_models_more_than_people_do(
        self, stack: Service, job: Json, texts: list[Text], metric: str
    ) -> None:
        real = truth(texts, metric, "exact") - truth(texts, metric, "flattered")
        figure = self.figure(stack, job, "differences", metric, a="exact", b="flattered")
        assert holds(figure["ci95_texts"], real)
        assert abs(figure["calibrated"]["value"] - real) < abs(figure["judged"] - real)

    def test_stands_beside_what_people_say_in_a_comparison(
        self, stack: Service, job: Json, texts: list[Text], metric: str
    ) -> None:
        sides = {
            side: {"job": job["id"], "model": model} for side, model in (("a", "flattered"), ("b", "exact"))
        }
        found = stack.post("/v1/comparisons", sides).json()
        (figure,) = (each for each in found["calibrated"] if each["metric"] == metric)
        (judged,) = (
            each for each in found["differences"] if each["metric"] == metric and each["task"] is None
        )
        assert figure["keys"] == {"a": "flattered", "b": "exact"}
        assert figure["judged"] == pytest.approx(judged["difference"])
        assert holds(figure["ci95_texts"], truth(texts, metric, "flattered") - truth(texts, metric, "exact"))
        turned = self.figure(stack, job, "differences", metric, a="exact", b="flattered")
        assert figure["calibrated"]["value"] == pytest.approx(-turned["calibrated"]["value"])
        page = stack.get(
            "/compare", params={side: f"{job['id']}:{each['model']}" for side, each in sides.items()}
        )
        low, high = (f"{'+' if end > 0 else ''}{end:.2f}".replace("-", "−") for end in figure["ci95_texts"])
        assert f"estimated from {LABELS} labels" in page.text
        assert f"interval {low} to {high} for these texts" in page.text
        assert figure["calibrated"]["ci95"] is None
        assert figure["calibrated"]["ci95_reason"].startswith("texts_only: ")
        items = stack.post("/v1/comparisons", {**sides, "pairing": "items"}).json()
        assert items["calibrated"] == []

    def test_passes_a_gate_that_the_calibrated_figure_does_not(
        self, stack: Service, job: Json, texts: list[Text], metric: str
    ) -> None:
        real = truth(texts, metric, "flattered")
        judged = self.figure(stack, job, "totals", metric, model="flattered")["judged"]
        wrong = f"{metric}@model=flattered{'<=' if judged < real else '>='}{(judged + 2 * real) / 3:.3f}"
        thresholds = [f"{wrong}{calibrated} over these personas" for calibrated in ("", " calibrated")]
        gate = stack.get(f"/v1/jobs/{job['id']}/gate", params={"threshold": thresholds}).json()
        plain, calibrated = gate["checks"]
        assert plain["verdict"] == "pass"
        assert calibrated["verdict"] in {"inconclusive", "fail"}
        assert calibrated["of"] == {"model": "flattered"}
        assert holds(calibrated["ci95"], real)

    def figure(self, stack: Service, job: Json, kind: str, metric: str, **keys: str) -> Json:
        (data,) = stack.get(f"/v1/jobs/{job['id']}/calibration").json()["data"]
        found: Json
        (found,) = (each for each in data[kind] if each["keys"] == keys and each["metric"] == metric)
        return found
