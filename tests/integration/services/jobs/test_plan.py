"""What a plan warns of."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.budget import Budget
from app.domain.jobs.contract import Plan
from app.domain.jobs.request import JudgingIn
from app.guard.targets import Guard
from app.llm.connections.connections import Connections, load_connections
from app.llm.models.prices import GenaiPriceBook
from app.llm.models.table import ModelEnd
from app.services.job_context import JobContexts
from app.services.jobs.plan import PlanDependencies, plan_job
from app.services.jobs.submit import SubmissionDependencies
from app.services.providers.connection_book import ConnectionBook
from app.services.results.noise import NoiseReader
from app.services.results.read import ResultsReader
from app.vault.secret_cipher import SecretCipher
from tests.integration.jobs import TENANT, RecordingQueue, draft, submission_dependencies
from tests.job_requests import a_model


@pytest.fixture
def deps(engine: AsyncEngine) -> PlanDependencies:
    operator = load_connections(None, {"OPENAI_API_KEY": "sk-proj-q7Zf3Lw9KxTb2YhVn5Rc"}, None)
    submission = replace(
        submission_dependencies(engine, RecordingQueue()),
        book=ConnectionBook(engine, operator, Guard(), SecretCipher(())),
        prices=GenaiPriceBook(operator),
    )
    return planning(submission, operator)


def planning(submission: SubmissionDependencies, operator: Connections) -> PlanDependencies:
    results = ResultsReader(submission.engine, JobContexts(submission.engine))
    read_noise = NoiseReader(submission.engine, results).read
    return PlanDependencies(submission, operator, submission.prices, 512, 100, read_noise)


async def test_a_model_that_is_gone_is_named_once(deps: PlanDependencies) -> None:
    gone = a_model("openai/gpt-4o-2024-05-13")
    plan = await plan_job(deps, TENANT, draft(models=(gone,), judges=(gone,)))
    (warning,) = [one for one in plan.warnings if "ended on" in one]
    assert warning.startswith("gpt-4o-2024-05-13 ended on 2026-10-23 (https://")
    assert warning.endswith("calls to it will fail.")


async def test_one_that_stays_is_not(deps: PlanDependencies) -> None:
    stays = a_model("openai/gpt-6-luna")
    plan = await plan_job(deps, TENANT, draft(models=(stays,), judges=(stays,)))
    assert not any("end" in one.split("(")[0] for one in plan.warnings if "gpt-6-luna" in one and "20" in one)


@pytest.mark.parametrize(
    ("today", "said"),
    [
        (
            date(2027, 1, 13),
            "will end on 2027-01-14 (https://x.test): take another one for work that is to be repeated.",
        ),
        (date(2027, 1, 14), "ended on 2027-01-14 (https://x.test): calls to it will fail."),
    ],
)
def test_the_day_itself_is_the_first_without_it(today: date, said: str) -> None:
    assert ModelEnd(date(2027, 1, 14), "https://x.test", "vendor").told(today) == said


def test_what_is_not_from_the_vendor_says_so() -> None:
    assert "(https://x.test, inferred)" in ModelEnd(date(2027, 1, 14), "https://x.test", "inferred").told(
        date(2026, 1, 1)
    )


@pytest.mark.parametrize(
    ("url", "limits", "warned"),
    [
        ("http://127.0.0.1:8080/v1", "", True),
        ("http://192.168.1.7:8080/v1", "", True),
        ("http://127.0.0.1:8080/v1", ", limits: {max_in_flight: 1}", False),
        ("https://api.example.com/v1", "", False),
    ],
)
async def test_a_server_of_ones_own_without_a_bound_is_named(
    engine: AsyncEngine, url: str, limits: str, warned: bool
) -> None:
    entry = f"{{kind: openai, base_url: '{url}', models: [small]{limits}}}"
    operator = load_connections(f"connections: {{own: {entry}}}", {}, None)
    submission = replace(
        submission_dependencies(engine, RecordingQueue()),
        book=ConnectionBook(engine, operator, Guard(), SecretCipher(())),
        prices=GenaiPriceBook(operator),
    )
    own = a_model("own/small")
    plan = await plan_job(
        planning(submission, operator),
        TENANT,
        draft(models=(own,), judges=(own,)),
    )
    assert any("max_in_flight" in one for one in plan.warnings) == warned


@pytest.mark.parametrize(
    ("models", "execution", "most"),
    [
        (("openai/a", "openai/b"), "direct", "1,124"),  # two models, and 100 that are not written
        (("openai/a", "slow/c"), "direct", "620"),  # of 8 calls in flight
        (("openai/a", "simulated/sim-drifting"), "direct", "612"),
        (("simulated/sim-drifting",), "direct", None),
        (("slow/free",), "direct", None),
        (("slow/free", "slow/c"), "direct", "108"),
        (("openai/a",), "batch", None),
    ],
)
async def test_a_job_with_a_budget_is_told_what_a_killed_worker_may_cost(
    engine: AsyncEngine, models: tuple[str, ...], execution: str, most: str | None
) -> None:
    slow = (
        "{kind: openai, base_url: 'https://api.example.com/v1', models: [c, free], limits: {max_in_flight: 8},"
        " prices: {free: {input: 0, output: 0}}}"
    )
    keys = {"OPENAI_API_KEY": "sk-proj-q7Zf3Lw9KxTb2YhVn5Rc"}
    operator = load_connections(f"connections: {{slow: {slow}}}", keys, "http://127.0.0.1:8400")
    submission = replace(
        submission_dependencies(engine, RecordingQueue()),
        book=ConnectionBook(engine, operator, Guard(), SecretCipher(())),
        prices=GenaiPriceBook(operator),
    )
    deps = planning(submission, operator)
    writer, *judges = map(a_model, models)
    job = draft(
        models=(writer,),
        judges=tuple(judges) or (writer,),
        execution=execution,
        budget=Budget(calls=10**6),
    )
    warnings = (await plan_job(deps, TENANT, job)).warnings
    told = f"If a worker is killed, up to {most} of its calls may be paid for twice; the budget still holds."
    assert [one for one in warnings if "paid for twice" in one] == ([told] if most else [])
    assert "paid for twice" not in str(await plan_job(deps, TENANT, job.model_copy(update={"budget": None})))


async def test_the_upper_bound_includes_repairs_and_refusal_checks(deps: PlanDependencies) -> None:
    model = a_model("openai/gpt-4o")

    async def planned(budget: Budget | None = None, **judging: Any) -> Plan:
        spec = draft(models=(model,), judges=(model,), judging=JudgingIn(**judging), budget=budget)
        return await plan_job(deps, TENANT, spec)

    def costs(plan: Plan) -> tuple[float, float]:
        assert plan.cost.usd_low is not None
        assert plan.cost.usd_high is not None
        return plan.cost.usd_low, plan.cost.usd_high

    plain, repaired = await planned(repair=False), await planned()
    checked = await planned(repair=False, refusals="judge")
    (judging,) = [stage for stage in plain.stages if stage.stage == "judging"]
    assert (repaired.most_repair_calls, checked.most_refusal_checks) == (judging.calls, plain.responses)
    for further in (repaired, checked):
        assert (further.calls, costs(further)[0]) == (plain.calls, costs(plain)[0])
        assert costs(further)[1] > costs(plain)[1]
    every = await planned(repair=False, refusals="judge_all")
    (checks,) = [stage for stage in every.stages if stage.stage == "refusal_check"]
    assert (checks.calls, every.most_refusal_checks) == (plain.responses, 0)
    assert every.calls == plain.calls + checks.calls
    assert costs(every)[0] > costs(plain)[0]
    assert costs(every)[1] == pytest.approx(costs(checked)[1], abs=0.0002)
    # Each check shows the request and the text, but no more of them than judges are shown.
    (written,) = [stage for stage in plain.stages if stage.stage == "generation"]
    shown = checks.input_tokens - written.input_tokens - written.output_tokens
    assert 100 < shown / checks.calls < 1_000
    # A repair sends the prompt again.
    assert judging.usd is not None
    assert costs(repaired)[1] - costs(plain)[1] > judging.usd

    tokens = sum(stage.input_tokens + stage.output_tokens for stage in plain.stages)
    for limit in (Budget(calls=plain.calls), Budget(tokens=tokens), Budget(usd=costs(plain)[1] + 0.0001)):
        for judging_options, warned in (({"repair": False}, False), ({}, True)):
            warnings = (await planned(limit, **judging_options)).warnings
            assert any("more than its budget" in each for each in warnings) is warned, warnings

    few = replace(deps.submission, confirm_calls_above=plain.calls)
    bounded = replace(deps, submission=few)
    job = draft(models=(model,), judges=(model,))
    assert (await plan_job(bounded, TENANT, job)).confirm_calls == plain.calls + judging.calls
    without = job.model_copy(update={"judging": JudgingIn(repair=False)})
    assert (await plan_job(bounded, TENANT, without)).confirm_calls is None
    checking = job.model_copy(update={"judging": JudgingIn(repair=False, refusals="judge_all")})
    assert (await plan_job(bounded, TENANT, checking)).confirm_calls == plain.calls + plain.responses
