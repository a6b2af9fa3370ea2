"""Plans of jobs a thousand times too large, many at once, beside the submissions of others."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2

from tests.api.service import Json, Service, job_body
from tests.observe import PATIENCE

DIMENSIONS = [
    {
        "id": f"D{n}",
        "name": f"d{n}",
        "scale": {"minimum": 1, "maximum": 5, "not_applicable": 9},
        "levels": ["low", "neutral", "high"],
        "options": "1) a 2) b 3) c 4) d 5) e 9) n",
        "questions": ["How?", "Why?"],
        "essay_context": "You write.",
    }
    for n in range(25)
]
MONSTROUS: Json = {
    "personas": [
        {"id": f"p{n}", "description": "x", "traits": {d["id"]: "low" for d in DIMENSIONS}}
        for n in range(500)
    ],
    "dimensions": DIMENSIONS,
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "models": [{"model": "simulated/sim-faithful", "label": f"m{n}"} for n in range(50)],
    "judges": ["simulated/sim-judge"],
    "instructions": [0],
    "iterations": 1,
}
"""200 kB; 75,000 cells of 25 dimensions each."""


class TestMonstrousPlans:
    def test_sixteen_at_once_are_refused_and_hold_up_no_submission(self, api: Service) -> None:
        """One took 37 s to be refused; during sixteen, everybody's submission was a 503."""

        def plan(_: Any) -> httpx2.Response:
            return httpx2.post(f"{api.url}/v1/jobs/plan", json=MONSTROUS, timeout=PATIENCE, trust_env=False)

        with ThreadPoolExecutor(16) as clients:
            plans = [clients.submit(plan, n) for n in range(16)]
            submitted = [api.submit(job_body()) for _ in range(3)]
            answers = [answer.result() for answer in plans]
        assert len({job["id"] for job in submitted}) == 3
        assert {answer.status_code for answer in answers} == {422}
        assert all("calls; this service allows 200,000" in answer.text for answer in answers)

    def test_a_plan_whose_client_has_gone_is_dropped(self, api: Service) -> None:
        with httpx2.Client(base_url=api.url, timeout=0.05, trust_env=False) as impatient:
            for _ in range(20):
                try:
                    impatient.post("/v1/jobs/plan", json=MONSTROUS)
                except httpx2.TimeoutException:
                    continue
        assert api.post("/v1/jobs/plan", job_body()).status_code == 200
