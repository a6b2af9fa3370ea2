"""Whatever a provider makes of the key that it was sent, nothing of it comes out of a call."""

import json
import traceback
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, ConnectionKind, Model
from app.guard.targets import Guard
from app.llm.batches.anthropic import AnthropicBatches
from app.llm.batches.openai import OpenAIBatches
from app.llm.connections.connections import Connection
from app.llm.formats.anthropic import AnthropicChat
from app.llm.formats.chat import Chat
from app.llm.formats.openai import OpenAIChat
from app.llm.transports import TransportKind
from app.ports import ModelCallError
from tests.canaries import RANDOM, anthropic_reply, found_in, openai_reply, spellings
from tests.integration.llm.stub_provider import Answer, StubProvider

KEY = f"sk-proj-{RANDOM}"
CHATS: dict[ConnectionKind, type[Chat]] = {"openai": OpenAIChat, "anthropic": AnthropicChat}
REPLIES = {"openai": openai_reply, "anthropic": anthropic_reply}


def faults(shown: str, kind: ConnectionKind) -> Iterator[Answer]:
    reply = REPLIES[kind]
    for status in (400, 401, 403, 404, 429, 500, 529):
        yield Answer.of_json({"error": {"message": f"key {shown} refused", "type": "t", "code": "c"}}, status)
    yield Answer(500, f"<html>{shown}</html>".encode())
    yield Answer.of_json({"error": {"message": "m", "code": shown[:64], "type": shown}}, 401)
    yield Answer.of_json({"error": {"message": f"in a reply {shown}", "code": 401}})
    yield Answer.of_json({"detail": shown}, 422)
    yield Answer(200, b'{"choices": [{"message": {"content": "' + shown.replace('"', "'").encode())
    yield Answer(200, shown.encode(), cut_after=60)
    yield Answer.of_json(reply("a text"), 302, location=f"http://127.0.0.1:9/{shown}".replace("\n", ""))
    yield Answer.of_json({"error": "e"}, 429, retry_after=shown, x_ratelimit_limit_requests=shown)
    yield Answer.of_json(reply(f"Your key is {shown}."), request_id=shown, x_request_id=shown)
    yield Answer.of_json(reply("a text", model=shown, system_fingerprint=shown))


def told_by(error: BaseException) -> str:
    """All that anybody could write down of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


@pytest.mark.parametrize("kind", CHATS)
@pytest.mark.parametrize("transport", ["lean", "sdk"])
async def test_no_answer_of_a_provider_brings_the_key_out(
    kind: ConnectionKind, transport: TransportKind
) -> None:
    answers = [answer for shown in spellings(KEY) for answer in faults(shown, kind)]
    async with StubProvider(*answers) as provider:
        chat = CHATS[kind](Connection("c", kind, provider.url, SecretStr(KEY)), transport)
        for answer in answers:
            assert found_in(await _told(chat)) == [], answer
        await chat.close()
    assert len(provider.seen) == len(answers)
    assert all(RANDOM in seen.headers["authorization"] for seen in provider.seen)


@pytest.mark.parametrize("kind", CHATS)
@pytest.mark.parametrize("transport", ["lean", "sdk"])
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1", "https://127.0.0.1:{port}", "http://%zz:1", "http://[::1", "https://10.0.0.1"],
)
async def test_no_call_that_comes_nowhere_does(
    kind: ConnectionKind, transport: TransportKind, url: str
) -> None:
    async with StubProvider(Answer(delay=60.0)) as provider:
        port = provider.url.rpartition(":")[2]
        guard = Guard() if url == "https://10.0.0.1" else None
        connection = Connection("c", kind, url.format(port=port), SecretStr(KEY), guard=guard)
        try:
            chat = CHATS[kind](connection, transport)
            told = await _told(chat, seconds=1.0)
            await chat.close()
        except Exception as error:  # noqa: BLE001 - a URL that is none is refused long before
            told = told_by(error)
    assert found_in(told) == []
    assert found_in(repr(connection)) == []


async def test_no_answer_in_a_batch_does() -> None:
    openai = OpenAIBatches(Connection("c", "openai", "http://127.0.0.1:9", SecretStr(KEY)))
    anthropic = AnthropicBatches(Connection("c", "anthropic", "http://127.0.0.1:9", SecretStr(KEY)))
    for shown in spellings(KEY):
        fault = {"message": f"key {shown}", "type": "authentication_error", "code": shown[:64]}
        lines: list[dict[str, object]] = [
            {"response": {"status_code": 401, "body": {"error": fault}, "request_id": shown}},
            {"response": {"status_code": 200, "body": openai_reply(shown), "request_id": shown}},
            {"response": None, "error": {"code": shown, "message": shown}},
        ]
        results: list[dict[str, object]] = [
            {"result": {"type": "errored", "error": {"error": fault}}},
            {"result": {"type": "succeeded", "message": anthropic_reply(shown, model=shown)}},
        ]
        for decode, answers in ((openai.decode, lines), (anthropic.decode, results)):
            for answer in answers:
                try:
                    told = repr(decode(json.dumps({"custom_id": "1", **answer})))
                except ModelCallError as error:
                    told = told_by(error)
                assert found_in(told) == [], answer
    await openai.close()
    await anthropic.close()


async def test_what_is_kept_of_a_batchs_answers_does_not() -> None:
    for shown in spellings(KEY):
        line = json.dumps({"custom_id": "1", "response": {"body": openai_reply(shown)}}).encode() + b"\n"
        batch = {
            "id": "batch_1",
            "object": "batch",
            "status": "completed",
            "output_file_id": "file-1",
            "completion_window": "24h",
            "created_at": 1,
            "endpoint": "/v1/chat/completions",
            "input_file_id": "file-0",
        }
        async with StubProvider(Answer.of_json(batch), Answer(200, line)) as provider:
            batches = OpenAIBatches(Connection("c", "openai", provider.url, SecretStr(KEY)))
            kept = [answer async for answer in batches.answers("batch_1")]
            await batches.close()
        assert len(kept) == 1
        assert found_in(str(kept)) == []


async def _told(chat: Chat, seconds: float = 5.0) -> str:
    try:
        return repr(await chat.complete(ChatRequest(Model("m", "c", "m"), None, "hello", "job_1/1", seconds)))
    except ModelCallError as error:
        return told_by(error)
