"""What a key may spend, how fast a tenant may change things, and a tenant that the operator pauses."""

from typing import Any

import httpx2

from app.domain.keys.api_key import Scope
from app.services.keys.tenant_limits import pause_tenant, resume_tenant
from tests.api.service import job_body, pointers
from tests.world import Reply, World

BUDGET = 0.4
DEAR = {name: {"input": 10.0, "output": 20.0} for name in ("writer", "judge")}


class TestToolsOfACall:
    """A key may spend $0.50, and a job $0.40; its provider counts a quarter of a token for a character of tools."""

    @staticmethod
    async def submitted(world: World, *allowed: str, characters: int) -> httpx2.Response:
        world.configure(connection={"prices": DEAR, "allow_extra": list(allowed)})
        world.provider.reply_always(Reply(tokens=(1_000, 50)))
        headers = await world.new_key(Scope.SUBMIT, Scope.READ, usd=0.5)
        world.http.headers.update(headers)
        extra: dict[str, Any] = {"tools": [{"text": "x" * characters}], "service_tier": "priority"}
        body = job_body(
            models=[{"model": "acme/writer", "max_tokens": 100, "extra": extra}],
            judges=[{"model": "acme/judge", "max_tokens": 20}],
            iterations=30,
            budget={"usd": BUDGET},
        )
        return await world.http.post("/v1/jobs", json=body)

    async def test_are_refused_unless_the_operator_allows_them(self, world: World) -> None:
        answer = await self.submitted(world, characters=1_000_000)
        assert answer.status_code == 422
        assert pointers(answer) == ["/models/0/extra/tools", "/models/0/extra/service_tier"]

    async def test_are_not_sent_where_they_may_cost_more_than_the_budget(self, world: World) -> None:
        answer = await self.submitted(world, "tools", "service_tier", characters=1_000_000)
        assert answer.status_code == 202, answer.text
        assert (await world.run())["status_reason"] == "budget_exhausted"
        assert world.provider.calls == []

    async def test_that_fit_are_spent_up_to_the_budget_and_no_further(self, world: World) -> None:
        answer = await self.submitted(world, "tools", "service_tier", characters=4_000)
        assert answer.status_code == 202, answer.text
        job = await world.run()
        assert job["status_reason"] == "budget_exhausted"
        assert len(world.provider.called("generation")) > 20
        assert job["usage"]["calls"] == len(world.provider.calls)
        assert BUDGET - 0.06 < job["budget"]["usd"]["spent"] <= BUDGET


async def test_changes_are_paced_only_beside_other_tenants(world: World) -> None:
    """A tenant may make one change in twenty seconds beside others."""
    world.configure(tenant_changes_per_second=0.05)
    ours, theirs = [await world.new_key(Scope.ADMIN, tenant=name) for name in ("acme", "other")]

    async def submit(headers: dict[str, str]) -> httpx2.Response:
        return await world.http.post(
            "/v1/jobs", json=job_body(judges=["acme/judge"], models=["acme/writer"]), headers=headers
        )

    assert [(await submit(ours)).status_code for _ in range(4)] == [202] * 4
    assert (await world.http.get("/v1/jobs", headers=theirs)).status_code == 200
    assert (await submit(ours)).status_code == 202
    refused = await submit(ours)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_changes")
    seconds = int(refused.headers["retry-after"])
    assert 1 <= seconds <= 20
    assert (await world.http.get("/v1/jobs", headers=ours)).status_code == 200
    assert (await submit(theirs)).status_code == 202
    await world.advance(seconds=seconds)
    assert (await submit(ours)).status_code == 202


async def test_jobs_of_a_paused_tenant_make_no_calls_however_they_are_resumed(world: World) -> None:
    world.provider.reply_always(Reply(delay=1))
    await world.submit(personas=["E-high", "N-low"], iterations=20)
    await world.advance(seconds=2.5)
    await pause_tenant(world.engine, "default")
    await world.advance(seconds=10)
    sent = len(world.provider.calls)
    assert 0 < sent < 40
    # A resumption that did not see the pause, as one after an outage; the sweeper announces the job.
    await world.rows("UPDATE jobs SET status = 'queued', status_reason = NULL, error = NULL")
    paused = await world.run()
    assert (paused["status"], paused["status_reason"], paused["error"]["code"]) == (
        *("paused", "tenant_paused", "tenant_paused"),
    )
    assert len(world.provider.calls) == sent
    await resume_tenant(world.engine, "default")
    job = await world.run()
    assert job["status"] == "completed"
    asked = [(call.stage, call.place) for call in world.provider.calls]
    assert len(asked) == len(set(asked)) == job["usage"]["calls"]
