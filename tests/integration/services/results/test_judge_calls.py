"""What judges were asked, made again from the stored job: it is what was sent, to the letter."""

import re
from dataclasses import dataclass, field

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.errors import InvalidJobError
from app.domain.jobs.request import JudgingIn, OrderCheckIn
from app.domain.judging.judge_call import JudgeCall
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Usage
from app.services.errors import NotFoundError
from app.services.identifiers import response_place
from app.services.job_context import JobContexts
from app.services.results.judge_calls import NOT_ASKED, NOTHING, ORDER, PART, read_judge_calls
from app.services.results.responses import ResponseFilter, read_page
from tests.integration.jobs import TENANT, execute, new_job
from tests.integration.services.execution.test_prepare_persona import new_gym_job, usual
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_persona, a_response, a_task, grouped

Prompts = set[tuple[str | None, str | None]]
JUDGES = (a_model("simulated/sim-judge"), a_model("simulated/sim-judge-harsh"))
TEXT = "I stay at home, it’s {quiet}. I read alone. I like it. I sleep. I wake."


@dataclass
class Recorder(Provider):
    """Keeps every prompt to a judge, and answers a group's second sentence with what is no answer."""

    text: str = TEXT
    sent: dict[str, tuple[str | None, str]] = field(default_factory=dict)

    async def complete(self, request: ChatRequest) -> ChatReply:
        await super().complete(request)
        path = self.calls[-1]
        if path.startswith(("judging", "checking")):
            self.sent[path] = request.system, request.user
        labels = re.findall(r"<S(\d+)>", request.user)
        if labels and path.startswith("judging"):
            lines = [f"S{n}: {'2 or 3' if n == '2' else 2}" for n in labels]
            return ChatReply("\n".join(lines), FinishReason.STOP, Usage(10, 4))
        said = self.text if path.startswith("generation") else usual(path, request.user)
        return ChatReply("2" if path.startswith("checking") else said, FinishReason.STOP, Usage(10, 4))


@pytest.fixture
def provider() -> Recorder:
    return Recorder()


async def all_calls(engine: AsyncEngine, job: JobRow) -> list[JudgeCall]:
    """Everything that can be read of a job's judge calls."""
    context = await JobContexts(engine).get(TENANT, job.id)
    found = []
    for arm in ("persona", "control"):
        wanted = ResponseFilter(arm=arm)
        page, _ = await read_page(engine, job, context, wanted, after=None, limit=500)
        for response in page:
            place = response_place(job.id, response.id)
            assert place is not None
            for unit in (None, *range(len(response.units))):
                read = await read_judge_calls(engine, job, context, place, unit)
                assert read.text == (response.text if unit is None else response.units[unit].text)
                found += read.data
    return found


def prompts(calls: list[JudgeCall]) -> Prompts:
    return {(call.system, call.prompt) for call in calls}


def sent(worker: Worker) -> Prompts:
    assert isinstance(worker.provider, Recorder)
    assert worker.provider.sent
    return set(worker.provider.sent.values())


@pytest.mark.parametrize("protocol", ["paper", "hardened"])
async def test_sentences_alone_in_every_order_with_and_without_a_persona(
    engine: AsyncEngine, worker: Worker, protocol: str
) -> None:
    job = await new_job(
        engine,
        personas=(a_persona("duo", "a warm {dimension}", {"A": "high", "N": "low"}),),
        tasks=("questionnaire", "essay"),
        judges=JUDGES,
        protocol=protocol,
        control=True,
        judging=JudgingIn(order_check=OrderCheckIn(share=0.5)),
    )
    await worker.run_all(job)
    calls = await all_calls(engine, job)
    assert prompts(calls) == sent(worker)
    assert {call.purpose for call in calls} == {"verdict", "repeated", "reversed", "shuffled"}
    assert all((call.system is not None) == (protocol == "hardened") for call in calls)
    shuffled = [call for call in calls if call.purpose == "shuffled"]
    assert all(call.notes == [ORDER] for call in shuffled)
    assert {call.parameters["temperature"] for call in calls} == {0.0}


async def test_sentences_together_and_those_that_were_then_asked_about_alone(
    engine: AsyncEngine, worker: Worker
) -> None:
    job = await new_job(
        engine,
        models=(),
        instructions=None,
        responses=(a_response("E-low", "essay", TEXT),),
        judging=grouped(3, 1.0, 1),
        protocol="hardened",
    )
    await worker.run_all(job)
    calls = await all_calls(engine, job)
    assert prompts(calls) == sent(worker)
    counted = [(call.purpose, call.units, call.notes) for call in calls if call.purpose != "alone"]
    assert counted == [
        ("verdict", [0, 1], [PART]),
        ("verdict", [1], []),
        ("group", [0, 1], [NOTHING]),
        ("verdict", [2, 3, 4], [PART]),
        ("verdict", [3], []),
        ("group", [2, 3, 4], [NOTHING]),
        ("verdict", [2, 3, 4], [PART]),
    ]
    assert [call.raw for call in calls if call.purpose == "group"] == ["S2: 2 or 3"] * 2


async def test_grades_with_their_exemplars_and_sentences_of_answers(
    engine: AsyncEngine, worker: Worker
) -> None:
    tasks = (a_task("expected_action", questions=2, atomic=True),)
    job = await new_gym_job(engine, tasks=tasks, judges=JUDGES, control=True)
    await worker.run_all(job)
    calls = await all_calls(engine, job)
    assert prompts(calls) == sent(worker)
    assert {call.purpose for call in calls} == {"verdict", "grade"}


async def test_what_nobody_was_asked_has_no_prompt(engine: AsyncEngine, worker: Worker) -> None:
    refusal = "I'm sorry, but I can't help with that."
    job = await new_job(
        engine, models=(), instructions=None, responses=(a_response("E-low", "essay", refusal),)
    )
    await worker.run_all(job)
    (call,) = await all_calls(engine, job)
    assert (call.prompt, call.raw, call.status, call.notes) == (None, None, "refused", [NOT_ASKED])


async def test_whether_it_is_certain_depends_on_who_computed_the_results(
    engine: AsyncEngine, worker: Worker
) -> None:
    job = await new_job(engine, models=(), instructions=None, responses=(a_response("E-low", "essay", TEXT),))
    context = await JobContexts(engine).get(TENANT, job.id)

    async def certain() -> tuple[bool, str | None]:
        read = await read_judge_calls(engine, job, context, (0, 0, 0), 0)
        return read.certain, read.release

    await worker.run_all(job)
    assert await certain() == (False, None)
    await worker.finalize(job)
    assert (await certain())[0]
    await execute(
        engine,
        'UPDATE job_results SET results = regexp_replace(results, \'"persona-assay":"[^"]*"\', \'"persona-assay":"0.0.1"\')',
    )
    assert await certain() == (False, "0.0.1")
    with pytest.raises(NotFoundError):
        await read_judge_calls(engine, job, context, (0, 0, 1), 0)
    with pytest.raises(InvalidJobError):
        await read_judge_calls(engine, job, context, (0, 0, 0), 5)
