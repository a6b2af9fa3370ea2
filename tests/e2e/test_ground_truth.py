"""A job's results against the simulator's own record of what it wrote, and of what it judged."""

import re
from collections import Counter
from itertools import product

import pytest

from tests.e2e.stack import Json, Stack, judged_path
from tests.e2e.truth import Scale, Text, assert_agrees, cell_truth, over_judges, totals_truth
from tests.faults.trial import report

PERSONAS = ("O-high", "A-neutral", "N-low")
LEVELS = ("low", "neutral", "high")
TASKS = ("questionnaire", "essay", "social_media_post")
ITERATIONS = 2
RUNS = 3 * ITERATIONS
FORMALITY = {
    "id": "formality",
    "name": "formality",
    "options": (
        "1) Very casual. 2) Casual. 3) Slightly casual. 4) Neither. 5) Slightly formal. 6) Formal."
        " 7) Very formal. 9) None of the above."
    ),
    "scale": {"minimum": 1, "maximum": 7, "not_applicable": 9},
    "levels": ["casual", "plain", "formal"],
}
JUDGES = ("simulated/sim-judge", "simulated/sim-judge-noisy")
TRAITS = (("A", "low"), ("E", "low"), ("formality", "plain"))


def sentences(text: str) -> int:
    """Sentences of a refusal, which have no abbreviations."""
    return len(re.findall(r"[.!?](?=\s|$)", text))


def graded(entry: Json, run: int, dimension: str, *, told: bool) -> Text:
    """What a judge without error makes of a text: the true score where a sentence has that trait.

    Args:
        entry: The ledger's line.
        run: The response's run.
        dimension: The dimension that is judged.
        told: Whether the wire format carries the words of a refusal that is flagged as one.
    """
    instruction = run // ITERATIONS
    if entry["refusal"]:
        removed = sentences(entry["text"]) if told or entry["refusal"] == "text" else 0
        return Text(run, instruction, left_out=Counter(refused=removed))
    scores = [score for _, trait, score in entry["units"] if trait == dimension]
    left_out = Counter(not_applicable=len(entry["units"]) - len(scores))
    return Text(run, instruction, scores, left_out)


