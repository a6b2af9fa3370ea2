"""PersonaGym responses, and the results document's part about them by the real domain code."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.domain.judging.judged_response import JudgedResponse
from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.personagym.scores import Grade, GymResponses, GymTally
from app.domain.results.contract import json_text
from app.domain.results.personagym_results import GymResults, gym_results
from tests.unit.judged import a_grade, a_response

JUDGES = ("simulated/judge-a", "simulated/judge-b")


def graded_response(*scores: int | None, justification: str = "It fits.", **changes: Any) -> JudgedResponse:
    """A response with a grade by each judge; ``None`` is a reply that could not be read."""
    question = "What would you buy at this market?"
    fields: dict[str, Any] = {
        "id": "r-1",
        "model": "simulated/steady",
        "persona": "gym-01",
        "levels": {},
        "task": "expected_action",
        "item": "Q-1",
        "item_text": question,
        "text": "Tomatoes, as ever.",
        "question": question,
        "grades": tuple(
            a_grade(
                judge,
                VerdictStatus.UNPARSED if score is None else VerdictStatus.SCORED,
                score=score,
                justification=None if score is None else justification,
                raw=justification
                if score is None
                else f"{justification} Therefore, the final score is {score}.",
            )
            for judge, score in zip(JUDGES, scores, strict=False)
        ),
    }
    return a_response(**(fields | changes))


def gym_results_of(responses: Sequence[JudgedResponse]) -> dict[str, Any]:
    """The document's PersonaScores, totals and judge agreement."""
    tasks = list(dict.fromkeys(response.task for response in responses))
    statuses: dict[tuple[str, str, str], Counter[str]] = {}
    for response in responses:
        key = response.model, response.persona, response.task
        statuses.setdefault(key, Counter())[response.status] += 1
    tallies = [
        GymTally(*key, GymResponses.of(planned=counts.total(), **counts)) for key, counts in statuses.items()
    ]
    grades = [
        Grade(r.model, r.persona, r.task, r.item.id, r.run, grade.judge, Verdict(grade.status, grade.score))
        for r in responses
        for grade in r.grades
    ]
    return document_of(gym_results(tallies, grades, tasks, len({grade.judge for grade in grades}), 0))


def document_of(found: GymResults) -> dict[str, Any]:
    """The part of the results document that PersonaGym results are."""
    fields = ",".join(f'"{name}":{json_text(list(rows))}' for name, rows in found._asdict().items())
    document: dict[str, Any] = json.loads(f"{{{fields}}}")
    return document
