"""The service's own adapter for base models, and the simulator."""

import pytest
from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, Model, ModelParameters
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from tests.integration.simulator.conftest import RunningSimulator
from tests.unit.simulator.prompts import POST


@pytest.mark.parametrize("transport", ["lean", "sdk"])
async def test_a_base_model_writes_as_the_persona_of_its_prompt(
    simulator: RunningSimulator, transport: TransportKind
) -> None:
    connection = Connection("base", "completions", f"{simulator.url}/v1", SecretStr("a-key-of-ours-0123"))
    gateway = Gateway(Connections({"base": connection}), transport)
    model = Model("m", "base", "sim-faithful", ModelParameters(max_tokens=400))
    request = ChatRequest(model, "You are a neurotic person.", POST, "job_1/g/1/1/1/a1", 10.0)
    try:
        reply = await gateway.complete(request)
    finally:
        await gateway.close()
    assert reply.text.strip()
    assert reply.usage is not None
    (entry,) = [one for one in simulator.ledger() if one.get("text") == reply.text]
    assert (entry["endpoint"], entry["kind"]) == ("/v1/completions", "generation")
