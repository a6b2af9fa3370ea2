"""PersonaGym at the size of its paper for one model on a real stack: 200 personas × 5 tasks × 10 frozen questions.

10,000 exemplar sets, 10,000 answers and 20,000 grades through the API, workers, Postgres, Valkey and the simulated
provider, all on this machine. `python -m benchmarks.personagym_job --help` says what can be set.
"""

from itertools import product

import httpx2

from benchmarks.whole_job import Json, parser, run

TASKS = ("Expected Action", "Action Justification", "Linguistic Habits", "Persona Consistency", "Toxicity")
QUESTIONS = 10
JOB: Json = {
    "name": "PersonaGym, one model",
    "tasks": [
        "expected_action",
        "action_justification",
        "linguistic_habits",
        "persona_consistency",
        "toxicity_control",
    ],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge-lenient", "simulated/sim-judge-harsh"],
    "reasoner": "simulated/sim-reasoner",
}
OCCUPATIONS = ("nurse", "farmer", "chemist", "sailor", "judge", "potter", "pilot", "cook", "monk", "surgeon")
PLACES = ("Lagos", "Oslo", "Lima", "Kyoto", "Tbilisi")
PURSUITS = ("breeds pigeons", "collects old maps", "plays the cello", "teaches chess")


def main() -> None:
    """Runs the benchmark."""
    options = parser(__doc__)
    options.add_argument("--personas", type=int, default=200, help="personas, at most 200")
    given = options.parse_args()
    run(given, lambda api: _job(api, given.personas))


def _job(api: httpx2.Client, personas: int) -> Json:
    """The job, naming a persona set and a question set that were sent before, all questions in one call."""
    described = [
        f"A {job} from {town} who {does}" for job, town, does in product(OCCUPATIONS, PLACES, PURSUITS)
    ]
    wanted = described[:personas]
    people = api.post("/v1/persona-sets", json={"personas": wanted}).raise_for_status().json()
    files = {f"{who}.json": {task: _questions(who, task) for task in TASKS} for who in wanted}
    questions = api.post("/v1/question-sets", json={"questions": files}).raise_for_status().json()
    return JOB | {"personas": [people["id"]], "questions": questions["id"]}


def _questions(who: str, task: str) -> list[str]:
    return [
        f"It is day {n} of the festival in your town, the road is closed, and a stranger asks you for help with a cart that"
        f" has lost a wheel. You are {who.lower()}: how does your {task.lower()} show in what you say and do next?"
        for n in range(1, QUESTIONS + 1)
    ]


if __name__ == "__main__":
    main()
