"""Credit that runs out in mid-job, in the words of many providers, over real HTTP and with two real workers."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import TERMINAL, Json, Stack, connected_stack
from tests.faults.providers import Providers
from tests.integration.llm.provider_replies import NO_CREDIT, fault
from tests.integration.llm.stub_provider import Answer
from tests.observe import eventually

ANSWERED = 30
"""Calls of each job that the provider answers before the credit is used up."""
WORKERS = 2
IN_FLIGHT = 6
"""Calls of a worker to a model at once, which are refused together when the credit ends, however busy the machine is."""
AT_MOST = 20
"""Refused calls of a job for each worker."""
PATIENCE = 120.0
JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["questionnaire"],
    "instructions": [1, 2, 3],
    "iterations": 5,
}
"""150 texts."""
UNKNOWN = {
    "an unknown code, forbidden": fault(403, "Le quota du projet est atteint.", code="quota_projet"),
    "no code, bad request": fault(400, "Das Kontingent ist ausgeschöpft."),
    "a number as code": Answer.of_json(
        {"code": 70213, "message": "Wallet is dry, please visit the cashier."}, 403
    ),
    "text only": Answer.of_json({"error": "Your plan ended yesterday. See you soon!"}, 400),
    "a detail": Answer.of_json({"detail": "The meter of this workspace stands at zero."}, 422),
    "a type, no code": fault(400, "Tokens bought so far: 1000000, tokens left: 0.", type="plan_error"),
    "another language": fault(403, "Limita abonamentului a fost atinsă.", code="limita_atinsa"),
    "a message at the top": Answer.of_json({"success": False, "message": "Subscription lapsed"}, 403),
    "an ended contract": fault(
        422, "Contract 4711 has ended; ask sales for a new one.", code="contract_over"
    ),
    "a polite refusal": fault(400, "We paused your key until the next billing date.", param=None, code=None),
}
"""Refusals in invented words that no rule knows: a run of them stops the job."""
REFUSALS: dict[str, Answer] = {name: row[1] for name, row in NO_CREDIT.items() if row[3] not in {"http_429", "rate_limit_exceeded"}} | UNKNOWN  # fmt: skip
NAMES = {f"p{number}": name for number, name in enumerate(REFUSALS)}
"""The connection of each provider."""


class Exhausted(Providers):
    """Counts the calls before and after the credit is used up."""

    def __init__(self) -> None:
        super().__init__()
        self.answered: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def answer(self, connection: str, body: bytes) -> Answer:
        is_judge = json.loads(body)["model"] == "judge"
        with self._lock:
            if self.answered[connection] < ANSWERED:
                self.answered[connection] += 1
                message = {"role": "assistant", "content": "4" if is_judge else "I like to be among people."}
                return Answer.of_json(
                    {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                )
            self.refused[connection] += 1
            return REFUSALS[NAMES[connection]]


@pytest.fixture(scope="module")
def providers() -> Iterator[Exhausted]:
    with Exhausted().serving() as server:
        yield server


@pytest.fixture(scope="module")
def stack(providers: Exhausted, databases: Databases, template_database: str) -> Iterator[Stack]:
    connections = providers.connections(NAMES)
    with (
        scratch_directory() as directory,
        connected_stack(
            connections,
            directory,
            databases,
            template_database,
            WORKERS,
            PROVIDER_KEY="sk-credit-words-0123456789",
            ASSAY_MAX_IN_FLIGHT=str(IN_FLIGHT),
        ) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def job_ids(stack: Stack) -> dict[str, str]:
    """A job of each provider; all run at the same time."""
    return {name: stack.submit(JOB | models(name)) for name in NAMES}


def models(connection: str) -> Json:
    """Return the models of a job; unknown refusals meet writer and judge alike."""
    judge = f"{connection}/judge" if NAMES[connection] in UNKNOWN else "simulated/sim-judge"
    return {"models": [f"{connection}/writer"], "judges": [judge]}


def words_of(answer: Answer) -> str:
    """The provider's own words in a refusal."""
    body = json.loads(answer.body)
    error = body[0] if isinstance(body, list) else body
    error = error.get("error", error)
    if isinstance(error.get("detail") if isinstance(error, dict) else None, dict):
        error = error["detail"]["error"]
    if isinstance(error, str):
        return error
    return str(error.get("message") or error.get("detail") or body["base_resp"]["status_msg"])


def paused(stack: Stack, job_id: str) -> Json:
    """A job that no longer runs, and how it ended."""
    return stack.until(job_id, lambda job: job["status"] in {*TERMINAL, "paused"}, PATIENCE)


@pytest.mark.parametrize("connection", NAMES, ids=NAMES.values())
def test_the_job_pauses_with_the_providers_words(
    connection: str, providers: Exhausted, stack: Stack, job_ids: dict[str, str]
) -> None:
    job = paused(stack, job_ids[connection])
    assert job["status"] == "paused"
    assert words_of(REFUSALS[NAMES[connection]]) in job["error"]["detail"]
    assert 1 <= providers.refused[connection] <= WORKERS * AT_MOST


def test_no_call_follows(providers: Exhausted, stack: Stack, job_ids: dict[str, str]) -> None:
    for job_id in job_ids.values():
        paused(stack, job_id)

    def is_quiet() -> bool:
        refused = providers.refused.total()
        return not eventually(lambda: providers.refused.total() > refused, 1.0)

    assert eventually(is_quiet, PATIENCE)
    assert all(calls <= WORKERS * AT_MOST for calls in providers.refused.values())