@pytest.fixture(scope="module", params=["simulated", "simulated-anthropic"])
def connection(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def job(stack: Stack, connection: str) -> Json:
    """A finished job with a model that refuses sometimes."""
    body = {
        "personas": list(PERSONAS),
        "tasks": list(TASKS),
        "models": [f"{connection}/sim-drifting", f"{connection}/sim-refusing"],
        "judges": [f"{connection}/sim-judge"],
        "instructions": [0, 2, 5],
        "iterations": ITERATIONS,
    }
    return stack.ended(stack.submit(body)) | {"models": body["models"]}


@pytest.fixture(scope="module")
def truth(stack: Stack, job: Json, connection: str) -> list[Json]:
    """Every cell, sorted as results are, from the ledger's generations alone."""
    cells = list(product(PERSONAS, TASKS, job["models"]))
    written: list[list[tuple[Json, Text]]] = [[] for _ in cells]
    for entry in stack.ledger(job["id"]):
        if entry["kind"] == "generation":
            _, cell, run, _ = judged_path(entry["request_id"]).split("/")
            persona, _, model = cells[int(cell)]
            dimension, _, level = persona.partition("-")
            assert (entry["persona"], entry["model"]) == ({dimension: level}, model.partition("/")[2])
            text = graded(entry, int(run), dimension, told=connection == "simulated")
            written[int(cell)].append((entry, text))
    found = [cell_of(*names, texts) for names, texts in zip(cells, written, strict=True)]
    return sorted(found, key=lambda cell: (cell["model"], cell["persona"], cell["task"]))


def cell_of(persona: str, task: str, model: str, written: list[tuple[Json, Text]]) -> Json:
    """A cell of the results, from the ledger's lines and what the judge made of each."""
    dimension, _, level = persona.partition("-")
    refused = [text for entry, text in written if entry["refusal"]]
    planned = RUNS * (10 if task == "questionnaire" else 1)
    generation = {
        "planned": planned,
        "answered": planned - len(refused),
        "refused": len(refused),
        "failed": 0,
        "refused_units": sum(text.left_out["refused"] for text in refused),
    }
    one = cell_truth([text for _, text in written], Scale(1, 5, 3, LEVELS.index(level)))
    return {
        "model": model,
        "persona": persona,
        "task": task,
        "dimension": dimension,
        "level": level,
        "runs": RUNS,
        "generation": generation,
        **one,
        "by_judge": {f"{model.partition('/')[0]}/sim-judge": one},
    }


class TestJobJudgedWithoutError:
    def test_is_completed_in_full(self, job: Json) -> None:
        assert (job["status"], job["completeness"]) == ("completed", "full")

    def test_had_refusals_to_leave_out(self, truth: list[Json]) -> None:
        assert sum(cell["generation"]["refused"] for cell in truth) > 20
        assert sum(cell["units"]["refused"] for cell in truth) > 10
        assert sum(cell["units"]["not_applicable"] for cell in truth) > 100

    def test_every_cell_is_what_the_ledger_says(self, stack: Stack, job: Json, truth: list[Json]) -> None:
        assert_agrees(stack.results(job["id"])["cells"], truth)

    def test_every_total_is_what_the_ledger_says(self, stack: Stack, job: Json, truth: list[Json]) -> None:
        assert_agrees(stack.results(job["id"])["totals"], totals_truth(truth))

    def test_every_judgement_reached_the_judge_once(self, stack: Stack, job: Json, truth: list[Json]) -> None:
        asked = Counter(judged_path(entry["request_id"]) for entry in stack.ledger(job["id"]))
        judged = sum(cell["units"]["scored"] + cell["units"]["not_applicable"] for cell in truth)
        written = sum(cell["generation"]["planned"] for cell in truth)
        assert (len(asked), asked.total()) == (judged + written, judged + written)

    def test_the_job_says_what_it_took(self, stack: Stack, job: Json) -> None:
        entries = stack.ledger(job["id"])
        progress = {stage: parts["succeeded"] for stage, parts in job["progress"].items()}
        assert job["usage"]["calls"] == len(entries)
        assert job["usage"]["failed_calls"] == 0
        assert progress["generation"] == sum(entry["kind"] == "generation" for entry in entries)
        # Sentences of refusals have verdicts that no judge was asked for.
        refused = sum(cell["units"]["refused"] for cell in stack.results(job["id"])["cells"])
        assert progress["judging"] == sum(entry["kind"] == "judge" for entry in entries) + refused

    def test_its_texts_brought_back_as_existing_ones_measure_the_same(
        self, stack: Stack, job: Json, truth: list[Json], connection: str
    ) -> None:
        texts = [
            {
                "persona": response["persona"],
                "task": response["task"],
                "item": response["item"]["id"],
                "run": response["run"],
                "instruction": response["instruction"],
                "model": response["model"],
                "text": response["text"],
            }
            for response in stack.responses(job["id"])
        ]
        body = {"personas": list(PERSONAS), "tasks": list(TASKS), "judges": [f"{connection}/sim-judge"]}
        again = stack.ended(stack.submit(body | {"responses": texts}))
        assert (again["status"], again["completeness"]) == ("completed", "full")
        assert {entry["kind"] for entry in stack.ledger(again["id"])} == {"judge"}
        cells, totals = (stack.results(again["id"])[part] for part in ("cells", "totals"))
        # A refusal that came without words is, brought back, an empty text and no refusal.
        same = [{name: part for name, part in cell.items() if name != "generation"} for cell in truth]
        assert_agrees(cells, same)
        assert_agrees(totals, totals_truth(truth))


Replies = dict[tuple[int, int, int, int], int | None]


@pytest.fixture(scope="module")
def critic(stack: Stack) -> Json:
    traits = dict(TRAITS)
    body = {
        "personas": [{"id": "critic", "description": "a rude and shy critic", "traits": traits}],
        "tasks": ["social_media_post"],
        "models": ["simulated/sim-erratic"],
        "judges": list(JUDGES),
        "dimensions": [FORMALITY],
        "instructions": [0, 1, 3],
        "iterations": ITERATIONS,
    }
    return stack.ended(stack.submit(body))


@pytest.fixture(scope="module")
def replies(stack: Stack, critic: Json) -> Replies:
    """The number that each judge gave in the end, by run, unit, trait and judge."""
    found: Replies = {}
    for entry in stack.ledger(critic["id"]):
        if entry["kind"] == "judge":
            # A follow-up has the same place and comes later: its reply replaces an unreadable one.
            run, _, unit, trait, judge = judged_path(entry["request_id"]).split("/")[-5:]
            found[int(run), int(unit), int(trait), int(judge)] = (
                9 if entry["reply"] == "N/A" else entry["given"]
            )
    return found


class TestTextJudgedOnSeveralTraitsByTwoJudges:
    def test_is_completed_in_full(self, critic: Json) -> None:
        assert (critic["status"], critic["completeness"]) == ("completed", "full")

    def test_is_generated_once_for_all_its_traits(self, stack: Stack, critic: Json) -> None:
        entries = [entry for entry in stack.ledger(critic["id"]) if entry["kind"] == "generation"]
        assert len(entries) == RUNS

    def test_every_unit_is_judged_on_every_trait_by_every_judge(
        self, stack: Stack, critic: Json, replies: Replies
    ) -> None:
        written = {
            int(judged_path(entry["request_id"]).split("/")[2]): len(entry["units"])
            for entry in stack.ledger(critic["id"])
            if entry["kind"] == "generation"
        }
        expected = {
            (run, unit, trait, judge)
            for run, units in written.items()
            for unit, trait, judge in product(range(units), range(3), range(2))
        }
        assert replies.keys() == expected

    def test_every_cell_is_what_the_judges_replied(
        self, stack: Stack, critic: Json, replies: Replies
    ) -> None:
        assert None not in replies.values()
        truth = [
            self._cell(replies, 0, Scale(1, 5, 3, target=0)),
            self._cell(replies, 1, Scale(1, 5, 3, target=0)),
            self._cell(replies, 2, Scale(1, 7, 3, target=1)),  # [3, 5)
        ]
        assert_agrees(stack.results(critic["id"])["cells"], truth)

    def test_every_unreadable_reply_was_repaired(self, stack: Stack, critic: Json) -> None:
        ledger = [entry for entry in stack.ledger(critic["id"]) if entry["kind"] == "judge"]
        unread = sum(entry["given"] is None and entry["reply"] != "N/A" for entry in ledger)
        repairs = stack.results(critic["id"])["repairs"]
        assert sum(each["unread"] for each in repairs) == unread > 0
        assert sum(each["repaired"] for each in repairs) == unread
        asked = sum(entry["kind"] == "judge" for entry in ledger) - unread
        report("noisy judge", seed=0, n=asked, of=asked, unread=unread, unparsed=0)

    def _cell(self, replies: Replies, trait: int, scale: Scale) -> Json:
        by_judge = [
            cell_truth([self._text(replies, run, trait, judge) for run in range(RUNS)], scale)
            for judge in range(2)
        ]
        dimension, level = TRAITS[trait]
        names = dict(zip(JUDGES, by_judge, strict=True))
        return {"dimension": dimension, "level": level, **over_judges(by_judge), "by_judge": names}

    def _text(self, replies: Replies, run: int, trait: int, judge: int) -> Text:
        given = [reply for (r, _, t, j), reply in replies.items() if (r, t, j) == (run, trait, judge)]
        left_out = Counter(not_applicable=given.count(9), unparsed=given.count(None))
        scores = [reply for reply in given if reply is not None and reply != 9]
        return Text(run, run // ITERATIONS, scores, left_out)
